//! The copies that senders owe in the distributed layout, read without locks. The number of an acceptance is the id of
//! its sender's own copy, so sender and number together name it.

use std::collections::HashMap;
use std::sync::Arc;

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};

use super::super::learnt::PgPending;
use super::super::lookup::{self, rows_at_most};
use super::calls::CopyOf;
use crate::domain::{Content, Uid};
use crate::store::{AcceptanceId, Deliver, Pending, PendingKey, StoreError};

/// An acceptance with copies owed.
#[derive(Clone, Debug)]
pub(super) struct OwedCopies {
    pub(super) content: Arc<Content>,
    /// Those copies, in the order of the acceptance.
    pub(super) copies: Vec<CopyOf>,
}

/// The acceptance that a delivery is of.
pub(super) fn key(deliver: &Deliver) -> PendingKey {
    PendingKey { sender: deliver.content.sender, acceptance: deliver.acceptance }
}

/// Those of these acceptances that owe copies.
pub(super) async fn open(
    connection: &mut PgConnection,
    keys: &[PendingKey],
) -> Result<HashMap<PendingKey, OwedCopies>, StoreError> {
    let rows = sqlx::query(OPEN)
        .bind(keys.iter().map(|key| key.sender.partition_key().to_string()).collect::<Vec<_>>())
        .bind(keys.iter().map(|key| i64::from(key.sender.0)).collect::<Vec<_>>())
        .bind(keys.iter().map(|key| key.acceptance.0.cast_signed()).collect::<Vec<_>>())
        .fetch_all(connection)
        .await?;
    let mut found = HashMap::new();
    for row in &rows {
        let (key, content, copy) = copy_of(row)?;
        let owed = found.entry(key).or_insert_with(|| OwedCopies { content, copies: Vec::new() });
        owed.copies.push(copy);
    }
    Ok(found)
}

/// Acceptances after `after` with copies owed, by their senders and their numbers, at most `limit`.
pub(super) async fn pending(
    connection: &mut PgConnection,
    after: PendingKey,
    limit: usize,
) -> Result<Vec<Pending>, StoreError> {
    let keys: Vec<(i64, i64)> = sqlx::query_as(
        "SELECT sender, acceptance FROM pending WHERE (partition_key, sender, acceptance) > ($1, $2, $3)
         ORDER BY partition_key, sender, acceptance LIMIT $4",
    )
    .bind(if after.sender == Uid(0) { String::new() } else { after.sender.partition_key().to_string() })
    .bind(i64::from(after.sender.0))
    .bind(after.acceptance.0.cast_signed())
    .bind(rows_at_most(limit))
    .fetch_all(&mut *connection)
    .await?;
    let key = |(sender, acceptance): (i64, i64)| {
        let sender = Uid(u32::try_from(sender).map_err(StoreError::corrupt)?);
        Ok(PendingKey { sender, acceptance: AcceptanceId(acceptance.cast_unsigned()) })
    };
    let keys: Vec<PendingKey> = keys.into_iter().map(key).collect::<Result<_, StoreError>>()?;
    let mut owed = open(connection, &keys).await?;
    let pending = |key: PendingKey| {
        // One that was settled in between is left out.
        let OwedCopies { content, copies } = owed.remove(&key)?;
        let owed = copies.into_iter().map(|copy| copy.to).collect();
        Some(Pending { acceptance: key.acceptance, content, owed })
    };
    Ok(keys.into_iter().filter_map(pending).collect())
}

const OPEN: &str = "SELECT pending.partition_key, pending.acceptance, pending.kind, pending.sender, pending.target, pending.client_id,
         pending.body, pending.sent_at, pending.ends_uid, pending.ends_epoch, ARRAY[outbox.recipient], ARRAY[outbox.epoch], outbox.previous
     FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS wanted(key, sender, acceptance)
     JOIN pending ON pending.partition_key = wanted.key AND pending.sender = wanted.sender AND pending.acceptance = wanted.acceptance
     JOIN outbox ON outbox.partition_key = pending.partition_key AND outbox.sender = pending.sender
         AND outbox.acceptance = pending.acceptance
     ORDER BY outbox.place";

fn copy_of(row: &PgRow) -> Result<(PendingKey, Arc<Content>, CopyOf), StoreError> {
    let (acceptance, PgPending { content, ends, owed }) = lookup::open_row(row)?;
    let previous = AcceptanceId(row.try_get::<i64, _>(12)?.cast_unsigned());
    let to = *owed.first().ok_or_else(|| StoreError::corrupt("a copy is owed to nobody"))?;
    let key = PendingKey { sender: content.sender, acceptance };
    Ok((key, content, CopyOf { acceptance, previous, to, ends }))
}
