//! Young rows: of inboxes that get few rows in a flush, in a table without indexes.
//!
//! A row of an inbox among a million others has a page of its own in each tree that knows it: the rows, their two
//! indexes, the conversation list. So a flush puts it into the small table `young_entries` alone, and then *settles* one
//! part of that table: it moves the rows under a range of keys into `entries`, where those of one inbox come together, and
//! those of its neighbours share the pages of the indexes. When the parts have had their turn, each row has moved.
//!
//! A row is in one of the two tables (`row_tables`). The conversation list knows the newest row of a conversation when it settles, and
//! read markers at once; so who asks for the list looks at the young rows, too.
//!
//! A flush that was cut off is done again from its start, perhaps with more rows of an inbox than before. It finds its
//! rows where it put them: young rows of an inbox that gets many settle before the others come, and `young_entries` does
//! not take a row that `entries` has.

use std::sync::Arc;

use serde_json::json;
use sqlx::error::DatabaseError;
use sqlx::{AssertSqlSafe, Row as _, SqliteConnection};

use super::bulk::Binding;
use super::db::Db;
use super::entry_rows::EntryRow;
use super::lookup::{self, ENTRY};
use super::row_tables::is_shown;
use super::{SqliteOptions, meta, set_aside};
use crate::domain::{Conversation, MessageId, Uid};
use crate::store::StoreError;

/// Whether `young_entries` refused a second copy of a message, by the trigger of the migration.
pub(super) fn is_second_copy(error: &dyn DatabaseError) -> bool {
    error.message() == "a second copy of a message"
}

/// A place in the order of the rows: behind this one.
#[derive(Clone, Debug)]
struct RowKey(String, i64, i64);

/// Moves the young rows of these inboxes. Says how many `entries` did not take.
pub(super) async fn settle_inboxes(
    connection: &mut SqliteConnection,
    inboxes: &[(Arc<str>, Uid)],
) -> Result<u64, StoreError> {
    let keys: Vec<_> = inboxes.iter().map(|(key, uid)| json!([key, uid.0])).collect();
    let young: Vec<(String, i64)> = sqlx::query_as(
        "SELECT value ->> 0, value ->> 1 FROM json_each(?) WHERE EXISTS
             (SELECT 1 FROM young_entries WHERE partition_key = value ->> 0 AND receiver = value ->> 1)",
    )
    .bind(json!(keys).to_string())
    .fetch_all(&mut *connection)
    .await?;
    let mut refused = 0;
    for (key, uid) in young {
        let (after, through) = (RowKey(key.clone(), uid, -1), RowKey(key, uid, i64::MAX));
        refused += settle(connection, &after, &through).await?;
    }
    Ok(refused)
}

/// The part that settles now.
pub(super) struct Settling {
    parts: u32,
    part: u32,
    /// What comes next, and where the part ends.
    after: RowKey,
    end: String,
    chunk: usize,
}

impl Settling {
    /// The part whose turn it is.
    pub(super) async fn next(db: &Db, options: &SqliteOptions) -> Result<Settling, StoreError> {
        let parts = options.young_parts.max(1);
        let mut connection = db.service().await?;
        let turn = meta::number(&mut *connection, meta::SETTLED).await?;
        connection.give_back();
        let part = u32::try_from(turn % u64::from(parts)).expect("less than the parts");
        let border =
            |part: u32| if part == parts { "g".to_owned() } else { format!("{:04x}", part * 65_536 / parts) };
        let after = RowKey(border(part), -1, 0);
        Ok(Settling { parts, part, after, end: border(part + 1), chunk: options.flush_chunk.max(1) })
    }

    /// Moves the next rows in a transaction; `None` after the last. Says how many `entries` did not take.
    pub(super) async fn step(&mut self, db: &Db) -> Result<Option<u64>, StoreError> {
        if self.after.0 == self.end {
            return Ok(None);
        }
        let mut tx = db.write().await?;
        let through: Option<(String, i64, i64)> = sqlx::query_as(
            "SELECT partition_key, receiver, message_id FROM young_entries
             WHERE (partition_key, receiver, message_id) > (?, ?, ?) AND partition_key < ?
             ORDER BY partition_key, receiver, message_id LIMIT 1 OFFSET ?",
        )
        .bind(self.after.0.clone())
        .bind(self.after.1)
        .bind(self.after.2)
        .bind(self.end.clone())
        .bind(self.chunk as i64 - 1)
        .fetch_optional(&mut *tx)
        .await?;
        let through = match through {
            Some((key, uid, id)) => RowKey(key, uid, id),
            None => {
                meta::put(&mut tx, meta::SETTLED, (self.part + 1) % self.parts).await?;
                RowKey(self.end.clone(), -1, 0)
            }
        };
        let refused = settle(&mut tx, &self.after, &through).await?;
        tx.commit().await?;
        self.after = through;
        Ok(Some(refused))
    }

    /// Which share of the part has moved, 0 to 1.
    pub(super) fn share(&self) -> f64 {
        let number = |key: &str| u32::from_str_radix(key.get(..4).unwrap_or_default(), 16).unwrap_or(65_536);
        let (from, to) = (self.part * 65_536 / self.parts, (self.part + 1) * 65_536 / self.parts);
        f64::from(number(&self.after.0).saturating_sub(from)) / f64::from((to - from).max(1))
    }
}

/// Moves the young rows behind `after`, `through` among them, in the caller's transaction. Says how many `entries` did not take.
async fn settle(
    connection: &mut SqliteConnection,
    after: &RowKey,
    through: &RowKey,
) -> Result<u64, StoreError> {
    let insert = "INSERT INTO entries
            (partition_key, receiver, message_id, kind, conversation, sender, client_id, body, sent_at)
         SELECT partition_key, receiver, message_id, kind, conversation, sender, client_id, body, sent_at
         FROM young_entries WHERE {within} ORDER BY partition_key, receiver, message_id
         ON CONFLICT (partition_key, receiver, message_id) DO NOTHING";
    let refused = match within(insert, after, through).execute(&mut *connection).await {
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {
            settle_one_by_one(connection, after, through).await?
        }
        moved => {
            moved?;
            0
        }
    };
    let lines = "INSERT INTO conversations (partition_key, owner, conversation, last_id, read_to)
         SELECT partition_key, receiver, conversation, max(message_id), 0 FROM young_entries WHERE {within} AND {is_shown}
         GROUP BY partition_key, receiver, conversation
         ON CONFLICT (partition_key, owner, conversation) DO UPDATE SET last_id = max(last_id, excluded.last_id)";
    within(&lines.replace("{is_shown}", &is_shown()), after, through).execute(&mut *connection).await?;
    within("DELETE FROM young_entries WHERE {within}", after, through).execute(connection).await?;
    Ok(refused)
}

/// The same for rows among which are some that `entries` refuses.
async fn settle_one_by_one(
    connection: &mut SqliteConnection,
    after: &RowKey,
    through: &RowKey,
) -> Result<u64, StoreError> {
    let sql = format!(
        "SELECT {ENTRY}, receiver FROM young_entries WHERE {{within}} ORDER BY partition_key, receiver, message_id"
    );
    let mut rows = Vec::new();
    for row in within(&sql, after, through).fetch_all(&mut *connection).await? {
        let entry = lookup::entry(Uid(row.try_get(7)?), &row)?;
        rows.push(EntryRow::of(entry));
    }
    let refused = set_aside::one_by_one(&mut *connection, rows, &mut [], &mut Vec::new()).await?;
    let sql = "DELETE FROM young_entries WHERE {within} AND NOT EXISTS
         (SELECT 1 FROM entries WHERE entries.partition_key = young_entries.partition_key
              AND entries.receiver = young_entries.receiver AND entries.message_id = young_entries.message_id)";
    within(sql, after, through).execute(connection).await?;
    Ok(refused)
}

/// A statement on the rows behind `after`, `through` among them.
fn within(sql: &str, after: &RowKey, through: &RowKey) -> Binding<'static> {
    let condition = "(partition_key, receiver, message_id) > (?1, ?2, ?3)
         AND (partition_key, receiver, message_id) <= (?4, ?5, ?6)";
    let sql = sql.replace("{within}", condition);
    [after, through].into_iter().fold(sqlx::query(AssertSqlSafe(sql)), |query, place| {
        query.bind(place.0.clone()).bind(place.1).bind(place.2)
    })
}

/// The conversations of the young rows of `uid`, each with the newest of those that may stand for it.
pub(super) async fn positions(
    connection: &mut SqliteConnection,
    uid: Uid,
) -> Result<Vec<(Conversation, MessageId)>, StoreError> {
    let sql = format!(
        "SELECT conversation, max(message_id) FROM young_entries WHERE partition_key = ? AND receiver = ? AND {}
         GROUP BY conversation",
        is_shown()
    );
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(uid.partition_key().as_str().to_owned())
        .bind(uid.0)
        .fetch_all(connection)
        .await?;
    let position = |row: &sqlx::sqlite::SqliteRow| {
        let conversation = row.try_get::<&str, _>(0)?.parse().map_err(StoreError::corrupt)?;
        Ok((conversation, lookup::message_id(row.try_get(1)?)?))
    };
    rows.iter().map(position).collect()
}
