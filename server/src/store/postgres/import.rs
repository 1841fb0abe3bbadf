//! Fills an empty installation from records.
//!
//! Each chunk is one transaction, which also says how many records there are by now. Until the end `meta` has a mark,
//! and no server starts on the database; servers that are at work keep an import away by a lock of theirs
//! ([`crate::notify::postgres`]).

use std::sync::Arc;

use async_trait::async_trait;
use sqlx::{Connection as _, PgConnection};

use super::life::{HISTORY, IMPORT, IMPORTED};
use super::meta::put;
use super::tables::archive;
use super::{PgDb, bulk, life};
use crate::domain::HistoryId;
use crate::store::StoreError;
use crate::store::archive::{Import, ImportError, Record};
use crate::store::file_archive;
use crate::store::sql::SqlConnection;

/// A [`Import`] on PostgreSQL.
pub struct PgImport {
    db: Arc<PgDb>,
    /// Of the time while it is filled: a server that was at work all the same ends itself.
    provisional: HistoryId,
}

impl PgImport {
    /// Into the database `db`, which has the history `provisional`, a new one, until it is whole.
    pub fn new(db: Arc<PgDb>, provisional: HistoryId) -> PgImport {
        PgImport { db, provisional }
    }
}

#[async_trait]
impl Import for PgImport {
    async fn begin(&mut self, source: &str) -> Result<u64, ImportError> {
        let mut connection = self.db.reader().await?;
        let mut tx = connection.begin().await.map_err(StoreError::from)?;
        // Of two imports that begin at a time one waits for the other.
        let lock = sqlx::raw_sql(
            "LOCK TABLE accounts, groups, entries, sent, tables, meta IN SHARE ROW EXCLUSIVE MODE",
        );
        lock.execute(&mut *tx).await.map_err(StoreError::from)?;
        let imported = match fact(&mut tx, IMPORT).await? {
            Some(known) if known != source => return Err(ImportError::OtherSource),
            Some(_) => imported(&mut tx).await?,
            None if is_empty(&mut tx).await? => {
                put(&mut tx, IMPORT, source).await?;
                put(&mut tx, IMPORTED, "0").await?;
                put(&mut tx, HISTORY, &self.provisional.to_string()).await?;
                0
            }
            None => return Err(ImportError::NotEmpty),
        };
        self.db.standby.watch(async { Ok(tx.commit().await?) }).await?;
        Ok(imported)
    }

    async fn write(&mut self, chunk: Vec<Record>) -> Result<(), ImportError> {
        let count = chunk.len() as u64;
        let (mut accounts, mut groups, mut ended) = (Vec::new(), Vec::new(), Vec::new());
        let (mut rows, mut sent, mut pending) = (Vec::new(), Vec::new(), Vec::new());
        let (mut tables, mut counters, mut table_rows) = (Vec::new(), Vec::new(), Vec::new());
        let (mut files, mut uses) = (Vec::new(), Vec::new());
        for record in chunk {
            match record {
                Record::Account(account, created_at, latest) => accounts.push((account, created_at, latest)),
                Record::Group(group) => groups.push(group),
                Record::EndedEpoch(gid, uid, epoch) => ended.push((gid, uid, epoch)),
                Record::Row(entry) => rows.push(entry),
                Record::Sent(sender, client_id, record) => sent.push((sender, client_id, record)),
                Record::Pending(acceptance, ends) => pending.push((acceptance, ends)),
                Record::Table(table, begins_after) => tables.push((table, begins_after)),
                Record::Counter(counter) => counters.push(counter),
                Record::TableRow(row) => table_rows.push(row),
                Record::File(file) => files.push(file),
                Record::FileUse(file, of) => uses.push((file, of)),
                Record::FilePart(_) | Record::FileGone(_) => {}
            }
        }
        let mut connection = self.db.reader().await?;
        let mut tx = connection.begin().await.map_err(StoreError::from)?;
        // In the order of the archive, though a chunk seldom has more than one kind.
        bulk::accounts(&mut tx, &accounts).await?;
        bulk::groups(&mut tx, &groups).await?;
        bulk::ended_epochs(&mut tx, &ended).await?;
        bulk::rows(&mut tx, &rows).await?;
        bulk::sent(&mut tx, &sent).await?;
        for (acceptance, ends) in &pending {
            bulk::pending(&mut tx, acceptance, *ends).await?;
        }
        for (table, begins_after) in &tables {
            archive::import(&mut tx, table, *begins_after).await?;
        }
        archive::import_counters(&mut tx, &counters).await?;
        archive::import_rows(&mut tx, &table_rows).await?;
        for file in &files {
            file_archive::import_file(&mut SqlConnection::Postgres(&mut tx), file).await?;
        }
        for (file, of) in &uses {
            file_archive::import_use(&mut SqlConnection::Postgres(&mut tx), *file, of).await?;
        }
        let before = imported(&mut tx).await?;
        put(&mut tx, IMPORTED, &(before + count).to_string()).await?;
        Ok(self.db.standby.watch(async { Ok(tx.commit().await?) }).await?)
    }

    async fn finish(&mut self, history: HistoryId) -> Result<(), ImportError> {
        let mut connection = self.db.reader().await?;
        let mut tx = connection.begin().await.map_err(StoreError::from)?;
        put(&mut tx, HISTORY, &history.to_string()).await?;
        life::note(&mut tx).await.map_err(StoreError::from)?;
        let end = sqlx::query("DELETE FROM meta WHERE key IN ($1, $2)").bind(IMPORT).bind(IMPORTED);
        end.execute(&mut *tx).await.map_err(StoreError::from)?;
        Ok(self.db.standby.watch(async { Ok(tx.commit().await?) }).await?)
    }
}

async fn is_empty(connection: &mut PgConnection) -> Result<bool, StoreError> {
    let used: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM accounts) OR EXISTS (SELECT FROM entries)
             OR EXISTS (SELECT FROM groups) OR EXISTS (SELECT FROM sent) OR EXISTS (SELECT FROM tables)",
    )
    .fetch_one(connection)
    .await?;
    Ok(!used)
}

async fn imported(connection: &mut PgConnection) -> Result<u64, StoreError> {
    let imported = fact(connection, IMPORTED).await?.and_then(|text| text.parse().ok());
    imported.ok_or_else(|| StoreError::corrupt("it is not known how much of an import is stored"))
}

async fn fact(connection: &mut PgConnection, key: &str) -> Result<Option<String>, StoreError> {
    let fact = sqlx::query_scalar("SELECT value FROM meta WHERE key = $1").bind(key);
    Ok(fact.fetch_optional(connection).await?)
}
