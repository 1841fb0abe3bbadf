//! Tables of other programs (S19) on PostgreSQL, for any number of processes at a time.
//!
//! A commit is one call of one function ([`commit`]), which gives numbers and compares what was decided on under locks.
//! Nothing is kept in memory but `revisions`, numbers that no other process has.

use async_trait::async_trait;
use sqlx::Connection as _;

use super::PostgresStore;
use crate::domain::{PartitionKey, Timestamp};
use crate::store::sql::SqlConnection::Postgres;
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
        let create = async {
            let mut connection = self.db.reader().await?;
            let mut tx = connection.begin().await?;
            let table = (instance, name, definition);
            let made = table_definitions::create(Postgres(&mut tx), table, now, most).await?;
            tx.commit().await?;
            Ok(made)
        };
        self.db.limited(create).await
    }

    async fn table(&self, instance: &str, name: &str) -> Result<Option<TableRecord>, StoreError> {
        let table =
            async { table_definitions::table(Postgres(&mut *self.db.reader().await?), instance, name).await };
        self.db.limited(table).await
    }

    async fn tables(&self, instance: &str) -> Result<Vec<TableRecord>, StoreError> {
        let tables =
            async { table_definitions::tables(Postgres(&mut *self.db.reader().await?), instance).await };
        self.db.limited(tables).await
    }

    async fn tables_after(&self, after: TableId, limit: usize) -> Result<Vec<TableRecord>, StoreError> {
        let tables = async {
            table_definitions::tables_after(Postgres(&mut *self.db.reader().await?), after, limit).await
        };
        self.db.limited(tables).await
    }

    async fn redefine_table(&self, table: TableId, from: &str, to: &str) -> Result<bool, StoreError> {
        let redefine = async {
            table_definitions::redefine(Postgres(&mut *self.db.reader().await?), table, from, to).await
        };
        self.db.limited(redefine).await
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
