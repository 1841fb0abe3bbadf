//! Changes that the flush makes to rows that are in the tables already: of the rows with one compaction key only the newest stays,
//! and edits and recalls change their messages.
//!
//! The first is done in the transaction that inserts a row, so that a later flush finds the row by its key. The second
//! follows when all rows of an inbox are written, so that each message is there before what amends it. Done again after
//! a flush that was cut off, both change nothing more.

use std::sync::Arc;

use serde_json::json;
use sqlx::{AssertSqlSafe, SqliteConnection};

use super::row_tables;
use crate::domain::{Change, Content, IdempotencyKey, Kind, MessageId, Uid, amendment_key};
use crate::store::StoreError;
use crate::store::changes::InboxChanges;

/// An inbox whose rows are all written.
pub(super) struct InboxEnd {
    pub(super) key: Arc<str>,
    pub(super) receiver: Uid,
    pub(super) changes: Arc<InboxChanges>,
}

/// A row that takes the place of those before it with the same compaction key.
pub(super) struct Compacted {
    pub(super) key: Arc<str>,
    pub(super) receiver: Uid,
    pub(super) name: String,
    pub(super) message_id: MessageId,
}

/// Does it for rows that the caller's transaction has written, and for inboxes that it has come to the end of.
pub(super) async fn write(
    connection: &mut SqliteConnection,
    compacted: &[Compacted],
    ends: &[InboxEnd],
) -> Result<(), StoreError> {
    for row in compacted {
        compact(connection, row).await?;
    }
    for end in ends {
        for (of, message_id, amendment) in end.changes.amendments() {
            amend(connection, end, of, message_id, amendment).await?;
        }
    }
    Ok(())
}

async fn amend(
    connection: &mut SqliteConnection,
    end: &InboxEnd,
    of: IdempotencyKey,
    message_id: MessageId,
    amendment: &Content,
) -> Result<(), StoreError> {
    let Some(Change { from, kind, body }) = amendment.change() else { return Ok(()) };
    let (sender, client_id) = of;
    let (body, from) = (String::from(body), json!(Kind::codes(from)).to_string());
    for rows in row_tables::TABLES {
        sqlx::query(AssertSqlSafe(format!(
            "UPDATE {rows} SET kind = ?, body = ?
             WHERE partition_key = ? AND receiver = ? AND sender = ? AND client_id = ? AND message_id < ?
               AND kind IN (SELECT value FROM json_each(?))"
        )))
        .bind(kind.code())
        .bind(body.clone())
        .bind(end.key.clone())
        .bind(end.receiver.0)
        .bind(sender.0)
        .bind(client_id.0.as_bytes().to_vec())
        .bind(message_id.get().cast_signed())
        .bind(from.clone())
        .execute(&mut *connection)
        .await?;
    }
    // The text of an edit goes with its message, whichever of the two came first.
    let deleted = row_tables::over_both(|rows| {
        format!(
            "SELECT 1 FROM {rows} WHERE partition_key = ?1 AND receiver = ?2 AND sender = ?5 AND client_id = ?6 AND kind = ?7"
        )
    });
    for rows in row_tables::TABLES {
        sqlx::query(AssertSqlSafe(format!(
            "DELETE FROM {rows} WHERE partition_key = ?1 AND receiver = ?2 AND kind = ?3 AND message_id =
                 (SELECT message_id FROM compaction_keys WHERE partition_key = ?1 AND receiver = ?2 AND name = ?4)
             AND EXISTS ({deleted})"
        )))
        .bind(end.key.clone())
        .bind(end.receiver.0)
        .bind(Kind::Edit.code())
        .bind(amendment_key(of))
        .bind(sender.0)
        .bind(client_id.0.as_bytes().to_vec())
        .bind(Kind::Deleted.code())
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

async fn compact(connection: &mut SqliteConnection, row: &Compacted) -> Result<(), StoreError> {
    for rows in row_tables::TABLES {
        sqlx::query(AssertSqlSafe(format!(
            "DELETE FROM {rows} WHERE partition_key = ?1 AND receiver = ?2 AND message_id =
                 (SELECT message_id FROM compaction_keys
                  WHERE partition_key = ?1 AND receiver = ?2 AND name = ?3 AND message_id < ?4)"
        )))
        .bind(row.key.clone())
        .bind(row.receiver.0)
        .bind(row.name.clone())
        .bind(row.message_id.get().cast_signed())
        .execute(&mut *connection)
        .await?;
    }
    sqlx::query(
        "INSERT INTO compaction_keys (partition_key, receiver, name, message_id) VALUES (?, ?, ?, ?)
         ON CONFLICT (partition_key, receiver, name) DO UPDATE SET message_id = max(message_id, excluded.message_id)",
    )
    .bind(row.key.clone())
    .bind(row.receiver.0)
    .bind(row.name.clone())
    .bind(row.message_id.get().cast_signed())
    .execute(connection)
    .await?;
    Ok(())
}
