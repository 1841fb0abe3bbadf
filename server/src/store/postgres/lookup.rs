//! Look-ups of many keys in one statement: by the queues before they decide, and by commits.
//!
//! Each key is looked up by itself, along the table's key, in the order of the keys. `LATERAL` with a limit leaves the
//! database no other way, also where it knows nothing of the table yet; [`PgLayout::look_up`](super::layout::PgLayout::look_up)
//! makes of it what another layout takes. A row that changes with every message is looked
//! up from the end of the key where its newest version lies (migrations/postgres/functions/commit_messages.sql).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, PgConnection, Row as _};
use uuid::Uuid;

use super::layout::Layout;
use super::learnt::PgPending;
use crate::domain::{
    Body, ClientId, Content, Conversation, Digest, Entry, Group, GroupId, IdempotencyKey, Kind, Member,
    MembershipEpoch, MessageId, Standing, Timestamp, Uid,
};
use crate::store::{AcceptanceId, IdempotencyRecord, Pending, Recipient, StoreError, group_settings};

/// The columns of an entry, in the order in which [`entry`] reads them.
pub(super) const ENTRY: &str = "message_id, kind, conversation, sender, client_id, body, sent_at";

/// Keys of users, as two arguments.
pub(super) fn keys(uids: impl Iterator<Item = Uid>) -> (Vec<String>, Vec<i64>) {
    uids.map(|uid| (uid.partition_key().to_string(), i64::from(uid.0))).unzip()
}

/// The latest ids of these users, in order.
pub(super) async fn latest_ids(
    connection: &mut PgConnection,
    uids: &[Uid],
    layout: Layout,
) -> Result<Vec<MessageId>, StoreError> {
    let (keys, receivers) = keys(uids.iter().copied());
    let found: Vec<(i64, i64)> = sqlx::query_as(AssertSqlSafe(layout.look_up(LATEST_IDS)))
        .bind(keys)
        .bind(receivers)
        .fetch_all(connection)
        .await?;
    let mut latest_ids = vec![MessageId::ZERO; uids.len()];
    for (place, latest) in found {
        latest_ids[at(place, uids.len())?] = message_id(latest)?;
    }
    Ok(latest_ids)
}

pub(super) const LATEST_IDS: &str = "SELECT wanted.place, head.last_id
     FROM unnest($1, $2) WITH ORDINALITY AS wanted(key, receiver, place)
     CROSS JOIN LATERAL (SELECT last_id FROM heads
         WHERE partition_key = wanted.key AND receiver BETWEEN wanted.receiver AND wanted.receiver
         ORDER BY receiver DESC LIMIT 1) AS head";

/// An inbox whose newest row is above its latest id, with both, if there is one among the oldest and the newest `sample` accounts.
pub(super) async fn head_behind(
    connection: &mut PgConnection,
    sample: u32,
    layout: Layout,
) -> Result<Option<(Uid, MessageId, MessageId)>, StoreError> {
    let sampled: Vec<i64> =
        sqlx::query_scalar(SAMPLED).bind(i64::from(sample)).fetch_all(&mut *connection).await?;
    let uids: Vec<Uid> = sampled.into_iter().map(uid).collect::<Result<_, _>>()?;
    // A server that writes meanwhile moves both, the head with the row: what is above the head as it is after the row was seen is
    // above it for good.
    let latest = latest_ids(&mut *connection, &uids, layout).await?;
    let above = some_above(&mut *connection, &uids, &latest, layout).await?;
    let uids: Vec<Uid> = above.keys().copied().collect();
    let latest = latest_ids(connection, &uids, layout).await?;
    let found = above.into_iter().zip(latest).find(|((_, newest), latest)| newest > latest);
    Ok(found.map(|((uid, newest), latest)| (uid, latest, newest)))
}

/// People of the oldest and the newest accounts.
const SAMPLED: &str = "(SELECT uid FROM accounts ORDER BY uid LIMIT $1)
     UNION (SELECT uid FROM accounts ORDER BY uid DESC LIMIT $1)";

/// Those of these users whose inbox has rows above these ids, each with the id of one.
async fn some_above(
    connection: &mut PgConnection,
    uids: &[Uid],
    above: &[MessageId],
    layout: Layout,
) -> Result<BTreeMap<Uid, MessageId>, StoreError> {
    let (keys, receivers) = keys(uids.iter().copied());
    let found: Vec<(i64, i64)> = sqlx::query_as(AssertSqlSafe(layout.look_up(ABOVE)))
        .bind(keys)
        .bind(receivers)
        .bind(above.iter().map(|id| id.get().cast_signed()).collect::<Vec<_>>())
        .fetch_all(connection)
        .await?;
    found.into_iter().map(|(place, id)| Ok((uids[at(place, uids.len())?], message_id(id)?))).collect()
}

pub(super) const ABOVE: &str = "SELECT wanted.place, entry.message_id
     FROM unnest($1, $2, $3) WITH ORDINALITY AS wanted(key, receiver, latest, place)
     CROSS JOIN LATERAL (SELECT message_id FROM entries
         WHERE partition_key = wanted.key AND receiver = wanted.receiver AND message_id > wanted.latest LIMIT 1) AS entry";

/// The idempotency records under these keys; keys without one are absent.
pub(super) async fn records(
    connection: &mut PgConnection,
    of: &[IdempotencyKey],
    layout: Layout,
) -> Result<HashMap<IdempotencyKey, IdempotencyRecord>, StoreError> {
    let (keys, senders) = keys(of.iter().map(|(uid, _)| *uid));
    let clients: Vec<&[u8]> = of.iter().map(|(_, client_id)| client_id.0.as_bytes().as_slice()).collect();
    let rows = sqlx::query(AssertSqlSafe(layout.look_up(RECORDS)))
        .bind(keys)
        .bind(senders)
        .bind(clients)
        .fetch_all(connection)
        .await?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in rows {
        let place: i64 = row.try_get(0)?;
        let digest: [u8; 16] = row.try_get::<&[u8], _>(1)?.try_into().map_err(StoreError::corrupt)?;
        let message_id = message_id(row.try_get(2)?)?;
        let sent_at = Timestamp(row.try_get(3)?);
        found.insert(
            of[at(place, of.len())?],
            IdempotencyRecord { message_id, sent_at, digest: Digest(digest) },
        );
    }
    Ok(found)
}

pub(super) const RECORDS: &str = "SELECT wanted.place, record.*
     FROM unnest($1, $2, $3) WITH ORDINALITY AS wanted(key, sender, client_id, place)
     CROSS JOIN LATERAL (SELECT digest, message_id, sent_at FROM sent
         WHERE partition_key = wanted.key AND sender = wanted.sender AND client_id = wanted.client_id LIMIT 1) AS record";

/// These rows of these inboxes, in order.
pub(super) async fn entries(
    connection: &mut PgConnection,
    wanted: &[(Uid, MessageId)],
    layout: Layout,
) -> Result<Vec<Option<Entry>>, StoreError> {
    let (keys, receivers) = keys(wanted.iter().map(|(uid, _)| *uid));
    let ids: Vec<i64> = wanted.iter().map(|(_, id)| id.get().cast_signed()).collect();
    let query =
        sqlx::query(AssertSqlSafe(layout.look_up(&entries_sql()))).bind(keys).bind(receivers).bind(ids);
    let rows = query.fetch_all(connection).await?;
    let mut found = vec![None; wanted.len()];
    for row in rows {
        let place: i64 = row.try_get(7)?;
        let at = at(place, wanted.len())?;
        found[at] = Some(entry(wanted[at].0, &row)?);
    }
    Ok(found)
}

pub(super) fn entries_sql() -> String {
    format!(
        "SELECT entry.*, wanted.place FROM unnest($1, $2, $3) WITH ORDINALITY AS wanted(key, receiver, id, place)
         CROSS JOIN LATERAL (SELECT {ENTRY} FROM entries
             WHERE partition_key = wanted.key AND receiver = wanted.receiver AND message_id = wanted.id LIMIT 1) AS entry"
    )
}

/// The column `read_to` or `last_id` of these conversations of these users, in order: how far they are read, and their newest message.
pub(super) async fn of_conversations(
    connection: &mut PgConnection,
    column: &'static str,
    of: &[(Uid, Conversation)],
    layout: Layout,
) -> Result<Vec<MessageId>, StoreError> {
    let (keys, owners) = keys(of.iter().map(|(uid, _)| *uid));
    let names: Vec<String> = of.iter().map(|(_, conversation)| conversation.to_string()).collect();
    let found: Vec<(i64, i64)> =
        sqlx::query_as(AssertSqlSafe(layout.look_up(&READ_MARKERS.replace("read_to", column))))
            .bind(keys)
            .bind(owners)
            .bind(names)
            .fetch_all(connection)
            .await?;
    let mut markers = vec![MessageId::ZERO; of.len()];
    for (place, read_to) in found {
        markers[at(place, of.len())?] = message_id(read_to)?;
    }
    Ok(markers)
}

pub(super) const READ_MARKERS: &str = "SELECT wanted.place, known.read_to
     FROM unnest($1, $2, $3) WITH ORDINALITY AS wanted(key, owner, conversation, place)
     CROSS JOIN LATERAL (SELECT read_to FROM conversations
         WHERE partition_key = wanted.key AND owner = wanted.owner AND conversation BETWEEN wanted.conversation AND wanted.conversation
         ORDER BY conversation DESC LIMIT 1) AS known";

/// The copies owed by these acceptances of these senders; those that owe nothing are absent.
pub(super) async fn open(
    connection: &mut PgConnection,
    of: impl Iterator<Item = (Uid, AcceptanceId)>,
) -> Result<HashMap<AcceptanceId, PgPending>, StoreError> {
    let (senders, acceptances): (Vec<Uid>, Vec<i64>) =
        of.map(|(sender, acceptance)| (sender, acceptance.0.cast_signed())).unzip();
    let (keys, senders) = keys(senders.into_iter());
    let sql = format!(
        "SELECT pending.*, owed.* FROM unnest($1, $2, $3) AS wanted(key, sender, acceptance)
         CROSS JOIN LATERAL (SELECT {PENDING} FROM pending WHERE partition_key = wanted.key
             AND sender = wanted.sender AND acceptance = wanted.acceptance LIMIT 1) AS pending {OWED}"
    );
    let rows =
        sqlx::query(AssertSqlSafe(sql)).bind(keys).bind(senders).bind(acceptances).fetch_all(connection);
    rows.await?.iter().map(open_row).collect()
}

/// Acceptances after `after` with copies owed, by their numbers, at most `limit`.
pub(super) async fn pending(
    connection: &mut PgConnection,
    after: AcceptanceId,
    limit: usize,
) -> Result<Vec<Pending>, StoreError> {
    let pending = |(acceptance, PgPending { content, owed, .. })| Pending { acceptance, content, owed };
    Ok(open_after(connection, after, limit).await?.into_iter().map(pending).collect())
}

/// The same, with the membership epochs that they end.
pub(super) async fn open_after(
    connection: &mut PgConnection,
    after: AcceptanceId,
    limit: usize,
) -> Result<Vec<(AcceptanceId, PgPending)>, StoreError> {
    let sql = format!(
        "SELECT pending.*, owed.* FROM (SELECT {PENDING} FROM pending WHERE acceptance > $1
             ORDER BY acceptance LIMIT $2) AS pending {OWED} ORDER BY pending.acceptance"
    );
    let query = sqlx::query(AssertSqlSafe(sql)).bind(after.0.cast_signed()).bind(rows_at_most(limit));
    query.fetch_all(connection).await?.iter().map(open_row).collect()
}

const PENDING: &str =
    "partition_key, acceptance, kind, sender, target, client_id, body, sent_at, ends_uid, ends_epoch";
const OWED: &str = "CROSS JOIN LATERAL (SELECT array_agg(recipient ORDER BY place) AS recipients, array_agg(epoch ORDER BY place) AS epochs
     FROM outbox WHERE outbox.partition_key = pending.partition_key AND outbox.sender = pending.sender
         AND outbox.acceptance = pending.acceptance) AS owed";

/// An acceptance from the columns of [`PENDING`], and arrays of the recipients and their epochs.
pub(super) fn open_row(row: &PgRow) -> Result<(AcceptanceId, PgPending), StoreError> {
    let acceptance = AcceptanceId(row.try_get::<i64, _>(1)?.cast_unsigned());
    let content = Content {
        kind: kind(row.try_get(2)?)?,
        sender: uid(row.try_get(3)?)?,
        target: row.try_get::<&str, _>(4)?.parse().map_err(StoreError::corrupt)?,
        client_id: client_id(row.try_get(5)?)?,
        body: Body::from_stored(row.try_get::<&str, _>(6)?),
        sent_at: Timestamp(row.try_get(7)?),
    };
    let ends = match (row.try_get(8)?, row.try_get(9)?) {
        (Some(leaver), Some(ended)) => Some((uid(leaver)?, epoch(ended)?)),
        _ => None,
    };
    let (uids, epochs): (Option<Vec<i64>>, Option<Vec<i64>>) = (row.try_get(10)?, row.try_get(11)?);
    let owed = uids.unwrap_or_default().into_iter().zip(epochs.unwrap_or_default());
    let owed = owed.map(|(to, since)| Ok(Recipient { uid: uid(to)?, epoch: epoch(since)? }));
    let owed = owed.collect::<Result<_, StoreError>>()?;
    Ok((acceptance, PgPending { content: Arc::new(content), ends, owed }))
}

/// The last number of an acceptance that was given.
pub(super) async fn last_acceptance(connection: &mut PgConnection) -> Result<AcceptanceId, StoreError> {
    let last: i64 =
        sqlx::query_scalar("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM acceptances")
            .fetch_one(connection)
            .await?;
    Ok(AcceptanceId(last.cast_unsigned()))
}

/// Groups with everyone who was ever in them, in order. One that is still at the version of `known` is read no further.
pub(super) async fn groups(
    connection: &mut PgConnection,
    gids: &[GroupId],
    known: Vec<Option<Arc<Group>>>,
    layout: Layout,
) -> Result<Vec<Option<Arc<Group>>>, StoreError> {
    let version = |known: &Option<Arc<Group>>| known.as_ref().map_or(0, |known| known.version.cast_signed());
    let rows = sqlx::query(layout.groups())
        .bind(gids.iter().map(|gid| gid.0.cast_signed()).collect::<Vec<_>>())
        .bind(known.iter().map(version).collect::<Vec<_>>())
        .fetch_all(connection)
        .await?;
    let mut found: Vec<Option<Group>> = vec![None; gids.len()];
    for row in &rows {
        let at = at(row.try_get(0)?, gids.len())?;
        let group = match &mut found[at] {
            Some(group) => group,
            none => none.insert(group(gids[at], row, 1)?),
        };
        group.members.extend(member(row, 3)?);
    }
    let as_known = |(found, known): (Option<Group>, Option<Arc<Group>>)| {
        let found = found?;
        Some(known.filter(|known| known.version == found.version).unwrap_or_else(|| Arc::new(found)))
    };
    Ok(found.into_iter().zip(known).map(as_known).collect())
}

/// The group of the columns `version, settings` from `first` on, without members.
pub(super) fn group(gid: GroupId, row: &PgRow, first: usize) -> Result<Group, StoreError> {
    let version = row.try_get::<i64, _>(first)?.cast_unsigned();
    let settings = group_settings::read(row.try_get(first + 1)?)?;
    Ok(Group { gid, settings, version, members: Vec::new() })
}

/// The member in the columns `uid, epoch, active, standing, since` from `first` on; `None`: they are empty.
pub(super) fn member(row: &PgRow, first: usize) -> Result<Option<Member>, StoreError> {
    let Some(of) = row.try_get(first)? else { return Ok(None) };
    let code = u8::try_from(row.try_get::<i16, _>(first + 3)?).map_err(StoreError::corrupt)?;
    let standing = Standing::from_code(row.try_get(first + 2)?, code, row.try_get(first + 4)?);
    Ok(Some(Member { uid: uid(of)?, epoch: epoch(row.try_get(first + 1)?)?, standing }))
}

/// One row of `receiver`'s inbox from the columns of [`ENTRY`].
pub(super) fn entry(receiver: Uid, row: &PgRow) -> Result<Entry, StoreError> {
    let message_id = message_id(row.try_get(0)?)?;
    let conversation: Conversation = row.try_get::<&str, _>(2)?.parse().map_err(StoreError::corrupt)?;
    let sender = uid(row.try_get(3)?)?;
    let content = Content {
        kind: kind(row.try_get(1)?)?,
        sender,
        target: Content::target_of(receiver, sender, conversation),
        client_id: client_id(row.try_get(4)?)?,
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

/// A limit of rows as an argument.
pub(super) fn rows_at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A uid as it is stored.
pub(super) fn uid(stored: i64) -> Result<Uid, StoreError> {
    let uid = u32::try_from(stored).map(Uid);
    uid.map_err(|_| StoreError::corrupt(format!("{stored} is not a uid")))
}

/// A membership epoch as it is stored.
pub(super) fn epoch(stored: i64) -> Result<MembershipEpoch, StoreError> {
    let epoch = u32::try_from(stored).map(MembershipEpoch);
    epoch.map_err(|_| StoreError::corrupt(format!("{stored} is not a membership epoch")))
}

/// The kinds of which this is true, as they are stored.
pub(super) fn codes(is: fn(Kind) -> bool) -> Vec<i16> {
    Kind::codes(is).into_iter().map(i16::from).collect()
}

fn kind(stored: i16) -> Result<Kind, StoreError> {
    let kind = u8::try_from(stored).ok().and_then(Kind::from_code);
    kind.ok_or_else(|| StoreError::corrupt(format!("kind {stored}")))
}

fn client_id(stored: Option<&[u8]>) -> Result<Option<ClientId>, StoreError> {
    stored.map(|bytes| Uuid::from_slice(bytes).map(ClientId).map_err(StoreError::corrupt)).transpose()
}

/// The key, of so many, that a row of an answer is for; places count from 1.
pub(super) fn at(place: i64, keys: usize) -> Result<usize, StoreError> {
    let at = usize::try_from(place - 1).ok().filter(|at| *at < keys);
    at.ok_or_else(|| StoreError::corrupt(format!("an answer for key {place} of {keys}")))
}
