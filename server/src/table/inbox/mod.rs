//! The chat's inboxes as a table (S15): `inbox`, with the key (partition_key, receiver, message_id).
//!
//! Its rows are those of the message store. [`WithInboxes`] shows them beside the tables that programs made, so that all reads are the
//! same; `posts` makes what is put there into rows of the queues.

use std::sync::Arc;

use async_trait::async_trait;
use tidemark_table::rows::key::{decode, encode};
use tidemark_table::rows::stored::Columns;
use tidemark_table::{
    Cell, KeyColumnDefinition, KeyType, KeyValue, ReservedThroughput, TableDefinition, TableOptions, Value,
};

use crate::domain::{Entry, MessageId, PartitionKey, Timestamp, Uid};
use crate::store::tables::{
    StoredRow, TableId, TableMade, TableOutcome, TableRecord, TableScan, TableStore, TableWrite,
};
use crate::store::{CommitError, MessageStore, StoreError};

mod posts;
mod scan;

pub use posts::{MayPost, Posts};

/// The name under which callers find the inboxes.
pub(super) const NAME: &str = "inbox";
/// Its number; those of tables that programs made begin with 1.
pub(super) const ID: TableId = TableId(0);

/// Its key and its options.
pub(super) fn definition() -> TableDefinition {
    let column = |name: &str, kind, auto_increment| KeyColumnDefinition {
        name: name.to_owned(),
        kind,
        auto_increment,
    };
    TableDefinition {
        name: NAME.to_owned(),
        key: vec![
            column("partition_key", KeyType::String, false),
            column("receiver", KeyType::Integer, false),
            column("message_id", KeyType::Integer, true),
        ],
        columns: Vec::new(),
        reserved: ReservedThroughput::default(),
        options: TableOptions { allow_update: false, ..TableOptions::default() },
    }
}

/// The tables that programs made, and the inboxes of the chat beside them.
pub struct WithInboxes {
    tables: Arc<dyn TableStore>,
    messages: Arc<dyn MessageStore>,
}

impl WithInboxes {
    /// Both.
    pub fn new(tables: Arc<dyn TableStore>, messages: Arc<dyn MessageStore>) -> WithInboxes {
        WithInboxes { tables, messages }
    }

    async fn inbox_rows(&self, keys: &[&[u8]]) -> Result<Vec<Option<StoredRow>>, StoreError> {
        let places: Vec<Option<(Uid, MessageId)>> = keys.iter().map(|key| place(key)).collect();
        let wanted: Vec<(Uid, MessageId)> = places.iter().flatten().copied().collect();
        let mut found = self.messages.entries(&wanted).await?.into_iter();
        let row = |place: Option<_>| place.and_then(|_| found.next().flatten()).map(|entry| stored(&entry));
        Ok(places.into_iter().map(row).collect())
    }
}

/// The row that has this key, if an inbox can have it.
fn place(key: &[u8]) -> Option<(Uid, MessageId)> {
    let key = decode(&definition(), key).ok()?;
    let [(_, KeyValue::String(partition)), (_, KeyValue::Integer(uid)), (_, KeyValue::Integer(id))] =
        &key[..]
    else {
        return None;
    };
    let uid = u32::try_from(*uid).ok().map(Uid)?;
    let id = u64::try_from(*id).ok().and_then(MessageId::new)?;
    (partition == uid.partition_key().as_str()).then_some((uid, id))
}

/// The encoded key of a row.
fn key_of(uid: Uid, id: u64) -> Vec<u8> {
    encode(&[
        KeyValue::String(uid.partition_key().as_str().to_owned()),
        KeyValue::Integer(uid.0.into()),
        KeyValue::Integer(id.cast_signed()),
    ])
}

/// A row as tables keep theirs: the columns of an entry, by name in the order of bytes.
fn stored(entry: &Entry) -> StoredRow {
    let content = &entry.content;
    let text = |name: &str, text: String| (name.to_owned(), Value::String(text));
    let columns = [
        Some(text("body", content.body_json().to_owned())),
        content.client_id.map(|client_id| text("client_id", client_id.to_string())),
        Some(text("conversation", entry.conversation().to_string())),
        Some(text("kind", content.kind_name().to_owned())),
        Some(("sender".to_owned(), Value::Integer(content.sender.0.into()))),
        Some(text("sent_at", content.sent_at.to_rfc3339())),
    ];
    let timestamp = content.sent_at.0;
    let cells = columns.into_iter().flatten().map(|(name, value)| Cell { name, value, timestamp });
    let columns = Columns { written_at: timestamp, cells: cells.collect() };
    let key = key_of(entry.receiver, entry.message_id.get());
    StoredRow { key, revision: 0, row: columns.encode() }
}

#[async_trait]
impl TableStore for WithInboxes {
    async fn create_table(
        &self,
        instance: &str,
        name: &str,
        definition: &str,
        now: Timestamp,
        most: usize,
    ) -> Result<TableMade, StoreError> {
        self.tables.create_table(instance, name, definition, now, most).await
    }

    async fn table(&self, instance: &str, name: &str) -> Result<Option<TableRecord>, StoreError> {
        self.tables.table(instance, name).await
    }

    async fn tables(&self, instance: &str) -> Result<Vec<TableRecord>, StoreError> {
        self.tables.tables(instance).await
    }

    async fn tables_after(&self, after: TableId, limit: usize) -> Result<Vec<TableRecord>, StoreError> {
        self.tables.tables_after(after, limit).await
    }

    async fn redefine_table(&self, table: TableId, from: &str, to: &str) -> Result<bool, StoreError> {
        self.tables.redefine_table(table, from, to).await
    }

    async fn delete_table(&self, table: TableId) -> Result<bool, StoreError> {
        self.tables.delete_table(table).await
    }

    async fn forget_deleted(&self, limit: usize) -> Result<u64, StoreError> {
        self.tables.forget_deleted(limit).await
    }

    async fn commit(&self, writes: Vec<TableWrite>) -> Result<Vec<TableOutcome>, CommitError> {
        self.tables.commit(writes).await
    }

    fn groups_commits(&self) -> bool {
        self.tables.groups_commits()
    }

    async fn rows(
        &self,
        keys: &[(TableId, PartitionKey, Vec<u8>)],
    ) -> Result<Vec<Option<StoredRow>>, StoreError> {
        let (inbox, other): (Vec<_>, Vec<_>) = keys.iter().partition(|(table, ..)| *table == ID);
        let inbox: Vec<&[u8]> = inbox.iter().map(|(.., key)| key.as_slice()).collect();
        let other: Vec<_> = other.into_iter().cloned().collect();
        let mut inbox = match inbox.is_empty() {
            true => Vec::new().into_iter(),
            false => self.inbox_rows(&inbox).await?.into_iter(),
        };
        let mut other = match other.is_empty() {
            true => Vec::new().into_iter(),
            false => self.tables.rows(&other).await?.into_iter(),
        };
        let of = |(table, ..): &(TableId, _, _)| if *table == ID { inbox.next() } else { other.next() };
        Ok(keys.iter().map(of).map(Option::flatten).collect())
    }

    async fn scan(&self, scan: &TableScan) -> Result<(Vec<StoredRow>, bool), StoreError> {
        if scan.table == ID {
            return scan::scan(&*self.messages, scan).await;
        }
        self.tables.scan(scan).await
    }
}
