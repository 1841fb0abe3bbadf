//! What the flush does to rows that are in the tables already: edits and recalls change their messages, and of the rows with one
//! compaction key only the newest stays.
//!
//! It follows when all rows of an inbox are written, so that each message is there before what amends it. Done again
//! after a flush that was cut off, it changes nothing more.

use std::sync::Arc;

use sqlx::SqliteConnection;

use crate::domain::{Content, IdempotencyKey, Kind, MessageId, RECALLED, Uid};
use crate::store::StoreError;
use crate::store::changes::InboxChanges;

/// An inbox whose rows are all written.
pub(super) struct InboxEnd {
    pub(super) key: Arc<str>,
    pub(super) receiver: Uid,
    pub(super) changes: Arc<InboxChanges>,
}

/// Does it, in the caller's transaction.
pub(super) async fn write(connection: &mut SqliteConnection, ends: &[InboxEnd]) -> Result<(), StoreError> {
    for end in ends {
        for (of, message_id, amendment) in end.changes.amendments() {
            amend(connection, end, of, message_id, amendment).await?;
        }
        let mut newest: Vec<_> = end.changes.newest().collect();
        newest.sort_unstable();
        for (name, message_id) in newest {
            compact(connection, end, name, message_id).await?;
        }
    }
    Ok(())
}

async fn amend(
    connection: &mut SqliteConnection,
    end: &InboxEnd,
    (sender, client_id): IdempotencyKey,
    message_id: MessageId,
    amendment: &Content,
) -> Result<(), StoreError> {
    let (kind, body) = match amendment.kind {
        Kind::Recall => (Kind::Recalled, Some(RECALLED.to_owned())),
        _ => (Kind::Message, amendment.new_body()),
    };
    let Some(body) = body else { return Ok(()) };
    sqlx::query(
        "UPDATE entries SET kind = ?, body = ?
         WHERE partition_key = ? AND receiver = ? AND sender = ? AND client_id = ? AND kind = ?
           AND message_id < ?",
    )
    .bind(kind.code())
    .bind(body)
    .bind(end.key.clone())
    .bind(end.receiver.0)
    .bind(sender.0)
    .bind(client_id.0.as_bytes().to_vec())
    .bind(Kind::Message.code())
    .bind(message_id.get().cast_signed())
    .execute(connection)
    .await?;
    Ok(())
}

async fn compact(
    connection: &mut SqliteConnection,
    end: &InboxEnd,
    name: &str,
    message_id: MessageId,
) -> Result<(), StoreError> {
    sqlx::query(
        "DELETE FROM entries WHERE partition_key = ?1 AND receiver = ?2 AND message_id =
             (SELECT message_id FROM compaction_keys
              WHERE partition_key = ?1 AND receiver = ?2 AND name = ?3 AND message_id < ?4)",
    )
    .bind(end.key.clone())
    .bind(end.receiver.0)
    .bind(name.to_owned())
    .bind(message_id.get().cast_signed())
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "INSERT INTO compaction_keys (partition_key, receiver, name, message_id) VALUES (?, ?, ?, ?)
         ON CONFLICT (partition_key, receiver, name) DO UPDATE SET message_id = max(message_id, excluded.message_id)",
    )
    .bind(end.key.clone())
    .bind(end.receiver.0)
    .bind(name.to_owned())
    .bind(message_id.get().cast_signed())
    .execute(connection)
    .await?;
    Ok(())
}
