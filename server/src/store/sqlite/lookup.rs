//! Look-ups in the keyed tables, many keys in one statement.
//!
//! Keys go in as one JSON array (`json_each`), so that one prepared statement serves any number of them.
//! `partition_key` stands in every statement on a table whose rows belong to users.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::json;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row as _, SqliteExecutor};
use uuid::Uuid;

use super::ledger::LedgerGroup;
use super::row_tables;
use crate::domain::{
    Body, ClientId, Content, Conversation, Digest, Entry, Group, GroupId, IdempotencyKey, Kind, Member,
    MembershipEpoch, MessageId, Standing, Timestamp, Uid,
};
use crate::store::{HEARD_AMONG, IdempotencyRecord, StoreError, group_settings};

/// The columns of an entry, in the order in which [`entry`] reads them.
pub(super) const ENTRY: &str = "message_id, kind, conversation, sender, client_id, body, sent_at";

/// The latest ids of these users; those who never had a row are absent.
pub(super) async fn latest_ids(
    executor: impl SqliteExecutor<'_>,
    uids: impl IntoIterator<Item = Uid>,
) -> Result<HashMap<Uid, MessageId>, StoreError> {
    let keys: Vec<_> = uids.into_iter().map(|uid| json!([uid.partition_key().as_str(), uid.0])).collect();
    let rows = sqlx::query(
        "SELECT receiver, last_id FROM json_each(?) CROSS JOIN heads
         WHERE partition_key = value ->> 0 AND receiver = value ->> 1",
    )
    .bind(json!(keys).to_string())
    .fetch_all(executor)
    .await?;
    let mut latest_ids = HashMap::with_capacity(rows.len());
    for row in rows {
        latest_ids.insert(uid(&row, 0)?, message_id(row.try_get(1)?)?);
    }
    Ok(latest_ids)
}

/// These rows of these inboxes, as far as they are there.
pub(super) async fn entries(
    executor: impl SqliteExecutor<'_>,
    wanted: &[(Uid, MessageId)],
) -> Result<HashMap<(Uid, MessageId), Entry>, StoreError> {
    let key = |(uid, id): &(Uid, MessageId)| json!([uid.partition_key().as_str(), uid.0, id.get()]);
    let keys: Vec<_> = wanted.iter().map(key).collect();
    let sql = row_tables::over_both(|rows| {
        format!(
            "SELECT {ENTRY}, receiver FROM json_each(?1) CROSS JOIN {rows}
             WHERE partition_key = value ->> 0 AND receiver = value ->> 1 AND message_id = value ->> 2"
        )
    });
    let rows = sqlx::query(AssertSqlSafe(sql)).bind(json!(keys).to_string()).fetch_all(executor).await?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in rows {
        let entry = entry(uid(&row, 7)?, &row)?;
        found.insert((entry.receiver, entry.message_id), entry);
    }
    Ok(found)
}

/// The rows under these keys in one inbox.
pub(super) async fn rows_of(
    executor: impl SqliteExecutor<'_>,
    receiver: Uid,
    keys: &[IdempotencyKey],
) -> Result<Vec<Entry>, StoreError> {
    let key = |(sender, client_id): &IdempotencyKey| json!([sender.0, client_id.0.simple().to_string()]);
    let keys: Vec<_> = keys.iter().map(key).collect();
    let sql = row_tables::over_both(|rows| {
        format!(
            "SELECT {ENTRY} FROM json_each(?1) CROSS JOIN {rows}
             WHERE partition_key = ?2 AND receiver = ?3 AND sender = value ->> 0 AND client_id = unhex(value ->> 1)"
        )
    });
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(json!(keys).to_string())
        .bind(receiver.partition_key().as_str().to_owned())
        .bind(receiver.0)
        .fetch_all(executor)
        .await?;
    rows.iter().map(|row| entry(receiver, row)).collect()
}

/// The column `read_to` or `last_id` of these conversations of these users, in order: how far they are read, and their newest message.
pub(super) async fn of_conversations(
    executor: impl SqliteExecutor<'_>,
    column: &'static str,
    of: &[(Uid, Conversation)],
) -> Result<Vec<MessageId>, StoreError> {
    let key = |(uid, conversation): &(Uid, Conversation)| {
        json!([uid.partition_key().as_str(), uid.0, conversation.to_string()])
    };
    let keys: Vec<_> = of.iter().map(key).collect();
    let young = match column {
        "last_id" => format!(
            "(SELECT max(message_id) FROM young_entries WHERE partition_key = value ->> 0 AND receiver = value ->> 1
                  AND conversation = value ->> 2 AND {})",
            row_tables::is_shown()
        ),
        _ => "0".to_owned(),
    };
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT max(coalesce(
             (SELECT {column} FROM conversations
                  WHERE partition_key = value ->> 0 AND owner = value ->> 1 AND conversation = value ->> 2), 0),
             coalesce({young}, 0))
         FROM json_each(?) ORDER BY key"
    )))
    .bind(json!(keys).to_string())
    .fetch_all(executor)
    .await?;
    rows.iter().map(|row| message_id(row.try_get(0)?)).collect()
}

/// Those of these people who have written to `owner`, as far as the newest rows of their conversations tell.
pub(super) async fn heard_from(
    executor: impl SqliteExecutor<'_>,
    owner: Uid,
    others: &[Uid],
) -> Result<Vec<Uid>, StoreError> {
    let key = |other: &Uid| json!([Conversation::User(*other).to_string(), other.0]);
    let keys: Vec<_> = others.iter().map(key).collect();
    let both = row_tables::over_conversations(|rows| {
        format!(
            "SELECT sender, kind, message_id FROM {rows}
             WHERE partition_key = ?2 AND receiver = ?3 AND conversation = wanted.value ->> 0"
        )
    });
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT wanted.value ->> 1 FROM json_each(?1) AS wanted WHERE EXISTS
             (SELECT 1 FROM ({both} ORDER BY message_id DESC LIMIT ?4)
              WHERE sender = wanted.value ->> 1 AND kind IN (SELECT value FROM json_each(?5)))"
    )))
    .bind(json!(keys).to_string())
    .bind(owner.partition_key().as_str().to_owned())
    .bind(owner.0)
    .bind(HEARD_AMONG as i64)
    .bind(json!(Kind::codes(Kind::is_said)).to_string())
    .fetch_all(executor)
    .await?;
    rows.iter().map(|row| uid(row, 0)).collect()
}

/// The newest rows under these compaction keys, in order.
pub(super) async fn newest(
    executor: impl SqliteExecutor<'_>,
    of: &[&(Uid, String)],
) -> Result<Vec<Option<Entry>>, StoreError> {
    let key = |(uid, name): &&(Uid, String)| json!([uid.partition_key().as_str(), uid.0, name]);
    let keys: Vec<_> = of.iter().map(key).collect();
    let sql = row_tables::over_both(|rows| {
        format!(
            "SELECT {ENTRY}, wanted.key FROM json_each(?1) AS wanted
             CROSS JOIN compaction_keys AS newest
                 ON newest.partition_key = value ->> 0 AND newest.receiver = value ->> 1 AND newest.name = value ->> 2
             CROSS JOIN {rows} USING (partition_key, receiver, message_id)"
        )
    });
    let rows = sqlx::query(AssertSqlSafe(sql)).bind(json!(keys).to_string()).fetch_all(executor).await?;
    let mut found = vec![None; of.len()];
    for row in rows {
        let place: i64 = row.try_get(7)?;
        let at = usize::try_from(place).map_err(StoreError::corrupt)?;
        found[at] = Some(entry(of[at].0, &row)?);
    }
    Ok(found)
}

/// The ids of these users' rows under this key; those who have none are absent.
pub(super) async fn copies(
    executor: impl SqliteExecutor<'_>,
    (sender, client_id): IdempotencyKey,
    uids: &[Uid],
) -> Result<HashMap<Uid, MessageId>, StoreError> {
    let keys: Vec<_> = uids.iter().map(|uid| json!([uid.partition_key().as_str(), uid.0])).collect();
    let sql = row_tables::over_both(|rows| {
        format!(
            "SELECT receiver, message_id FROM json_each(?1) CROSS JOIN {rows}
             WHERE partition_key = value ->> 0 AND receiver = value ->> 1 AND sender = ?2 AND client_id = ?3"
        )
    });
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(json!(keys).to_string())
        .bind(sender.0)
        .bind(client_id.0.as_bytes().as_slice())
        .fetch_all(executor)
        .await?;
    rows.iter().map(|row| Ok((uid(row, 0)?, message_id(row.try_get(1)?)?))).collect()
}

/// The idempotency records under these keys; keys that are not used are absent.
pub(super) async fn records(
    executor: impl SqliteExecutor<'_>,
    keys: impl IntoIterator<Item = IdempotencyKey>,
) -> Result<HashMap<IdempotencyKey, IdempotencyRecord>, StoreError> {
    let key = |(uid, client_id): IdempotencyKey| {
        json!([uid.partition_key().as_str(), uid.0, client_id.0.simple().to_string()])
    };
    let keys: Vec<_> = keys.into_iter().map(key).collect();
    let rows = sqlx::query(
        "SELECT sender, client_id, digest, message_id, sent_at FROM json_each(?) CROSS JOIN sent
         WHERE partition_key = value ->> 0 AND sender = value ->> 1 AND client_id = unhex(value ->> 2)",
    )
    .bind(json!(keys).to_string())
    .fetch_all(executor)
    .await?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in rows {
        let key = (uid(&row, 0)?, ClientId(uuid(row.try_get(1)?)?));
        let digest: [u8; 16] = row.try_get::<&[u8], _>(2)?.try_into().map_err(StoreError::corrupt)?;
        let sent_at = Timestamp(row.try_get(4)?);
        let message_id = message_id(row.try_get(3)?)?;
        found.insert(key, IdempotencyRecord { message_id, sent_at, digest: Digest(digest) });
    }
    Ok(found)
}

/// A group with everyone who was ever in it.
pub(super) async fn group(
    executor: impl SqliteExecutor<'_>,
    gid: GroupId,
) -> Result<LedgerGroup, StoreError> {
    let rows = sqlx::query(
        "SELECT settings, version, uid, epoch, active, ended_epoch, standing, since
         FROM groups LEFT JOIN members USING (gid) WHERE gid = ? ORDER BY uid",
    )
    .bind(gid.0.cast_signed())
    .fetch_all(executor)
    .await?;
    let Some(first) = rows.first() else { return Ok(LedgerGroup::default()) };
    let mut group = Group {
        gid,
        settings: group_settings::read(first.try_get(0)?)?,
        version: first.try_get::<i64, _>(1)?.cast_unsigned(),
        members: Vec::with_capacity(rows.len()),
    };
    let mut closed = HashMap::new();
    for row in &rows {
        let Some(uid) = row.try_get::<Option<u32>, _>(2)?.map(Uid) else { continue };
        let (epoch, last) = (MembershipEpoch(row.try_get(3)?), MembershipEpoch(row.try_get(5)?));
        let standing = Standing::from_code(row.try_get(4)?, row.try_get(6)?, row.try_get(7)?);
        group.members.push(Member { uid, epoch, standing });
        if last > MembershipEpoch(0) {
            closed.insert(uid, last);
        }
    }
    Ok(LedgerGroup { group: Some(Arc::new(group)), closed })
}

/// One row of `receiver`'s inbox from the columns of [`ENTRY`].
pub(super) fn entry(receiver: Uid, row: &SqliteRow) -> Result<Entry, StoreError> {
    let message_id = message_id(row.try_get(0)?)?;
    let code: u8 = row.try_get(1)?;
    let kind = Kind::from_code(code).ok_or_else(|| StoreError::corrupt(format!("kind {code}")))?;
    let conversation: Conversation = row.try_get::<&str, _>(2)?.parse().map_err(StoreError::corrupt)?;
    let sender = uid(row, 3)?;
    let client_id = row.try_get::<Option<&[u8]>, _>(4)?.map(uuid).transpose()?.map(ClientId);
    let content = Content {
        kind,
        sender,
        target: Content::target_of(receiver, sender, conversation),
        client_id,
        body: Body::from_stored(row.try_get::<&str, _>(5)?),
        sent_at: Timestamp(row.try_get(6)?),
    };
    Ok(Entry { receiver, message_id, content: Arc::new(content) })
}

/// An id as it is stored.
pub(super) fn message_id(stored: i64) -> Result<MessageId, StoreError> {
    let id = u64::try_from(stored).ok().and_then(MessageId::new);
    id.ok_or_else(|| StoreError::corrupt(format!("{stored} is not a message id")))
}

fn uid(row: &SqliteRow, column: usize) -> Result<Uid, StoreError> {
    Ok(Uid(row.try_get(column)?))
}

fn uuid(stored: &[u8]) -> Result<Uuid, StoreError> {
    Uuid::from_slice(stored).map_err(StoreError::corrupt)
}
