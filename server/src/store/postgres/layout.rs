//! How the tables lie: all in one database, or distributed by partitions over several (docs/CITUS.md). The database says
//! so, each server reads it at its start, and each new connection compares.
//!
//! Everything that depends on it is a function of [`PgLayout`]. Its defaults are those of one database.

use std::collections::BTreeMap;
use std::ops::Deref;

use async_trait::async_trait;
use sqlx::{PgConnection, Row as _};

use super::commit::Commit;
use super::learnt::Learnt;
use super::{PgDb, PostgresStore, Replication, distributed, lookup};
use crate::store::migrations::PostgresSchema;
use crate::store::{CommitError, Outcome, Pending, PendingKey, StoreError, Write};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// A commit is one transaction.
    Plain,
    /// No transaction writes to two partitions.
    Distributed,
}

impl Deref for Layout {
    type Target = dyn PgLayout;

    fn deref(&self) -> &'static dyn PgLayout {
        match self {
            Layout::Plain => &Plain,
            Layout::Distributed => &distributed::Distributed,
        }
    }
}

/// Which one it is. No prepared statement, which a pooler could lose.
pub(super) async fn read(connection: &mut PgConnection) -> Result<Layout, sqlx::Error> {
    let asked = sqlx::raw_sql("SELECT value FROM meta WHERE key = 'layout'");
    let layout = asked.fetch_optional(connection).await?;
    match layout.map(|row| row.try_get::<String, _>(0)).transpose()?.as_deref() {
        None => Ok(Layout::Plain),
        Some("distributed") => Ok(Layout::Distributed),
        Some(other) => {
            Err(sqlx::Error::Decode(format!("its layout is {other:?}; run the newest version").into()))
        }
    }
}

/// See the module.
#[async_trait]
pub(super) trait PgLayout: Send + Sync {
    /// Why servers with this kind of replication cannot serve it.
    fn refusal(&self, _: Replication) -> Option<String> {
        None
    }

    /// Why `what`, which knows the tables of one database alone, cannot be done.
    fn only_plain(&self, _what: &str) -> Option<String> {
        None
    }

    /// The stored functions that a program has for it, by name, with the texts that make them.
    fn functions(&self, program: &PostgresSchema) -> BTreeMap<&'static str, &'static str> {
        program.functions.iter().copied().collect()
    }

    /// A statement that looks many keys up. Its first argument are the partition keys; it calls one of them `wanted.key`, and looks up one
    /// row of a table for each (`LIMIT 1`).
    fn look_up(&self, sql: &str) -> String {
        sql.to_owned()
    }

    /// The statement that reads groups.
    fn groups(&self) -> &'static str {
        lookup::GROUPS
    }

    /// Makes writes durable.
    async fn commit(&self, store: &PostgresStore, writes: Vec<Write>) -> Result<Vec<Outcome>, CommitError> {
        Commit { db: &store.db, learnt: Learnt::default(), recent: &store.recent }.run(writes).await
    }

    /// Acceptances after `after` with copies owed, at most `limit`.
    async fn pending(
        &self,
        connection: &mut PgConnection,
        after: PendingKey,
        limit: usize,
    ) -> Result<Vec<Pending>, StoreError> {
        lookup::pending(connection, after.acceptance, limit).await
    }

    /// Whether it refuses a copy that comes before an earlier one of the same sender which is still owed.
    fn refuses_early_copies(&self) -> bool {
        false
    }

    /// What is done beside commits, for as long as the process serves.
    async fn watch(&self, _: &PgDb) {}
}

/// One database.
struct Plain;

impl PgLayout for Plain {}
