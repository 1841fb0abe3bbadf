//! Removes old rows and idempotency records from the tables.
//!
//! Rows in memory are left alone until they are flushed: a flush that is done again after a crash would bring them back.
//! Readers may still hold the view in which they are, so a memtable that is in the tables is let go of, never changed. A
//! step looks first, on a connection that reads, and then removes in one short transaction. Commits do not wait for it,
//! since they go to the journal.

use rusqlite::{Connection, params};
use serde_json::json;
use sqlx::{AssertSqlSafe, Row as _, SqliteConnection};
use uuid::Uuid;

use super::lookup::{self, ENTRY};
use super::memtable::MemtableView;
use super::row_tables;
use super::shared::SqliteShared;
use crate::domain::{
    ClientId, Content, Conversation, Direction, Entry, IdempotencyKey, KEEPS, Kind, MessageId, PartitionKey,
    Timestamp, Uid,
};
use crate::store::expiry::{Expiry, INBOXES_AT_ONCE, unless_corrupt};
use crate::store::{Expired, Forgotten, Keeping, StoreError, beyond};

/// An inbox: up to which id it has expired, and up to which its rows are in the tables alone.
#[derive(Clone, Copy)]
struct OldInbox {
    uid: Uid,
    expired_to: MessageId,
    stored_to: MessageId,
}

impl SqliteShared {
    /// Up to which id `uid` has expired.
    pub(super) async fn expired_to(&self, uid: Uid) -> Result<MessageId, StoreError> {
        let expired_to: Option<i64> =
            sqlx::query_scalar("SELECT expired_to FROM heads WHERE partition_key = ? AND receiver = ?")
                .bind(uid.partition_key().as_str().to_owned())
                .bind(uid.0)
                .fetch_optional(&mut *self.db.reader().await?)
                .await?;
        lookup::message_id(expired_to.unwrap_or(0))
    }

    /// Removes old rows of some inboxes after `after`.
    pub(super) async fn expire_rows(
        &self,
        after: Option<Uid>,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Expired, StoreError> {
        self.memory.let_go(sent_before);
        // Before the tables are read: they have all rows that it does not.
        let view = self.memory.view();
        let mut tables = self.db.reader().await?;
        let inboxes = inboxes(&mut tables, &view, after).await?;
        let is_last_page = inboxes.len() < INBOXES_AT_ONCE;
        let mut expired = Expired { removed: 0, after, is_done: false };
        let (mut room, mut work) = (limit, Vec::new());
        let due = due(&mut tables, &inboxes, sent_before).await?;
        for (inbox, is_due) in inboxes.iter().zip(due) {
            if is_due && room == 0 {
                break;
            }
            if is_due {
                let found = self.next_of(&mut tables, &view, inbox, room, sent_before).await;
                if let Some((expiry, is_all)) = unless_corrupt(inbox.uid, found)? {
                    room -= expiry.len();
                    if expiry.len() > 0 {
                        work.push((inbox.uid, expiry));
                    }
                    if !is_all {
                        break;
                    }
                }
            }
            expired.after = Some(inbox.uid);
        }
        expired.is_done = is_last_page && expired.after == inboxes.last().map(|inbox| inbox.uid).or(after);
        expired.removed = (limit - room) as u64;
        drop(tables);
        if !work.is_empty() {
            let remove = move |connection: &Connection| {
                work.iter().try_for_each(|(uid, expiry)| {
                    remove(connection, *uid, expiry)?;
                    move_on(connection, *uid, expiry.through)
                })
            };
            self.db.write_bulk(remove).await?;
        }
        Ok(expired)
    }

    /// What becomes of the next rows of an inbox, at most `room`, and whether those are all that are old.
    async fn next_of(
        &self,
        tables: &mut SqliteConnection,
        view: &MemtableView,
        inbox: &OldInbox,
        room: usize,
        sent_before: Timestamp,
    ) -> Result<(Expiry, bool), StoreError> {
        let rows = rows(tables, inbox, None, room).await?;
        let is_last = rows.len() < room;
        let expiry = self.expiry(tables, view, inbox.uid, rows, sent_before).await?;
        let is_all = is_last || expiry.is_over;
        Ok((expiry, is_all))
    }

    /// Removes old rows of one conversation.
    pub(super) async fn expire_conversation(
        &self,
        uid: Uid,
        of: Conversation,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Forgotten, StoreError> {
        self.memory.let_go(sent_before);
        let view = self.memory.view();
        let mut tables = self.db.reader().await?;
        let stored_to = view.base(uid).unwrap_or(MessageId::MAX);
        let inbox = OldInbox { uid, expired_to: MessageId::ZERO, stored_to };
        let rows = rows(&mut tables, &inbox, Some(of), limit).await?;
        let is_all = rows.len() < limit;
        let expiry = self.expiry(&mut tables, &view, uid, rows, sent_before).await?;
        drop(tables);
        let done = Forgotten { removed: expiry.len() as u64, more: !expiry.is_over && !is_all };
        if done.removed > 0 {
            self.db.write_bulk(move |connection: &Connection| remove(connection, uid, &expiry)).await?;
        }
        Ok(done)
    }

    /// Those of the next inboxes in which somebody has said for how long messages are kept.
    pub(super) async fn keeping(&self, after: Option<Uid>) -> Result<Keeping, StoreError> {
        let key = after.map(Uid::partition_key);
        let rows: Vec<(u32, bool)> = sqlx::query_as(
            "SELECT receiver, EXISTS (SELECT 1 FROM compaction_keys AS keys
                 WHERE keys.partition_key = heads.partition_key AND keys.receiver = heads.receiver AND name > ? AND name < ?)
             FROM heads WHERE (partition_key, receiver) > (?, ?) ORDER BY partition_key, receiver LIMIT ?",
        )
        .bind(KEEPS)
        .bind(beyond(KEEPS))
        .bind(key.as_ref().map_or("", PartitionKey::as_str).to_owned())
        .bind(after.map_or(0, |uid| i64::from(uid.0)))
        .bind(INBOXES_AT_ONCE as i64)
        .fetch_all(&mut *self.db.reader().await?)
        .await?;
        Ok(Keeping::of(rows.into_iter().map(|(uid, has_some)| (Uid(uid), has_some)).collect(), after))
    }

    /// What becomes of these rows. What has a pin or star in memory stays with all behind it: both go together when both are in the tables.
    async fn expiry(
        &self,
        tables: &mut SqliteConnection,
        view: &MemtableView,
        uid: Uid,
        mut rows: Vec<Entry>,
        sent_before: Timestamp,
    ) -> Result<Expiry, StoreError> {
        let held = rows.iter().position(|row| has_marks(view, row));
        if let Some(held) = held {
            self.memory.let_go(Timestamp(i64::MAX));
            rows.truncate(held);
        }
        let expiry = expiry(tables, view, uid, &rows, sent_before).await?;
        Ok(Expiry { is_over: expiry.is_over || held.is_some(), ..expiry })
    }

    /// Removes the old ones of the next idempotency records after `after`.
    pub(super) async fn expire_records(
        &self,
        after: Option<IdempotencyKey>,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Expired<IdempotencyKey>, StoreError> {
        let mut records = records(&mut *self.db.reader().await?, after, limit).await?;
        let (last, is_done) = (records.last().map(|(key, _)| *key).or(after), records.len() < limit);
        records.retain(|(_, sent_at)| *sent_at < sent_before);
        let removed = records.len() as u64;
        if removed > 0 {
            let remove = move |connection: &Connection| {
                let mut delete = connection.prepare_cached(
                    "DELETE FROM sent WHERE partition_key = ? AND sender = ? AND client_id = ?",
                )?;
                for ((sender, name), _) in &records {
                    delete.execute(params![sender.partition_key().as_str(), sender.0, name.0.as_bytes()])?;
                }
                Ok(())
            };
            self.db.write_bulk(remove).await?;
        }
        Ok(Expired { removed, after: last, is_done })
    }
}

/// The next records after `after` that the tables have, and when their messages were sent. They are read from place to place, and not
/// searched for what is old: a sender with many that are not would be searched again in each step.
async fn records(
    tables: &mut SqliteConnection,
    after: Option<IdempotencyKey>,
    limit: usize,
) -> Result<Vec<(IdempotencyKey, Timestamp)>, StoreError> {
    let key = after.map(|(sender, _)| sender.partition_key());
    let rows = sqlx::query_as(
        "SELECT sender, client_id, sent_at FROM sent WHERE (partition_key, sender, client_id) > (?, ?, ?)
         ORDER BY partition_key, sender, client_id LIMIT ?",
    )
    .bind(key.as_ref().map_or("", PartitionKey::as_str).to_owned())
    .bind(after.map_or(0, |(sender, _)| i64::from(sender.0)))
    .bind(after.map_or_else(Vec::new, |(_, name)| name.0.as_bytes().to_vec()))
    .bind(i64::try_from(limit).unwrap_or(i64::MAX))
    .fetch_all(tables)
    .await?;
    let record = |(sender, name, sent_at): (u32, Vec<u8>, i64)| {
        Ok((
            (Uid(sender), ClientId(Uuid::from_slice(&name).map_err(StoreError::corrupt)?)),
            Timestamp(sent_at),
        ))
    };
    rows.into_iter().map(record).collect()
}

/// The inboxes after `after` that the tables have.
async fn inboxes(
    tables: &mut SqliteConnection,
    view: &MemtableView,
    after: Option<Uid>,
) -> Result<Vec<OldInbox>, StoreError> {
    let key = after.map(Uid::partition_key);
    let rows = sqlx::query(
        "SELECT receiver, expired_to FROM heads WHERE (partition_key, receiver) > (?, ?)
         ORDER BY partition_key, receiver LIMIT ?",
    )
    .bind(key.as_ref().map_or("", PartitionKey::as_str).to_owned())
    .bind(after.map_or(0, |uid| i64::from(uid.0)))
    .bind(INBOXES_AT_ONCE as i64)
    .fetch_all(tables)
    .await?;
    let inbox = |row: &sqlx::sqlite::SqliteRow| {
        let (uid, expired_to) = (Uid(row.try_get(0)?), lookup::message_id(row.try_get(1)?)?);
        Ok(OldInbox { uid, expired_to, stored_to: view.base(uid).unwrap_or(MessageId::MAX) })
    };
    rows.iter().map(inbox).collect()
}

/// Whether the next row of each inbox is old, in order.
async fn due(
    tables: &mut SqliteConnection,
    inboxes: &[OldInbox],
    sent_before: Timestamp,
) -> Result<Vec<bool>, StoreError> {
    let key = |inbox: &OldInbox| {
        json!([
            inbox.uid.partition_key().as_str(),
            inbox.uid.0,
            inbox.expired_to.get(),
            inbox.stored_to.get()
        ])
    };
    let keys: Vec<_> = inboxes.iter().map(key).collect();
    let both = row_tables::over_both(|rows| {
        format!(
            "SELECT sent_at, message_id FROM {rows}
             WHERE partition_key = wanted.value ->> 0 AND receiver = wanted.value ->> 1
               AND message_id > wanted.value ->> 2 AND message_id <= wanted.value ->> 3
               AND kind NOT IN (SELECT value FROM json_each(?2))"
        )
    });
    let rows: Vec<bool> = sqlx::query_scalar(AssertSqlSafe(format!(
        "SELECT coalesce((SELECT sent_at < ?1 FROM ({both} ORDER BY message_id LIMIT 1)), FALSE)
         FROM json_each(?3) AS wanted ORDER BY wanted.key"
    )))
    .bind(sent_before.0)
    .bind(lasting())
    .bind(json!(keys).to_string())
    .fetch_all(tables)
    .await?;
    Ok(rows)
}

/// The rows of an inbox, or of one conversation of it, that may expire next. Shells of a conversation have expired already.
async fn rows(
    tables: &mut SqliteConnection,
    inbox: &OldInbox,
    of: Option<Conversation>,
    limit: usize,
) -> Result<Vec<Entry>, StoreError> {
    let alone = match of {
        None => "",
        Some(_) => "AND conversation = ?7 AND NOT (kind = ?8 AND client_id IS NULL)",
    };
    let select = |rows: &str| {
        format!(
            "SELECT {ENTRY} FROM {rows} WHERE partition_key = ?1 AND receiver = ?2 AND message_id > ?3 AND message_id <= ?4
               AND kind NOT IN (SELECT value FROM json_each(?5)) {alone}"
        )
    };
    let both = match of {
        None => row_tables::over_both(select),
        Some(_) => row_tables::over_conversations(select),
    };
    let mut rows = sqlx::query(AssertSqlSafe(format!("{both} ORDER BY message_id LIMIT ?6")))
        .bind(inbox.uid.partition_key().as_str().to_owned())
        .bind(inbox.uid.0)
        .bind(inbox.expired_to.get().cast_signed())
        .bind(inbox.stored_to.get().cast_signed())
        .bind(lasting())
        .bind(i64::try_from(limit).unwrap_or(i64::MAX));
    if let Some(of) = of {
        rows = rows.bind(of.to_string()).bind(Kind::Deleted.code());
    }
    let rows = rows.fetch_all(tables).await?;
    rows.iter().map(|row| lookup::entry(inbox.uid, row)).collect()
}

/// Whether a pin or a star of this message lies in memory.
fn has_marks(view: &MemtableView, row: &Entry) -> bool {
    Expiry::marks_of(row).any(|name| view.newest(row.receiver, &name).is_some())
}

/// What becomes of them. The rows that stand for conversations may lie in memory.
async fn expiry(
    tables: &mut SqliteConnection,
    view: &MemtableView,
    uid: Uid,
    rows: &[Entry],
    sent_before: Timestamp,
) -> Result<Expiry, StoreError> {
    let mut of: Vec<(Uid, Conversation)> = rows.iter().map(|row| (uid, row.conversation())).collect();
    of.sort_unstable();
    of.dedup();
    let mut newest = lookup::of_conversations(tables, "last_id", &of).await?;
    for ((_, conversation), newest) in of.iter().zip(&mut newest) {
        let is_shown = |content: &Content| content.is_shown() && content.conversation(uid) == *conversation;
        let recent = view.filtered(uid, (0, MessageId::MAX.get()), Direction::Backward, 1, is_shown);
        *newest = recent.first().map_or(*newest, |row| row.message_id);
    }
    Ok(Expiry::of(rows, sent_before, |conversation| {
        of.binary_search(&(uid, conversation)).map_or(MessageId::ZERO, |at| newest[at])
    }))
}

/// Removes it all from an inbox.
fn remove(connection: &Connection, uid: Uid, expiry: &Expiry) -> Result<(), StoreError> {
    let key = uid.partition_key();
    let (key, uid) = (key.as_str(), uid.0);
    let ids = |ids: &[MessageId]| json!(ids.iter().map(|id| id.get()).collect::<Vec<_>>()).to_string();
    let run = |sql: &str, list: String| connection.prepare_cached(sql)?.execute(params![key, uid, list]);
    let marks = json!(expiry.marks).to_string();
    let of_conversation = row_tables::over_conversations(|rows| {
        format!(
            "SELECT message_id FROM {rows}
             WHERE partition_key = ?1 AND receiver = ?2 AND conversation = ?3 AND message_id < ?4 AND kind = ?5"
        )
    });
    for rows in row_tables::TABLES {
        let listed = format!(
            "DELETE FROM {rows} WHERE partition_key = ? AND receiver = ? AND message_id IN (SELECT value FROM json_each(?))"
        );
        run(&listed, ids(&expiry.gone))?;
        let mut empty = connection.prepare_cached(&format!(
            "UPDATE {rows} SET kind = ?, body = ?, client_id = NULL
             WHERE partition_key = ? AND receiver = ? AND message_id = ?"
        ))?;
        for (id, shell) in &expiry.emptied {
            empty.execute(params![
                shell.kind.code(),
                shell.body.as_json(),
                key,
                uid,
                id.get().cast_signed()
            ])?;
        }
        let mut forget_shells = connection.prepare_cached(&format!(
            "DELETE FROM {rows} WHERE partition_key = ?1 AND receiver = ?2 AND message_id IN ({of_conversation})"
        ))?;
        for (conversation, first) in &expiry.shown {
            let (conversation, first) = (conversation.to_string(), first.get().cast_signed());
            forget_shells.execute(params![key, uid, conversation, first, Kind::Deleted.code()])?;
        }
        let marked = format!(
            "DELETE FROM {rows} WHERE partition_key = ?1 AND receiver = ?2 AND message_id IN
                 (SELECT message_id FROM compaction_keys
                  WHERE partition_key = ?1 AND receiver = ?2 AND name IN (SELECT value FROM json_each(?3)))"
        );
        run(&marked, marks.clone())?;
    }
    let forget_keys = "DELETE FROM compaction_keys WHERE partition_key = ? AND receiver = ? AND name IN (SELECT value FROM json_each(?))";
    run(forget_keys, marks)?;
    let mut forget_old_keys = connection.prepare_cached(&format!("{forget_keys} AND message_id <= ?"))?;
    let through = expiry.through.get().cast_signed();
    forget_old_keys.execute(params![key, uid, json!(expiry.keys).to_string(), through])?;
    Ok(())
}

/// Up to this id the inbox has expired.
fn move_on(connection: &Connection, uid: Uid, through: MessageId) -> Result<(), StoreError> {
    let key = uid.partition_key();
    let (key, uid, through) = (key.as_str(), uid.0, through.get().cast_signed());
    connection
        .prepare_cached("DELETE FROM set_aside WHERE partition_key = ? AND receiver = ? AND message_id <= ?")?
        .execute(params![key, uid, through])?;
    connection
        .prepare_cached(
            "UPDATE heads SET expired_to = max(expired_to, ?) WHERE partition_key = ? AND receiver = ?",
        )?
        .execute(params![through, key, uid])?;
    Ok(())
}

/// The numbers of the lasting kinds, as JSON.
fn lasting() -> String {
    json!(Kind::codes(Kind::is_lasting)).to_string()
}
