//! Fills an empty installation from records.
//!
//! Records go straight into the keyed tables. The transaction of a chunk also says how many there are by now; before it
//! come the rows of tables, which may be written twice. The journal stays empty. Until the end the database is marked, and does not open for serving.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use sqlx::SqliteConnection;

use super::db::Db;
use super::flush::{self, write_group, write_open};
use super::heads::{self, HeadRow};
use super::journal::Journal;
use super::memtable::{ChangedGroup, Memtable, MemtableUpdate};
use super::pending::SqlitePending;
use super::{meta, rows, tables};
use crate::domain::{Group, HistoryId, MembershipEpoch, MessageId, Timestamp, Uid, name_key};
use crate::store::archive::{CounterRecord, Import, ImportError, Record, TableRowRecord};
use crate::store::sql::SqlConnection;
use crate::store::{Account, StoreError, file_archive};

/// A [`Import`] on SQLite.
pub struct SqliteImport {
    db: Arc<Db>,
}

impl SqliteImport {
    /// Into the database `db`.
    pub fn new(db: Arc<Db>) -> SqliteImport {
        SqliteImport { db }
    }

    /// The rows and counters of tables among `records`.
    pub(super) async fn write_tables(&self, records: Vec<Record>) -> Result<(), StoreError> {
        let (mut rows, mut counters) = (Vec::new(), Vec::new());
        for record in records {
            match record {
                Record::Counter(CounterRecord { table, partition_key, first, last_id }) => {
                    counters.push(((table, first.into()), partition_key, last_id));
                }
                Record::TableRow(TableRowRecord { table, partition_key, key, row }) => {
                    rows.push((table, key.into(), partition_key, row.into()));
                }
                _ => {}
            }
        }
        if rows.is_empty() && counters.is_empty() {
            return Ok(());
        }
        self.db
            .write_bulk(move |connection| {
                rows::flush::write_counters(connection, &counters)?;
                rows::flush::write_rows(connection, &rows)
            })
            .await
    }
}

#[async_trait]
impl Import for SqliteImport {
    async fn begin(&mut self, source: &str) -> Result<u64, ImportError> {
        let flushed = meta::number(self.db.readers(), meta::FLUSHED).await?;
        let batches = Journal::open(&self.db, flushed).await?.last();
        let mut tx = self.db.write().await?;
        let begun = match meta::import(&mut *tx).await? {
            Some(known) if known == source => Ok(meta::number(&mut *tx, meta::IMPORTED).await?),
            Some(_) => Err(ImportError::OtherSource),
            None if batches == 0 && is_empty(&mut tx).await? => {
                meta::begin_import(&mut tx, source).await?;
                Ok(0)
            }
            None => Err(ImportError::NotEmpty),
        };
        tx.commit().await?;
        begun
    }

    async fn write(&mut self, chunk: Vec<Record>) -> Result<(), ImportError> {
        let count = chunk.len() as u64;
        let (of_tables, chunk): (Vec<_>, Vec<_>) =
            chunk.into_iter().partition(|record| matches!(record, Record::Counter(_) | Record::TableRow(_)));
        // A chunk counts once the rest of it is there; one that was cut off before comes again, and these are written anew.
        self.write_tables(of_tables).await?;
        let mut tx = self.db.write().await?;
        let memtable = Memtable::default();
        for record in chunk {
            match record {
                Record::Account(account, created_at, latest_id) => {
                    write_account(&mut tx, &account, created_at).await?;
                    let head = latest_id.map(|latest_id| HeadRow::of(account.uid, latest_id));
                    heads::write(&mut tx, head.as_slice()).await?;
                }

                Record::Group(group) => write_whole_group(&mut tx, group).await?,
                Record::EndedEpoch(gid, uid, epoch) => {
                    let closed = HashMap::from([(uid, epoch)]);
                    write_group(&mut tx, gid, ChangedGroup { group: None, changed: Vec::new(), closed })
                        .await?;
                }
                Record::Row(entry) => {
                    let rows = vec![(entry.receiver, entry.message_id, MessageId::ZERO)];
                    let content = entry.content;
                    let (earlier, record, group, closed) = (Vec::new(), None, None, None);
                    memtable.apply(MemtableUpdate { earlier, content, rows, record, group, closed });
                }
                Record::Sent(sender, client_id, record) => memtable.apply_record((sender, client_id), record),
                Record::Pending(pending, ends) => {
                    let open = SqlitePending { content: pending.content, ends, owed: pending.owed };
                    write_open(&mut tx, pending.acceptance, &open).await?;
                    meta::put(&mut tx, meta::ACCEPTED, pending.acceptance.0).await?;
                }
                Record::Table(table, begins_after) => {
                    tables::definitions::import(&mut tx, &table, begins_after).await?;
                }
                Record::File(file) => {
                    file_archive::import_file(&mut SqlConnection::Sqlite(&mut tx), &file).await?;
                }
                Record::FileUse(file, of) => {
                    file_archive::import_use(&mut SqlConnection::Sqlite(&mut tx), file, &of).await?;
                }
                Record::Counter(_) | Record::TableRow(_) | Record::FilePart(_) | Record::FileGone(_) => {}
            }
        }
        flush::write_all(&mut tx, memtable).await?;
        let before = meta::number(&mut *tx, meta::IMPORTED).await?;
        meta::put(&mut tx, meta::IMPORTED, before + count).await?;
        Ok(tx.commit().await?)
    }

    async fn finish(&mut self, history: HistoryId) -> Result<(), ImportError> {
        let mut tx = self.db.write().await?;
        meta::put_history(&mut tx, history).await?;
        meta::end_import(&mut tx).await?;
        Ok(tx.commit().await?)
    }
}

/// Whether nothing was ever stored in the tables.
async fn is_empty(connection: &mut SqliteConnection) -> Result<bool, StoreError> {
    let used: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM accounts) OR EXISTS (SELECT 1 FROM entries) OR EXISTS (SELECT 1 FROM young_entries)
             OR EXISTS (SELECT 1 FROM groups) OR EXISTS (SELECT 1 FROM sent) OR EXISTS (SELECT 1 FROM tables)",
    )
    .fetch_one(&mut *connection)
    .await?;
    Ok(!used)
}

async fn write_account(
    connection: &mut SqliteConnection,
    account: &Account,
    created_at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO accounts (uid, name, name_key, password_hash, created_at, disabled, deleted_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(account.uid.0)
    .bind(&account.name)
    .bind(name_key(&account.name))
    .bind(&account.password_hash)
    .bind(created_at.0)
    .bind(account.disabled)
    .bind(account.deleted_at.map(|at| at.0))
    .execute(&mut *connection)
    .await?;
    Ok(())
}

async fn write_whole_group(connection: &mut SqliteConnection, group: Group) -> Result<(), StoreError> {
    let gid = group.gid;
    let changed: Vec<Uid> = group.members.iter().map(|member| member.uid).collect();
    let closed: HashMap<Uid, MembershipEpoch> = HashMap::new();
    let whole = ChangedGroup { group: Some(Arc::new(group)), changed, closed };
    write_group(connection, gid, whole).await?;
    Ok(())
}
