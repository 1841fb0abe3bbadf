//! Watermarks: the newest *committed* id of each user, in memory (I2, S2).
//!
//! Owns the table of marks. A mark is loaded from the store when first needed, by one load for all who wait, and
//! after that moves only up: by the queues when a commit is durable, or by a reader that saw a newer row.
//! An up-to-date heartbeat is one atomic read (I8).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;

use crate::domain::{MessageId, Uid};
use crate::store::{MessageStore, StoreError};

const SHARDS: usize = 64;

#[derive(Debug)]
struct Slot {
    newest: AtomicU64,
    loaded: OnceCell<()>,
}

/// A handle on one user's watermark; a cheap clone that stays current.
#[derive(Clone, Debug)]
pub struct Mark {
    uid: Uid,
    slot: Arc<Slot>,
}

impl Mark {
    /// Whose line.
    pub fn uid(&self) -> Uid {
        self.uid
    }

    /// The newest committed id; [`MessageId::ZERO`] in an empty inbox.
    pub fn newest(&self) -> MessageId {
        MessageId::new(self.slot.newest.load(Ordering::Acquire)).unwrap_or(MessageId::MAX)
    }

    /// A committed row with this id was seen.
    pub fn raise(&self, seen: MessageId) {
        self.slot.newest.fetch_max(seen.get(), Ordering::AcqRel);
    }
}

type Shard = Mutex<HashMap<Uid, Arc<Slot>>>;

/// All marks in memory.
#[derive(Clone)]
pub struct Watermarks {
    store: Arc<dyn MessageStore>,
    shards: Arc<Vec<Shard>>,
    most_per_shard: usize,
}

impl Watermarks {
    /// Marks of `store`, at most about `most` of them beside those in use.
    pub fn new(store: Arc<dyn MessageStore>, most: usize) -> Watermarks {
        let shards = Arc::new((0..SHARDS).map(|_| Shard::default()).collect());
        Watermarks { store, shards, most_per_shard: (most / SHARDS).max(1) }
    }

    /// The mark of `uid`, loaded. Many who ask at once share one load.
    pub async fn mark(&self, uid: Uid) -> Result<Mark, StoreError> {
        let mark = Mark { uid, slot: self.slot(uid) };
        mark.slot
            .loaded
            .get_or_try_init(|| async {
                // Raising takes the maximum: what a queue published during a slow load stays.
                mark.raise(self.store.watermark(uid).await?);
                Ok::<(), StoreError>(())
            })
            .await?;
        Ok(mark)
    }

    /// A row of `uid` with this id is durable and visible.
    pub fn publish(&self, uid: Uid, id: MessageId) {
        let slot = self.slot(uid);
        slot.newest.fetch_max(id.get(), Ordering::AcqRel);
        // The newest committed id needs no loading any more. Failing to set means a load is under way or done.
        let _ = slot.loaded.set(());
    }

    /// Reads the newest ids of `uids` again, after a commit of unknown outcome.
    pub async fn reload(&self, uids: &[Uid]) -> Result<(), StoreError> {
        let newest = self.store.newest(uids).await?;
        uids.iter().zip(newest).for_each(|(uid, newest)| self.publish(*uid, newest));
        Ok(())
    }

    fn slot(&self, uid: Uid) -> Arc<Slot> {
        let mut shard = self.shard(uid);
        if let Some(slot) = shard.get(&uid) {
            return Arc::clone(slot);
        }
        if shard.len() >= self.most_per_shard {
            // Clones are made under this lock only, so a count of one means that nobody holds or loads it.
            shard.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        let slot = Arc::new(Slot { newest: AtomicU64::new(0), loaded: OnceCell::new() });
        shard.insert(uid, Arc::clone(&slot));
        slot
    }

    fn shard(&self, uid: Uid) -> MutexGuard<'_, HashMap<Uid, Arc<Slot>>> {
        self.shards[uid.0 as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
