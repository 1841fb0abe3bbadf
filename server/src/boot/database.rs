//! The database under the server and its commands: SQLite or PostgreSQL, by the URL. Callers see traits. An operation that only one of
//! them supports asks for that one by name.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tracing::info;

use super::chance::{new_history, random_uuid};
use super::error::BootError;
use super::files::{self, Rule};
use crate::config::{Config, DatabaseKind, MessageIds};
use crate::domain::HistoryId;
use crate::seq::{Ids, StoredNumbers};
use crate::store::postgres::{PgDb, PgSearch, PostgresStore};
use crate::store::sqlite::private::directory_of;
use crate::store::sqlite::{Db, OpenError, SqliteSearch, SqliteStore, agreed_message_ids, put_message_ids};
use crate::store::{Directory, MessageStore, SearchIndex, StoreError, TableStore};
use crate::transfer::AHEAD;

/// Names of people that are kept in memory.
const CACHED_NAMES: usize = 100_000;

/// Under which key PostgreSQL keeps who assigns the ids of messages.
const MESSAGE_IDS: &str = "message_ids";

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
        match agreed == wanted.as_str() {
            true => Ok(wanted),
            false => Err(BootError::MessageIds { agreed, wanted: wanted.as_str() }),
        }
    }

    /// Lets somebody else assign the ids of messages from the next start on. They go on after the latest id of each inbox.
    pub async fn change_message_ids(&self, to: MessageIds) -> Result<(), BootError> {
        Ok(put_message_ids(self.sqlite()?, to.as_str()).await?)
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
                    Ids::skip_shared(db.pool(), StoredNumbers::default(), u64::from(AHEAD)).await?;
                }
                let store = Arc::new(PostgresStore::open(Arc::clone(db), new_history(), skips).await?);
                Ok((Arc::clone(&store) as Arc<dyn MessageStore>, store))
            }
        }
    }

    /// The index of words of the rows of this history.
    pub(super) async fn search_index(&self, history: HistoryId) -> Result<Arc<dyn SearchIndex>, BootError> {
        match &self.database {
            Database::Sqlite(db) => Ok(Arc::new(SqliteSearch::open(db.path(), history).await?)),
            Database::Postgres(db) => Ok(Arc::new(PgSearch::new(Arc::clone(db)))),
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

/// The index of words of an installation, for a command beside its servers, and what is to be closed after it; `None`: there is none yet.
///
/// # Errors
/// When there is no installation, or the database does not answer.
pub async fn search_index_beside(
    config: &Config,
) -> Result<Option<(Arc<dyn SearchIndex>, Option<Storage>)>, BootError> {
    match config.storage.database_url.kind() {
        DatabaseKind::Sqlite => {
            check_installed(config)?;
            let index = SqliteSearch::open_beside(&config.storage.file()?).await?;
            Ok(index.map(|index| (Arc::new(index) as Arc<dyn SearchIndex>, None)))
        }
        DatabaseKind::Postgres => {
            let storage = Storage::open_existing(config).await?;
            let Database::Postgres(db) = &storage.database else { return Ok(None) };
            let index: Arc<dyn SearchIndex> = Arc::new(PgSearch::new(Arc::clone(db)));
            Ok(Some((index, Some(storage))))
        }
    }
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
