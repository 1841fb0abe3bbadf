//! How the tables lie: all in one database, or distributed by partitions over several (docs/CITUS.md). The database says
//! so, each server reads it at its start, and each new connection compares.

use sqlx::{PgConnection, Row as _};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// A commit is one transaction.
    Plain,
    /// No transaction writes to two partitions.
    Distributed,
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
