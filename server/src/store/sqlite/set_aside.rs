//! Rows that the tables do not take, in a table of their own.
//!
//! The unique index refuses a second copy of one message for one receiver (I5). The ledger sees to it that there is
//! none, but rows may have come into the tables another way: an import into an inbox to which the same copy was still
//! owed. Such a row would stop every flush, and with it all commits. It is kept in `set_aside` for the operator, and
//! the flush goes on.

use sqlx::SqliteConnection;
use tracing::error;

use super::compaction::Compacted;
use super::entry_rows::{ConversationRow, ENTRIES, EntryRow, bind_entry};
use crate::domain::MessageId;
use crate::store::StoreError;

/// Writes `entries` one by one, in the caller's transaction; those that are refused go into `set_aside`, and out of
/// `conversations` and `compacted`: they take the place of no other row. Says how many.
pub(super) async fn one_by_one(
    connection: &mut SqliteConnection,
    entries: Vec<EntryRow>,
    conversations: &mut [ConversationRow],
    compacted: &mut Vec<Compacted>,
) -> Result<u64, StoreError> {
    let (mut kept, mut count) = (Vec::with_capacity(entries.len()), 0);
    for entry in entries {
        match ENTRIES.insert(&mut *connection, std::slice::from_ref(&entry), bind_entry).await {
            Ok(()) => kept.push(entry),
            Err(sqlx::Error::Database(why)) if why.is_unique_violation() => {
                keep(&mut *connection, &entry, why.message()).await?;
                count += 1;
                let own = (entry.receiver, entry.message_id);
                compacted.retain(|row| (row.receiver, row.message_id) != own);
                for line in conversations.iter_mut() {
                    if line.owner == entry.receiver && line.last_id == entry.message_id {
                        line.last_id = newest_of(line, &kept);
                    }
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(count)
}

/// The newest row of the line's conversation. A line that is served before a row behind it was written names a later one.
fn newest_of(line: &ConversationRow, kept: &[EntryRow]) -> MessageId {
    let of = |row: &&EntryRow| {
        row.receiver == line.owner && row.content.conversation(line.owner) == line.conversation
    };
    kept.iter().rfind(of).map_or(MessageId::ZERO, |row| row.message_id)
}

async fn keep(connection: &mut SqliteConnection, row: &EntryRow, reason: &str) -> Result<(), StoreError> {
    let EntryRow { key, receiver, message_id, content } = row;
    error!(
        %receiver, %message_id, sender = %content.sender, reason,
        "a row cannot be stored where it belongs and is kept in set_aside"
    );
    sqlx::query(
        "INSERT INTO set_aside
            (partition_key, receiver, message_id, kind, conversation, sender, client_id, body, sent_at, reason)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    )
    .bind(key.to_string())
    .bind(receiver.0)
    .bind(message_id.get().cast_signed())
    .bind(content.kind.code())
    .bind(content.conversation(*receiver).to_string())
    .bind(content.sender.0)
    .bind(content.client_id.map(|client_id| client_id.0.as_bytes().to_vec()))
    .bind(content.body.as_json().to_owned())
    .bind(content.sent_at.0)
    .bind(reason.to_owned())
    .execute(connection)
    .await?;
    Ok(())
}
