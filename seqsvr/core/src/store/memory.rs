//! Ceilings and the routing table in memory: the simplest correct store, for tests and for callers that need no
//! durability. It outlives the allocators that use it, so opening another one over the same `Memory` is a restart.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::watch;

use super::backup::Backup;
use super::claims::Claims;
use super::{Ceiling, Claimed, Layout, Owner, RaiseError, Ranges, SectionStore, StoreError};
use crate::ids::{Epoch, SectionId};

mod tables;

/// A [`SectionStore`] and [`RoutingTableStore`](super::tables::RoutingTableStore) whose data lives as long as the value.
#[derive(Debug)]
pub struct Memory {
    state: Mutex<SectionsState>,
    news: watch::Sender<News>,
}

/// The revisions that readers wait for; from 1, since a reader starts with 0.
#[derive(Debug)]
struct News {
    /// Grows with each change of the table and each release.
    revision: u64,
    /// Which of them the last change of the table was.
    table: u64,
}

#[derive(Debug, Default)]
struct SectionsState {
    layout: Option<Layout>,
    claims: Claims,
    ceilings: BTreeMap<SectionId, u64>,
    tables: tables::RoutingTableState,
}

impl Default for Memory {
    fn default() -> Self {
        Self { state: Mutex::default(), news: watch::Sender::new(News { revision: 1, table: 1 }) }
    }
}

impl Memory {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, SectionsState> {
        // No method panics half-way through a change, so a poisoned state is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SectionStore for Memory {
    fn is_exclusive(&self) -> bool {
        true
    }

    async fn newest_epoch(&self) -> Result<Epoch, StoreError> {
        Ok(self.lock().claims.newest())
    }

    async fn claim(&self, sections: &Ranges, owner: Owner, layout: Layout) -> Result<Claimed, StoreError> {
        let mut state = self.lock();
        let stored = *state.layout.get_or_insert(layout);
        if stored != layout {
            return Err(StoreError::Layout { stored, configured: layout });
        }
        state.claims.accept(sections, owner)?;
        let of = |range: &RangeInclusive<SectionId>| {
            state.ceilings.range(range.clone()).map(|(&section, &max)| Ceiling { section, max })
        };
        let ceilings = sections.iter().flat_map(of).collect();
        Ok(Claimed { ceilings, floor: 0, earlier: state.claims.earlier(sections) })
    }

    async fn raise(&self, owner: Owner, raises: &[Ceiling]) -> Vec<Result<u64, RaiseError>> {
        let mut state = self.lock();
        let mut raise_one = |raise: &Ceiling| {
            state.claims.check(raise.section, owner)?;
            let stored = state.ceilings.entry(raise.section).or_default();
            if *stored > raise.max {
                return Err(RaiseError::Smaller { stored: *stored });
            }
            *stored = raise.max;
            Ok(raise.max)
        };
        raises.iter().map(&mut raise_one).collect()
    }

    async fn release(&self, sections: &Ranges, owner: Owner) -> Result<(), StoreError> {
        if self.lock().claims.release(sections, owner) {
            self.news.send_modify(|news| news.revision += 1);
        }
        Ok(())
    }

    async fn backup(&self) -> Result<Backup, StoreError> {
        let state = self.lock();
        let (promised, table) = state.tables.kept();
        let newest = state.claims.newest();
        let backup = Backup { layout: state.layout, promised, newest, table, ..Backup::default() };
        let stored = state.ceilings.iter().filter(|(_, max)| **max > 0);
        Ok(backup.with(stored.map(|(&section, &max)| Ceiling { section, max })))
    }
}

#[cfg(test)]
mod tests {
    use super::Memory;

    async fn fresh() -> (Memory, ()) {
        (Memory::new(), ())
    }

    super::super::conformance::conformance!(fresh);
    super::super::conformance::tables::conformance!(fresh);
}
