//! The latest id of each inbox, kept apart from its rows: the newest may have been deleted, or ids were skipped.
//!
//! A transaction that writes rows into the tables also writes their latest ids, which never go back. The journal holds
//! newer rows, so a look-up of a latest id asks memory first.

use std::sync::Arc;

use serde_json::json;
use sqlx::{AssertSqlSafe, Row as _, SqliteConnection};

use super::bulk::{Binding, Bulk};
use super::lookup::message_id;
use super::{Db, row_tables};
use crate::domain::{MessageId, Uid};
use crate::store::StoreError;

const HEADS: Bulk = Bulk {
    insert: "INSERT INTO heads (partition_key, receiver, last_id) VALUES",
    row: "(?,?,?)",
    conflict: "ON CONFLICT (partition_key, receiver) DO UPDATE SET last_id = max(last_id, excluded.last_id)",
};

/// One inbox.
pub(super) struct HeadRow {
    pub(super) key: Arc<str>,
    pub(super) receiver: Uid,
    pub(super) last_id: MessageId,
}

impl HeadRow {
    /// That the inbox of `receiver` has come to `last_id`.
    pub(super) fn of(receiver: Uid, last_id: MessageId) -> HeadRow {
        HeadRow { key: receiver.partition_key().as_str().into(), receiver, last_id }
    }
}

/// Moves these inboxes on; one that has come further stays.
pub(super) async fn write(connection: &mut SqliteConnection, heads: &[HeadRow]) -> Result<(), StoreError> {
    Ok(HEADS.insert(connection, heads, bind).await?)
}

fn bind<'q>(query: Binding<'q>, head: &HeadRow) -> Binding<'q> {
    query.bind(head.key.clone()).bind(head.receiver.0).bind(head.last_id.get().cast_signed())
}

/// An inbox whose newest row is above its latest id, with both, if there is one among the oldest and the newest `sample` accounts.
///
/// # Errors
/// When the tables cannot be read.
pub async fn head_behind(db: &Db, sample: u32) -> Result<Option<(Uid, MessageId, MessageId)>, StoreError> {
    let uids: Vec<u32> = sqlx::query_scalar(
        "SELECT uid FROM (SELECT uid FROM accounts ORDER BY uid LIMIT ?)
         UNION SELECT uid FROM (SELECT uid FROM accounts ORDER BY uid DESC LIMIT ?)",
    )
    .bind(sample)
    .bind(sample)
    .fetch_all(db.readers())
    .await?;
    let heads = latest_and_newest(&mut *db.readers().acquire().await?, uids.into_iter().map(Uid)).await?;
    Ok(heads.into_iter().find(|(_, latest, newest)| newest > latest))
}

/// The latest ids of these inboxes and the ids of their newest rows, as far as the tables have them.
pub(super) async fn latest_and_newest(
    connection: &mut SqliteConnection,
    uids: impl Iterator<Item = Uid>,
) -> Result<Vec<(Uid, MessageId, MessageId)>, StoreError> {
    let keys: Vec<_> = uids.map(|uid| json!([uid.partition_key().as_str(), uid.0])).collect();
    let [newest, young] = row_tables::TABLES.map(|rows| {
        format!(
            "coalesce((SELECT max(message_id) FROM {rows}
                 WHERE partition_key = value ->> 0 AND receiver = value ->> 1), 0)"
        )
    });
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT value ->> 1,
             coalesce((SELECT last_id FROM heads WHERE partition_key = value ->> 0 AND receiver = value ->> 1), 0),
             max({newest}, {young})
         FROM json_each(?) ORDER BY key"
    )))
    .bind(json!(keys).to_string())
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|row| Ok((Uid(row.try_get(0)?), message_id(row.try_get(1)?)?, message_id(row.try_get(2)?)?)))
        .collect()
}
