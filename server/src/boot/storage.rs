//! The first step of a start: the database is open and checked, its rows are there, and so are the sources of all numbers.

use std::future::pending;
use std::sync::Arc;

use tokio::try_join;
use tracing::{error, info};

use super::database::{Database, Storage};
use super::error::BootError;
use super::issued::numbers_of_all_else;
use super::sequences::numbers_of_messages;
use crate::config::Config;
use crate::domain::{Clock, HistoryId};
use crate::seq::{Ids, Numbers, Sequences};
use crate::store::sqlite::head_behind;
use crate::store::{MessageStore, SearchIndex, TableStore};

/// The oldest accounts, and as many of the newest, whose latest ids a start compares with their rows.
const SAMPLE: u32 = 500;

/// What everything else lies on.
pub(super) struct Bottom {
    pub(super) storage: Storage,
    /// The same for all servers of the database.
    pub(super) clock: Clock,
    pub(super) messages: Arc<dyn MessageStore>,
    pub(super) tables: Arc<dyn TableStore>,
    pub(super) search_index: Arc<dyn SearchIndex>,
    pub(super) history: HistoryId,
    /// `None`: the database assigns the ids of messages.
    pub(super) sequences: Option<Sequences>,
    pub(super) numbers: Numbers,
    pub(super) ids: Ids,
}

/// Opens it. Nothing is opened that does not fit what was opened before.
pub(super) async fn open(config: &Config, own: Clock) -> Result<Bottom, BootError> {
    let storage = Storage::open(config).await?;
    let clock = storage.clock(own).await?;
    let ids_from = storage.check_message_ids(config).await?;
    if config.table.address()?.is_some() {
        storage.check_tables()?;
    }
    let (messages, tables) = storage.rows(config).await?;
    storage.check_heads().await?;
    let history = messages.history().await?;
    let search_index = storage.search_index(history).await?;
    info!(%history, "the rows are there");

    // Side by side: neither needs the other.
    let ((sequences, numbers), ids) = try_join!(
        numbers_of_messages(config, ids_from, &storage, &messages),
        numbers_of_all_else(config, &storage, &*messages),
    )?;
    match &sequences {
        Some(Sequences::Embedded(embedded)) => info!(epoch = %embedded.epoch(), "the sequences are served"),
        Some(Sequences::Cluster(_)) => {
            info!(file = config.sequence.client_config, "numbers come from a cluster")
        }
        None => info!("the database assigns the ids of messages"),
    }
    Ok(Bottom { storage, clock, messages, tables, search_index, history, sequences, numbers, ids })
}

impl Bottom {
    /// Waits until no server of this version, or none that runs now, may serve on, and says why: on PostgreSQL, where others change the
    /// database.
    pub(super) async fn must_end(&self) -> String {
        match &self.storage.database {
            Database::Sqlite(_) => pending().await,
            Database::Postgres(db) => db.must_end().await,
        }
    }

    /// Closes everything. Nothing above it is at work.
    pub(super) async fn close(self) {
        if let Some(sequences) = &self.sequences {
            sequences.shutdown().await;
        }
        self.ids.shutdown().await;
        self.search_index.close().await;
        self.messages.close().await;
        if let Err(error) = self.storage.close().await {
            error!(%error, "the database did not close well");
        }
    }
}

impl Storage {
    /// The clock that all servers of this database share: its own, or that of the only server.
    ///
    /// # Errors
    /// When the database does not answer.
    async fn clock(&self, own: Clock) -> Result<Clock, BootError> {
        match &self.database {
            Database::Sqlite(_) => Ok(own),
            Database::Postgres(db) => Ok(db.clock(&own).await?),
        }
    }

    /// Refuses a database that cannot have tables with an auto-increment key column.
    ///
    /// # Errors
    /// [`BootError::Postgres`].
    fn check_tables(&self) -> Result<(), BootError> {
        match &self.database {
            Database::Sqlite(_) => Ok(()),
            Database::Postgres(db) => Ok(db.only_plain("[table]")?),
        }
    }

    /// Refuses rows above the latest id of their inbox, as far as the oldest and the newest accounts show.
    ///
    /// # Errors
    /// [`BootError::HeadBehind`].
    async fn check_heads(&self) -> Result<(), BootError> {
        let behind = match &self.database {
            Database::Sqlite(db) => head_behind(db, SAMPLE).await?,
            Database::Postgres(db) => db.head_behind(SAMPLE).await?,
        };
        match behind {
            None => Ok(()),
            Some((uid, latest, newest)) => Err(BootError::HeadBehind { uid, latest, newest }),
        }
    }
}
