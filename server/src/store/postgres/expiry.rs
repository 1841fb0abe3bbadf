//! Removes old rows and idempotency records from PostgreSQL.
//!
//! An inbox is looked at without a lock. What is old is removed under the lock of its head row, as everything that changes an inbox; one
//! that somebody writes to at that moment is left for a later walk, so nobody waits for the other. Several servers walk at a time: what one
//! has removed, the others do not find. In the distributed layout each inbox is a transaction of its own.

use std::collections::BTreeMap;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};
use uuid::Uuid;

use super::PgDb;
use super::layout::Layout;
use super::lookup::{self, ENTRY, rows_at_most};
use crate::domain::{
    ClientId, Conversation, Entry, IdempotencyKey, KEEPS, Kind, MessageId, PartitionKey, Timestamp, Uid,
};
use crate::store::expiry::{Expiry, INBOXES_AT_ONCE, unless_corrupt};
use crate::store::{Expired, Forgotten, Keeping, StoreError, beyond};

/// Up to which id `uid` has expired.
pub(super) async fn expired_to(connection: &mut PgConnection, uid: Uid) -> Result<MessageId, StoreError> {
    let expired_to =
        sqlx::query_scalar("SELECT expired_to FROM heads WHERE partition_key = $1 AND receiver = $2");
    let expired_to: Option<i64> = expired_to
        .bind(uid.partition_key().to_string())
        .bind(i64::from(uid.0))
        .fetch_optional(connection)
        .await?;
    lookup::message_id(expired_to.unwrap_or(0))
}

/// Removes old rows of some inboxes after `after`.
pub(super) async fn expire_rows(
    db: &PgDb,
    after: Option<Uid>,
    sent_before: Timestamp,
    limit: usize,
) -> Result<Expired, StoreError> {
    let expire = async {
        let mut connection = db.reader().await?;
        let inboxes = inboxes(&mut connection, after).await?;
        let mut walk = Walk::new(&inboxes, after, limit);
        let mut work = Vec::new();
        for &(uid, expired_to) in &inboxes {
            if is_due(&mut connection, uid, expired_to, sent_before).await? {
                if walk.room == 0 {
                    break;
                }
                let found = async {
                    let rows = rows(&mut connection, uid, expired_to, None, walk.room).await?;
                    let expiry = expiry(&mut connection, uid, &rows, sent_before, db.layout).await?;
                    let is_all = expiry.is_over || rows.len() < walk.room;
                    Ok((expiry, is_all))
                };
                if let Some((expiry, is_all)) = unless_corrupt(uid, found.await)? {
                    walk.room -= expiry.len();
                    work.push((uid, expiry));
                    if !is_all {
                        break;
                    }
                }
            }
            walk.after = Some(uid);
        }
        let at_once = match db.layout {
            Layout::Plain => INBOXES_AT_ONCE,
            Layout::Distributed => 1,
        };
        let mut removed = 0;
        for together in work.chunks(at_once) {
            removed += remove_all(&mut connection, together, true).await?;
        }
        Ok(Expired { removed: removed as u64, ..walk.expired() })
    };
    db.limited(expire).await
}

/// Removes old rows of one conversation.
pub(super) async fn expire_conversation(
    db: &PgDb,
    uid: Uid,
    of: Conversation,
    sent_before: Timestamp,
    limit: usize,
) -> Result<Forgotten, StoreError> {
    let expire = async {
        let mut connection = db.reader().await?;
        let rows = rows(&mut connection, uid, MessageId::ZERO, Some(of), limit).await?;
        let expiry = expiry(&mut connection, uid, &rows, sent_before, db.layout).await?;
        if expiry.len() == 0 {
            return Ok(Forgotten::default());
        }
        let is_all = expiry.is_over || rows.len() < limit;
        let removed = remove_all(&mut connection, &[(uid, expiry)], false).await?;
        // What somebody writes to now is left for a later walk.
        Ok(Forgotten { removed: removed as u64, more: !is_all && removed > 0 })
    };
    db.limited(expire).await
}

/// Those of the next inboxes in which somebody has said for how long messages are kept.
pub(super) async fn keeping(
    connection: &mut PgConnection,
    after: Option<Uid>,
) -> Result<Keeping, StoreError> {
    let key = after.map(Uid::partition_key);
    let rows: Vec<(i64, bool)> = sqlx::query_as(
        "SELECT receiver, EXISTS (SELECT FROM compaction_keys AS keys
             WHERE keys.partition_key = heads.partition_key AND keys.receiver = heads.receiver AND name > $1 AND name < $2)
         FROM heads WHERE (partition_key, receiver) > ($3, $4) ORDER BY partition_key, receiver LIMIT $5",
    )
    .bind(KEEPS)
    .bind(beyond(KEEPS))
    .bind(key.as_ref().map_or("", PartitionKey::as_str))
    .bind(after.map_or(0, |uid| i64::from(uid.0)))
    .bind(rows_at_most(INBOXES_AT_ONCE))
    .fetch_all(connection)
    .await?;
    let looked = rows.into_iter().map(|(uid, has_some)| Ok((lookup::uid(uid)?, has_some)));
    Ok(Keeping::of(looked.collect::<Result<_, StoreError>>()?, after))
}

/// Removes the old ones of the next idempotency records after `after`.
pub(super) async fn expire_records(
    db: &PgDb,
    after: Option<IdempotencyKey>,
    sent_before: Timestamp,
    limit: usize,
) -> Result<Expired<IdempotencyKey>, StoreError> {
    let expire = async {
        let mut connection = db.reader().await?;
        let records = records(&mut connection, after, limit).await?;
        let mut old: BTreeMap<Uid, Vec<ClientId>> = BTreeMap::new();
        for ((sender, client_id), sent_at) in &records {
            if *sent_at < sent_before {
                old.entry(*sender).or_default().push(*client_id);
            }
        }
        let mut removed = 0;
        for (sender, names) in old {
            let names: Vec<Vec<u8>> = names.iter().map(|name| name.0.as_bytes().to_vec()).collect();
            let delete = sqlx::query(AssertSqlSafe(delete_from("sent", "sender", "client_id", "bytea")));
            let delete = delete.bind(sender.partition_key().to_string()).bind(i64::from(sender.0));
            removed += delete.bind(names).execute(&mut *connection).await?.rows_affected();
        }
        let last = records.last().map(|(key, _)| *key);
        Ok(Expired { removed, after: last.or(after), is_done: records.len() < limit })
    };
    db.limited(expire).await
}

/// The next records after `after`, and when their messages were sent. They are read from place to place, and not searched for what is old:
/// a sender with many that are not would be searched again in each step.
async fn records(
    connection: &mut PgConnection,
    after: Option<IdempotencyKey>,
    limit: usize,
) -> Result<Vec<(IdempotencyKey, Timestamp)>, StoreError> {
    let key = after.map(|(sender, _)| sender.partition_key());
    let rows: Vec<(i64, Vec<u8>, i64)> = sqlx::query_as(
        "SELECT sender, client_id, sent_at FROM sent WHERE (partition_key, sender, client_id) > ($1, $2, $3)
         ORDER BY partition_key, sender, client_id LIMIT $4",
    )
    .bind(key.as_ref().map_or("", PartitionKey::as_str))
    .bind(after.map_or(0, |(sender, _)| i64::from(sender.0)))
    .bind(after.map_or_else(Vec::new, |(_, name)| name.0.as_bytes().to_vec()))
    .bind(rows_at_most(limit))
    .fetch_all(connection)
    .await?;
    let record = |(sender, name, sent_at): (i64, Vec<u8>, i64)| {
        Ok((
            (lookup::uid(sender)?, ClientId(Uuid::from_slice(&name).map_err(StoreError::corrupt)?)),
            Timestamp(sent_at),
        ))
    };
    rows.into_iter().map(record).collect()
}

/// How far a call has come.
struct Walk {
    limit: usize,
    room: usize,
    after: Option<Uid>,
    /// The inbox with which it has come to the end of all.
    last: Option<Option<Uid>>,
}

impl Walk {
    fn new(inboxes: &[(Uid, MessageId)], after: Option<Uid>, limit: usize) -> Walk {
        let last = inboxes.last().map(|(uid, _)| *uid).or(after);
        let last = (inboxes.len() < INBOXES_AT_ONCE).then_some(last);
        Walk { limit, room: limit, after, last }
    }

    fn expired(self) -> Expired {
        let Walk { limit, room, after, last } = self;
        Expired { removed: (limit - room) as u64, after, is_done: last == Some(after) }
    }
}

/// The inboxes after `after`, and up to which id each has expired.
async fn inboxes(
    connection: &mut PgConnection,
    after: Option<Uid>,
) -> Result<Vec<(Uid, MessageId)>, StoreError> {
    let key = after.map(Uid::partition_key);
    let rows: Vec<(i64, i64)> = sqlx::query_as(
        "SELECT receiver, expired_to FROM heads WHERE (partition_key, receiver) > ($1, $2)
         ORDER BY partition_key, receiver LIMIT $3",
    )
    .bind(key.as_ref().map_or("", PartitionKey::as_str))
    .bind(after.map_or(0, |uid| i64::from(uid.0)))
    .bind(rows_at_most(INBOXES_AT_ONCE))
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(|(uid, id)| Ok((lookup::uid(uid)?, lookup::message_id(id)?))).collect()
}

/// Whether the next row of the inbox is old.
async fn is_due(
    connection: &mut PgConnection,
    uid: Uid,
    expired_to: MessageId,
    sent_before: Timestamp,
) -> Result<bool, StoreError> {
    let next: Option<i64> = sqlx::query_scalar(
        "SELECT sent_at FROM entries WHERE partition_key = $1 AND receiver = $2 AND message_id > $3 AND kind <> ALL ($4)
         ORDER BY message_id LIMIT 1",
    )
    .bind(uid.partition_key().to_string())
    .bind(i64::from(uid.0))
    .bind(expired_to.get().cast_signed())
    .bind(lookup::codes(Kind::is_lasting))
    .fetch_optional(connection)
    .await?;
    Ok(next.is_some_and(|sent_at| sent_at < sent_before.0))
}

/// The rows of an inbox, or of one conversation of it, that may expire next. Shells of a conversation have expired already.
async fn rows(
    connection: &mut PgConnection,
    uid: Uid,
    expired_to: MessageId,
    of: Option<Conversation>,
    limit: usize,
) -> Result<Vec<Entry>, StoreError> {
    let alone = match of {
        None => "",
        Some(_) => "AND conversation = $6 AND NOT (kind = $7 AND client_id IS NULL)",
    };
    let sql = format!(
        "SELECT {ENTRY} FROM entries WHERE partition_key = $1 AND receiver = $2 AND message_id > $3 AND kind <> ALL ($4) {alone}
         ORDER BY message_id LIMIT $5"
    );
    let mut rows = sqlx::query(AssertSqlSafe(sql))
        .bind(uid.partition_key().to_string())
        .bind(i64::from(uid.0))
        .bind(expired_to.get().cast_signed())
        .bind(lookup::codes(Kind::is_lasting))
        .bind(rows_at_most(limit));
    if let Some(of) = of {
        rows = rows.bind(of.to_string()).bind(i16::from(Kind::Deleted.code()));
    }
    let rows = rows.fetch_all(connection).await?;
    rows.iter().map(|row| lookup::entry(uid, row)).collect()
}

/// What becomes of them. A row that comes meanwhile takes the place of a shell, which goes later.
async fn expiry(
    connection: &mut PgConnection,
    uid: Uid,
    rows: &[Entry],
    sent_before: Timestamp,
    layout: Layout,
) -> Result<Expiry, StoreError> {
    let mut of: Vec<(Uid, Conversation)> = rows.iter().map(|row| (uid, row.conversation())).collect();
    of.sort_unstable();
    of.dedup();
    let newest = lookup::of_conversations(connection, "last_id", &of, layout).await?;
    Ok(Expiry::of(rows, sent_before, |conversation| {
        of.binary_search(&(uid, conversation)).map_or(MessageId::ZERO, |at| newest[at])
    }))
}

/// Removes it all in one transaction, but for inboxes that somebody else holds. `moves_on`: the inboxes have expired that far. Says how many
/// rows went or left their shells.
async fn remove_all(
    connection: &mut PgConnection,
    work: &[(Uid, Expiry)],
    moves_on: bool,
) -> Result<usize, StoreError> {
    let mut tx = connection.begin().await?;
    let mut removed = 0;
    for (uid, expiry) in work {
        let lock = "SELECT FROM heads WHERE partition_key = $1 AND receiver = $2 FOR UPDATE SKIP LOCKED";
        let lock = sqlx::query(lock).bind(uid.partition_key().to_string()).bind(i64::from(uid.0));
        if lock.fetch_optional(&mut *tx).await?.is_some() {
            remove(&mut tx, *uid, expiry).await?;
            if moves_on {
                move_on(&mut tx, *uid, expiry.through).await?;
            }
            removed += expiry.len();
        }
    }
    tx.commit().await?;
    Ok(removed)
}

/// Removes rows of one owner by their names. Each is looked up alone: a database that does not know that one owner has many rows would
/// otherwise go through all of them.
fn delete_from(table: &str, owner: &str, name: &str, of: &str) -> String {
    format!(
        "DELETE FROM {table} USING (SELECT found.version FROM unnest($3::{of}[]) AS wanted(name)
             CROSS JOIN LATERAL (SELECT ctid AS version FROM {table} WHERE partition_key = $1 AND {owner} = $2
                 AND {name} BETWEEN wanted.name AND wanted.name ORDER BY {name} LIMIT 1) AS found) AS old
         WHERE {table}.ctid = old.version AND {table}.partition_key = $1"
    )
}

/// Removes it all from an inbox.
async fn remove(connection: &mut PgConnection, uid: Uid, expiry: &Expiry) -> Result<(), StoreError> {
    let of = |sql: String| {
        sqlx::query(AssertSqlSafe(sql)).bind(uid.partition_key().to_string()).bind(i64::from(uid.0))
    };
    let through = expiry.through.get().cast_signed();
    let gone: Vec<i64> = expiry.gone.iter().map(|id| id.get().cast_signed()).collect();
    let delete_rows = delete_from("entries", "receiver", "message_id", "bigint");
    of(delete_rows.clone()).bind(gone).execute(&mut *connection).await?;
    for (id, shell) in &expiry.emptied {
        let empty = "UPDATE entries SET kind = $3, body = $4, client_id = NULL
            WHERE partition_key = $1 AND receiver = $2 AND message_id = $5";
        of(empty.to_owned())
            .bind(i16::from(shell.kind.code()))
            .bind(shell.body.as_json())
            .bind(id.get().cast_signed())
            .execute(&mut *connection)
            .await?;
    }
    for (conversation, first) in &expiry.shown {
        let forget_shells = "DELETE FROM entries
            WHERE partition_key = $1 AND receiver = $2 AND conversation = $3 AND message_id < $4 AND kind = $5";
        of(forget_shells.to_owned())
            .bind(conversation.to_string())
            .bind(first.get().cast_signed())
            .bind(i16::from(Kind::Deleted.code()))
            .execute(&mut *connection)
            .await?;
    }
    let delete_keys = delete_from("compaction_keys", "receiver", "name", "text");
    if !expiry.marks.is_empty() {
        let forget_marks = format!("{delete_keys} RETURNING compaction_keys.message_id");
        let marks = of(forget_marks).bind(&expiry.marks).fetch_all(&mut *connection).await?;
        let marks: Vec<i64> = marks.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        if !marks.is_empty() {
            of(delete_rows).bind(marks).execute(&mut *connection).await?;
        }
    }
    if !expiry.keys.is_empty() {
        let forget_keys = format!("{delete_keys} AND compaction_keys.message_id <= $4");
        of(forget_keys).bind(&expiry.keys).bind(through).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Up to this id the inbox has expired.
async fn move_on(connection: &mut PgConnection, uid: Uid, through: MessageId) -> Result<(), StoreError> {
    let move_on =
        "UPDATE heads SET expired_to = $3 WHERE partition_key = $1 AND receiver = $2 AND expired_to < $3";
    let move_on = sqlx::query(move_on).bind(uid.partition_key().to_string()).bind(i64::from(uid.0));
    move_on.bind(through.get().cast_signed()).execute(connection).await?;
    Ok(())
}
