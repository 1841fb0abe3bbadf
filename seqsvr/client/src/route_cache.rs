//! The newest routing table of one Set that this process knows (S12): taken over from replies and from the file that
//! all processes of the machine share, never replaced by an older one. Read for every request, written when something
//! changed.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::metrics::{Counters, add};
use crate::cache::Cache;
use seqsvr_core::ids::Epoch;
use seqsvr_core::routing::Table;
use seqsvr_rpc::v1;

/// Keeps the newest routing table of one Set in memory.
pub struct RouteCache {
    set: u32,
    uids: RangeInclusive<u32>,
    table: RwLock<Option<Arc<Table>>>,
    /// Grows with each table taken over.
    changes: AtomicU64,
    counters: Arc<Counters>,
    shared: Option<SharedCache>,
}

/// The file that other processes watch, and what was last seen of it.
struct SharedCache {
    cache: Cache,
    generation: AtomicU64,
}

impl RouteCache {
    pub fn new(set: u32, uids: RangeInclusive<u32>, counters: Arc<Counters>, cache: Option<Cache>) -> Self {
        // No generation is this large, so the first look reads the file.
        let shared = cache.map(|cache| SharedCache { cache, generation: AtomicU64::new(u64::MAX) });
        Self { set, uids, table: RwLock::default(), changes: AtomicU64::new(0), counters, shared }
    }

    /// The number of the Set.
    pub(crate) fn set(&self) -> u32 {
        self.set
    }

    /// The table, and the count of changes that it came with.
    pub fn table(&self) -> (u64, Option<Arc<Table>>) {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        (self.changes.load(Ordering::Acquire), table.clone())
    }

    /// Differs from the last call's when there is another table. Every request asks.
    pub(crate) fn changes(&self) -> u64 {
        if let Some(shared) = &self.shared {
            let generation = shared.cache.generation();
            if shared.generation.swap(generation, Ordering::Relaxed) != generation {
                self.look(&shared.cache);
            }
        }
        self.changes.load(Ordering::Acquire)
    }

    /// The part of a request that names the table.
    pub fn route(&self) -> v1::Route {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let version = table.as_ref().map_or_else(Epoch::default, |table| table.version);
        v1::Route { set: self.set, term: version.term, version: version.version }
    }

    /// Takes over a table that came with a reply, unless it is no newer or not this Set's.
    pub(crate) fn adopt(&self, table: v1::Table) {
        let Some(table) = self.understand(table) else { return };
        if self.take(Arc::clone(&table))
            && let Some(shared) = &self.shared
            && let Err(error) = shared.cache.publish(&table)
        {
            tracing::warn!(set = self.set, %error, "the routing table cannot be shared; other processes fetch it themselves");
        }
    }

    /// Takes over what another process has put into the file.
    fn look(&self, cache: &Cache) {
        match cache.read() {
            Ok(table) => {
                if let Some(table) = table.and_then(|table| self.understand(table)) {
                    self.take(table);
                }
            }
            Err(error) => tracing::warn!(set = self.set, %error, "the shared routing table cannot be read"),
        }
    }

    fn understand(&self, table: v1::Table) -> Option<Arc<Table>> {
        match Table::try_from(table) {
            Ok(table) if table.set == self.set => {
                // The Set's servers refuse uids outside of it, and nobody else has the ones inside.
                if table.uids != self.uids {
                    tracing::warn!(
                        set = self.set, configured = ?self.uids, stored = ?table.uids,
                        "the uids of the Set differ from the client configuration; correct first_uid and last_uid of this Set"
                    );
                }
                return Some(Arc::new(table));
            }
            Ok(table) => tracing::error!(
                set = self.set,
                cluster_set = table.set,
                "the cluster's Set is not the one in the client configuration; correct its number"
            ),
            Err(error) => tracing::error!(set = self.set, %error, "a routing table cannot be read"),
        }
        None
    }

    /// Whether it was newer.
    fn take(&self, table: Arc<Table>) -> bool {
        let mut known = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let newer = known.as_ref().is_none_or(|known| known.version < table.version);
        if newer {
            tracing::debug!(set = self.set, version = %table.version, "a newer routing table");
            *known = Some(table);
            self.changes.fetch_add(1, Ordering::Release);
            add(&self.counters.tables, 1);
        }
        newer
    }
}
