//! Tables of other programs (S19) on PostgreSQL, for any number of processes at a time.
//!
//! A commit is one call of one function ([`commit`]), which gives numbers and compares what was decided on under locks.
//! Nothing is kept in memory but [`revisions`], numbers that no other process has.

use async_trait::async_trait;

use super::PostgresStore;
use crate::domain::{PartitionKey, Timestamp};
use crate::store::tables::{
    StoredRow, TableId, TableMade, TableOutcome, TableRecord, TableScan, TableStore, TableWrite,
};
use crate::store::{CommitError, StoreError};

pub(super) mod archive;
mod commit;
mod definitions;
mod plan;
mod read;
mod revisions;

pub(super) use definitions::skip_numbers;
pub(super) use revisions::Revisions;

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
        self.db.limited(definitions::create(&self.db, (instance, name, definition), now, most)).await
    }

    async fn table(&self, instance: &str, name: &str) -> Result<Option<TableRecord>, StoreError> {
        let table = async { definitions::table(&mut *self.db.reader().await?, instance, name).await };
        self.db.limited(table).await
    }

    async fn tables(&self, instance: &str) -> Result<Vec<TableRecord>, StoreError> {
        self.db.limited(async { definitions::tables(&mut *self.db.reader().await?, instance).await }).await
    }

    async fn tables_after(&self, after: TableId, limit: usize) -> Result<Vec<TableRecord>, StoreError> {
        let tables = async { definitions::tables_after(&mut *self.db.reader().await?, after, limit).await };
        self.db.limited(tables).await
    }

    async fn redefine_table(&self, table: TableId, from: &str, to: &str) -> Result<bool, StoreError> {
        let done = async { definitions::redefine(&mut *self.db.reader().await?, table, from, to).await };
        self.db.limited(done).await
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
