//! A [`MessageStore`] that fails on command: for tests of what must hold when storage does not answer as hoped.
//!
//! It wraps a real one and follows a script, one [`Fault`] per commit; without one left, it passes on.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::{Semaphore, watch};

use super::*;

/// The fault that one commit meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// None.
    Pass,
    /// Refused before anything is stored.
    Refuse,
    /// Not stored: what the first write was decided on is said to have changed.
    Stale,
    /// Stored, but the answer is lost: `Unknown`.
    LoseAnswer,
    /// Not stored, and nobody can tell: `Unknown`.
    LoseWrite,
    /// Waits for [`FaultyStore::release`], then passes.
    Stall,
    /// The calling task panics before anything is stored.
    Panic,
    /// The calling task panics after everything is stored.
    PanicAfter,
}

/// A store with a script.
pub struct FaultyStore {
    inner: Arc<dyn MessageStore>,
    script: Mutex<VecDeque<Fault>>,
    dead: AtomicBool,
    cut_off: AtomicBool,
    asked: AtomicUsize,
    released: Semaphore,
    stalled: watch::Sender<usize>,
    unreadable: Mutex<Vec<IdempotencyKey>>,
}

impl FaultyStore {
    /// `inner`, which fails on command.
    pub fn new(inner: Arc<dyn MessageStore>) -> FaultyStore {
        let (stalled, _) = watch::channel(0);
        FaultyStore {
            inner,
            script: Mutex::default(),
            dead: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
            asked: AtomicUsize::new(0),
            released: Semaphore::new(0),
            stalled,
            unreadable: Mutex::default(),
        }
    }

    /// Adds faults for the coming commits, in the order in which they come.
    pub fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).extend(faults);
    }

    /// From now on the idempotency record under this key cannot be read.
    pub fn spoil(&self, key: IdempotencyKey) {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).push(key);
    }

    fn is_unreadable(&self, key: &IdempotencyKey) -> bool {
        self.unreadable.lock().is_ok_and(|bad| bad.contains(key))
    }

    /// From now on no commit returns or stores anything: to what lies below it, the process has died.
    pub fn kill(&self) {
        self.dead.store(true, Ordering::Relaxed);
    }

    /// From now on commits have an unknown outcome, and what a recovery reads cannot be read.
    pub fn cut_off(&self) {
        self.cut_off.store(true, Ordering::Relaxed);
    }

    /// Lets one stalled commit go on: one that stalls now, or the next one that does.
    pub fn release(&self) {
        self.released.add_permits(1);
    }

    /// Waits until `commits` of them have stalled since the beginning.
    pub async fn until_stalled(&self, commits: usize) {
        let reached = self.stalled.subscribe().wait_for(|stalled| *stalled >= commits).await.is_ok();
        assert!(reached, "the sender lives in self");
    }

    /// How often storage was asked anything since the beginning.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    fn inner(&self) -> &dyn MessageStore {
        self.asked.fetch_add(1, Ordering::Relaxed);
        &*self.inner
    }

    fn is_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::Relaxed)
    }

    fn next(&self) -> Fault {
        if self.dead.load(Ordering::Relaxed) {
            return Fault::Stall;
        }
        if self.is_cut_off() {
            return Fault::LoseWrite;
        }
        self.script.lock().unwrap_or_else(PoisonError::into_inner).pop_front().unwrap_or(Fault::Pass)
    }
}

/// A panic without the message and the backtrace, which would drown a test's output.
fn fall() -> ! {
    resume_unwind(Box::new("as the script says"))
}

fn scripted() -> StoreError {
    StoreError::unavailable("as the script says")
}

#[async_trait]
impl MessageStore for FaultyStore {
    async fn commit(&self, writes: Vec<Write>) -> Result<Vec<Outcome>, CommitError> {
        let keys = writes.iter().map(|write| match write {
            Write::Accept(accept) => accept.content.key(),
            Write::Deliver(_) => None,
        });
        let unreadable = keys.enumerate().filter(|(_, key)| key.is_some_and(|key| self.is_unreadable(&key)));
        let unreadable: Vec<usize> = unreadable.map(|(at, _)| at).collect();
        if !unreadable.is_empty() {
            return Err(CommitError::Stale(unreadable));
        }
        match self.next() {
            Fault::Pass => self.inner().commit(writes).await,
            Fault::Refuse => Err(CommitError::Refused(scripted())),
            Fault::Stale => Err(CommitError::Stale(vec![0])),
            Fault::LoseAnswer => {
                self.inner().commit(writes).await?;
                Err(CommitError::Unknown(scripted()))
            }
            Fault::LoseWrite => Err(CommitError::Unknown(scripted())),
            Fault::Stall => {
                self.stalled.send_modify(|stalled| *stalled += 1);
                self.released.acquire().await.expect("never closed").forget();
                if self.is_cut_off() {
                    return Err(CommitError::Unknown(scripted()));
                }
                self.inner().commit(writes).await
            }
            Fault::Panic => fall(),
            Fault::PanicAfter => {
                self.inner().commit(writes).await?;
                fall()
            }
        }
    }

    async fn keys(&self, keys: &[IdempotencyKey]) -> Result<Vec<KeyState>, StoreError> {
        if keys.iter().any(|key| self.is_unreadable(key)) {
            return Err(StoreError::corrupt("as the test says"));
        }
        self.inner().keys(keys).await
    }

    async fn pending(&self, after: PendingKey, limit: usize) -> Result<Vec<Pending>, StoreError> {
        if self.is_cut_off() {
            return Err(scripted());
        }
        self.inner().pending(after, limit).await
    }

    async fn latest_ids(&self, uids: &[Uid]) -> Result<Vec<MessageId>, StoreError> {
        if self.is_cut_off() {
            return Err(scripted());
        }
        self.inner().latest_ids(uids).await
    }

    async fn watermark(&self, uid: Uid) -> Result<MessageId, StoreError> {
        self.inner().watermark(uid).await
    }

    fn tail(&self, uid: Uid, cursor: MessageId, known: MessageId, limit: PageLimit) -> Option<Page> {
        self.inner().tail(uid, cursor, known, limit)
    }

    async fn range(&self, uid: Uid, query: RangeQuery) -> Result<Page, StoreError> {
        self.inner().range(uid, query).await
    }

    async fn entries(&self, rows: &[(Uid, MessageId)]) -> Result<Vec<Option<Entry>>, StoreError> {
        self.inner().entries(rows).await
    }

    async fn newest(&self, of: &[(Uid, String)]) -> Result<Vec<Option<Entry>>, StoreError> {
        self.inner().newest(of).await
    }

    async fn newest_under(
        &self,
        uid: Uid,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Entry)>, StoreError> {
        self.inner().newest_under(uid, prefix, after, limit).await
    }

    async fn keys_under(&self, uid: Uid, prefix: &str, most: usize) -> Result<usize, StoreError> {
        self.inner().keys_under(uid, prefix, most).await
    }

    async fn forget_rows(&self, uid: Uid, limit: usize) -> Result<Forgotten, StoreError> {
        self.inner().forget_rows(uid, limit).await
    }

    async fn expire_rows(
        &self,
        after: Option<Uid>,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Expired, StoreError> {
        self.inner().expire_rows(after, sent_before, limit).await
    }

    async fn expire_records(
        &self,
        after: Option<IdempotencyKey>,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Expired<IdempotencyKey>, StoreError> {
        self.inner().expire_records(after, sent_before, limit).await
    }

    async fn keeping(&self, after: Option<Uid>) -> Result<Keeping, StoreError> {
        self.inner().keeping(after).await
    }

    async fn expire_conversation(
        &self,
        uid: Uid,
        of: Conversation,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Forgotten, StoreError> {
        self.inner().expire_conversation(uid, of, sent_before, limit).await
    }

    async fn expired_to(&self, uid: Uid) -> Result<MessageId, StoreError> {
        self.inner().expired_to(uid).await
    }

    async fn copies(&self, key: IdempotencyKey, uids: &[Uid]) -> Result<Vec<Option<MessageId>>, StoreError> {
        self.inner().copies(key, uids).await
    }

    async fn conversations(
        &self,
        uid: Uid,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<Vec<Summary>, StoreError> {
        self.inner().conversations(uid, before, limit).await
    }

    async fn conversation(
        &self,
        uid: Uid,
        conversation: Conversation,
        query: RangeQuery,
    ) -> Result<Page, StoreError> {
        self.inner().conversation(uid, conversation, query).await
    }

    async fn have_messages(&self, of: &[(Uid, Conversation)]) -> Result<Vec<bool>, StoreError> {
        self.inner().have_messages(of).await
    }

    async fn heard_from(&self, uid: Uid, others: &[Uid]) -> Result<Vec<bool>, StoreError> {
        self.inner().heard_from(uid, others).await
    }

    async fn read_markers(&self, of: &[(Uid, Conversation)]) -> Result<Vec<MessageId>, StoreError> {
        self.inner().read_markers(of).await
    }

    async fn groups(&self, gids: &[GroupId]) -> Result<Vec<Option<Arc<Group>>>, StoreError> {
        self.inner().groups(gids).await
    }

    async fn inboxes(
        &self,
        from: (&str, i64),
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Uid>, StoreError> {
        self.inner().inboxes(from, direction, limit).await
    }

    async fn largest_group_id(&self) -> Result<GroupId, StoreError> {
        self.inner().largest_group_id().await
    }

    async fn history(&self) -> Result<HistoryId, StoreError> {
        self.inner().history().await
    }

    fn unasked(&self) -> Option<Unused> {
        self.inner.unasked()
    }

    fn leaves_copies_owed(&self) -> bool {
        self.inner.leaves_copies_owed()
    }

    fn refuses_early_copies(&self) -> bool {
        self.inner.refuses_early_copies()
    }

    fn health(&self) -> Health {
        self.inner().health()
    }

    async fn close(&self) {
        self.inner().close().await;
    }
}
