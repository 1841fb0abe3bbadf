//! Watermarks: the latest *committed* id of each user, in memory (I2, S2).
//!
//! Owns the table of watermarks. A watermark is loaded from the store when first needed, by one load for all who wait,
//! and after that moves only up: by the queues when a commit is durable, or by a reader that saw a newer row. An
//! up-to-date heartbeat is one atomic read (I8).
//!
//! Where other servers write to the same database, too, what memory holds may be behind. Then a watermark is read again
//! whenever somebody begins to use it. A hint of another server ([`Watermarks::hear`]) does not raise it, since a wrong
//! one would let a device skip rows: it is kept beside the watermark until a read has shown what is true.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Lifecycle, UnitWeighter};
use tokio::sync::OnceCell;

use crate::domain::{MessageId, Uid};
use crate::store::{MessageStore, StoreError};

#[derive(Debug, Default)]
struct Slot {
    latest: AtomicU64,
    /// The latest id as another server says, until it has been looked up; 0: none.
    hinted: AtomicU64,
    /// The latest id that a [look](Watermarks::look) has found; those who use the watermark were woken for it.
    looked_at: AtomicU64,
    loaded: OnceCell<()>,
}

/// A handle on one user's watermark; a cheap clone that stays current.
#[derive(Clone, Debug)]
pub struct Watermark {
    uid: Uid,
    slot: Arc<Slot>,
}

impl Watermark {
    /// The owner of the inbox.
    pub fn uid(&self) -> Uid {
        self.uid
    }

    /// The latest committed id; [`MessageId::ZERO`] in an empty inbox.
    pub fn latest(&self) -> MessageId {
        MessageId::new(self.slot.latest.load(Ordering::Acquire)).unwrap_or(MessageId::MAX)
    }

    /// Whether there are rows after `cursor`, or another server says so.
    pub fn may_be_after(&self, cursor: MessageId) -> bool {
        cursor < self.latest() || cursor.get() < self.hinted()
    }

    /// The latest id as another server says; 0: none. Read it before the rows, for [`looked_up`](Self::looked_up).
    pub(crate) fn hinted(&self) -> u64 {
        self.slot.hinted.load(Ordering::Acquire)
    }

    /// All rows up to the newest one were read after [`hinted`](Self::hinted) had told this: the hint has served its purpose, also
    /// if it was wrong.
    pub(crate) fn looked_up(&self, hinted: u64) {
        if hinted != 0 {
            _ = self.slot.hinted.compare_exchange(hinted, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// A committed row with this id was seen.
    pub fn raise(&self, seen: MessageId) {
        self.slot.latest.fetch_max(seen.get(), Ordering::AcqRel);
    }
}

/// Keeps what a [`Watermark`] points to: a second slot of the same user would not hear what is published to the first.
#[derive(Clone, Debug)]
struct KeepUsed;

impl Lifecycle<Uid, Arc<Slot>> for KeepUsed {
    type RequestState = ();

    fn is_pinned(&self, _: &Uid, slot: &Arc<Slot>) -> bool {
        // The cache makes clones under its lock only, and asks under it, so a count of one means that nobody holds or loads it.
        Arc::strong_count(slot) > 1
    }
}

/// All watermarks in memory.
#[derive(Clone)]
pub struct Watermarks {
    store: Arc<dyn MessageStore>,
    slots: Arc<Cache<Uid, Arc<Slot>, UnitWeighter, DefaultHashBuilder, KeepUsed>>,
    /// Other servers write, too.
    shared: bool,
}

impl Watermarks {
    /// Watermarks of `store`, at most about `most` of them unless more are in use.
    pub fn new(store: Arc<dyn MessageStore>, most: usize) -> Watermarks {
        let weight = u64::try_from(most).unwrap_or(u64::MAX);
        let slots = Cache::with(most, weight, UnitWeighter, DefaultHashBuilder::default(), KeepUsed);
        Watermarks { store, slots: Arc::new(slots), shared: false }
    }

    /// The same, of a database to which other servers write, too.
    pub fn of_shared(store: Arc<dyn MessageStore>, most: usize) -> Watermarks {
        Watermarks { shared: true, ..Watermarks::new(store, most) }
    }

    /// The watermark of `uid`, loaded. Many who ask at once share one load, unless other servers write, too: then each reads what is there
    /// after the call began.
    pub async fn watermark(&self, uid: Uid) -> Result<Watermark, StoreError> {
        let watermark = Watermark { uid, slot: self.slot(uid) };
        if self.shared {
            watermark.raise(self.store.watermark(uid).await?);
            return Ok(watermark);
        }
        watermark
            .slot
            .loaded
            .get_or_try_init(|| async {
                // Raising takes the maximum: what a queue published during a slow load stays.
                watermark.raise(self.store.watermark(uid).await?);
                Ok::<(), StoreError>(())
            })
            .await?;
        Ok(watermark)
    }

    /// A row of `uid` with this id is durable and visible.
    pub fn publish(&self, uid: Uid, id: MessageId) {
        let slot = self.slot(uid);
        slot.latest.fetch_max(id.get(), Ordering::AcqRel);
        // The latest committed id needs no loading any more. Failing to set means a load is under way or done.
        let _ = slot.loaded.set(());
    }

    /// Reads the latest ids of `uids` again, after a commit of unknown outcome, and tells them.
    pub async fn reload(&self, uids: &[Uid]) -> Result<Vec<(Uid, MessageId)>, StoreError> {
        let latest: Vec<_> = uids.iter().copied().zip(self.store.latest_ids(uids).await?).collect();
        latest.iter().for_each(|(uid, latest)| self.publish(*uid, *latest));
        Ok(latest)
    }

    /// Reads a watermark again of which somebody says that it is behind. Where nobody else writes, it cannot be.
    pub async fn reread(&self, watermark: &Watermark) -> Result<(), StoreError> {
        if self.shared {
            watermark.raise(self.store.watermark(watermark.uid).await?);
        }
        Ok(())
    }

    /// Another server says that `uid` has rows up to `id`. Where nobody uses the watermark, nothing is kept. Everybody who does is to be
    /// woken, whatever is known: one device that has read a row raises the watermark, and the others still sleep.
    pub fn hear(&self, uid: Uid, id: MessageId) {
        if let Some(slot) = self.slots.peek(&uid)
            && slot.latest.load(Ordering::Acquire) < id.get()
        {
            slot.hinted.fetch_max(id.get(), Ordering::AcqRel);
        }
    }

    /// Reads the latest ids of `uids` and says who of them has more rows than at the look before, and is to be woken.
    pub async fn look(&self, uids: &[Uid]) -> Result<Vec<Uid>, StoreError> {
        let latest = uids.iter().copied().zip(self.store.latest_ids(uids).await?);
        let moved = |(uid, latest): &(Uid, MessageId)| {
            self.slots.peek(uid).is_some_and(|slot| {
                slot.latest.fetch_max(latest.get(), Ordering::AcqRel);
                slot.looked_at.fetch_max(latest.get(), Ordering::AcqRel) < latest.get()
            })
        };
        Ok(latest.filter(moved).map(|(uid, _)| uid).collect())
    }

    fn slot(&self, uid: Uid) -> Arc<Slot> {
        let new = || Ok::<_, Infallible>(Arc::new(Slot::default()));
        let Ok(slot) = self.slots.get_or_insert_with(&uid, new);
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::send_text;
    use crate::store::memory::MemoryStore;

    fn id(number: u64) -> MessageId {
        MessageId::new(number).expect("in range")
    }

    #[tokio::test]
    async fn a_watermark_in_use_stays_current_while_others_are_forgotten() {
        const MOST: u32 = 100;
        let watermarks = Watermarks::new(Arc::new(MemoryStore::new()), MOST as usize);
        let used = watermarks.watermark(Uid(1)).await.expect("memory");
        for uid in 2..2 + 10 * MOST {
            watermarks.watermark(Uid(uid)).await.expect("memory");
        }
        assert!(watermarks.slots.len() <= 2 * MOST as usize, "{} are known", watermarks.slots.len());

        watermarks.publish(Uid(1), id(9));
        assert_eq!(used.latest(), id(9));
    }

    /// One device of a user has read a row of which no hint has come yet; the other one sleeps.
    #[tokio::test]
    async fn who_sleeps_is_woken_although_another_device_has_raised_the_watermark() {
        let store = Arc::new(MemoryStore::new());
        send_text(&*store, (Uid(1), 5), (Uid(2), 42), 1).await;
        let watermarks = Watermarks::of_shared(store, 100);
        let used = watermarks.watermark(Uid(2)).await.expect("memory");
        assert_eq!(used.latest(), id(42));
        assert_eq!(watermarks.look(&[Uid(2)]).await.expect("memory"), [Uid(2)]);
        assert_eq!(watermarks.look(&[Uid(2)]).await.expect("memory"), []);
    }

    #[tokio::test]
    async fn more_watermarks_may_be_in_use_than_are_kept_otherwise() {
        let watermarks = Watermarks::new(Arc::new(MemoryStore::new()), 1);
        let mut used = Vec::new();
        for uid in 1..=1_000 {
            used.push(watermarks.watermark(Uid(uid)).await.expect("memory"));
        }
        for watermark in &used {
            watermarks.publish(watermark.uid(), id(3));
        }
        assert!(used.iter().all(|watermark| watermark.latest() == id(3)));
    }
}
