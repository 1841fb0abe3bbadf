//! Tables of other programs (S19) on SQLite: the same journal, memtables and flush as messages have.
//!
//! The committer gives numbers and appends ([`commit`]), what is durable lies in the memtables first, a flush moves it into the
//! tables (`rows`), and reads lay memory over the tables ([`read`]). Definitions (`table_definitions`) are written at once.

use async_trait::async_trait;
use tokio::sync::oneshot;

use super::calls::CommitterRequest;
use super::{SqliteStore, closed};
use crate::domain::{PartitionKey, Timestamp};
use crate::store::sql::SqlConnection::Sqlite;
use crate::store::tables::{
    StoredRow, TableId, TableMade, TableOutcome, TableRecord, TableScan, TableStore, TableWrite,
};
use crate::store::{CommitError, StoreError, table_definitions};

mod commit;
pub(super) mod definitions;
mod memtable_view;
mod read;

pub(super) use definitions::skip_numbers;

/// How much of an answer is filled: at most so many rows and bytes, but the first row always goes.
struct Weighed {
    rows: usize,
    bytes: usize,
    is_empty: bool,
}

impl Weighed {
    fn new(rows: usize, bytes: usize) -> Weighed {
        Weighed { rows, bytes, is_empty: true }
    }

    /// Whether a row of so many bytes goes as well, which it then does.
    fn has_room(&mut self, weight: usize) -> bool {
        if self.rows == 0 || (weight > self.bytes && !self.is_empty) {
            self.rows = 0;
            return false;
        }
        *self = Weighed { rows: self.rows - 1, bytes: self.bytes.saturating_sub(weight), is_empty: false };
        true
    }
}

#[async_trait]
impl TableStore for SqliteStore {
    async fn create_table(
        &self,
        instance: &str,
        name: &str,
        definition: &str,
        now: Timestamp,
        most: usize,
    ) -> Result<TableMade, StoreError> {
        let mut tx = self.shared.db.write().await?;
        let table = (instance, name, definition);
        let made = table_definitions::create(Sqlite(&mut tx), table, now, most).await?;
        tx.commit().await?;
        if let TableMade::Made(table) = &made {
            self.shared.tables.insert(table.id);
        }
        Ok(made)
    }

    async fn table(&self, instance: &str, name: &str) -> Result<Option<TableRecord>, StoreError> {
        table_definitions::table(Sqlite(&mut *self.shared.db.reader().await?), instance, name).await
    }

    async fn tables(&self, instance: &str) -> Result<Vec<TableRecord>, StoreError> {
        table_definitions::tables(Sqlite(&mut *self.shared.db.reader().await?), instance).await
    }

    async fn tables_after(&self, after: TableId, limit: usize) -> Result<Vec<TableRecord>, StoreError> {
        table_definitions::tables_after(Sqlite(&mut *self.shared.db.reader().await?), after, limit).await
    }

    async fn redefine_table(&self, table: TableId, from: &str, to: &str) -> Result<bool, StoreError> {
        let mut tx = self.shared.db.write().await?;
        let is_done = table_definitions::redefine(Sqlite(&mut tx), table, from, to).await?;
        tx.commit().await?;
        Ok(is_done)
    }

    async fn delete_table(&self, table: TableId) -> Result<bool, StoreError> {
        if !self.shared.tables.contains(table) {
            return Ok(false);
        }
        // Commits that come after the answer find it gone; the journal has rows of it up to this batch at most.
        let through = self.ask(|reply| CommitterRequest::CloseTable(table, reply)).await?;
        let deleted = definitions::delete(&self.shared.db, table, through).await;
        if deleted.is_err() {
            // It may be deleted all the same; whoever asks for its name learns which.
            self.shared.tables.insert(table);
        }
        deleted
    }

    async fn forget_deleted(&self, limit: usize) -> Result<u64, StoreError> {
        definitions::forget_deleted(&self.shared.db, limit).await
    }

    async fn commit(&self, writes: Vec<TableWrite>) -> Result<Vec<TableOutcome>, CommitError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.requests.send(CommitterRequest::CommitRows(writes, reply)).await;
        sent.map_err(|_| CommitError::Refused(closed()))?;
        self.outcome_of(answer).await
    }

    /// The committer takes all calls that wait.
    fn groups_commits(&self) -> bool {
        true
    }

    async fn rows(
        &self,
        keys: &[(TableId, PartitionKey, Vec<u8>)],
    ) -> Result<Vec<Option<StoredRow>>, StoreError> {
        read::rows(&self.shared, keys).await
    }

    async fn scan(&self, scan: &TableScan) -> Result<(Vec<StoredRow>, bool), StoreError> {
        read::scan(&self.shared, scan).await
    }
}

/// For statements that take lists of keys as JSON.
pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}
