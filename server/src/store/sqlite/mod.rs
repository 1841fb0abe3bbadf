//! SQLite: everything in one directory, owned by one process.
//!
//! [`Db`] is the main database with its keyed tables; accounts and messages share it. Messages are appended to a
//! journal beside it first and flushed into the tables later, many at once and sorted by key, because SQLite writes
//! whole pages and rows under scattered keys dirty one each:
//!
//! ```text
//!  commit ─▶ committer ── judged by the ledger ──▶ journal (one write and one sync a batch)
//!                │                                    │ and then
//!                └── answers ◀────────────────────  memory: active │ frozen │ flushed  ◀── readers
//!                                                              └─ flush ─▶ main database ◀── readers
//! ```

use std::sync::Arc;
use std::thread;

use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tracing::{debug, warn};

use crate::domain::{
    Conversation, Direction, Entry, Group, GroupId, HistoryId, IdempotencyKey, MessageId, PageLimit,
    RangeQuery, Timestamp, Uid,
};
use crate::store::{
    AcceptanceId, CommitError, Expired, Forgotten, Health, Keeping, KeyState, MessageStore, Outcome, Page,
    Pending, PendingKey, StoreError, Summary, Unused, Write,
};

mod backup;
mod blocking;
mod bulk;
mod calls;
mod committer;
mod compaction;
mod condition;
mod conversations;
mod db;
mod deletions;
mod entry_rows;
mod error;
mod expiry;
mod export_snapshot;
mod facts;
mod flush;
mod flusher;
mod heads;
mod identity;
mod import;
mod inbox_import;
mod inboxes;
mod journal;
mod ledger;
mod lookup;
mod memtable;
mod memtable_view;
mod meta;
mod named_files;
mod options;
mod own_reads;
mod pending;
pub mod private;
mod read;
mod receivers;
mod recovery;
mod replay;
mod row_tables;
mod rows;
mod scan;
mod search;
mod service;
mod set_aside;
mod shared;
mod skip;
pub mod stamp;
mod status;
mod tables;
mod verify;
mod young;

pub use backup::{
    BackupMoment, alone, copy_database, newest_migration, note_backup, restoring_at, settle_restored,
};
pub use condition::free_bytes;
pub use db::{Db, WriteTx};
pub use error::OpenError;
pub use export_snapshot::SqliteExportSnapshot;
pub use heads::head_behind;
pub use identity::{Identity, rename_history};
pub use import::SqliteImport;
pub use inbox_import::SqliteInboxImport;
pub use journal::{BadLog, Journal, LogError, check_log, forget_log};
pub use meta::{agreed_message_ids, put_message_ids};
pub(super) use meta::{count_ending, endings};
pub use options::SqliteOptions;
pub use search::SqliteSearch;
pub use skip::skip_ids;
pub use status::status;
pub use verify::{required_files, verify_database, verify_log};

use calls::{CommitterRequest, Reply};
use committer::Committer;
use flusher::Flusher;
use memtable::MemtableSet;
use read::InboxReader;
use rows::LiveTables;
use shared::SqliteShared;

/// The [`MessageStore`] on SQLite.
///
/// Dropped without [`close`](MessageStore::close) it ends like a killed process: nothing acknowledged is lost, and
/// the next start replays the journal.
pub struct SqliteStore {
    shared: Arc<SqliteShared>,
    requests: mpsc::Sender<CommitterRequest>,
    history: HistoryId,
}

impl SqliteStore {
    /// Opens the messages of `db` and the journal beside it. `new_history` names a history that has no name yet. The runtime in which it is
    /// called must outlive the store.
    ///
    /// # Errors
    /// When an import was not finished, or the journal cannot be opened or does not continue what the main database
    /// holds.
    pub async fn open(
        db: Arc<Db>,
        options: SqliteOptions,
        new_history: HistoryId,
    ) -> Result<SqliteStore, OpenError> {
        let finished = meta::check_finished(db.readers()).await;
        finished.map_err(|source| OpenError::Unreadable { path: db.path().to_owned(), source })?;
        let path = db.path().to_owned();
        let unreadable = |source| OpenError::Unreadable { path: path.clone(), source };
        let flushed = meta::number(db.readers(), meta::FLUSHED).await.map_err(unreadable)?;
        let journal = Journal::open(&db, flushed).await.map_err(unreadable)?;
        SqliteStore::start(db, journal, options, new_history).await.map_err(unreadable)
    }

    /// Replays the journal and starts the committer.
    async fn start(
        db: Arc<Db>,
        journal: Journal,
        options: SqliteOptions,
        new_history: HistoryId,
    ) -> Result<SqliteStore, StoreError> {
        let history = named_history(&db, new_history).await?;
        let flushed = meta::number(db.readers(), meta::FLUSHED).await?;
        let (mut ledger, memtable) = replay::replay(&db, &journal, flushed).await?;
        ledger.settle(options.known_latest_ids, options.known_groups);

        let (requests, waiting) = mpsc::channel(committer::WAITING_COMMITS);
        let set_aside: i64 =
            sqlx::query_scalar("SELECT count(*) FROM set_aside").fetch_one(db.readers()).await?;
        let (tables, counters) = (LiveTables::read(&db).await?, replay::counters(&db).await?);
        let shared = Arc::new(SqliteShared::new(db, MemtableSet::new(memtable), tables, options));
        shared.condition.set_aside(set_aside.cast_unsigned());
        let flusher = Flusher::new(shared.clone(), flushed);
        let committer = Committer::new(shared.clone(), waiting, journal, (ledger, counters), flusher);
        // It ends when it is closed, or when this store is dropped and nobody can ask any more.
        let runtime = Handle::current();
        thread::Builder::new()
            .name("committer".to_owned())
            .spawn(move || runtime.block_on(committer.live()))
            .map_err(StoreError::unavailable)?;
        Ok(SqliteStore { shared, requests, history })
    }

    /// Asks the committer. An answer that does not come means that the store is closing or the committer has died.
    async fn ask<T>(&self, ask: impl FnOnce(Reply<T>) -> CommitterRequest) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(ask(reply)).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// Waits until the committer, which has died, knows again what is there, or the store is closed.
    async fn until_reopened(&self) {
        while let Err(error) =
            self.ask(|reply| CommitterRequest::Pending(AcceptanceId::default(), 0, reply)).await
        {
            if self.requests.is_closed() {
                return;
            }
            debug!(%error, "the stored state cannot be read yet");
            tokio::time::sleep(recovery::FIRST_PAUSE).await;
        }
    }

    /// The outcome of a commit that the committer was asked for.
    async fn outcome_of<T>(
        &self,
        answer: oneshot::Receiver<Result<T, CommitError>>,
    ) -> Result<T, CommitError> {
        match answer.await {
            Ok(answer) => answer,
            Err(_) => {
                self.until_reopened().await;
                Err(CommitError::Unknown(StoreError::unavailable(
                    "the committer panicked before it answered",
                )))
            }
        }
    }

    fn reader(&self, uid: Uid) -> InboxReader<'_> {
        InboxReader::new(&self.shared.db, &self.shared.memory, uid)
    }
}

fn closed() -> StoreError {
    StoreError::unavailable("the store is closed")
}

async fn named_history(db: &Db, new: HistoryId) -> Result<HistoryId, StoreError> {
    if let Some(history) = meta::history(db.readers()).await? {
        return Ok(history);
    }
    let mut tx = db.write().await?;
    meta::put_history(&mut tx, new).await?;
    tx.commit().await?;
    Ok(new)
}

#[async_trait]
impl MessageStore for SqliteStore {
    async fn commit(&self, writes: Vec<Write>) -> Result<Vec<Outcome>, CommitError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.requests.send(CommitterRequest::Commit(writes, reply)).await;
        sent.map_err(|_| CommitError::Refused(closed()))?;
        self.outcome_of(answer).await
    }

    fn unasked(&self) -> Option<Unused> {
        Some(Unused { since: None })
    }

    async fn keys(&self, keys: &[IdempotencyKey]) -> Result<Vec<KeyState>, StoreError> {
        self.shared.keys(keys).await
    }

    async fn pending(&self, after: PendingKey, limit: usize) -> Result<Vec<Pending>, StoreError> {
        self.ask(|reply| CommitterRequest::Pending(after.acceptance, limit, reply)).await
    }

    async fn latest_ids(&self, uids: &[Uid]) -> Result<Vec<MessageId>, StoreError> {
        self.shared.latest_ids(uids).await
    }

    async fn watermark(&self, uid: Uid) -> Result<MessageId, StoreError> {
        self.reader(uid).watermark().await
    }

    fn tail(&self, uid: Uid, cursor: MessageId, _: MessageId, limit: PageLimit) -> Option<Page> {
        self.shared.memory.view().tail(uid, cursor, limit)
    }

    async fn range(&self, uid: Uid, query: RangeQuery) -> Result<Page, StoreError> {
        self.reader(uid).range(query).await
    }

    async fn entries(&self, rows: &[(Uid, MessageId)]) -> Result<Vec<Option<Entry>>, StoreError> {
        self.shared.entries(rows).await
    }

    async fn entries_of(&self, uid: Uid, ids: &[MessageId]) -> Result<Vec<Entry>, StoreError> {
        self.reader(uid).rows(ids).await
    }

    async fn newest(&self, of: &[(Uid, String)]) -> Result<Vec<Option<Entry>>, StoreError> {
        self.shared.newest(of).await
    }

    async fn newest_under(
        &self,
        uid: Uid,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Entry)>, StoreError> {
        self.reader(uid).newest_under(prefix, after, limit).await
    }

    async fn keys_under(&self, uid: Uid, prefix: &str, most: usize) -> Result<usize, StoreError> {
        self.reader(uid).keys_under(prefix, most).await
    }

    async fn copies(&self, key: IdempotencyKey, uids: &[Uid]) -> Result<Vec<Option<MessageId>>, StoreError> {
        self.shared.copies(key, uids).await
    }

    async fn forget_rows(&self, uid: Uid, limit: usize) -> Result<Forgotten, StoreError> {
        self.shared.forget_rows(uid, limit).await
    }

    async fn expire_rows(
        &self,
        after: Option<Uid>,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Expired, StoreError> {
        self.shared.expire_rows(after, sent_before, limit).await
    }

    async fn expire_records(
        &self,
        after: Option<IdempotencyKey>,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Expired<IdempotencyKey>, StoreError> {
        self.shared.expire_records(after, sent_before, limit).await
    }

    async fn keeping(&self, after: Option<Uid>) -> Result<Keeping, StoreError> {
        self.shared.keeping(after).await
    }

    async fn expire_conversation(
        &self,
        uid: Uid,
        of: Conversation,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Forgotten, StoreError> {
        self.shared.expire_conversation(uid, of, sent_before, limit).await
    }

    async fn expired_to(&self, uid: Uid) -> Result<MessageId, StoreError> {
        self.shared.expired_to(uid).await
    }

    async fn conversations(
        &self,
        uid: Uid,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<Vec<Summary>, StoreError> {
        conversations::conversations(&self.shared.db, &self.shared.memory, uid, before, limit).await
    }

    async fn conversation(
        &self,
        uid: Uid,
        conversation: Conversation,
        query: RangeQuery,
    ) -> Result<Page, StoreError> {
        self.reader(uid).conversation(conversation, query).await
    }

    async fn have_messages(&self, of: &[(Uid, Conversation)]) -> Result<Vec<bool>, StoreError> {
        self.shared.have_messages(of).await
    }

    async fn heard_from(&self, uid: Uid, others: &[Uid]) -> Result<Vec<bool>, StoreError> {
        self.shared.heard_from(uid, others).await
    }

    async fn read_markers(&self, of: &[(Uid, Conversation)]) -> Result<Vec<MessageId>, StoreError> {
        self.shared.read_markers(of).await
    }

    async fn groups(&self, gids: &[GroupId]) -> Result<Vec<Option<Arc<Group>>>, StoreError> {
        let mut groups = Vec::with_capacity(gids.len());
        for &gid in gids {
            groups.push(match self.shared.group(gid) {
                Some(group) => Some(group),
                None => self.ask(|reply| CommitterRequest::Group(gid, reply)).await?,
            });
        }
        Ok(groups)
    }

    async fn inboxes(
        &self,
        from: (&str, i64),
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Uid>, StoreError> {
        self.shared.inboxes(from, direction, limit).await
    }

    async fn largest_group_id(&self) -> Result<GroupId, StoreError> {
        let view = self.shared.memory.view();
        let recent = view.memtables.iter().flat_map(|memtable| memtable.all_groups());
        let recent = recent.map(|(gid, _)| gid).max().unwrap_or(GroupId(0));
        let stored: Option<i64> =
            sqlx::query_scalar("SELECT max(gid) FROM groups").fetch_one(self.shared.db.readers()).await?;
        Ok(recent.max(GroupId(stored.unwrap_or(0).cast_unsigned())))
    }

    async fn history(&self) -> Result<HistoryId, StoreError> {
        Ok(self.history)
    }

    fn health(&self) -> Health {
        let mut health = self.shared.condition.health(self.shared.db.path());
        if self.requests.is_closed() {
            health.trouble.get_or_insert_with(|| closed().to_string().into());
        }
        health
    }

    async fn close(&self) {
        if let Err(error) = self.ask(CommitterRequest::Close).await {
            warn!(%error, "the last flush failed; the next start reads the rows back from the journal");
        }
        if let Err(error) = self.shared.db.close().await {
            warn!(%error, "the database could not be closed");
        }
    }
}

#[cfg(test)]
mod tests;
