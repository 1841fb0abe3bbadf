//! Reads of one inbox, on somebody's behalf. Each is one statement, so it sees one moment.
//!
//! A page that its bytes fill early is cut off in the database.

use futures_util::TryStreamExt;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, PgConnection, Row as _};
use tokio::task::yield_now;

use super::lookup::{self, ENTRY, rows_at_most};
use crate::domain::{Conversation, Direction, Entry, Kind, MessageId, PageLimit, RangeQuery, Uid};
use crate::store::{Filling, Page, StoreError, Summary};

/// Rows that are read before others get their turn: they may all be there.
pub(super) const AT_ONCE: usize = 256;

/// A range of rows.
pub(super) async fn range(
    connection: &mut PgConnection,
    uid: Uid,
    query: RangeQuery,
) -> Result<Page, StoreError> {
    let Some((low, high)) = query.ids() else { return Ok(Page::default()) };
    let filling = Filling::new(query.page());
    let rows = sqlx::query(AssertSqlSafe(range_sql(query.direction())))
        .bind(uid.partition_key().to_string())
        .bind(i64::from(uid.0))
        .bind(low.cast_signed())
        .bind(high.cast_signed())
        .bind(rows_at_most(filling.wanted()))
        .bind(rows_at_most(query.page().bytes))
        .fetch(connection);
    collect(uid, rows, filling).await
}

pub(super) fn range_sql(direction: Direction) -> String {
    let order = order(direction);
    cut_off(
        order,
        &format!(
            "SELECT {ENTRY} FROM entries
             WHERE partition_key = $1 AND receiver = $2 AND message_id BETWEEN $3 AND $4
             ORDER BY message_id {order} LIMIT $5"
        ),
        "$6",
    )
}

/// The users with an id in their inboxes, in the order of the keys.
pub(super) async fn inboxes(
    connection: &mut PgConnection,
    (key, receiver): (&str, i64),
    direction: Direction,
    limit: usize,
) -> Result<Vec<Uid>, StoreError> {
    let uids: Vec<i64> = sqlx::query_scalar(AssertSqlSafe(inboxes_sql(direction)))
        .bind(key)
        .bind(receiver)
        .bind(rows_at_most(limit))
        .fetch_all(connection)
        .await?;
    uids.into_iter().map(|uid| u32::try_from(uid).map(Uid).map_err(StoreError::corrupt)).collect()
}

pub(super) fn inboxes_sql(direction: Direction) -> String {
    let (order, reaches) = match direction {
        Direction::Forward => (order(direction), ">="),
        Direction::Backward => (order(direction), "<="),
    };
    format!(
        "SELECT receiver FROM heads WHERE (partition_key, receiver) {reaches} ($1, $2) AND last_id > 0
         ORDER BY partition_key {order}, receiver {order} LIMIT $3"
    )
}

/// A page of one conversation, without what only says how things stand.
pub(super) async fn conversation(
    connection: &mut PgConnection,
    uid: Uid,
    conversation: Conversation,
    query: RangeQuery,
) -> Result<Page, StoreError> {
    let Some((low, high)) = query.ids() else { return Ok(Page::default()) };
    let filling = Filling::new(query.page());
    let rows = sqlx::query(AssertSqlSafe(conversation_sql(query.direction())))
        .bind(uid.partition_key().to_string())
        .bind(i64::from(uid.0))
        .bind(conversation.to_string())
        .bind(low.cast_signed())
        .bind(high.cast_signed())
        .bind(lookup::codes(Kind::is_state))
        .bind(rows_at_most(filling.wanted()))
        .bind(rows_at_most(PageLimit::MOST_BYTES))
        .fetch(connection);
    collect(uid, rows, filling).await
}

pub(super) fn conversation_sql(direction: Direction) -> String {
    let order = order(direction);
    let rows = format!(
        "SELECT {ENTRY} FROM entries
         WHERE partition_key = $1 AND receiver = $2 AND conversation = $3 AND message_id BETWEEN $4 AND $5 AND kind <> ALL ($6)
         ORDER BY message_id {order} LIMIT $7"
    );
    cut_off(order, &rows, "$8")
}

fn order(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "ASC",
        Direction::Backward => "DESC",
    }
}

/// The rows of `sql`, as far as there is room for them, and one or two more: the first row goes whatever it weighs, and the one that has no
/// room tells that there is more. The weight of a row is [`Entry::weight`]; the length of a long body is known without reading it.
fn cut_off(order: &str, sql: &str, bytes: &str) -> String {
    format!(
        "SELECT {ENTRY} FROM (SELECT *, sum(octet_length(body) + {FIXED}) OVER (ORDER BY message_id {order}
             ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING) AS before FROM ({sql}) AS page) AS page
         WHERE coalesce(before, 0) <= {bytes} ORDER BY message_id {order}"
    )
}

/// The weight of a row without a body.
const FIXED: usize = 256;

async fn collect(
    uid: Uid,
    mut rows: impl futures_util::Stream<Item = Result<PgRow, sqlx::Error>> + Unpin,
    mut filling: Filling,
) -> Result<Page, StoreError> {
    let mut count = 0_usize;
    while let Some(row) = rows.try_next().await? {
        count += 1;
        if count.is_multiple_of(AT_ONCE) {
            yield_now().await;
        }
        // All are read, so that the connection is ready for the next one.
        if !filling.is_full() {
            filling.push(lookup::entry(uid, &row)?);
        }
    }
    Ok(filling.page())
}

/// The `limit` newest conversations. One whose newest row was deleted is left out.
pub(super) async fn conversations(
    connection: &mut PgConnection,
    uid: Uid,
    before: Option<MessageId>,
    limit: usize,
) -> Result<Vec<Summary>, StoreError> {
    let rows = sqlx::query(AssertSqlSafe(conversations_sql()))
        .bind(uid.partition_key().to_string())
        .bind(i64::from(uid.0))
        .bind(rows_at_most(limit))
        .bind(i16::from(Kind::Message.code()))
        .bind(i64::from(Summary::MOST_UNREAD))
        .bind(before.unwrap_or(MessageId::MAX).get().cast_signed())
        .fetch_all(connection)
        .await?;
    let summary = |row: &PgRow| {
        let last: Entry = lookup::entry(uid, row)?;
        let unread = u32::try_from(row.try_get::<i64, _>(8)?).map_err(StoreError::corrupt)?;
        let read_to = lookup::message_id(row.try_get(7)?)?;
        let mentions = u32::try_from(row.try_get::<i64, _>(9)?).map_err(StoreError::corrupt)?;
        Ok(Summary { conversation: last.conversation(), last, unread, mentions, read_to })
    };
    rows.iter().map(summary).collect()
}

/// Whether a body names the user $2. Only what has mentions is read as JSON, without NULs, which `jsonb` does not take: once the escaped
/// backslashes are left out, what looks like an escaped NUL is one.
const MENTIONS: &str = r#"CASE WHEN position('"mentions":' IN body) > 0
    THEN (WITH plain AS (SELECT CASE WHEN position('\u0000' IN body) = 0 THEN body
            ELSE replace(replace(body, '\\', ''), '\u0000', '') END::jsonb AS said)
        SELECT said @> '{"mentions":{"all":true}}'
            OR said @> jsonb_build_object('mentions', jsonb_build_object('users', jsonb_build_array($2))) FROM plain)
    ELSE false END"#;

pub(super) fn conversations_sql() -> String {
    format!(
        "SELECT entry.*, known.read_to, unread.count, mentions.count
         FROM (SELECT conversation, last_id, read_to FROM conversations
             WHERE partition_key = $1 AND owner = $2 AND last_id > 0 AND last_id < $6 ORDER BY last_id DESC LIMIT $3) AS known
         CROSS JOIN LATERAL (SELECT {ENTRY} FROM entries
             WHERE partition_key = $1 AND receiver = $2 AND message_id = known.last_id LIMIT 1) AS entry
         CROSS JOIN LATERAL (SELECT count(*) FROM (SELECT FROM entries WHERE partition_key = $1 AND receiver = $2
             AND conversation = known.conversation AND message_id > known.read_to AND kind = $4 AND sender <> $2
             LIMIT $5) AS few) AS unread
         CROSS JOIN LATERAL (SELECT count(*) FROM (SELECT body FROM entries WHERE partition_key = $1 AND receiver = $2
             AND conversation = known.conversation AND message_id > known.read_to AND kind = $4 AND sender <> $2
             AND known.conversation LIKE 'g:%' AND unread.count > 0 ORDER BY message_id DESC LIMIT $5) AS few
             WHERE {MENTIONS}) AS mentions
         ORDER BY known.last_id DESC"
    )
}
