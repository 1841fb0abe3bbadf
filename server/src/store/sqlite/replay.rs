//! From the files to memory: what was flushed is read where it is needed, what was not is replayed from the journal.

use std::collections::BTreeMap;

use sqlx::{Row as _, SqliteExecutor};

use super::db::Db;
use super::journal::{Journal, record};
use super::ledger::StoreLedger;
use super::memtable::Memtable;
use super::pending::SqlitePending;
use super::rows::Counters;
use super::{lookup, meta};
use crate::store::{AcceptanceId, StoreError};

/// The ledger and the memtable as of the journal's last batch. `flushed`: the batch up to which the tables hold
/// everything; a flush that was cut off may have put some of the later rows there, which are replayed all the same.
pub(super) async fn replay(
    db: &Db,
    journal: &Journal,
    flushed: u64,
) -> Result<(StoreLedger, Memtable), StoreError> {
    let mut connection = db.service().await?;
    let accepted = AcceptanceId(meta::number(&mut *connection, meta::ACCEPTED).await?);
    let mut ledger = StoreLedger::new(accepted, stored_open(&mut *connection).await?);
    let memtable = Memtable::default();
    for seq in flushed + 1..=journal.last() {
        let records = journal.read(seq)?;
        memtable.apply_rows(&records);
        for record in records {
            if let Some(gid) = ledger.group_of(&record) {
                ledger.learn_group(gid, lookup::group(&mut *connection, gid).await?);
            }
            let contradiction = |error| StoreError::corrupt(format!("batch {seq}: {error}"));
            if let Some(update) = ledger.apply(&record).map_err(contradiction)? {
                memtable.apply(update);
            }
        }
    }
    connection.give_back();
    Ok((ledger, memtable))
}

/// The counters of tables, of which none is known yet.
pub(super) async fn counters(db: &Db) -> Result<Counters, StoreError> {
    let mut connection = db.service().await?;
    let floor = meta::number(&mut *connection, meta::TABLE_FLOOR).await?;
    connection.give_back();
    Ok(Counters::new(floor.cast_signed()))
}

/// The acceptances with copies owed, as of the last flush.
pub(super) async fn stored_open(
    executor: impl SqliteExecutor<'_>,
) -> Result<BTreeMap<AcceptanceId, SqlitePending>, StoreError> {
    let rows = sqlx::query("SELECT acceptance, record FROM pending").fetch_all(executor).await?;
    let mut open = BTreeMap::new();
    for row in rows {
        let acceptance = AcceptanceId(row.try_get::<i64, _>(0)?.cast_unsigned());
        let unreadable = |error| StoreError::corrupt(format!("pending acceptance {}: {error}", acceptance.0));
        open.insert(acceptance, record::decode_open(row.try_get(1)?).map_err(unreadable)?);
    }
    Ok(open)
}
