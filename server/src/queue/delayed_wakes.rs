//! Wakes receivers a little later than their rows are stored, where there are many receivers and more rows follow.
//!
//! A moment goes to thousands of devices, and to wake one costs more than to store its row. So they are woken when no further moment has
//! been stored for [`SETTLE`], or after a pause. The rows are visible at once: a device gets them when it asks, or when something else
//! wakes it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::domain::{Conversation, MessageId, Uid};
use crate::notify::Notifier;
use crate::store::Write;

/// Receivers of one write who are woken at once.
const FEW: usize = 64;

/// Receivers who are woken without giving way to others.
const AT_ONCE: usize = 256;

/// Without a further row for so long, those who wait are woken. Nobody notices it, and an author's next moment comes in it.
const SETTLE: Duration = Duration::from_millis(50);

/// For how long those who get a moment together with many others are woken later than it is stored, at most, while more moments follow:
/// they are told of together.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// The receivers to wake; at most one entry for each user.
pub(super) struct DelayedWakes {
    notifier: Arc<dyn Notifier>,
    waiting: Mutex<HashMap<Uid, MessageId>>,
    added: Notify,
}

impl DelayedWakes {
    pub(super) fn new(notifier: Arc<dyn Notifier>) -> DelayedWakes {
        DelayedWakes { notifier, waiting: Mutex::default(), added: Notify::new() }
    }

    /// Whether the receivers of `write` may be woken later.
    pub(super) fn is_for(write: &Write) -> bool {
        let target = match write {
            Write::Accept(accept) => accept.content.target,
            Write::Deliver(deliver) => deliver.content.target,
        };
        target == Conversation::MOMENTS && write.rows().len() > FEW
    }

    /// Rows up to these ids are visible.
    pub(super) fn add(&self, rows: Vec<(Uid, MessageId)>) {
        if rows.is_empty() {
            return;
        }
        // The last of a receiver is the largest.
        self.waiting().extend(rows);
        self.added.notify_one();
    }

    /// Wakes them, at the latest each `pause` after the first of them, until `closing`. Connections end with the server, so nobody is left
    /// asleep.
    pub(super) async fn run(&self, pause: Duration, closing: &CancellationToken) {
        let wake = async {
            loop {
                self.added.notified().await;
                let settled = async { while timeout(SETTLE, self.added.notified()).await.is_ok() {} };
                // Either way it is time.
                _ = timeout(pause, settled).await;
                let woken: Vec<(Uid, MessageId)> = std::mem::take(&mut *self.waiting()).into_iter().collect();
                for some in woken.chunks(AT_ONCE) {
                    self.notifier.notify(some);
                    yield_now().await;
                }
            }
        };
        closing.run_until_cancelled(wake).await;
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<Uid, MessageId>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;
    use crate::notify::Wake;

    #[derive(Default)]
    struct Heard(Mutex<Vec<Vec<(Uid, MessageId)>>>);

    impl Notifier for Heard {
        fn notify(&self, rows: &[(Uid, MessageId)]) {
            self.0.lock().expect("no panic").push(rows.to_vec());
        }

        fn subscribe(&self, uid: Uid) -> Wake {
            crate::notify::Local::new().subscribe(uid)
        }
    }

    fn id(number: u64) -> MessageId {
        MessageId::new(number).expect("in range")
    }

    /// Waits for `time`, and answers the wake-ups of that time, sorted by uid.
    async fn told(heard: &Heard, time: Duration) -> Vec<(Uid, MessageId)> {
        sleep(time).await;
        let mut told = std::mem::take(&mut *heard.0.lock().expect("no panic")).concat();
        told.sort_unstable();
        told
    }

    #[tokio::test(start_paused = true)]
    async fn what_follows_soon_is_told_together_and_nobody_waits_longer_than_the_pause() {
        const TICK: Duration = Duration::from_millis(1);
        let heard = Arc::new(Heard::default());
        let wakes = Arc::new(DelayedWakes::new(Arc::<Heard>::clone(&heard)));
        let (closing, pause) = (CancellationToken::new(), 3 * SETTLE);
        let (running, closed) = (Arc::clone(&wakes), closing.clone());
        let task = tokio::spawn(async move { running.run(pause, &closed).await });
        wakes.add(vec![(Uid(1), id(5)), (Uid(2), id(7))]);
        assert_eq!(told(&heard, SETTLE - TICK).await, []);
        wakes.add(vec![(Uid(1), id(6))]);
        assert_eq!(told(&heard, SETTLE - TICK).await, []);
        assert_eq!(told(&heard, 2 * TICK).await, [(Uid(1), id(6)), (Uid(2), id(7))]);

        // They follow without end.
        let mut waited = Duration::ZERO;
        for number in 8.. {
            wakes.add(vec![(Uid(3), id(number))]);
            waited += SETTLE / 2;
            if let [(Uid(3), last)] = told(&heard, SETTLE / 2).await[..] {
                assert!(last >= id(number - 1), "{last} of {number}");
                break;
            }
            assert!(waited <= pause, "nobody was woken after {waited:?}");
        }
        closing.cancel();
        task.await.expect("no panic");
    }
}
