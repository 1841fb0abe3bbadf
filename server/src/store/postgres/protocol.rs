//! How writes become durable: in one transaction, or step by step where the tables are distributed. Chosen by the
//! [`Layout`], which no other file asks for that. Called by the store.

use sqlx::PgConnection;

use super::commit::Commit;
use super::layout::Layout;
use super::learnt::Learnt;
use super::recent::Recent;
use super::{PgDb, distributed, lookup};
use crate::store::{CommitError, Outcome, Pending, PendingKey, StoreError, Write};

/// Makes writes durable. In one transaction they are kept in `recent`, too.
pub(super) async fn commit(
    db: &PgDb,
    recent: &Recent,
    writes: Vec<Write>,
) -> Result<Vec<Outcome>, CommitError> {
    match db.layout {
        Layout::Plain => Commit { db, learnt: Learnt::default(), recent }.run(writes).await,
        Layout::Distributed => distributed::commit(db, &writes).await,
    }
}

/// Acceptances after `after` with copies owed, at most `limit`.
pub(super) async fn pending(
    connection: &mut PgConnection,
    layout: Layout,
    after: PendingKey,
    limit: usize,
) -> Result<Vec<Pending>, StoreError> {
    match layout {
        Layout::Plain => lookup::pending(connection, after.acceptance, limit).await,
        Layout::Distributed => distributed::pending(connection, after, limit).await,
    }
}

/// The work beside commits, for as long as the process serves.
pub(super) async fn watch(db: &PgDb) {
    if db.layout == Layout::Distributed {
        distributed::watch(db).await;
    }
}
