//! The walk over all inboxes, in the order of their keys.

use std::collections::BTreeSet;

use sqlx::{AssertSqlSafe, Row as _};

use super::shared::SqliteShared;
use crate::domain::{Direction, PartitionKey, Uid};
use crate::store::StoreError;

impl SqliteShared {
    /// Those with an id, from `from` on: what memory knows, and what the table of latest ids does.
    pub(super) async fn inboxes(
        &self,
        (key, receiver): (&str, i64),
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Uid>, StoreError> {
        // Before the table is asked: what is flushed meanwhile is in one of both.
        let view = self.memory.view();
        let is_in = |place: &(PartitionKey, Uid)| {
            let place = (place.0.as_str(), i64::from(place.1.0));
            match direction {
                Direction::Forward => place >= (key, receiver),
                Direction::Backward => place <= (key, receiver),
            }
        };
        let recent = view.memtables.iter().flat_map(|memtable| memtable.receivers());
        let mut places: BTreeSet<(PartitionKey, Uid)> =
            recent.map(|uid| (uid.partition_key(), uid)).filter(is_in).collect();
        let (reaches, order) = match direction {
            Direction::Forward => (">=", "ASC"),
            Direction::Backward => ("<=", "DESC"),
        };
        let stored = format!(
            "SELECT receiver FROM heads WHERE (partition_key, receiver) {reaches} (?, ?) AND last_id > 0
             ORDER BY partition_key {order}, receiver {order} LIMIT ?"
        );
        let rows = sqlx::query(AssertSqlSafe(stored))
            .bind(key)
            .bind(receiver)
            .bind(limit as i64)
            .fetch_all(&mut *self.db.reader().await?)
            .await?;
        for row in rows {
            let uid = Uid(row.try_get(0)?);
            places.insert((uid.partition_key(), uid));
        }
        let uids = |places: &mut dyn Iterator<Item = (PartitionKey, Uid)>| {
            places.take(limit).map(|(_, uid)| uid).collect()
        };
        Ok(match direction {
            Direction::Forward => uids(&mut places.into_iter()),
            Direction::Backward => uids(&mut places.into_iter().rev()),
        })
    }
}
