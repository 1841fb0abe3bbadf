//! Tables of other programs (S19) on PostgreSQL, for any number of processes at a time.
//!
//! A commit is one call of one function ([`commit`]), which gives numbers and compares what was decided on under locks.
//! Nothing is kept in memory but `revisions`, numbers that no other process has.

use std::sync::Arc;

use async_trait::async_trait;

use super::PostgresStore;
use crate::domain::{PartitionKey, Timestamp};
use crate::store::sql::SqlDb;
use crate::store::tables::{
    StoredRow, TableId, TableMade, TableOutcome, TableRecord, TableScan, TableStore, TableWrite,
};
use crate::store::{CommitError, StoreError, table_definitions};

pub(super) mod archive;
mod commit;
mod definitions;
mod plan;
mod read;

pub(super) use definitions::skip_numbers;

impl PostgresStore {
    fn sql(&self) -> SqlDb {
        SqlDb::Postgres(Arc::clone(&self.db))
    }
}

#[async_trait]
impl TableStore for PostgresStore {
    async fn create_table(
        &self,
        instance: &str,
        name: &str,
        definition: &str,
        now: Timestamp,
        most: usize,
    ) -> Result<TableMade, StoreError> {
        table_definitions::create(&self.sql(), (instance, name, definition), now, most).await
    }

    async fn table(&self, instance: &str, name: &str) -> Result<Option<TableRecord>, StoreError> {
        table_definitions::table(&self.sql(), instance, name).await
    }

    async fn tables(&self, instance: &str) -> Result<Vec<TableRecord>, StoreError> {
        table_definitions::tables(&self.sql(), instance).await
    }

    async fn tables_after(&self, after: TableId, limit: usize) -> Result<Vec<TableRecord>, StoreError> {
        table_definitions::tables_after(&self.sql(), after, limit).await
    }

    async fn redefine_table(&self, table: TableId, from: &str, to: &str) -> Result<bool, StoreError> {
        table_definitions::redefine(&self.sql(), table, from, to).await
    }

    async fn delete_table(&self, table: TableId) -> Result<bool, StoreError> {
        self.db.limited(async { definitions::delete(&mut *self.db.reader().await?, table).await }).await
    }

    async fn forget_deleted(&self, limit: usize) -> Result<u64, StoreError> {
        definitions::forget_deleted(&self.db, limit).await
    }

    async fn commit(&self, writes: Vec<TableWrite>) -> Result<Vec<TableOutcome>, CommitError> {
        let committed = commit::run(&self.db, &self.revisions, &writes).await;
        match &committed {
            Ok(_) => self.condition.committed(),
            Err(CommitError::Refused(error) | CommitError::Unknown(error)) => self.condition.refused(error),
            Err(CommitError::Behind(_) | CommitError::Stale(_)) => {}
        }
        committed
    }

    async fn rows(
        &self,
        keys: &[(TableId, PartitionKey, Vec<u8>)],
    ) -> Result<Vec<Option<StoredRow>>, StoreError> {
        self.db.limited(async { read::rows(&mut *self.db.reader().await?, keys).await }).await
    }

    async fn scan(&self, scan: &TableScan) -> Result<(Vec<StoredRow>, bool), StoreError> {
        self.db.limited(async { read::scan(&mut *self.db.reader().await?, scan).await }).await
    }
}
