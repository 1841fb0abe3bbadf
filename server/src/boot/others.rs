//! The other servers of the same PostgreSQL: told and heard, or kept away.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

use super::chance::new_history;
use super::database::{Database, Storage};
use super::error::BootError;
use super::options::account_options;
use crate::app::{Accounts, Others};
use crate::config::Config;
use crate::domain::{Clock, HistoryId};
use crate::notify::postgres::{Alone, PgHints, keep_servers_away};
use crate::seq::{Ids, StoredNumbers};
use crate::store::postgres::{PgDb, PgRates, PgTickets, listening};

/// The tasks that tell other servers of rows written here; ended after the last write.
#[derive(Default)]
pub struct Hinting {
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl Hinting {
    /// Sends the remaining hints, within a second.
    pub async fn stop(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Storage {
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
        let others = self.others(config, hinting).await.unwrap_or_else(|error| {
            warn!(%error, "servers cannot be told; they notice within ten seconds");
            None
        });
        self.accounts_beside(config, clock, others)
    }

    /// The other servers of this database: `None` where it is one server's alone. They are told and heard until `hinting` is stopped.
    pub(super) async fn others(
        &self,
        config: &Config,
        hinting: &Hinting,
    ) -> Result<Option<Others>, BootError> {
        let Database::Postgres(db) = &self.database else { return Ok(None) };
        let url = direct_url(config, db).await?;
        let hints = PgHints::open(listening(url)?, &hinting.closing, &hinting.tasks).await?;
        Ok(Some(Others {
            hints: Arc::new(hints),
            rates: Arc::new(PgRates::new(Arc::clone(db))),
            tickets: Arc::new(PgTickets::new(Arc::clone(db))),
        }))
    }

    /// A guard that keeps servers away until it is dropped: `None` on SQLite, where the lock of the database does.
    ///
    /// # Errors
    /// [`BootError::Hints`] when one is at work.
    pub async fn keep_servers_away(&self, config: &Config) -> Result<Option<Alone>, BootError> {
        match &self.database {
            Database::Sqlite(_) => Ok(None),
            Database::Postgres(db) => {
                let url = direct_url(config, db).await?;
                Ok(Some(keep_servers_away(&listening(url)?).await?))
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
    // The history is renewed after that: it says that all numbers are in order. Interrupted, it skips as many again.
    Ids::skip_shared(db.pool(), StoredNumbers::default(), u64::from(ahead)).await?;
    let history = new_history();
    db.begin_another_life(history).await?;
    alone.end().await;
    db.close().await;
    Ok(history)
}

/// The way to PostgreSQL itself, past a pooler; it must lead to the same tables.
async fn direct_url<'a>(config: &'a Config, db: &PgDb) -> Result<&'a str, BootError> {
    let url = config.storage.direct_url().with_password();
    if !config.storage.listen_url.is_empty() {
        db.is_also_at(url).await?;
    }
    Ok(url)
}
