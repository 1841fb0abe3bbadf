//! When people were online last: one row of each.

use super::directory_db::SqlTx;
use super::sql::sql;
use super::{Directory, StoreError};
use crate::domain::{Timestamp, Uid};

/// When people were online last.
impl Directory {
    /// These people were online at `at`.
    pub async fn put_last_seen(&self, people: &[Uid], at: Timestamp) -> Result<(), StoreError> {
        // In one order, whichever server says it of the same people.
        let mut people = people.to_vec();
        people.sort_unstable();
        let put =
            sql("INSERT INTO last_seen (uid, seen_at) SELECT value, $2 FROM unnest($1) AS value WHERE TRUE
             ON CONFLICT (uid) DO UPDATE SET seen_at = excluded.seen_at");
        self.db.change(put.bind(&people[..]).bind(at)).await.map(drop)
    }

    /// When `uid` was online last, if that is known.
    pub async fn last_seen(&self, uid: Uid) -> Result<Option<Timestamp>, StoreError> {
        let row = self.db.row(sql("SELECT seen_at FROM last_seen WHERE uid = $1").bind(uid)).await?;
        row.map(|row| row.time("seen_at")).transpose()
    }
}

/// The account is deleted.
pub(super) async fn forget_last_seen(tx: &mut SqlTx<'_>, uid: Uid) -> Result<(), StoreError> {
    tx.change(sql("DELETE FROM last_seen WHERE uid = $1").bind(uid)).await.map(drop)
}
