//! Revisions of rows: numbers of which no two states of a row have the same.
//!
//! The database's sequence gives a process one number at a time, and each stands for a million revisions. Revisions that
//! a process does not use are gaps.

use tokio::sync::Mutex;

use super::PgDb;
use crate::store::StoreError;

/// Revisions of one number of the sequence.
const BLOCK: u64 = 1 << 20;

/// Those that this process may use.
#[derive(Default)]
pub(super) struct Revisions {
    /// The next one, and where the block ends.
    left: Mutex<(u64, u64)>,
}

impl Revisions {
    /// One that was never used; 1 or more.
    pub(super) async fn next(&self, db: &PgDb) -> Result<u64, StoreError> {
        let mut left = self.left.lock().await;
        if left.0 == left.1 {
            let taken = async {
                let next = sqlx::query_scalar::<_, i64>("SELECT nextval('table_revisions')");
                Ok(next.fetch_one(&mut *db.for_queues().await?).await?.cast_unsigned())
            };
            let block = db.limited(taken).await?;
            *left = (block * BLOCK, (block + 1) * BLOCK);
        }
        let next = left.0;
        left.0 += 1;
        Ok(next)
    }
}
