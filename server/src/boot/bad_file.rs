//! The faults of the files of an installation, and what to do about each.

use std::path::PathBuf;

use crate::store::sqlite::BadLog;

/// A file of the installation does not fit.
#[derive(Debug, thiserror::Error)]
#[error("{} {wrong}", path.display())]
pub struct BadFile {
    pub(super) path: PathBuf,
    pub(super) wrong: Wrong,
}

/// The fault of a file of the installation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Wrong {
    #[error(
        "is missing; restore it as it was, or, if it is lost, run `tidemark restored` to go on without what only it held"
    )]
    Missing,
    #[error(
        "is empty; restore it as it was, or, if it is lost, run `tidemark restored` to go on without what only it held"
    )]
    Empty,
    #[error(
        "is older than the database; restore files of one moment, or run `tidemark restored` to go on with these"
    )]
    Older,
    #[error(
        "is newer than the database; restore files of one moment, or run `tidemark restored` to go on with these"
    )]
    Newer,
    #[error(
        "is of another moment than the database; restore files of one moment, or move it away and run `tidemark restored` to go on \
         without what only it holds"
    )]
    OtherMoment,
    #[error(
        "does not belong to this installation; restore the right one, or move it away and run `tidemark restored` to go on without it"
    )]
    Foreign,
    #[error("is the file `{0}` of an installation, under a wrong name; give each file its name back")]
    OtherRole(String),
    #[error("is in use by another process; stop that one")]
    Busy,
    #[error("was written by a newer version; run that version")]
    NewerVersion,
    #[error("cannot be used now ({0}); see to that and start again")]
    Unusable(String),
    #[error(
        "is damaged ({0}); restore a good copy, or move it away and run `tidemark restored` to go on without what only it held"
    )]
    Damaged(String),
    #[error("is {how}, but {} is there; restore the database that belongs to it, or choose an empty data directory", beside.display())]
    NoDatabase { how: &'static str, beside: PathBuf },
    #[error("is damaged ({0}); restore all files of one moment, and run `tidemark restored`")]
    DamagedDatabase(String),
    #[error("is of a restore that was interrupted; empty the directory, and run `tidemark restore` again")]
    Restoring,
    #[error("was restored, and `tidemark restored` was interrupted; run it again")]
    NotRestored,
}

/// A log of another moment cannot be continued.
impl From<BadLog> for Wrong {
    fn from(bad: BadLog) -> Wrong {
        match bad {
            BadLog::Missing => Wrong::Missing,
            BadLog::Empty => Wrong::Empty,
            BadLog::Other => Wrong::OtherMoment,
            BadLog::Newer => Wrong::NewerVersion,
            bad @ (BadLog::Damaged { .. } | BadLog::Gap(_)) => Wrong::Damaged(bad.to_string()),
            BadLog::Busy => Wrong::Busy,
            bad @ BadLog::Removed => Wrong::Unusable(bad.to_string()),
            BadLog::Io(why) => Wrong::Unusable(why),
        }
    }
}
