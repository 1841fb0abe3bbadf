//! The routing table in memory: one replica that always answers, so that each of its answers counts.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{Memory, News};
use crate::clock::{self, Moment};
use crate::routing::Table;
use crate::store::StoreError;
use crate::store::tables::{Reading, Revisions, RoutingTableStore, WriteError};

#[derive(Debug, Default)]
pub(super) struct RoutingTableState {
    promised: u64,
    table: Option<Arc<Table>>,
    /// When the arbiter of the promised term was last heard of.
    acting: Option<Moment>,
}

impl RoutingTableState {
    /// The state that a backup holds: the promised term, and the table.
    pub(super) fn kept(&self) -> (u64, Option<Arc<Table>>) {
        (self.promised, self.table.clone())
    }

    /// Whether the arbiter of `term` may act; if so it was heard of now.
    fn admit(&mut self, term: u64) -> Result<(), WriteError> {
        if term < self.promised {
            return Err(WriteError::Outranked(self.promised));
        }
        self.promised = term;
        self.acting = Some(clock::now());
        Ok(())
    }
}

#[async_trait]
impl RoutingTableStore for Memory {
    async fn read(&self, known: &Revisions, wait: Duration) -> Result<Reading, StoreError> {
        Ok(self.read_after(wait, |news| known.0 != [news.revision]).await)
    }

    async fn read_table(&self, known: &Revisions, wait: Duration) -> Result<Reading, StoreError> {
        let seen = known.0.first().copied().unwrap_or_default();
        Ok(self.read_after(wait, |news| seen < news.table).await)
    }

    async fn promise(&self, term: u64) -> Result<Option<Arc<Table>>, WriteError> {
        let state = &mut self.lock().tables;
        if term == state.promised {
            return Err(WriteError::Outranked(term));
        }
        state.admit(term)?;
        Ok(state.table.clone())
    }

    async fn write(&self, table: &Arc<Table>) -> Result<(), WriteError> {
        let mut state = self.lock();
        let state = &mut state.tables;
        state.admit(table.version.term)?;
        match &state.table {
            Some(stored) if stored == table => return Ok(()),
            Some(stored) if stored.version >= table.version => {
                return Err(WriteError::Older(stored.version));
            }
            _ => state.table = Some(Arc::clone(table)),
        }
        self.news.send_modify(|news| *news = News { revision: news.revision + 1, table: news.revision + 1 });
        Ok(())
    }

    async fn acting(&self, term: u64) -> Result<u64, StoreError> {
        let state = &mut self.lock().tables;
        if term == state.promised {
            state.acting = Some(clock::now());
        }
        Ok(state.promised)
    }
}

impl Memory {
    /// A wait that ends without a change is answered with what there is.
    async fn read_after(&self, wait: Duration, woken: impl FnMut(&News) -> bool) -> Reading {
        let mut news = self.news.subscribe();
        let _ = tokio::time::timeout(wait, news.wait_for(woken)).await;
        let state = &self.lock().tables;
        Reading {
            table: state.table.clone(),
            revisions: Revisions(vec![self.news.borrow().revision]),
            promised: state.promised,
            acting: state.acting.map(|heard| clock::now().since(heard)),
            bounds: None,
        }
    }
}
