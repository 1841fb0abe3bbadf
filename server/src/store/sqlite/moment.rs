//! One moment of the installation, read beside the process that serves it and without its lock.
//!
//! The main database is read in one transaction, what is only in the journal yet is replayed into memory, as at a
//! start. The tables come first: what a fold under way has put there is in the journal that is read afterwards, unless
//! a fold ended in between and the journal was trimmed; then it begins again.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{AssertSqlSafe, Connection as _, Row as _, SqliteConnection};

use super::journal::{Journal, record};
use super::ledger::{Effect, Known, Ledger};
use super::lookup::{self, ENTRY};
use super::memtable::Generation;
use super::replay::stored_open;
use super::{OpenError, SqliteOptions, db, meta};
use crate::domain::{
    ClientId, Digest, Entry, Generation as Stay, GroupId, HistoryId, PartitionKey, Timestamp, Uid,
};
use crate::store::archive::{About, Key, Record, Section, Snapshot};
use crate::store::{AcceptanceId, Account, Pending, Sent, StoreError};

/// A fold ends every few seconds at most, and the two readings are milliseconds apart.
const ATTEMPTS: usize = 100;

/// A [`Snapshot`] on SQLite.
pub struct SqliteSnapshot {
    main: SqliteConnection,
    /// What is newer than the tables; some of it may be in the tables as well.
    newer: HashMap<Section, BTreeMap<Key, Record>>,
    history: HistoryId,
    accepted: AcceptanceId,
}

impl SqliteSnapshot {
    /// Takes the moment that is now, of the database at `path`.
    ///
    /// # Errors
    /// When there is no database, or one that this version would have to migrate first.
    pub async fn take(path: &Path, options: &SqliteOptions) -> Result<SqliteSnapshot, OpenError> {
        let io = |source| OpenError::Io { path: path.to_owned(), source };
        std::fs::metadata(path).map_err(io)?;
        let connect =
            |path: &Path| db::connect_options(path, options).read_only(true).create_if_missing(false);
        let (main, journal) = (connect(path), connect(&Journal::path_beside(path)));
        let unreadable = |source| OpenError::Unreadable { path: path.to_owned(), source };
        for _ in 0..ATTEMPTS {
            if let Some(taken) = try_take(&main, &journal).await.map_err(unreadable)? {
                return Ok(taken);
            }
        }
        Err(unreadable(StoreError::unavailable("it changes too fast to be read")))
    }

    /// The records of `section` that are in the tables.
    async fn stored(
        &mut self,
        section: Section,
        after: Option<Key>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        match (section, after) {
            (Section::Accounts, after) => {
                let after = if let Some(Key::Account(uid)) = after { i64::from(uid.0) } else { -1 };
                let sql = "SELECT uid, name, password_hash, disabled, created_at FROM accounts
                           WHERE uid > ? ORDER BY uid LIMIT ?";
                let rows = sqlx::query(sql).bind(after).bind(limit).fetch_all(&mut self.main).await?;
                rows.iter().map(account).collect()
            }
            (Section::Groups, after) => {
                let after = if let Some(Key::Group(gid)) = after { gid.0.cast_signed() } else { -1 };
                let sql = "SELECT gid FROM groups WHERE gid > ? ORDER BY gid LIMIT ?";
                let gids: Vec<i64> =
                    sqlx::query_scalar(sql).bind(after).bind(limit).fetch_all(&mut self.main).await?;
                let mut groups = Vec::with_capacity(gids.len());
                for gid in gids {
                    let known = lookup::group(&mut self.main, GroupId(gid.cast_unsigned())).await?;
                    groups.extend(known.group.map(|group| Record::Group((*group).clone())));
                }
                Ok(groups)
            }
            (Section::Stays, after) => {
                let (gid, uid) = match after {
                    Some(Key::Stay(gid, uid)) => (gid.0.cast_signed(), i64::from(uid.0)),
                    _ => (-1, -1),
                };
                let sql = "SELECT gid, uid, closed FROM members WHERE (gid, uid) > (?, ?) AND closed > 0
                           ORDER BY gid, uid LIMIT ?";
                let query = sqlx::query(sql).bind(gid).bind(uid).bind(limit);
                query.fetch_all(&mut self.main).await?.iter().map(stay).collect()
            }
            (Section::Rows, after) => {
                let (key, uid, id) = match after {
                    Some(Key::Row(key, uid, id)) => (key.as_str().to_owned(), uid.0, id.cast_signed()),
                    _ => (String::new(), 0, 0),
                };
                let sql = format!(
                    "SELECT {ENTRY}, receiver FROM entries
                     WHERE (partition_key, receiver, message_id) > (?, ?, ?)
                     ORDER BY partition_key, receiver, message_id LIMIT ?"
                );
                let query = sqlx::query(AssertSqlSafe(sql)).bind(key).bind(uid).bind(id).bind(limit);
                let rows = query.fetch_all(&mut self.main).await?;
                rows.iter().map(|row| Ok(Record::Row(lookup::entry(Uid(row.try_get(7)?), row)?))).collect()
            }
            (Section::Sent, after) => {
                let (key, uid, name) = match after {
                    Some(Key::Sent(key, uid, name)) => {
                        (key.as_str().to_owned(), uid.0, name.0.as_bytes().to_vec())
                    }
                    _ => (String::new(), 0, Vec::new()),
                };
                let sql = "SELECT sender, client_id, digest, message_id, sent_at FROM sent
                           WHERE (partition_key, sender, client_id) > (?, ?, ?)
                           ORDER BY partition_key, sender, client_id LIMIT ?";
                let query = sqlx::query(sql).bind(key).bind(uid).bind(name).bind(limit);
                query.fetch_all(&mut self.main).await?.iter().map(sent).collect()
            }
            // The ledger knows them all.
            (Section::Pending, _) => Ok(Vec::new()),
        }
    }

    /// How many records of `section` there are in both parts together.
    async fn count(&mut self, section: Section) -> Result<u64, StoreError> {
        let newer: Vec<Key> =
            self.newer.get(&section).into_iter().flat_map(BTreeMap::keys).copied().collect();
        let (count, both) = match section {
            Section::Pending => return Ok(newer.len() as u64),
            Section::Accounts => {
                let count = sqlx::query_scalar("SELECT count(*) FROM accounts").fetch_one(&mut self.main);
                return Ok(count.await.map(i64::cast_unsigned)?);
            }
            Section::Groups => (
                "SELECT count(*) FROM groups",
                "SELECT count(*) FROM json_each(?) JOIN groups ON gid = value ->> 0",
            ),
            Section::Stays => (
                "SELECT count(*) FROM members WHERE closed > 0",
                "SELECT count(*) FROM json_each(?) JOIN members
                 ON gid = value ->> 0 AND uid = value ->> 1 AND closed > 0",
            ),
            Section::Rows => (
                "SELECT count(*) FROM entries",
                "SELECT count(*) FROM json_each(?) CROSS JOIN entries
                 WHERE partition_key = value ->> 0 AND receiver = value ->> 1 AND message_id = value ->> 2",
            ),
            Section::Sent => (
                "SELECT count(*) FROM sent",
                "SELECT count(*) FROM json_each(?) CROSS JOIN sent
                 WHERE partition_key = value ->> 0 AND sender = value ->> 1 AND client_id = unhex(value ->> 2)",
            ),
        };
        let mut total: i64 = sqlx::query_scalar(count).fetch_one(&mut self.main).await?;
        for some in newer.chunks(1_000) {
            let keys: Vec<_> = some.iter().map(as_json).collect();
            let both: i64 =
                sqlx::query_scalar(both).bind(json!(keys).to_string()).fetch_one(&mut self.main).await?;
            total += some.len() as i64 - both;
        }
        Ok(total.cast_unsigned())
    }
}

#[async_trait]
impl Snapshot for SqliteSnapshot {
    async fn about(&mut self) -> Result<About, StoreError> {
        let mut totals = [0; 6];
        for (total, section) in totals.iter_mut().zip(Section::ALL) {
            *total = self.count(section).await?;
        }
        Ok(About { history: self.history, accepted: self.accepted.0, totals })
    }

    async fn page(
        &mut self,
        section: Section,
        after: Option<Key>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let stored = self.stored(section, after, limit).await?;
        // Beyond the last row of a full page the tables may hold more, which would have to come first.
        let through = stored.last().filter(|_| stored.len() == limit).map(Record::key);
        let mut page: BTreeMap<Key, Record> =
            stored.into_iter().map(|record| (record.key(), record)).collect();
        let bounds = (after.map_or(Unbounded, Excluded), through.map_or(Unbounded, Included));
        let newer = self.newer.get(&section).into_iter().flat_map(|newer| newer.range(bounds));
        // What is in both is the same but for groups, where the newer one counts.
        page.extend(newer.map(|(key, record)| (*key, record.clone())));
        Ok(page.into_values().take(limit).collect())
    }
}

/// `None`: a fold ended in between, or an account was made.
async fn try_take(
    main: &SqliteConnectOptions,
    journal: &SqliteConnectOptions,
) -> Result<Option<SqliteSnapshot>, StoreError> {
    let mut tables = SqliteConnection::connect_with(main).await?;
    sqlx::query("BEGIN").execute(&mut tables).await?;
    // The first reading fixes the moment.
    let folded = meta::number(&mut tables, meta::FOLDED).await?;
    db::check_migrated(&mut tables).await?;
    let Some(history) = meta::history(&mut tables).await? else {
        return Err(StoreError::corrupt("nothing was ever stored in it"));
    };
    meta::check_finished(&mut tables).await?;
    let people = people(&mut tables).await?;
    let batches = batches_after(journal, folded).await?;
    let mut again = SqliteConnection::connect_with(main).await?;
    // An account made in between might have rows in the journal.
    if meta::number(&mut again, meta::FOLDED).await? != folded || self::people(&mut again).await? != people {
        return Ok(None);
    }
    let accepted = AcceptanceId(meta::number(&mut tables, meta::ACCEPTED).await?);
    let mut ledger = Ledger::new(accepted, stored_open(&mut tables).await?);
    let generation = Generation::default();
    for effect in batches.into_iter().flatten() {
        if let Some(gid) = ledger.group_of(&effect) {
            ledger.learn_group(gid, lookup::group(&mut tables, gid).await?);
        }
        generation.apply(ledger.apply(&effect).map_err(StoreError::corrupt)?);
    }
    let newer = newer(&generation, &ledger);
    Ok(Some(SqliteSnapshot { main: tables, newer, history, accepted: ledger.accepted() }))
}

/// Grows with every account that is made.
async fn people(tables: &mut SqliteConnection) -> Result<Option<i64>, StoreError> {
    Ok(sqlx::query_scalar("SELECT max(uid) FROM accounts").fetch_one(tables).await?)
}

/// The batches of the journal behind the one that was folded last.
async fn batches_after(journal: &SqliteConnectOptions, folded: u64) -> Result<Vec<Vec<Effect>>, StoreError> {
    let mut journal = SqliteConnection::connect_with(journal).await?;
    let rows = sqlx::query("SELECT seq, batch FROM journal WHERE seq > ? ORDER BY seq")
        .bind(folded.cast_signed())
        .fetch_all(&mut journal)
        .await?;
    let mut batches = Vec::with_capacity(rows.len());
    for (row, due) in rows.iter().zip(folded + 1..) {
        let seq = row.try_get::<i64, _>(0)?.cast_unsigned();
        if seq != due {
            return Err(StoreError::corrupt(format!("batch {due} is missing in the journal")));
        }
        let unreadable = |error| StoreError::corrupt(format!("batch {seq} of the journal: {error}"));
        batches.push(record::decode(row.try_get(1)?).map_err(unreadable)?);
    }
    Ok(batches)
}

/// What was replayed, as records.
fn newer(generation: &Generation, ledger: &Ledger) -> HashMap<Section, BTreeMap<Key, Record>> {
    let mut records = Vec::new();
    for receiver in generation.receivers() {
        generation.inbox(receiver, |inbox| {
            records.extend(inbox.rows.iter().map(|(message_id, content)| {
                Record::Row(Entry { receiver, message_id: *message_id, content: Arc::clone(content) })
            }));
        });
    }
    for ((sender, client_id), sent) in generation.all_sent() {
        records.push(Record::Sent(sender, client_id, sent));
    }
    for (gid, _) in generation.all_groups() {
        let Some(Known { group, closed }) = ledger.group(gid) else { continue };
        records.extend(group.iter().map(|group| Record::Group(group.as_ref().clone())));
        records.extend(closed.iter().map(|(uid, stay)| Record::Stay(gid, *uid, *stay)));
    }
    for (acceptance, open) in ledger.open() {
        let pending =
            Pending { acceptance: *acceptance, content: Arc::clone(&open.content), owed: open.owed.clone() };
        records.push(Record::Pending(pending, open.ends));
    }
    let mut newer: HashMap<Section, BTreeMap<Key, Record>> = HashMap::new();
    for record in records {
        let key = record.key();
        newer.entry(key.section()).or_default().insert(key, record);
    }
    newer
}

fn as_json(key: &Key) -> serde_json::Value {
    let partition = |key: &PartitionKey| key.as_str().to_owned();
    match key {
        Key::Account(uid) => json!([uid.0]),
        Key::Group(gid) => json!([gid.0]),
        Key::Stay(gid, uid) => json!([gid.0, uid.0]),
        Key::Row(key, uid, id) => json!([partition(key), uid.0, id]),
        Key::Sent(key, uid, name) => json!([partition(key), uid.0, name.0.simple().to_string()]),
        Key::Pending(acceptance) => json!([acceptance]),
    }
}

fn account(row: &SqliteRow) -> Result<Record, StoreError> {
    let account = Account {
        uid: Uid(row.try_get(0)?),
        name: row.try_get(1)?,
        password_hash: row.try_get(2)?,
        disabled: row.try_get(3)?,
    };
    Ok(Record::Account(account, Timestamp(row.try_get(4)?)))
}

fn stay(row: &SqliteRow) -> Result<Record, StoreError> {
    let gid = GroupId(row.try_get::<i64, _>(0)?.cast_unsigned());
    Ok(Record::Stay(gid, Uid(row.try_get(1)?), Stay(row.try_get(2)?)))
}

fn sent(row: &SqliteRow) -> Result<Record, StoreError> {
    let digest: [u8; 16] = row.try_get::<&[u8], _>(2)?.try_into().map_err(StoreError::corrupt)?;
    let name = uuid::Uuid::from_slice(row.try_get(1)?).map_err(StoreError::corrupt)?;
    let record = Sent {
        message_id: lookup::message_id(row.try_get(3)?)?,
        sent_at: Timestamp(row.try_get(4)?),
        digest: Digest(digest),
    };
    Ok(Record::Sent(Uid(row.try_get(0)?), ClientId(name), record))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use uuid::Uuid;

    use super::super::{Db, SqliteStore};
    use super::*;
    use crate::store::MessageStore as _;
    use crate::store::conformance::told;

    async fn all(snapshot: &mut SqliteSnapshot, section: Section) -> Vec<Record> {
        let mut records: Vec<Record> = Vec::new();
        loop {
            let page = snapshot.page(section, records.last().map(Record::key), 7).await.expect("a page");
            if page.is_empty() {
                return records;
            }
            records.extend(page);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_moment_is_whole_however_often_folds_begin_and_end() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("tidemark.db");
        // Folds follow each other without a pause, each in many small transactions.
        let options = SqliteOptions { fold_rows: 40, fold_chunk: 3, ..SqliteOptions::default() };
        let db = Db::open_with(&path, &options).await.expect("opened");
        let store = SqliteStore::open(db, options.clone(), HistoryId(Uuid::nil())).await.expect("opened");
        let committed = AtomicU64::new(0);
        let writing = async {
            for n in 1..=600u64 {
                let (from, to) = (Uid(10_001 + n as u32 % 7), Uid(10_101 + n as u32 % 5));
                told(&store, (from, n), (to, n), n.into()).await;
                committed.store(n, Ordering::SeqCst);
            }
        };
        let looking = async {
            let mut sizes = Vec::new();
            while committed.load(Ordering::SeqCst) < 600 {
                let before = committed.load(Ordering::SeqCst);
                let mut snapshot = SqliteSnapshot::take(&path, &options).await.expect("taken");
                let after = committed.load(Ordering::SeqCst);
                let about = snapshot.about().await.expect("told");
                assert!(
                    (before..=after + 1).contains(&about.accepted),
                    "{about:?} between {before} and {after}"
                );
                let rows = all(&mut snapshot, Section::Rows).await;
                let sent = all(&mut snapshot, Section::Sent).await;
                assert!(rows.is_sorted_by_key(Record::key) && sent.is_sorted_by_key(Record::key));
                // Every message up to the last has both its copies and its record, and there is nothing else.
                assert_eq!((rows.len() as u64, sent.len() as u64), (2 * about.accepted, about.accepted));
                assert_eq!(about.totals, [0, 0, 0, 2 * about.accepted, about.accepted, 0]);
                for record in rows {
                    let Record::Row(entry) = record else { panic!("{record:?}") };
                    assert!(entry.message_id.get() <= about.accepted);
                }
                sizes.push(about.accepted);
            }
            sizes
        };
        let ((), sizes) = tokio::join!(writing, looking);
        assert!(sizes.len() > 3, "looked while it was written: {sizes:?}");
        store.close().await;
    }
}
