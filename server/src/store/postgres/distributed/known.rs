//! The reads of a commit before it begins, without locks: the copies still owed for its deliveries, and the latest ids of inboxes.

use std::collections::HashMap;

use super::{is_well_formed, owed};
use crate::domain::{MessageId, Uid};
use crate::store::postgres::PgDb;
use crate::store::postgres::layout::Layout;
use crate::store::postgres::lookup;
use crate::store::{Deliver, PendingKey, Row, StoreError, Write};

/// The copies still owed for the deliveries, and the latest ids of the senders of deliveries that are owed nothing.
pub(super) struct OwedLookup {
    pub(super) open: HashMap<PendingKey, owed::OwedCopies>,
    pub(super) latest: HashMap<Uid, MessageId>,
}

/// Which acceptance a delivery is of.
pub(super) fn key(deliver: &Deliver) -> PendingKey {
    PendingKey { sender: deliver.content.sender, acceptance: deliver.acceptance }
}

/// Reads what the deliveries are owed.
pub(super) async fn look_up_owed(db: &PgDb, writes: &[Write]) -> Result<OwedLookup, StoreError> {
    let deliveries = writes.iter().filter_map(|write| match write {
        Write::Deliver(deliver) => Some(key(deliver)),
        Write::Accept(_) => None,
    });
    let keys: Vec<PendingKey> = deliveries.collect();
    if keys.is_empty() {
        return Ok(OwedLookup { open: HashMap::new(), latest: HashMap::new() });
    }
    let look = async {
        let mut connection = db.for_queues().await?;
        let open = owed::open(&mut connection, &keys).await?;
        let others: Vec<Uid> =
            keys.iter().filter(|key| !open.contains_key(key)).map(|key| key.sender).collect();
        let latest = lookup::latest_ids(&mut connection, &others, Layout::Distributed).await?;
        Ok(OwedLookup { open, latest: others.into_iter().zip(latest).collect() })
    };
    db.limited(look).await
}

/// Latest ids.
pub(super) type Tails = HashMap<Uid, MessageId>;

/// The latest ids of those who get rows with ids of the caller's; `Err`: those that these would not come after.
pub(super) async fn tails(
    db: &PgDb,
    writes: &[Write],
    known: &OwedLookup,
) -> Result<Result<Tails, Vec<(Uid, MessageId)>>, StoreError> {
    let counts = |write: &&Write| match write {
        Write::Accept(accept) => is_well_formed(accept),
        Write::Deliver(deliver) => known.open.contains_key(&key(deliver)),
    };
    let given = writes.iter().filter(counts).flat_map(|write| {
        let first = match write {
            Write::Deliver(deliver) => deliver.earlier_rows().next(),
            Write::Accept(_) => None,
        };
        first.into_iter().chain(write.rows().iter().copied()).filter(|row| !row.is_unnumbered())
    });
    let given: Vec<Row> = given.collect();
    if given.is_empty() {
        return Ok(Ok(Tails::new()));
    }
    let mut uids: Vec<Uid> = given.iter().map(|row| row.receiver).collect();
    uids.sort_unstable();
    uids.dedup();
    let look = async { lookup::latest_ids(&mut *db.for_queues().await?, &uids, Layout::Distributed).await };
    let tails: Tails = uids.iter().copied().zip(db.limited(look).await?).collect();
    let is_late = |uid: &Uid| given.iter().any(|row| row.receiver == *uid && row.message_id <= tails[uid]);
    let late: Vec<_> = uids.iter().filter(|uid| is_late(uid)).map(|uid| (*uid, tails[uid])).collect();
    Ok(if late.is_empty() { Ok(tails) } else { Err(late) })
}
