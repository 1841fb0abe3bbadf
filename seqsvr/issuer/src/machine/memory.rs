//! Machine ids in memory: for a process whose generators share ids, and for tests. Its leases run on the clock it is
//! given.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::registry::{Entry, Registry, RegistryError, Row};
use crate::clock::Clock;

/// A [`Registry`] that lives as long as the value.
#[derive(Debug)]
pub struct MemoryRegistry {
    clock: Clock,
    rows: Mutex<BTreeMap<u32, Kept>>,
}

#[derive(Debug)]
struct Kept {
    entry: Entry,
    ends_boot: u64,
    version: u64,
}

impl MemoryRegistry {
    /// An empty pool.
    pub fn new(clock: Clock) -> Self {
        Self { clock, rows: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Kept>> {
        // No method panics half-way through a change, so a poisoned state is still whole.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Registry for MemoryRegistry {
    async fn rows(&self) -> Result<Vec<Row>, RegistryError> {
        let now = self.clock.boot();
        let row = |kept: &Kept| Row {
            entry: kept.entry.clone(),
            live: now < kept.ends_boot,
            version: kept.version,
        };
        Ok(self.lock().values().map(row).collect())
    }

    async fn write(&self, entry: &Entry, over: u64, lease: Duration) -> Result<bool, RegistryError> {
        let ends_boot = self.clock.boot().saturating_add(lease.as_millis() as u64);
        let mut rows = self.lock();
        if rows.get(&entry.machine).map_or(0, |kept| kept.version) != over {
            return Ok(false);
        }
        rows.insert(entry.machine, Kept { entry: entry.clone(), ends_boot, version: over + 1 });
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::MemoryRegistry;
    use crate::clock::Clock;

    async fn fresh() -> (MemoryRegistry, ()) {
        (MemoryRegistry::new(Clock::system()), ())
    }

    super::super::conformance::conformance!(fresh);
}
