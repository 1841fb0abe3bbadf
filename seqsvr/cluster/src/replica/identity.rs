//! The identity of a replica, and why it does not open files. Every file of a replica begins with its identity, so that
//! files that were put into the wrong place are noticed.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use seqsvr_core::store::Layout;

/// Which replica of which Set of which cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The cluster's name.
    pub cluster: String,
    /// The number of the Set (S6).
    pub set: u32,
    /// The replica's name, unique within the Set.
    pub name: String,
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "replica {} of Set {} of cluster {}", self.name, self.set, self.cluster)
    }
}

/// The advice for files that must not be voted by: the replica comes back under a fresh id, as a new member.
const LOST: &str = "Move the files away, start once with --init, and run `seqsvr store replace NAME ADDRESS` with the name of this store";

/// Why a replica's directory is not served from.
#[derive(Debug, Error)]
pub enum FilesError {
    /// Another process has it.
    #[error("{} is used by another process; stop that one first", .0.display())]
    Locked(PathBuf),
    /// There is no replica in it.
    #[error("{} holds no replica; start once with --init", .0.display())]
    Empty(PathBuf),
    /// There is one in it already.
    #[error("{} already holds a replica; start without --init", .0.display())]
    Exists(PathBuf),
    /// It is another one's.
    #[error(
        "{} belongs to {found}, but the configuration says {configured}; correct directory, or cluster, set and name",
        path.display()
    )]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// As its files say.
        found: Box<Identity>,
        /// As it should be.
        configured: Box<Identity>,
    },
    /// The sections mean something else.
    #[error(
        "{} was made with section_size {} and step {}, but {} and {} are configured; set section_size = {} and step = {}",
        path.display(), stored.section_size, stored.step, configured.section_size, configured.step,
        stored.section_size, stored.step
    )]
    Layout {
        /// Which file.
        path: PathBuf,
        /// As its files say.
        stored: Layout,
        /// As it should be.
        configured: Layout,
    },
    /// The contents of the file are not the ones that were stored.
    #[error("{} is {what}; it is not served from. {LOST}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Where and how.
        what: String,
    },
    /// The files are older than the writes that were confirmed from them.
    #[error(
        "{} was restored from an older copy (it ends at {found}, but {confirmed} was confirmed); \
         it is not served from. {LOST}", path.display()
    )]
    RolledBack {
        /// Which file.
        path: PathBuf,
        /// The last frame that is there: file and frame.
        found: FramePlace,
        /// The last frame that is known to have been written.
        confirmed: FramePlace,
    },
    /// Another program wrote it.
    #[error("{} has format {format}, which this program does not know; use the one that wrote it", path.display())]
    Format {
        /// Which file.
        path: PathBuf,
        /// The format that it names.
        format: u32,
    },
    /// There is no room for the next file. All confirmed writes are there.
    #[error("{}: {why}; free some space there", path.display())]
    Full {
        /// Which file.
        path: PathBuf,
        /// The error of the system.
        why: io::Error,
    },
    /// The system refuses.
    #[error("{}: {why}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// The error of the system.
        why: io::Error,
    },
}

impl FilesError {
    /// For `map_err`.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> FilesError + use<> {
        let path = path.to_owned();
        move |why| FilesError::Io { path, why }
    }

    /// The same where a file is written that does not count yet: without it the one before it still does.
    pub(super) fn writing(path: &Path) -> impl FnOnce(io::Error) -> FilesError + use<> {
        let path = path.to_owned();
        move |why| match why.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FilesError::Full { path, why },
            _ => FilesError::Io { path, why },
        }
    }
}

/// How far a replica has written: files are numbered, and frames within a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FramePlace {
    /// The number of the file, from 1.
    pub file: u64,
    /// The number of the last frame in it.
    pub frame: u64,
}

impl std::fmt::Display for FramePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "frame {} of file {}", self.frame, self.file)
    }
}
