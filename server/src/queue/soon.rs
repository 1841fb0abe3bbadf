//! Wakes receivers a little later than their rows are stored, where there are many and more comes for them.
//!
//! A moment goes to thousands of devices, and to wake one costs more than to store its row. While a queue has more to do, what comes within a
//! pause is told together. The rows are visible at once. Whoever asks gets them, and so does whoever is
//! woken by something else.

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

/// Those who are to be woken; at most one entry for each user.
pub(super) struct Soon {
    notifier: Arc<dyn Notifier>,
    waiting: Mutex<HashMap<Uid, MessageId>>,
    begun: Notify,
    /// Nothing more comes.
    over: Notify,
}

impl Soon {
    pub(super) fn new(notifier: Arc<dyn Notifier>) -> Soon {
        Soon { notifier, waiting: Mutex::default(), begun: Notify::new(), over: Notify::new() }
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
        self.begun.notify_one();
    }

    /// A queue has nothing more to do: who waits is woken now.
    pub(super) fn wake(&self) {
        if !self.waiting().is_empty() {
            self.over.notify_one();
        }
    }

    /// Wakes them, each `pause` after the first of them or when it is [told to](Self::wake), until `closing`. Connections end with the server, so nobody is left asleep.
    pub(super) async fn run(&self, pause: Duration, closing: &CancellationToken) {
        let wake = async {
            loop {
                self.begun.notified().await;
                // Either way it is time.
                _ = timeout(pause, self.over.notified()).await;
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

    #[tokio::test(start_paused = true)]
    async fn what_comes_within_the_pause_is_told_together() {
        let heard = Arc::new(Heard::default());
        let soon = Arc::new(Soon::new(Arc::<Heard>::clone(&heard)));
        let (closing, pause) = (CancellationToken::new(), Duration::from_millis(250));
        let (running, closed) = (Arc::clone(&soon), closing.clone());
        let task = tokio::spawn(async move { running.run(pause, &closed).await });
        soon.add(vec![(Uid(1), id(5)), (Uid(2), id(7))]);
        sleep(pause / 2).await;
        soon.add(vec![(Uid(1), id(6))]);
        assert!(heard.0.lock().expect("no panic").is_empty());
        sleep(pause).await;
        let told = || {
            let mut told = std::mem::take(&mut *heard.0.lock().expect("no panic")).concat();
            told.sort_unstable();
            told
        };
        assert_eq!(told(), [(Uid(1), id(6)), (Uid(2), id(7))]);

        // Where nothing more comes, nobody waits.
        soon.wake();
        soon.add(vec![(Uid(3), id(8))]);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(told(), [], "what was said before is forgotten");
        soon.wake();
        sleep(Duration::from_millis(1)).await;
        assert_eq!(told(), [(Uid(3), id(8))]);
        closing.cancel();
        task.await.expect("no panic");
    }
}
