//! How the tables lie: all in one database, or distributed by partitions over several (docs/CITUS.md). The database says
//! so, each server reads it at its start, and each new connection compares.
//!
//! Every text that depends on it comes from a function of [`PgLayout`]. Its defaults are those of one database. How a commit
//! is done is chosen in `protocol`.

use std::collections::BTreeMap;
use std::ops::Deref;

use sqlx::{PgConnection, Row as _};

use super::Replication;
use crate::store::migrations::PostgresSchema;

mod distributed;

#[cfg(test)]
pub(super) use distributed::FUNCTIONS;

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
        GROUPS
    }

    /// Whether it refuses a copy that comes before an earlier one of the same sender which is still owed.
    fn refuses_early_copies(&self) -> bool {
        false
    }

    /// Whether a write whose key has a record keeps all others of its call from being stored.
    fn stores_all_or_nothing(&self) -> bool {
        false
    }
}

/// One database.
struct Plain;

impl PgLayout for Plain {
    fn stores_all_or_nothing(&self) -> bool {
        true
    }
}

const GROUPS: &str = "SELECT wanted.place, now.version, now.settings::text, member.*
     FROM unnest($1, $2) WITH ORDINALITY AS wanted(gid, known, place)
     CROSS JOIN LATERAL (SELECT version, settings FROM groups WHERE gid = wanted.gid LIMIT 1) AS now
     LEFT JOIN LATERAL (SELECT uid, epoch, active, standing, since FROM members
         WHERE gid = wanted.gid AND now.version <> wanted.known ORDER BY uid OFFSET 0) AS member ON true
     ORDER BY wanted.place, member.uid";
