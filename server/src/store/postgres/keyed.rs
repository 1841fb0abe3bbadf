//! How things stand: the newest row of each compaction key, and who has a copy of a row.

use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, PgConnection, Row as _};

use super::layout::Layout;
use super::lookup::{ENTRY, at, codes, entry, keys, message_id, rows_at_most};
use crate::domain::{Conversation, Entry, IdempotencyKey, Kind, MessageId, Uid};
use crate::store::{HEARD_AMONG, StoreError, beyond};

/// The newest rows under these compaction keys, in order.
pub(super) async fn newest(
    connection: &mut PgConnection,
    of: &[(Uid, String)],
    layout: Layout,
) -> Result<Vec<Option<Entry>>, StoreError> {
    let (partitions, receivers) = keys(of.iter().map(|(uid, _)| *uid));
    let names: Vec<&str> = of.iter().map(|(_, name)| name.as_str()).collect();
    let query = sqlx::query(AssertSqlSafe(layout.look_up(&newest_sql())))
        .bind(partitions)
        .bind(receivers)
        .bind(names);
    let rows = query.fetch_all(connection).await?;
    let mut found = vec![None; of.len()];
    for row in rows {
        let at = at(row.try_get(7)?, of.len())?;
        found[at] = Some(entry(of[at].0, &row)?);
    }
    Ok(found)
}

pub(super) fn newest_sql() -> String {
    format!(
        "SELECT entry.*, wanted.place FROM unnest($1, $2, $3) WITH ORDINALITY AS wanted(key, receiver, name, place)
         CROSS JOIN LATERAL (SELECT message_id FROM compaction_keys
             WHERE partition_key = wanted.key AND receiver = wanted.receiver AND name = wanted.name LIMIT 1) AS newest
         CROSS JOIN LATERAL (SELECT {ENTRY} FROM entries WHERE partition_key = wanted.key
             AND receiver = wanted.receiver AND message_id = newest.message_id LIMIT 1) AS entry"
    )
}

/// The newest rows of `uid` under the compaction keys that begin with `prefix` and come after `after`, with their keys.
pub(super) async fn newest_under(
    connection: &mut PgConnection,
    uid: Uid,
    prefix: &str,
    after: &str,
    limit: usize,
) -> Result<Vec<(String, Entry)>, StoreError> {
    let rows = sqlx::query(AssertSqlSafe(newest_under_sql()))
        .bind(uid.partition_key().to_string())
        .bind(i64::from(uid.0))
        .bind(after.max(prefix))
        .bind(beyond(prefix))
        .bind(rows_at_most(limit))
        .fetch_all(connection)
        .await?;
    rows.iter().map(|row| Ok((row.try_get(7)?, entry(uid, row)?))).collect()
}

pub(super) fn newest_under_sql() -> String {
    format!(
        "SELECT {ENTRY}, name FROM compaction_keys JOIN entries USING (partition_key, receiver, message_id)
         WHERE partition_key = $1 AND receiver = $2 AND name > $3 AND name < $4 ORDER BY name LIMIT $5"
    )
}

/// How many compaction keys of `uid` begin with `prefix`, up to `most`.
pub(super) async fn keys_under(
    connection: &mut PgConnection,
    uid: Uid,
    prefix: &str,
    most: usize,
) -> Result<usize, StoreError> {
    let count: i64 = sqlx::query_scalar(KEYS_UNDER)
        .bind(uid.partition_key().to_string())
        .bind(i64::from(uid.0))
        .bind(prefix)
        .bind(beyond(prefix))
        .bind(rows_at_most(most))
        .fetch_one(connection)
        .await?;
    usize::try_from(count).map_err(StoreError::corrupt)
}

pub(super) const KEYS_UNDER: &str = "SELECT count(*) FROM (SELECT FROM compaction_keys
    WHERE partition_key = $1 AND receiver = $2 AND name > $3 AND name < $4 LIMIT $5) AS few";

/// Whether these people have written to `uid`, in order.
pub(super) async fn heard_from(
    connection: &mut PgConnection,
    uid: Uid,
    others: &[Uid],
) -> Result<Vec<bool>, StoreError> {
    let names: Vec<String> = others.iter().map(|other| Conversation::User(*other).to_string()).collect();
    let places: Vec<i64> = sqlx::query_scalar(HEARD_FROM)
        .bind(uid.partition_key().to_string())
        .bind(i64::from(uid.0))
        .bind(names)
        .bind(others.iter().map(|other| i64::from(other.0)).collect::<Vec<_>>())
        .bind(codes(Kind::is_said))
        .bind(rows_at_most(HEARD_AMONG))
        .fetch_all(connection)
        .await?;
    let mut heard = vec![false; others.len()];
    for place in places {
        heard[at(place, others.len())?] = true;
    }
    Ok(heard)
}

pub(super) const HEARD_FROM: &str = "SELECT wanted.place
     FROM unnest($3::text[], $4::bigint[]) WITH ORDINALITY AS wanted(conversation, sender, place)
     WHERE EXISTS (SELECT FROM (SELECT sender, kind FROM entries
             WHERE partition_key = $1 AND receiver = $2 AND conversation = wanted.conversation
             ORDER BY message_id DESC LIMIT $6) AS newest
         WHERE newest.sender = wanted.sender AND newest.kind = ANY($5))";

/// The ids of these users' copies of what was accepted under `key`, in order.
pub(super) async fn copies(
    connection: &mut PgConnection,
    (sender, client_id): IdempotencyKey,
    uids: &[Uid],
    layout: Layout,
) -> Result<Vec<Option<MessageId>>, StoreError> {
    let (partitions, receivers) = keys(uids.iter().copied());
    let rows: Vec<PgRow> = sqlx::query(AssertSqlSafe(layout.look_up(COPIES)))
        .bind(partitions)
        .bind(receivers)
        .bind(i64::from(sender.0))
        .bind(client_id.0.as_bytes().as_slice())
        .fetch_all(connection)
        .await?;
    let mut copies = vec![None; uids.len()];
    for row in rows {
        copies[at(row.try_get(0)?, uids.len())?] = Some(message_id(row.try_get(1)?)?);
    }
    Ok(copies)
}

pub(super) const COPIES: &str = "SELECT wanted.place, copy.message_id
     FROM unnest($1, $2) WITH ORDINALITY AS wanted(key, receiver, place)
     CROSS JOIN LATERAL (SELECT message_id FROM entries
         WHERE partition_key = wanted.key AND receiver = wanted.receiver AND sender = $3 AND client_id = $4 LIMIT 1) AS copy";
