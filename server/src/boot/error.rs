//! Why a start, or a command, gets no further.

use std::path::PathBuf;

use seqsvr_client::ClientConfigError;

use super::bad_file::BadFile;
use crate::config::{ConfigError, Listen};
use crate::domain::{MessageId, Uid};
use crate::notify::postgres::HintsError;
use crate::push::BadKey;
use crate::seq::RequestIdsError;
use crate::store::StoreError;
use crate::store::postgres::PgOpenError;
use crate::store::sqlite::OpenError;

/// Why the server does not start; the text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is no database, and the command is for one that is there.
    #[error("no installation in {}: there is no {}; name the right data directory with --data-dir", directory.display(), file.display())]
    NoInstallation {
        /// Where it was looked for.
        directory: PathBuf,
        /// Under which name.
        file: PathBuf,
    },
    /// PostgreSQL cannot be used.
    #[error(transparent)]
    Postgres(#[from] PgOpenError),
    /// A command or part that knows no other database than SQLite yet.
    #[error("{what} is not possible on PostgreSQL yet")]
    OnlySqlite {
        /// The command or part.
        what: &'static str,
    },
    /// A backup or restore of files, where there are none.
    #[error(
        "this installation is in PostgreSQL, which has its own tools for that: a base backup with an archive of the write-ahead log; \
         docs/OPERATING.md, \"Backup\" and \"Restore on PostgreSQL\", has the steps"
    )]
    BackUpPostgres,
    /// The key of the installation for push services.
    #[error(
        "the key for push services, in the table push_key, cannot be used: {0}; delete its row, and the next start makes another, with \
         which devices subscribe anew"
    )]
    PushKey(#[from] BadKey),
    /// The ids of messages come from another source than the configuration says.
    #[error(
        "the ids of messages come from \"{agreed}\" in this installation, and [messages] ids says \"{wanted}\"; set it to \"{agreed}\", \
         or run `tidemark ids {wanted}` once"
    )]
    MessageIds {
        /// The source of the installation.
        agreed: String,
        /// The source in the configuration.
        wanted: &'static str,
    },
    /// The same for `tidemark restored`, which may be needed before anything can be changed.
    #[error(
        "the ids of messages come from \"{agreed}\" in this installation, and [messages] ids says \"{wanted}\"; set it to \"{agreed}\", \
         and run `tidemark restored` again"
    )]
    RestoredIds {
        /// The source of the installation.
        agreed: String,
        /// The source in the configuration.
        wanted: &'static str,
    },
    /// A row is above the recorded latest id of its inbox: a later one could get its id.
    #[error(
        "the inbox of user {uid} has a row {newest}, and its latest id is {latest}, so that an id could come twice: rows were put there \
         by other means; stop every server, run `tidemark restored`, and start again"
    )]
    HeadBehind {
        /// The owner of the inbox.
        uid: Uid,
        /// The recorded latest id.
        latest: MessageId,
        /// The id of its newest row.
        newest: MessageId,
    },
    /// A file of the installation is missing, damaged, of another moment or of another installation.
    #[error(transparent)]
    BadFile(#[from] BadFile),
    /// The database opened but does not answer.
    #[error("the database cannot be read: {0}")]
    Store(#[from] StoreError),
    /// The ceilings of the sequences cannot be opened.
    #[error("the sequence file cannot be opened: {0}")]
    Sections(#[from] seqsvr_core::store::StoreError),
    /// The numbers of users and groups cannot be issued.
    #[error(transparent)]
    Ids(#[from] crate::seq::IdsError),
    /// Requests cannot be named.
    #[error(transparent)]
    RequestIds(#[from] RequestIdsError),
    /// A file of the installation cannot be read or made.
    #[error("{path}: {why}")]
    File {
        /// Which.
        path: PathBuf,
        /// The system's error.
        why: std::io::Error,
    },
    /// The sequences cannot be served.
    #[error("the sequence service cannot start: {0}")]
    Sequence(#[from] seqsvr_core::OpenAllocatorError),
    /// The cluster's client configuration cannot be used.
    #[error("[sequence] client_config: {0}")]
    Cluster(#[from] ClientConfigError),
    /// The other servers of the database cannot be told of anything, or not be heard.
    #[error(transparent)]
    Hints(#[from] HintsError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {why}; {otherwise}, or stop what uses it")]
    Listen {
        /// Which address.
        address: Listen,
        /// The system's error.
        why: std::io::Error,
        /// Where another one is chosen.
        otherwise: &'static str,
    },
}
