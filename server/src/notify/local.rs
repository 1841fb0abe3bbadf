//! The notifier of one process: a sharded table of the connections of each user.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::Notifier;
use crate::domain::{MessageId, Uid};

const SHARDS: usize = 64;

type Shard = Mutex<HashMap<Uid, Vec<Arc<Notify>>>>;

/// Wakes the connections of this process. Its size is bounded by the number of connections.
#[derive(Clone, Default)]
pub struct Local {
    shards: Arc<Vec<Shard>>,
}

impl Local {
    /// A notifier that nobody watches yet.
    pub fn new() -> Local {
        Local { shards: Arc::new((0..SHARDS).map(|_| Shard::default()).collect()) }
    }

    /// Wakes the connections of `uid`.
    pub fn wake(&self, uid: Uid) {
        if let Some(watchers) = self.shard(uid).get(&uid) {
            // `notify_one` keeps a permit, so a connection that is busy right now does not miss it.
            watchers.iter().for_each(|watcher| watcher.notify_one());
        }
    }

    /// Everybody who is watched now.
    pub fn watched(&self) -> Vec<Uid> {
        let shards = (0..SHARDS as u32).map(Uid);
        shards.flat_map(|any| self.shard(any).keys().copied().collect::<Vec<_>>()).collect()
    }

    fn shard(&self, uid: Uid) -> MutexGuard<'_, HashMap<Uid, Vec<Arc<Notify>>>> {
        // The table is consistent after every single operation, so a panic elsewhere leaves nothing half done.
        self.shards[uid.0 as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Notifier for Local {
    fn notify(&self, rows: &[(Uid, MessageId)]) {
        rows.iter().for_each(|(uid, _)| self.wake(*uid));
    }

    fn subscribe(&self, uid: Uid) -> Wake {
        let notify = Arc::new(Notify::new());
        self.shard(uid).entry(uid).or_default().push(Arc::clone(&notify));
        Wake { uid, notify, table: self.clone() }
    }
}

/// One connection's ear. Dropping it unsubscribes.
pub struct Wake {
    uid: Uid,
    notify: Arc<Notify>,
    table: Local,
}

impl Wake {
    /// Returns once something newer may be there; at once when that was told since the last return.
    pub async fn notified(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        let mut shard = self.table.shard(self.uid);
        if let Some(watchers) = shard.get_mut(&self.uid) {
            watchers.retain(|watcher| !Arc::ptr_eq(watcher, &self.notify));
            if watchers.is_empty() {
                shard.remove(&self.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_notice_that_comes_before_the_wait_is_not_lost() {
        let local = Local::new();
        let wake = local.subscribe(Uid(1));
        local.notify(&[(Uid(1), MessageId::MAX), (Uid(2), MessageId::MAX)]);
        wake.notified().await;
    }

    #[tokio::test]
    async fn every_device_of_a_user_is_woken_and_the_gone_are_forgotten() {
        let local = Local::new();
        let (phone, laptop) = (local.subscribe(Uid(1)), local.subscribe(Uid(1)));
        drop(phone);
        assert_eq!(local.watched(), [Uid(1)]);
        local.wake(Uid(1));
        laptop.notified().await;
        drop(laptop);
        assert!(local.shards.iter().all(|shard| shard.lock().expect("unpoisoned").is_empty()));
    }
}
