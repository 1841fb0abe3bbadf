//! The [`MessageStore`] on PostgreSQL, for any number of processes at a time.
//!
//! It keeps little of the database in memory: groups, which are compared with the database whenever they are used, and
//! the rows that this process committed last. A row is visible when its transaction is committed, and each transaction
//! holds the heads of the inboxes that it writes to: the rows of an inbox become visible in the order of their ids
//! (I1), whichever process wrote them.

use std::sync::Arc;

use async_trait::async_trait;
use quick_cache::sync::Cache;
use tokio_util::task::AbortOnDropHandle;

use super::condition::PgCondition;
use super::life::HISTORY;
use super::recent::Recent;
use super::revisions::Revisions;
use super::{PgDb, deletions, expiry, keyed, lookup, protocol, read};
use crate::domain::{
    Conversation, Direction, Entry, Group, GroupId, HistoryId, IdempotencyKey, MessageId, PageLimit,
    RangeQuery, Timestamp, Uid,
};
use crate::store::{
    CommitError, Expired, Forgotten, Health, Keeping, KeyState, MessageStore, Outcome, Page, Pending,
    PendingKey, StoreError, Summary, Unused, Write,
};

/// Groups that are kept in memory: those that are used most.
const KNOWN_GROUPS: usize = 10_000;

/// See the module.
///
/// Numbers of acceptances are given only to those with copies owed; others have the number 0. They increase with each sender's
/// acceptances. Between senders they say nothing: an acceptance with a smaller number may be committed after one with a larger. So
/// [`pending`](MessageStore::pending) after a number may leave out an acceptance that is committed a moment later; the next walk from
/// the beginning finds it.
pub struct PostgresStore {
    pub(super) db: Arc<PgDb>,
    groups: Cache<GroupId, Arc<Group>>,
    pub(super) recent: Recent,
    pub(super) condition: Arc<PgCondition>,
    pub(super) revisions: Revisions,
    _watch: AbortOnDropHandle<()>,
}

impl PostgresStore {
    /// Of conversations of users what [`lookup::of_conversations`] reads.
    async fn of_conversations(
        &self,
        column: &'static str,
        of: &[(Uid, Conversation)],
    ) -> Result<Vec<MessageId>, StoreError> {
        let read = async {
            lookup::of_conversations(&mut *self.db.for_queues().await?, column, of, self.db.layout).await
        };
        self.db.limited(read).await
    }

    /// The messages of `db`. `new_history` names a history that has no name yet, or that is renewed because the database continues an
    /// older state (I14). `skipped`: what [`PgDb::is_of_another_life`] asks for is done.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn open(
        db: Arc<PgDb>,
        new_history: HistoryId,
        skipped: bool,
    ) -> Result<PostgresStore, StoreError> {
        db.begin_life(new_history, skipped).await?;
        let condition = Arc::new(PgCondition::default());
        let (watched, through) = (Arc::clone(&condition), Arc::clone(&db));
        let watch = AbortOnDropHandle::new(tokio::spawn(async move {
            tokio::join!(watched.watch(&through), through.watch_life(), protocol::watch(&through));
        }));
        let groups = Cache::new(KNOWN_GROUPS);
        Ok(PostgresStore {
            db,
            groups,
            recent: Recent::default(),
            condition,
            revisions: Revisions::default(),
            _watch: watch,
        })
    }
}

impl PgDb {
    /// An inbox whose newest row is above its latest id, with both, if there is one among the oldest and the newest `sample` accounts.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn head_behind(&self, sample: u32) -> Result<Option<(Uid, MessageId, MessageId)>, StoreError> {
        self.limited(async { lookup::head_behind(&mut *self.reader().await?, sample, self.layout).await })
            .await
    }
}

#[async_trait]
impl MessageStore for PostgresStore {
    async fn commit(&self, writes: Vec<Write>) -> Result<Vec<Outcome>, CommitError> {
        if writes.is_empty() {
            return Ok(Vec::new());
        }
        let committed = protocol::commit(&self.db, &self.recent, writes).await;
        match &committed {
            Ok(_) => self.condition.committed(),
            Err(CommitError::Refused(error) | CommitError::Unknown(error)) => self.condition.refused(error),
            Err(CommitError::Behind(_) | CommitError::Stale(_)) => {}
        }
        committed
    }

    fn unasked(&self) -> Option<Unused> {
        // Where a part of a call may be stored, what is stored is shown only when the call is decided again.
        self.db.layout.stores_all_or_nothing().then_some(Unused { since: None })
    }

    async fn keys(&self, keys: &[IdempotencyKey]) -> Result<Vec<KeyState>, StoreError> {
        let records =
            async { lookup::records(&mut *self.db.for_queues().await?, keys, self.db.layout).await };
        let records = self.db.limited(records).await?;
        let state =
            |key| records.get(key).copied().map_or(KeyState::Unused(Unused { since: None }), KeyState::Used);
        Ok(keys.iter().map(state).collect())
    }

    async fn pending(&self, after: PendingKey, limit: usize) -> Result<Vec<Pending>, StoreError> {
        let pending = async {
            protocol::pending(&mut *self.db.for_queues().await?, self.db.layout, after, limit).await
        };
        self.db.limited(pending).await
    }

    async fn latest_ids(&self, uids: &[Uid]) -> Result<Vec<MessageId>, StoreError> {
        let latest =
            async { lookup::latest_ids(&mut *self.db.for_queues().await?, uids, self.db.layout).await };
        self.db.limited(latest).await
    }

    async fn watermark(&self, uid: Uid) -> Result<MessageId, StoreError> {
        let latest =
            async { lookup::latest_ids(&mut *self.db.reader().await?, &[uid], self.db.layout).await };
        let latest = self.db.limited(latest).await?;
        Ok(latest.first().copied().unwrap_or_default())
    }

    fn tail(&self, uid: Uid, cursor: MessageId, known: MessageId, limit: PageLimit) -> Option<Page> {
        self.recent.after(uid, cursor, known, limit)
    }

    async fn range(&self, uid: Uid, query: RangeQuery) -> Result<Page, StoreError> {
        self.db.limited(async { read::range(&mut *self.db.reader().await?, uid, query).await }).await
    }

    async fn entries(&self, rows: &[(Uid, MessageId)]) -> Result<Vec<Option<Entry>>, StoreError> {
        let entries =
            async { lookup::entries(&mut *self.db.for_queues().await?, rows, self.db.layout).await };
        self.db.limited(entries).await
    }

    async fn entries_of(&self, uid: Uid, ids: &[MessageId]) -> Result<Vec<Entry>, StoreError> {
        let rows: Vec<(Uid, MessageId)> = ids.iter().map(|id| (uid, *id)).collect();
        let entries = async { lookup::entries(&mut *self.db.reader().await?, &rows, self.db.layout).await };
        Ok(self.db.limited(entries).await?.into_iter().flatten().collect())
    }

    async fn newest(&self, of: &[(Uid, String)]) -> Result<Vec<Option<Entry>>, StoreError> {
        let newest = async { keyed::newest(&mut *self.db.for_queues().await?, of, self.db.layout).await };
        self.db.limited(newest).await
    }

    async fn newest_under(
        &self,
        uid: Uid,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Entry)>, StoreError> {
        let newest =
            async { keyed::newest_under(&mut *self.db.reader().await?, uid, prefix, after, limit).await };
        self.db.limited(newest).await
    }

    async fn keys_under(&self, uid: Uid, prefix: &str, most: usize) -> Result<usize, StoreError> {
        let counted = async { keyed::keys_under(&mut *self.db.reader().await?, uid, prefix, most).await };
        self.db.limited(counted).await
    }

    async fn copies(&self, key: IdempotencyKey, uids: &[Uid]) -> Result<Vec<Option<MessageId>>, StoreError> {
        let copies = async { keyed::copies(&mut *self.db.reader().await?, key, uids, self.db.layout).await };
        self.db.limited(copies).await
    }

    async fn forget_rows(&self, uid: Uid, limit: usize) -> Result<Forgotten, StoreError> {
        deletions::forget_rows(&self.db, uid, limit).await
    }

    async fn expire_rows(
        &self,
        after: Option<Uid>,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Expired, StoreError> {
        if after.is_none() {
            // This server removes them from the tables, or another one does.
            self.recent.forget_before(sent_before);
        }
        expiry::expire_rows(&self.db, after, sent_before, limit).await
    }

    async fn expire_records(
        &self,
        after: Option<IdempotencyKey>,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Expired<IdempotencyKey>, StoreError> {
        expiry::expire_records(&self.db, after, sent_before, limit).await
    }

    async fn keeping(&self, after: Option<Uid>) -> Result<Keeping, StoreError> {
        self.db.limited(async { expiry::keeping(&mut *self.db.reader().await?, after).await }).await
    }

    async fn expire_conversation(
        &self,
        uid: Uid,
        of: Conversation,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Forgotten, StoreError> {
        expiry::expire_conversation(&self.db, uid, of, sent_before, limit).await
    }

    async fn expired_to(&self, uid: Uid) -> Result<MessageId, StoreError> {
        self.db.limited(async { expiry::expired_to(&mut *self.db.reader().await?, uid).await }).await
    }

    async fn conversations(
        &self,
        uid: Uid,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<Vec<Summary>, StoreError> {
        self.db
            .limited(async { read::conversations(&mut *self.db.reader().await?, uid, before, limit).await })
            .await
    }

    async fn conversation(
        &self,
        uid: Uid,
        conversation: Conversation,
        query: RangeQuery,
    ) -> Result<Page, StoreError> {
        let page =
            async { read::conversation(&mut *self.db.reader().await?, uid, conversation, query).await };
        self.db.limited(page).await
    }

    async fn have_messages(&self, of: &[(Uid, Conversation)]) -> Result<Vec<bool>, StoreError> {
        let newest = self.of_conversations("last_id", of).await?;
        Ok(newest.into_iter().map(|newest| newest > MessageId::ZERO).collect())
    }

    async fn heard_from(&self, uid: Uid, others: &[Uid]) -> Result<Vec<bool>, StoreError> {
        let heard = async { keyed::heard_from(&mut *self.db.reader().await?, uid, others).await };
        self.db.limited(heard).await
    }

    async fn read_markers(&self, of: &[(Uid, Conversation)]) -> Result<Vec<MessageId>, StoreError> {
        self.of_conversations("read_to", of).await
    }

    async fn groups(&self, gids: &[GroupId]) -> Result<Vec<Option<Arc<Group>>>, StoreError> {
        let known = gids.iter().map(|gid| self.groups.get(gid)).collect();
        let groups =
            async { lookup::groups(&mut *self.db.for_queues().await?, gids, known, self.db.layout).await };
        let groups = self.db.limited(groups).await?;
        for group in groups.iter().flatten() {
            self.groups.insert(group.gid, Arc::clone(group));
        }
        Ok(groups)
    }

    async fn inboxes(
        &self,
        from: (&str, i64),
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Uid>, StoreError> {
        let inboxes = async { read::inboxes(&mut *self.db.reader().await?, from, direction, limit).await };
        self.db.limited(inboxes).await
    }

    async fn largest_group_id(&self) -> Result<GroupId, StoreError> {
        let largest: Option<i64> = sqlx::query_scalar("SELECT max(gid) FROM groups")
            .fetch_one(&mut *self.db.for_queues().await?)
            .await?;
        Ok(GroupId(largest.unwrap_or(0).cast_unsigned()))
    }

    async fn history(&self) -> Result<HistoryId, StoreError> {
        let history: String = sqlx::query_scalar("SELECT value FROM meta WHERE key = $1")
            .bind(HISTORY)
            .fetch_one(&mut *self.db.for_queues().await?)
            .await?;
        history.parse().map(HistoryId).map_err(StoreError::corrupt)
    }

    fn leaves_copies_owed(&self) -> bool {
        // One for somebody who joins a group, if the server ends before it is written.
        true
    }

    fn refuses_early_copies(&self) -> bool {
        self.db.layout.refuses_early_copies()
    }

    fn health(&self) -> Health {
        Health { pools: self.db.pools(), ..self.condition.health() }
    }

    async fn close(&self) {
        self.db.close().await;
    }
}

#[cfg(test)]
mod tests;
