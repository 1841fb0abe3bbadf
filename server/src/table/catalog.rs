//! The tables of all instances, as the store has them. A table is remembered for a moment, so that not every operation reads it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidemark_table::operations::no_table;
use tidemark_table::{TableDefinition, TableError};
use tokio::time::Instant;

use super::error::{unread, unreadable};
use super::{Caller, inbox};
use crate::domain::Timestamp;
use crate::store::tables::{TableId, TableRecord, TableStore};

/// For how long a table is taken as it was read, although another server may have changed it.
const REMEMBER: Duration = Duration::from_secs(1);

/// Tables that are remembered.
const REMEMBERED: usize = 1_024;

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    pub(super) id: TableId,
    pub(super) definition: TableDefinition,
    /// The definition as it is stored.
    pub(super) stored: String,
    pub(super) created_at: Timestamp,
}

impl Table {
    /// The one of the chat's inboxes, which no store keeps.
    pub(super) fn of_inboxes() -> Table {
        let definition = inbox::definition();
        Table { id: inbox::ID, definition, stored: String::new(), created_at: Timestamp(0) }
    }

    /// Whether it is that one.
    pub(super) fn is_inbox(&self) -> bool {
        self.id == inbox::ID
    }

    pub(super) fn read(record: TableRecord) -> Result<Table, TableError> {
        let TableRecord { id, definition: stored, created_at, .. } = record;
        match serde_json::from_str(&stored) {
            Ok(definition) => Ok(Table { id, definition, stored, created_at }),
            Err(error) => Err(unreadable(&format!("table {}: {error}", id.0))),
        }
    }
}

/// See the module.
pub(super) struct Catalog {
    store: Arc<dyn TableStore>,
    remembered: Mutex<Remembered>,
    /// The inboxes of the chat.
    inbox: Arc<Table>,
}

#[derive(Default)]
struct Remembered {
    /// By instance and name, with the time at which it was read.
    tables: HashMap<(String, String), (Instant, Arc<Table>)>,
    /// How often something was forgotten: what was read before is not remembered after.
    forgotten: u64,
}

impl Catalog {
    pub(super) fn new(store: Arc<dyn TableStore>) -> Catalog {
        Catalog { store, remembered: Mutex::default(), inbox: Arc::new(Table::of_inboxes()) }
    }

    /// The one place where an operation finds what it is about.
    pub(super) async fn find(&self, caller: &Caller, name: &str) -> Result<Arc<Table>, TableError> {
        if name == inbox::NAME && caller.inbox.is_some() {
            return Ok(Arc::clone(&self.inbox));
        }
        let key = (caller.instance.clone(), name.to_owned());
        let (read, forgotten) = {
            let remembered = self.remembered();
            if let Some((read, table)) = remembered.tables.get(&key)
                && read.elapsed() < REMEMBER
            {
                return Ok(Arc::clone(table));
            }
            (Instant::now(), remembered.forgotten)
        };
        let table = self.load(caller, name).await?;
        let mut remembered = self.remembered();
        if remembered.tables.len() >= REMEMBERED {
            remembered.tables.clear();
        }
        if remembered.forgotten == forgotten {
            remembered.tables.insert(key, (read, Arc::clone(&table)));
        }
        Ok(table)
    }

    /// The table as it is now.
    pub(super) async fn load(&self, caller: &Caller, name: &str) -> Result<Arc<Table>, TableError> {
        let record = self.store.table(&caller.instance, name).await.map_err(|error| unread(&error))?;
        record.ok_or_else(no_table).and_then(Table::read).map(Arc::new)
    }

    /// Reads the table anew when it is asked for next: it has changed.
    pub(super) fn forget(&self, instance: &str, name: &str) {
        let mut remembered = self.remembered();
        remembered.tables.remove(&(instance.to_owned(), name.to_owned()));
        remembered.forgotten += 1;
    }

    fn remembered(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
