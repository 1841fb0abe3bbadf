//! Operations that make, tell, change and delete tables.

use std::sync::Arc;

use tidemark_table::operations::{no_table, tables};
use tidemark_table::{ErrorCode, TableDefinition, TableError};

use super::catalog::Table;
use super::error::{busy, internal, timeout, unread};
use super::{Caller, TableService, inbox};
use crate::store::StoreError;
use crate::store::tables::TableMade;

/// How often a change of a table is tried that others overtake.
const MOST_TRIES: usize = 4;

impl TableService {
    pub(super) async fn create_table(&self, caller: &Caller, body: &[u8]) -> Result<Vec<u8>, TableError> {
        let definition = tables::decode_create(body)?;
        if definition.name == inbox::NAME {
            return Err(TableError::invalid(
                "Invalid table name: 'inbox'. The chat's inboxes have this name.",
            ));
        }
        let stored = json(&definition)?;
        let (store, most) = (Arc::clone(&self.store), self.options.tables);
        let (instance, now) = (caller.instance.clone(), self.clock.now());
        let made = self
            .finish(async move { store.create_table(&instance, &definition.name, &stored, now, most).await });
        match made.await? {
            TableMade::Made(_) => Ok(tables::answer_create()),
            TableMade::Exists(_) => {
                Err(TableError::new(ErrorCode::ObjectAlreadyExist, "Requested table already exists."))
            }
            TableMade::TooMany => {
                let message = format!("Number of tables exceeds the quota:{most}.");
                Err(TableError::new(ErrorCode::QuotaExhausted, message))
            }
        }
    }

    pub(super) async fn list_tables(&self, caller: &Caller) -> Result<Vec<u8>, TableError> {
        let tables = self.store.tables(&caller.instance).await.map_err(|error| unread(&error))?;
        let mut names: Vec<String> = tables.into_iter().map(|table| table.name).collect();
        if caller.inbox.is_some() {
            names.insert(names.partition_point(|name| name.as_str() < inbox::NAME), inbox::NAME.to_owned());
        }
        Ok(tables::answer_list(names))
    }

    pub(super) async fn describe_table(&self, caller: &Caller, body: &[u8]) -> Result<Vec<u8>, TableError> {
        let name = tables::decode_describe(body)?;
        self.catalog.forget(&caller.instance, &name);
        let table = self.catalog.find(caller, &name).await?;
        Ok(tables::answer_describe(&table.definition, table.created_at.0))
    }

    pub(super) async fn update_table(&self, caller: &Caller, body: &[u8]) -> Result<Vec<u8>, TableError> {
        let (name, change) = tables::decode_update(body)?;
        not_the_inbox(caller, &name)?;
        for _ in 0..MOST_TRIES {
            let Table { id, definition, stored: from, created_at } =
                (*self.catalog.load(caller, &name).await?).clone();
            let definition = change.of(definition)?;
            let (store, to) = (Arc::clone(&self.store), json(&definition)?);
            let is_done = self.finish(async move { store.redefine_table(id, &from, &to).await }).await?;
            self.catalog.forget(&caller.instance, &name);
            if is_done {
                return Ok(tables::answer_update(&definition, created_at.0));
            }
        }
        Err(TableError::new(
            ErrorCode::RowOperationConflict,
            "The table is being modified by the other request.",
        ))
    }

    pub(super) async fn delete_table(&self, caller: &Caller, body: &[u8]) -> Result<Vec<u8>, TableError> {
        let name = tables::decode_delete(body)?;
        not_the_inbox(caller, &name)?;
        let id = self.catalog.load(caller, &name).await?.id;
        let store = Arc::clone(&self.store);
        let is_deleted = self.finish(async move { store.delete_table(id).await }).await?;
        self.catalog.forget(&caller.instance, &name);
        if is_deleted { Ok(tables::answer_delete()) } else { Err(no_table()) }
    }

    /// Carries a change out although its caller may go away meanwhile.
    async fn finish<T: Send + 'static>(
        &self,
        change: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, TableError> {
        if self.closing.is_cancelled() {
            return Err(busy());
        }
        let changed = self.tasks.spawn(change).await.map_err(|_| internal())?;
        // A store that does not answer may have made the change.
        changed.map_err(|error| if error.is_retryable() { timeout() } else { unread(&error) })
    }
}

fn not_the_inbox(caller: &Caller, name: &str) -> Result<(), TableError> {
    if name == inbox::NAME && caller.inbox.is_some() {
        let message =
            "Unsupported operation: the table inbox belongs to the chat, and is neither changed nor deleted.";
        return Err(TableError::new(ErrorCode::UnsupportedOperation, message));
    }
    Ok(())
}

fn json(definition: &TableDefinition) -> Result<String, TableError> {
    serde_json::to_string(definition).map_err(|_| internal())
}
