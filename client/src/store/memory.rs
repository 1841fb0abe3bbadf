//! Rows and cursor in memory: for tests, and for programs that want every row again at each start.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Store;
use crate::sync::{Position, StoreChange};
use crate::wire::Entry;

/// A store in memory. Clones share their content, so that one can look while a client writes.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<DeviceRows>>,
}

#[derive(Debug, Default)]
struct DeviceRows {
    position: Position,
    rows: BTreeMap<u64, Entry>,
}

impl MemoryStore {
    /// An empty one.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// One that stands at `position` and holds no rows: only newer ones will come.
    pub fn at(position: Position) -> MemoryStore {
        let state = DeviceRows { position, rows: BTreeMap::new() };
        MemoryStore { state: Arc::new(Mutex::new(state)) }
    }

    /// All rows, oldest first.
    pub fn rows(&self) -> Vec<Entry> {
        self.lock().rows.values().cloned().collect()
    }

    /// Where the device stands.
    pub fn position(&self) -> Position {
        self.lock().position.clone()
    }

    fn lock(&self) -> MutexGuard<'_, DeviceRows> {
        // Nothing between two changes of the state can panic, so a poisoned one is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    async fn load(&mut self) -> io::Result<Position> {
        Ok(self.position())
    }

    async fn apply(&mut self, change: &StoreChange) -> io::Result<()> {
        let mut state = self.lock();
        match change {
            StoreChange::None => {}
            StoreChange::Append { rows, cursor } => {
                state.rows.extend(rows.iter().map(|row| (row.message_id, row.clone())));
                state.position.cursor = *cursor;
            }
            StoreChange::Lower { cursor } => {
                state.rows.split_off(&(cursor + 1));
                state.position.cursor = *cursor;
            }
            StoreChange::Reset { history } => {
                state.rows.clear();
                state.position = Position { history: Some(history.clone()), cursor: 0 };
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn memory_keeps_the_contract() {
        super::super::conformance::run(MemoryStore::new(), |store| store.rows()).await;
    }
}
