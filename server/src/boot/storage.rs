//! The database under the server and its commands: SQLite or PostgreSQL, by the URL. Callers see traits. An operation that only one of
//! them supports asks for that one by name.

use std::fs;
use std::future::pending;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use super::files::{self, Rule};
use super::{BootError, Hinting, account_options, new_history, random_uuid};
use crate::app::{Accounts, Others};
use crate::config::{Config, DatabaseKind, MessageIds};
use crate::domain::{Clock, HistoryId};
use crate::notify::postgres::{PgHints, keep_servers_away};
use crate::seq::{Ids, StoredNumbers};
use crate::store::postgres::{PgDb, PgRates, PgTickets, PostgresStore, listening};
use crate::store::sqlite::{Db, OpenError, SqliteStore, agreed_message_ids, head_behind, put_message_ids};
use crate::store::{Directory, MessageStore, StoreError, TableStore};
use crate::transfer::AHEAD;

/// Names of people that are kept in memory.
const CACHED_NAMES: usize = 100_000;

/// Under which key PostgreSQL keeps who assigns the ids of messages.
const MESSAGE_IDS: &str = "message_ids";

/// The oldest accounts, and as many of the newest, whose latest ids a start compares with their rows.
const SAMPLE: u32 = 500;

/// The database: opened, checked and up to date.
pub struct Storage {
    pub(super) database: Database,
    /// Everything but rows.
    pub directory: Arc<Directory>,
    /// The same, over connections that the queues share with nobody.
    pub(super) directory_for_queues: Arc<Directory>,
}

/// The store of users' rows, and the store of tables' rows.
pub(super) type RowStores = (Arc<dyn MessageStore>, Arc<dyn TableStore>);

/// Which one it is.
pub(super) enum Database {
    /// Files in one directory, locked by this process.
    Sqlite(Arc<Db>),
    /// A server that other processes use, too.
    Postgres(Arc<PgDb>),
}

impl Storage {
    /// Opens the database that `config` names, applies the migrations that it lacks, and, on SQLite, sees to it that the files beside it
    /// belong to it.
    pub async fn open(config: &Config) -> Result<Storage, BootError> {
        match config.storage.database_url.kind() {
            DatabaseKind::Sqlite => Storage::open_file(config, Rule::Strict).await,
            DatabaseKind::Postgres => {
                let url = config.storage.database_url.with_password();
                Ok(Storage::over_postgres(PgDb::open(url, &config.storage.postgres()).await?))
            }
        }
    }

    /// The same after files of SQLite were restored: those that only say how far numbers were given may be older, or missing.
    pub async fn open_restored(config: &Config) -> Result<Storage, BootError> {
        check_installed(config)?;
        Storage::open_file(config, Rule::Restored).await
    }

    /// The same for commands that make no sense without an installation: nothing is made.
    ///
    /// # Errors
    /// [`BootError::NoInstallation`], or its like on PostgreSQL, before anything else.
    pub async fn open_existing(config: &Config) -> Result<Storage, BootError> {
        match config.storage.database_url.kind() {
            DatabaseKind::Sqlite => {
                check_installed(config)?;
                Storage::open(config).await
            }
            DatabaseKind::Postgres => {
                let url = config.storage.database_url.with_password();
                Ok(Storage::over_postgres(PgDb::open_existing(url, &config.storage.postgres()).await?))
            }
        }
    }

    /// The same for what concerns access keys alone: also while a server has the files of SQLite.
    pub async fn open_for_access_keys(config: &Config) -> Result<Storage, BootError> {
        Storage::or_beside(Storage::open(config).await, config).await
    }

    /// The same for what concerns accounts alone, of an installation that is there: also while a server has the files of SQLite.
    ///
    /// # Errors
    /// [`BootError::NoInstallation`], or its like on PostgreSQL, before anything else.
    pub async fn open_for_accounts(config: &Config) -> Result<Storage, BootError> {
        Storage::or_beside(Storage::open_existing(config).await, config).await
    }

    /// The storage that was opened, or the same files beside the server that has them.
    async fn or_beside(opened: Result<Storage, BootError>, config: &Config) -> Result<Storage, BootError> {
        match opened {
            Err(BootError::Open(OpenError::InUse { path })) => {
                let db = Db::open_beside(&path, &config.storage.sqlite()).await?;
                Ok(Storage::over_sqlite(db))
            }
            opened => opened,
        }
    }

    async fn open_file(config: &Config, rule: Rule) -> Result<Storage, BootError> {
        files::check_database(config)?;
        let file = config.storage.file()?;
        let db = Db::open_with(&file, &config.storage.sqlite()).await?;
        files::make_private(config)?;
        if let Err(refusal) = check_files(config, &db, rule).await {
            // Why nothing starts is said, not what closing adds to that.
            _ = db.close().await;
            return Err(refusal);
        }
        files::give_to_owner(config)?;
        info!(path = %file.display(), "the database is open");
        Ok(Storage::over_sqlite(db))
    }

    fn over_sqlite(db: Arc<Db>) -> Storage {
        let directory = Directory::on_sqlite(Arc::clone(&db), CACHED_NAMES);
        Storage::over(Database::Sqlite(db), directory)
    }

    fn over_postgres(db: Arc<PgDb>) -> Storage {
        let directory = Directory::on_postgres(Arc::clone(&db), CACHED_NAMES);
        Storage::over(Database::Postgres(db), directory)
    }

    fn over(database: Database, directory: Directory) -> Storage {
        let directory_for_queues = Arc::new(directory.for_queues());
        Storage { database, directory: Arc::new(directory), directory_for_queues }
    }

    /// The database of SQLite, for the commands that know no other yet.
    ///
    /// # Errors
    /// [`BootError::OnlySqlite`].
    pub fn sqlite(&self) -> Result<&Arc<Db>, BootError> {
        match &self.database {
            Database::Sqlite(db) => Ok(db),
            Database::Postgres(_) => Err(BootError::OnlySqlite { what: "this command" }),
        }
    }

    /// Refuses an installation in which somebody else assigns the ids of messages than `config` says. One that nobody has used yet takes
    /// what `config` says.
    ///
    /// # Errors
    /// [`BootError::MessageIds`].
    pub async fn check_message_ids(&self, config: &Config) -> Result<MessageIds, BootError> {
        let wanted = config.message_ids();
        let agreed = match &self.database {
            Database::Sqlite(db) => agreed_message_ids(db, wanted.as_str()).await?,
            Database::Postgres(db) => db.agreed(MESSAGE_IDS, wanted.as_str()).await?,
        };
        compare_message_ids(wanted, agreed)
    }

    /// Refuses rows above the latest id of their inbox, as far as the oldest and the newest accounts show.
    ///
    /// # Errors
    /// [`BootError::HeadBehind`].
    pub(super) async fn check_heads(&self) -> Result<(), BootError> {
        let behind = match &self.database {
            Database::Sqlite(db) => head_behind(db, SAMPLE).await?,
            Database::Postgres(db) => db.head_behind(SAMPLE).await?,
        };
        match behind {
            None => Ok(()),
            Some((uid, latest, newest)) => Err(BootError::HeadBehind { uid, latest, newest }),
        }
    }

    /// Lets somebody else assign the ids of messages from the next start on. They go on after the latest id of each inbox.
    pub async fn change_message_ids(&self, to: MessageIds) -> Result<(), BootError> {
        Ok(put_message_ids(self.sqlite()?, to.as_str()).await?)
    }

    /// The clock that all servers of this database share: its own, or that of the only server.
    ///
    /// # Errors
    /// When the database does not answer.
    pub(super) async fn clock(&self, own: Clock) -> Result<Clock, BootError> {
        match &self.database {
            Database::Sqlite(_) => Ok(own),
            Database::Postgres(db) => Ok(db.clock(&own).await?),
        }
    }

    /// Makes what the issuer keeps its segments in, where that is not a file.
    ///
    /// # Errors
    /// When the database does not answer, or its role may make no tables.
    pub async fn make_issuer_tables(&self) -> Result<(), BootError> {
        match &self.database {
            Database::Sqlite(_) => Ok(()),
            Database::Postgres(db) => Ok(Ids::make_tables(db.pool()).await?),
        }
    }

    /// Accounts over this database.
    pub fn accounts(&self, config: &Config, clock: Clock) -> Accounts {
        self.accounts_beside(config, clock, None)
    }

    /// The same, beside those other servers.
    pub(super) fn accounts_beside(&self, config: &Config, clock: Clock, others: Option<Others>) -> Accounts {
        Accounts::beside(Arc::clone(&self.directory), account_options(config), clock, others)
    }

    /// The same for a command. It tells running servers which sessions it ends, until `hinting` is stopped. Servers that it cannot tell
    /// notice within ten seconds.
    pub async fn accounts_among(&self, config: &Config, clock: Clock, hinting: &Hinting) -> Accounts {
        let others = self.others(config, &hinting.closing, &hinting.tasks).await;
        let others = others.unwrap_or_else(|error| {
            warn!(%error, "servers cannot be told; they notice within ten seconds");
            None
        });
        self.accounts_beside(config, clock, others)
    }

    /// The other servers of this database: `None` where it is one server's alone. They are told and heard until `closing`.
    pub(super) async fn others(
        &self,
        config: &Config,
        closing: &CancellationToken,
        tasks: &TaskTracker,
    ) -> Result<Option<Others>, BootError> {
        let Database::Postgres(db) = &self.database else { return Ok(None) };
        let url = direct_url(config, db).await?;
        let hints = PgHints::open(listening(url)?, closing, tasks).await?;
        Ok(Some(Others {
            hints: Arc::new(hints),
            rates: Arc::new(PgRates::new(Arc::clone(db))),
            tickets: Arc::new(PgTickets::new(Arc::clone(db))),
        }))
    }

    /// Refuses a database that cannot have tables with an auto-increment key column.
    ///
    /// # Errors
    /// [`BootError::Postgres`].
    pub(super) fn check_tables(&self) -> Result<(), BootError> {
        match &self.database {
            Database::Sqlite(_) => Ok(()),
            Database::Postgres(db) => Ok(db.only_plain("[table]")?),
        }
    }

    /// The rows of this database, but those of tables.
    pub async fn messages(&self, config: &Config) -> Result<Arc<dyn MessageStore>, BootError> {
        Ok(self.rows(config).await?.0)
    }

    /// The rows of this database, and those of tables.
    pub(super) async fn rows(&self, config: &Config) -> Result<RowStores, BootError> {
        match &self.database {
            Database::Sqlite(db) => {
                let store = SqliteStore::open(Arc::clone(db), config.storage.sqlite(), new_history()).await?;
                let store = Arc::new(store);
                Ok((Arc::clone(&store) as Arc<dyn MessageStore>, store))
            }
            Database::Postgres(db) => {
                let skips = db.is_of_another_life().await?;
                if skips {
                    skip_numbers(db, AHEAD).await?;
                }
                let store = Arc::new(PostgresStore::open(Arc::clone(db), new_history(), skips).await?);
                Ok((Arc::clone(&store) as Arc<dyn MessageStore>, store))
            }
        }
    }

    /// Waits until PostgreSQL can be connected to, and for `[storage] start_seconds` at most: a server may start together with its
    /// database. Errors that waiting does not cure are returned at once.
    ///
    /// # Errors
    /// Why the last try failed.
    pub async fn wait_for(config: &Config) -> Result<(), BootError> {
        let storage = &config.storage;
        if storage.database_url.kind() == DatabaseKind::Postgres {
            let limit = Duration::from_secs(storage.start_seconds.into());
            PgDb::wait_for(storage.database_url.with_password(), &storage.postgres(), limit).await?;
        }
        Ok(())
    }

    /// Waits until no server of this version, or none that runs now, may serve on, and says why: on PostgreSQL, where others change the
    /// database.
    pub(super) async fn must_end(&self) -> String {
        match &self.database {
            Database::Sqlite(_) => pending().await,
            Database::Postgres(db) => db.must_end().await,
        }
    }

    /// Closes it.
    pub async fn close(self) -> Result<(), StoreError> {
        match &self.database {
            Database::Sqlite(db) => db.close().await,
            Database::Postgres(db) => {
                db.close().await;
                Ok(())
            }
        }
    }
}

/// Begins another life of the data by hand (I14), after a restore of PostgreSQL: numbers of users, groups and invitations go on `ahead`
/// further on, ids of messages beyond all that were given. Returns the new history.
///
/// # Errors
/// When servers are at work, the database does not answer or nobody has used it yet, or so many numbers are not left.
pub async fn begin_another_life(config: &Config, ahead: u32) -> Result<HistoryId, BootError> {
    let url = config.storage.database_url.with_password();
    let db = PgDb::open_existing(url, &config.storage.postgres()).await?;
    let alone = keep_servers_away(&listening(direct_url(config, &db).await?)?).await?;
    skip_numbers(&db, ahead).await?;
    let history = new_history();
    db.begin_another_life(history).await?;
    alone.end().await;
    db.close().await;
    Ok(history)
}

/// Lets the numbers of users, groups and invitations go on `ahead` further on. The history is renewed after that: it says that all
/// numbers are in order. Interrupted, or done by two servers, it skips as many again.
async fn skip_numbers(db: &PgDb, ahead: u32) -> Result<(), BootError> {
    Ok(Ids::skip_shared(db.pool(), StoredNumbers::default(), u64::from(ahead)).await?)
}

/// The way to PostgreSQL itself, past a pooler; it must lead to the same tables.
pub(super) async fn direct_url<'a>(config: &'a Config, db: &PgDb) -> Result<&'a str, BootError> {
    let url = config.storage.direct_url().with_password();
    if !config.storage.listen_url.is_empty() {
        db.is_also_at(url).await?;
    }
    Ok(url)
}

/// Whether the files fit, and the sequences that follow what was restored are in use; nothing is stamped before that is known.
async fn check_files(config: &Config, db: &Db, rule: Rule) -> Result<(), BootError> {
    if rule == Rule::Restored {
        let wanted = config.message_ids().as_str();
        let agreed = agreed_message_ids(db, wanted).await?;
        if agreed != wanted {
            return Err(BootError::RestoredIds { agreed, wanted });
        }
    }
    files::check_and_stamp(config, db, rule, random_uuid(), random_uuid()).await
}

fn compare_message_ids(wanted: MessageIds, agreed: String) -> Result<MessageIds, BootError> {
    if agreed == wanted.as_str() {
        return Ok(wanted);
    }
    Err(BootError::MessageIds { agreed, wanted: wanted.as_str() })
}

/// Refuses a database that is not SQLite, for `what`, which knows no other yet.
///
/// # Errors
/// [`BootError::OnlySqlite`].
pub fn only_on_sqlite(config: &Config, what: &'static str) -> Result<(), BootError> {
    match config.storage.database_url.kind() {
        DatabaseKind::Sqlite => Ok(()),
        DatabaseKind::Postgres => Err(BootError::OnlySqlite { what }),
    }
}

/// Whether there is an installation.
pub async fn is_installed(config: &Config) -> Result<bool, BootError> {
    match config.storage.database_url.kind() {
        DatabaseKind::Sqlite => is_file_installed(config),
        DatabaseKind::Postgres => {
            let url = config.storage.database_url.with_password();
            Ok(PgDb::is_used(url, &config.storage.postgres()).await?)
        }
    }
}

/// Whether there is one of SQLite: its database is there and not empty.
fn is_file_installed(config: &Config) -> Result<bool, BootError> {
    let path = config.storage.file()?;
    match fs::metadata(&path) {
        Ok(found) => Ok(found.len() > 0),
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(false),
        Err(why) => Err(BootError::File { path, why }),
    }
}

/// Refuses a place without an installation of SQLite.
///
/// # Errors
/// [`BootError::NoInstallation`].
pub(super) fn check_installed(config: &Config) -> Result<(), BootError> {
    files::check_database(config)?;
    if is_file_installed(config)? {
        return Ok(());
    }
    let path = config.storage.file()?;
    let file = path.file_name().map(PathBuf::from).unwrap_or_default();
    Err(BootError::NoInstallation { directory: directory_of(&path).to_owned(), file })
}

pub(super) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
