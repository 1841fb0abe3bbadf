//! Which tables there are.

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};

use crate::store::StoreError;
use crate::store::sqlite::db::Db;
use crate::store::tables::TableId;

/// The tables that are not deleted. The committer and reads ask it, so that a deleted table is gone at once.
#[derive(Default)]
pub(in crate::store::sqlite) struct LiveTables {
    ids: RwLock<HashSet<TableId>>,
}

impl LiveTables {
    /// Those of the database.
    pub(in crate::store::sqlite) async fn read(db: &Db) -> Result<LiveTables, StoreError> {
        let ids: Vec<i64> =
            sqlx::query_scalar("SELECT id FROM tables WHERE deleted IS NULL").fetch_all(db.readers()).await?;
        let ids = ids.into_iter().map(|id| TableId(id.cast_unsigned())).collect();
        Ok(LiveTables { ids: RwLock::new(ids) })
    }

    pub(in crate::store::sqlite) fn contains(&self, table: TableId) -> bool {
        self.ids.read().unwrap_or_else(PoisonError::into_inner).contains(&table)
    }

    pub(in crate::store::sqlite) fn insert(&self, table: TableId) {
        self.ids.write().unwrap_or_else(PoisonError::into_inner).insert(table);
    }

    /// From now on it is gone.
    pub(in crate::store::sqlite) fn remove(&self, table: TableId) {
        self.ids.write().unwrap_or_else(PoisonError::into_inner).remove(&table);
    }
}
