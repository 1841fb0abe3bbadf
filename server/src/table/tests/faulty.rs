//! A [`TableStore`] that fails on command: it follows a script, one fault per commit; without one left, it passes on.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::{Semaphore, watch};

use crate::domain::{PartitionKey, Timestamp};
use crate::store::faulty::Fault;
use crate::store::tables::{
    StoredRow, TableId, TableMade, TableOutcome, TableRecord, TableScan, TableStore, TableWrite,
};
use crate::store::{CommitError, StoreError};

/// See the module.
pub(super) struct FaultyTables {
    inner: Arc<dyn TableStore>,
    script: Mutex<VecDeque<Fault>>,
    /// Whether what a recovery reads cannot be read.
    pub(super) is_cut_off: AtomicBool,
    /// Whether ranges of rows are never read to their end.
    pub(super) scans_hang: AtomicBool,
    /// Whether it says that it groups commits by itself.
    pub(super) groups_commits: AtomicBool,
    released: Semaphore,
    stalled: watch::Sender<usize>,
    /// How many writes each commit had.
    pub(super) commits: Mutex<Vec<usize>>,
}

impl FaultyTables {
    pub(super) fn new(inner: Arc<dyn TableStore>) -> FaultyTables {
        let (stalled, _) = watch::channel(0);
        FaultyTables {
            inner,
            script: Mutex::default(),
            is_cut_off: AtomicBool::new(false),
            scans_hang: AtomicBool::new(false),
            groups_commits: AtomicBool::new(false),
            released: Semaphore::new(0),
            stalled,
            commits: Mutex::default(),
        }
    }

    /// Sets the faults of the coming commits.
    pub(super) fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).extend(faults);
    }

    /// Lets one stalled commit go on.
    pub(super) fn release(&self) {
        self.released.add_permits(1);
    }

    /// Waits until `commits` of them have stalled since the beginning.
    pub(super) async fn until_stalled(&self, commits: usize) {
        let reached = self.stalled.subscribe().wait_for(|stalled| *stalled >= commits).await.is_ok();
        assert!(reached, "the sender lives in self");
    }
}

fn scripted() -> StoreError {
    StoreError::unavailable("as the script says")
}

#[async_trait]
impl TableStore for FaultyTables {
    async fn create_table(
        &self,
        instance: &str,
        name: &str,
        definition: &str,
        now: Timestamp,
        most: usize,
    ) -> Result<TableMade, StoreError> {
        self.inner.create_table(instance, name, definition, now, most).await
    }

    async fn table(&self, instance: &str, name: &str) -> Result<Option<TableRecord>, StoreError> {
        self.inner.table(instance, name).await
    }

    async fn tables(&self, instance: &str) -> Result<Vec<TableRecord>, StoreError> {
        self.inner.tables(instance).await
    }

    async fn tables_after(&self, after: TableId, limit: usize) -> Result<Vec<TableRecord>, StoreError> {
        if self.is_cut_off.load(Ordering::Relaxed) {
            return Err(scripted());
        }
        self.inner.tables_after(after, limit).await
    }

    async fn redefine_table(&self, table: TableId, from: &str, to: &str) -> Result<bool, StoreError> {
        self.inner.redefine_table(table, from, to).await
    }

    async fn delete_table(&self, table: TableId) -> Result<bool, StoreError> {
        self.inner.delete_table(table).await
    }

    async fn forget_deleted(&self, limit: usize) -> Result<u64, StoreError> {
        self.inner.forget_deleted(limit).await
    }

    async fn commit(&self, writes: Vec<TableWrite>) -> Result<Vec<TableOutcome>, CommitError> {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner).push(writes.len());
        let fault = self.script.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        match fault.unwrap_or(Fault::Pass) {
            Fault::Pass => self.inner.commit(writes).await,
            Fault::Refuse => Err(CommitError::Refused(scripted())),
            Fault::Stale => Ok(writes.iter().map(|_| TableOutcome::Stale).collect()),
            Fault::LoseAnswer => {
                self.inner.commit(writes).await?;
                Err(CommitError::Unknown(scripted()))
            }
            Fault::LoseWrite => Err(CommitError::Unknown(scripted())),
            Fault::Stall => {
                self.stalled.send_modify(|stalled| *stalled += 1);
                self.released.acquire().await.expect("never closed").forget();
                self.inner.commit(writes).await
            }
            Fault::Panic => std::panic::resume_unwind(Box::new("as the script says")),
            Fault::PanicAfter => {
                self.inner.commit(writes).await?;
                std::panic::resume_unwind(Box::new("as the script says"))
            }
        }
    }

    fn groups_commits(&self) -> bool {
        self.groups_commits.load(Ordering::Relaxed)
    }

    async fn rows(
        &self,
        keys: &[(TableId, PartitionKey, Vec<u8>)],
    ) -> Result<Vec<Option<StoredRow>>, StoreError> {
        self.inner.rows(keys).await
    }

    async fn scan(&self, scan: &TableScan) -> Result<(Vec<StoredRow>, bool), StoreError> {
        if self.scans_hang.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        self.inner.scan(scan).await
    }
}
