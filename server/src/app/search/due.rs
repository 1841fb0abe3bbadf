//! Which inboxes have rows enough for another segment, by what the queues tell of new rows.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::domain::{MessageId, Uid};
use crate::notify::{Notifier, Wake};

/// Inboxes of which it is known when they are due; of others it is asked.
const KNOWN: usize = 1_000_000;

/// Inboxes that wait; what is beyond them is found by the next walk.
const WAITING: usize = 100_000;

/// Inboxes that wait to be indexed.
#[derive(Debug)]
pub struct Due {
    /// Rows of a first segment: an inbox with fewer is never due.
    rows: u64,
    state: Mutex<DueState>,
    changed: Notify,
    lost: Notify,
    indexed: AtomicU64,
    /// Ten-thousandths.
    walked: AtomicU32,
}

/// What the indexer has done and has to do, for the metrics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IndexState {
    /// Inboxes that wait.
    pub waiting: usize,
    /// For how long the first of them has waited, in seconds.
    pub behind: f64,
    /// Rows that were indexed.
    pub indexed: u64,
    /// How far the last walk over all inboxes is, 0 to 1.
    pub walked: f64,
}

#[derive(Debug, Default)]
struct DueState {
    /// The id with which an inbox is due next.
    next: HashMap<Uid, u64>,
    /// The latest ids of those that are, and since when.
    waiting: BTreeMap<Uid, (MessageId, Instant)>,
    damaged: Vec<Uid>,
}

impl Due {
    /// Nothing is due. `rows`: as in [`IndexerOptions`](super::IndexerOptions).
    pub fn new(rows: usize) -> Due {
        Due {
            rows: rows as u64,
            state: Mutex::default(),
            changed: Notify::new(),
            lost: Notify::new(),
            indexed: AtomicU64::new(0),
            walked: AtomicU32::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, DueState> {
        // It is consistent after every single operation.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There are rows up to these ids.
    pub(super) fn note(&self, rows: &[(Uid, MessageId)]) {
        let mut state = self.state();
        let DueState { next, waiting, .. } = &mut *state;
        let mut any = false;
        for (uid, latest) in rows {
            if latest.get() < *next.get(uid).unwrap_or(&self.rows) {
                continue;
            }
            if let Some((known, _)) = waiting.get_mut(uid) {
                *known = (*known).max(*latest);
            } else if waiting.len() < WAITING {
                waiting.insert(*uid, (*latest, Instant::now()));
                any = true;
            }
        }
        drop(state);
        if any {
            self.changed.notify_one();
        }
    }

    /// What is kept of `uid` in the index cannot be read.
    pub(super) fn note_damaged(&self, uid: Uid) {
        let mut state = self.state();
        if state.damaged.len() < WAITING && !state.damaged.contains(&uid) {
            state.damaged.push(uid);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Some of those that wait, with their latest ids, which then wait no longer, and those that are damaged.
    pub(super) fn take(&self, most: usize) -> (Vec<(Uid, MessageId)>, Vec<Uid>) {
        let mut state = self.state();
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some((uid, (latest, _))) = state.waiting.pop_first()
        {
            taken.push((uid, latest));
        }
        (taken, std::mem::take(&mut state.damaged))
    }

    /// The inbox is due again with this id.
    pub(super) fn again_at(&self, uid: Uid, next: u64) {
        let mut state = self.state();
        if state.next.len() >= KNOWN {
            state.next.clear();
        }
        state.next.insert(uid, next);
    }

    /// Waits until something is due that was not before.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// What was indexed is lost: a walk over all inboxes is wanted.
    pub(super) fn note_lost(&self) {
        self.lost.notify_one();
    }

    /// Waits for that.
    pub(super) async fn lost(&self) {
        self.lost.notified().await;
    }

    /// The walk over all inboxes is so far, in ten-thousandths.
    pub(super) fn note_walked(&self, share: u32) {
        self.walked.store(share, Ordering::Relaxed);
    }

    pub(super) fn count(&self, rows: u64) {
        self.indexed.fetch_add(rows, Ordering::Relaxed);
    }

    /// What the indexer has done and has to do.
    pub fn now(&self) -> IndexState {
        let state = self.state();
        let since = state.waiting.values().map(|(_, since)| since.elapsed().as_secs_f64());
        let (waiting, indexed) = (state.waiting.len(), self.indexed.load(Ordering::Relaxed));
        let walked = f64::from(self.walked.load(Ordering::Relaxed)) / 10_000.0;
        IndexState { waiting, behind: since.fold(0.0, f64::max), indexed, walked }
    }
}

/// A [`Notifier`] that also tells the index.
pub struct DueNotices {
    /// Whom it tells.
    pub due: Arc<Due>,
    /// Wakes connections.
    pub inner: Arc<dyn Notifier>,
}

impl Notifier for DueNotices {
    fn notify(&self, rows: &[(Uid, MessageId)]) {
        self.inner.notify(rows);
        self.due.note(rows);
    }

    fn subscribe(&self, uid: Uid) -> Wake {
        self.inner.subscribe(uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(id: u64) -> MessageId {
        MessageId::new(id).expect("small")
    }

    #[tokio::test]
    async fn an_inbox_waits_until_it_is_taken_and_then_until_it_has_rows_enough() {
        let due = Due::new(5);
        due.note(&[(Uid(4), at(4)), (Uid(2), at(5)), (Uid(1), at(7)), (Uid(2), at(6))]);
        due.changed().await;
        assert_eq!(due.take(1), (vec![(Uid(1), at(7))], Vec::new()));
        due.again_at(Uid(1), 20);
        due.note(&[(Uid(1), at(19))]);
        assert_eq!(due.take(9), (vec![(Uid(2), at(6))], Vec::new()));
        due.note(&[(Uid(1), at(20))]);
        due.note_damaged(Uid(3));
        due.note_damaged(Uid(3));
        assert_eq!(due.take(9), (vec![(Uid(1), at(20))], vec![Uid(3)]));
        assert_eq!(due.now().waiting, 0);
    }
}
