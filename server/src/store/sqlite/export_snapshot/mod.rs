//! The export snapshot: one moment of the installation, read beside the process that serves it and without its lock.
//!
//! The main database is read in one transaction, what is only in the journal yet is replayed into memory, as at a
//! start. The tables come first: what a flush under way has put there is in the journal that is read afterwards, unless
//! a flush ended in between and their room in the journal was used again; then it begins again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, SqliteConnection};

use super::journal;
use super::journal::record::JournalRecord;
use super::ledger::{LedgerGroup, StoreLedger};
use super::memtable::Memtable;
use super::named_files;
use super::replay::stored_open;
use super::{OpenError, db, lookup, meta};
use crate::domain::{Content, Entry, HistoryId, MessageId, Uid};
use crate::store::archive::{
    About, ArchiveSection, CounterRecord, ExportSnapshot, Record, RecordKey, SECTIONS, TableRowRecord,
};
use crate::store::changes::Changes;
use crate::store::sql::SqlConnection;
use crate::store::table_definitions::tables_after;
use crate::store::tables::{TableId, TableRecord};
use crate::store::{AcceptanceId, Pending, StoreError};

mod sections;
mod table_sections;

/// A flush ends every few seconds at most, and the two readings are milliseconds apart.
const ATTEMPTS: usize = 100;

/// An [`ExportSnapshot`] on SQLite.
pub struct SqliteExportSnapshot {
    main: SqliteConnection,
    /// Records newer than the tables; some of them may be in the tables as well.
    newer: HashMap<ArchiveSection, BTreeMap<RecordKey, Record>>,
    /// The latest ids of inboxes that have rows there, and of those that the next flush sets aside.
    latest_ids: HashMap<Uid, MessageId>,
    /// Rows of tables that are deleted there.
    deleted: BTreeSet<RecordKey>,
    /// Rows of inboxes in the tables whose place later ones have taken there.
    superseded: BTreeSet<RecordKey>,
    /// Changes that the newer rows make to messages.
    changes: HashMap<Uid, Changes>,
    history: HistoryId,
    accepted: AcceptanceId,
    /// The last batch of the journal.
    batch: u64,
}

impl SqliteExportSnapshot {
    /// Takes the moment that is now, of the database at `path`.
    ///
    /// # Errors
    /// When there is no database, or one that this version would have to migrate first.
    pub async fn take(path: &Path) -> Result<SqliteExportSnapshot, OpenError> {
        let io = |source| OpenError::Io { path: path.to_owned(), source };
        std::fs::metadata(path).map_err(io)?;
        let main = db::connect_options(path).read_only(true).create_if_missing(false);
        let unreadable = |source| OpenError::Unreadable { path: path.to_owned(), source };
        for _ in 0..ATTEMPTS {
            let tables = Tables::begin(path, &main).await?;
            if let Some(taken) = tables.with_journal(path, &main).await.map_err(unreadable)? {
                return Ok(taken);
            }
        }
        Err(unreadable(StoreError::unavailable(
            "it changes too fast to be read, or its journal is damaged; start the server to see what is missing",
        )))
    }
}

#[async_trait]
impl ExportSnapshot for SqliteExportSnapshot {
    async fn about(&mut self) -> Result<About, StoreError> {
        let mut totals = [0; SECTIONS];
        for (total, section) in totals.iter_mut().zip(ArchiveSection::ALL) {
            *total = self.count(section).await?;
        }
        let tables = About::tables_at(
            &tables_after(SqlConnection::Sqlite(&mut self.main), TableId(0), usize::MAX).await?,
            self.batch,
        );
        let (_, files) = self.of_files().await?;
        Ok(About { history: self.history, accepted: self.accepted.0, totals, tables, files })
    }

    async fn page(
        &mut self,
        section: ArchiveSection,
        after: Option<RecordKey>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let mut after = after;
        loop {
            let (stored, is_full) = self.stored(section, after.clone(), limit).await?;
            // Beyond the last row of a full page the tables may hold more, which would have to come first.
            let through = stored.last().filter(|_| is_full).map(Record::key);
            let stored = stored.into_iter().map(|record| (record.key(), record));
            let mut page: BTreeMap<RecordKey, Record> = stored
                .filter(|(key, _)| !self.deleted.contains(key) && !self.superseded.contains(key))
                .collect();
            let bounds = (after.map_or(Unbounded, Excluded), through.clone().map_or(Unbounded, Included));
            let newer = self.newer.get(&section).into_iter().flat_map(|newer| newer.range(bounds.clone()));
            // A record in both is the same but for groups, counters and rows of tables, where the newer one counts.
            page.extend(newer.map(|(key, record)| (key.clone(), record.clone())));
            // All of a page may be deleted, and more behind it.
            match through {
                Some(through) if page.is_empty() => after = Some(through),
                _ => return Ok(page.into_values().take(limit).map(|record| self.amended(record)).collect()),
            }
        }
    }
}

/// The first half of a snapshot: the tables.
struct Tables {
    connection: SqliteConnection,
    /// The last batch of the journal that they hold whole.
    flushed: u64,
    /// The journal's log; `None`: nobody has served them yet.
    log: Option<u64>,
    people: Option<i64>,
    history: HistoryId,
}

impl Tables {
    async fn begin(path: &Path, main: &SqliteConnectOptions) -> Result<Tables, OpenError> {
        let refused = |error| OpenError::of(path, error);
        let mut connection = SqliteConnection::connect_with(main).await.map_err(refused)?;
        sqlx::query("BEGIN").execute(&mut connection).await.map_err(refused)?;
        // The first reading fixes the moment.
        db::check_migrated(path, &mut connection).await?;
        let unreadable = |source| OpenError::Unreadable { path: path.to_owned(), source };
        Tables::read(connection).await.map_err(unreadable)
    }

    async fn read(mut connection: SqliteConnection) -> Result<Tables, StoreError> {
        let flushed = meta::number(&mut connection, meta::FLUSHED).await?;
        let log = journal::noted(&mut connection).await?;
        meta::check_finished(&mut connection).await?;
        let Some(history) = meta::history(&mut connection).await? else {
            return Err(StoreError::corrupt("nothing was ever stored in it"));
        };
        let people = people(&mut connection).await?;
        Ok(Tables { connection, flushed, log, people, history })
    }

    /// The second half. `None`: a flush ended since the first one, so batches may be missing in the journal, or some are missing; or an
    /// account was made, which may have rows there; or a row there names a file that it could not name before.
    async fn with_journal(
        mut self,
        path: &Path,
        main: &SqliteConnectOptions,
    ) -> Result<Option<SqliteExportSnapshot>, StoreError> {
        let batches = match self.log {
            Some(log) => batches_after(path.to_owned(), log, self.flushed).await,
            None => Ok(Some(Vec::new())),
        };
        let mut now = SqliteConnection::connect_with(main).await?;
        if meta::number(&mut now, meta::FLUSHED).await? != self.flushed
            || people(&mut now).await? != self.people
        {
            return Ok(None);
        }
        let accepted = AcceptanceId(meta::number(&mut self.connection, meta::ACCEPTED).await?);
        let mut ledger = StoreLedger::new(accepted, stored_open(&mut self.connection).await?);
        let memtable = Memtable::default();
        let Some(batches) = batches? else { return Ok(None) };
        let batch = self.flushed + batches.len() as u64;
        let records: Vec<JournalRecord> = batches.into_iter().flatten().collect();
        let named = named_files::of_records(&records);
        let known = named_files::count_known(&mut self.connection, &named).await?;
        if named_files::count_known(&mut now, &named).await? != known {
            return Ok(None);
        }
        memtable.apply_rows(&records);
        for record in records {
            if let Some(gid) = ledger.group_of(&record) {
                ledger.learn_group(gid, lookup::group(&mut self.connection, gid).await?);
            }
            if let Some(update) = ledger.apply(&record).map_err(StoreError::corrupt)? {
                memtable.apply(update);
            }
        }
        let mut newer = newer(&memtable, &ledger);
        let tables =
            tables_after(SqlConnection::Sqlite(&mut self.connection), TableId(0), usize::MAX).await?;
        let deleted = newer_rows(&memtable, &tables, &mut newer);
        let latest_ids = latest_ids(&memtable);
        let changes = changes(&memtable);
        let (main, history, accepted) = (self.connection, self.history, ledger.accepted());
        let mut taken = SqliteExportSnapshot {
            main,
            newer,
            latest_ids,
            deleted,
            superseded: BTreeSet::new(),
            changes,
            history,
            accepted,
            batch,
        };
        taken.leave_out_refused().await?;
        taken.find_superseded(&memtable).await?;
        Ok(Some(taken))
    }
}

/// Grows with every account that is made.
async fn people(tables: &mut SqliteConnection) -> Result<Option<i64>, StoreError> {
    Ok(sqlx::query_scalar("SELECT count(*) FROM accounts").fetch_one(tables).await?)
}

/// The batches of the log `log` behind the one that was flushed last.
async fn batches_after(
    path: PathBuf,
    log: u64,
    flushed: u64,
) -> Result<Option<Vec<Vec<JournalRecord>>>, StoreError> {
    let read = move || journal::batches_after(&path, log, flushed);
    tokio::task::spawn_blocking(read).await.map_err(StoreError::unavailable)?
}

/// How far the inboxes come that have rows in `memtable`.
fn latest_ids(memtable: &Memtable) -> HashMap<Uid, MessageId> {
    let last = |uid| memtable.inbox(uid, |inbox| inbox.rows.last().map(|(id, _)| (uid, *id))).flatten();
    memtable.receivers().into_iter().filter_map(last).collect()
}

/// Changes that replayed rows make to messages.
fn changes(memtable: &Memtable) -> HashMap<Uid, Changes> {
    let of = |uid| Some((uid, Changes::of(memtable.inbox(uid, |inbox| Arc::clone(&inbox.changes)))));
    memtable.receivers().into_iter().filter_map(of).filter(|(_, changes)| !changes.is_empty()).collect()
}

/// The replayed data, as records.
fn newer(memtable: &Memtable, ledger: &StoreLedger) -> HashMap<ArchiveSection, BTreeMap<RecordKey, Record>> {
    let mut records = Vec::new();
    for receiver in memtable.receivers() {
        memtable.inbox(receiver, |inbox| {
            let stays = |(id, content): &&(MessageId, Arc<Content>)| {
                !inbox.changes.supersedes(receiver, *id, content)
            };
            records.extend(inbox.rows.iter().filter(stays).map(|(message_id, content)| {
                Record::Row(Entry { receiver, message_id: *message_id, content: Arc::clone(content) })
            }));
        });
    }
    for ((sender, client_id), record) in memtable.all_records() {
        records.push(Record::Sent(sender, client_id, record));
    }
    for (gid, _) in memtable.all_groups() {
        let Some(LedgerGroup { group, closed }) = ledger.group(gid) else { continue };
        records.extend(group.iter().map(|group| Record::Group(group.as_ref().clone())));
        records.extend(closed.iter().map(|(uid, epoch)| Record::EndedEpoch(gid, *uid, *epoch)));
    }
    for (acceptance, open) in ledger.open() {
        let pending =
            Pending { acceptance: *acceptance, content: Arc::clone(&open.content), owed: open.owed.clone() };
        records.push(Record::Pending(pending, open.ends));
    }
    let mut newer: HashMap<ArchiveSection, BTreeMap<RecordKey, Record>> = HashMap::new();
    for record in records {
        let key = record.key();
        newer.entry(key.section()).or_default().insert(key, record);
    }
    newer
}

/// Adds the replayed rows and counters of these tables to `newer`. Returns the keys of deleted rows.
fn newer_rows(
    memtable: &Memtable,
    tables: &[TableRecord],
    newer: &mut HashMap<ArchiveSection, BTreeMap<RecordKey, Record>>,
) -> BTreeSet<RecordKey> {
    let mut deleted = BTreeSet::new();
    let state = memtable.tables.read();
    for table in tables.iter().map(|table| table.id) {
        for (key, (partition_key, row)) in state.tables.get(&table).into_iter().flatten() {
            let (key, name) = (key.to_vec(), RecordKey::TableRow(table, key.to_vec()));
            let Some(row) = row else {
                deleted.insert(name);
                continue;
            };
            let row = TableRowRecord { table, partition_key: *partition_key, key, row: row.to_vec() };
            newer.entry(ArchiveSection::TableRows).or_default().insert(name, Record::TableRow(row));
        }
    }
    for ((table, first), (partition_key, last_id)) in &state.counters {
        if tables.iter().any(|known| known.id == *table) {
            let (table, first, partition_key, last_id) = (*table, first.to_vec(), *partition_key, *last_id);
            let counter = Record::Counter(CounterRecord { table, partition_key, first, last_id });
            newer.entry(ArchiveSection::Counters).or_default().insert(counter.key(), counter);
        }
    }
    deleted
}

#[cfg(test)]
mod tests;
