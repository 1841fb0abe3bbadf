//! Sections of the uid space that have no numbers now, so that each delays only its own users.
//!
//! Shared by all queues. A writer reports a section whose numbers did not come in time and from then on asks for none
//! there: copies for its users stay owed, requests of its users are refused. One task ([`Outages::watch`]) asks for a
//! number of each such section now and then; when one comes, the section is in service again and the writers resume
//! what is owed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{FIRST_PAUSE, NUMBER_WAIT};
use crate::domain::Uid;
use crate::seq::{NumberError, Numbers, UidSection};

/// Sections that are remembered; with more of them, the others are asked about again by each batch.
const MOST_SECTIONS: usize = 65_536;
/// The longest pause between two tries of a section.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// For so long after an outage the next one is expected, and numbers are waited for only shortly.
const WARY: Duration = Duration::from_secs(10);

/// Which sections are out, each with one of its users to ask for.
pub(super) type Out = Arc<HashMap<UidSection, Uid>>;

/// See the module.
#[derive(Debug)]
pub(super) struct Outages {
    state: Mutex<OutageState>,
    /// One begins.
    begun: Notify,
    /// Sent when sections are in service again.
    ended: watch::Sender<()>,
    /// Bytes of the acceptances that owe copies to users who wait for numbers, over all queues.
    owed: AtomicUsize,
}

#[derive(Debug, Default)]
struct OutageState {
    out: Out,
    wary_until: Option<Instant>,
}

impl Outages {
    pub(super) fn new() -> Outages {
        let (ended, _) = watch::channel(());
        Outages { state: Mutex::default(), begun: Notify::new(), ended, owed: AtomicUsize::new(0) }
    }

    /// The sections that are out.
    pub(super) fn out(&self) -> Out {
        Arc::clone(&self.state().out)
    }

    /// How long a batch may wait for its numbers. While there is trouble only a tenth, so that sections which fail one after the
    /// other do not add up.
    pub(super) fn patience(&self) -> Duration {
        let state = self.state();
        let wary = !state.out.is_empty() || state.wary_until.is_some_and(|until| Instant::now() < until);
        if wary { NUMBER_WAIT / 10 } else { NUMBER_WAIT }
    }

    /// Numbers for `uid` did not come in time.
    pub(super) fn begin(&self, section: UidSection, uid: Uid, error: &NumberError) {
        let mut state = self.state();
        if state.out.len() < MOST_SECTIONS && !state.out.contains_key(&section) {
            Arc::make_mut(&mut state.out).insert(section, uid);
            drop(state);
            warn!(%section, %error, "a section has no ids; messages to its users wait, all others go on");
            self.begun.notify_one();
        }
    }

    /// Tells whenever sections are in service again.
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.ended.subscribe()
    }

    /// Bytes owed to users who wait for numbers.
    pub(super) fn owed(&self) -> usize {
        self.owed.load(Ordering::Relaxed)
    }

    /// One queue owes `now` instead of `before`.
    pub(super) fn owe(&self, before: usize, now: usize) {
        self.owed.fetch_add(now, Ordering::Relaxed);
        self.owed.fetch_sub(before, Ordering::Relaxed);
    }

    /// Asks for a number of each section that is out, with growing pauses, until all are in service again; then waits for the next
    /// outage. The numbers that come are gaps.
    pub(super) async fn watch(&self, numbers: &Numbers, closing: &CancellationToken) {
        let forever = async {
            loop {
                self.begun.notified().await;
                let mut pause = FIRST_PAUSE;
                while !self.out().is_empty() {
                    sleep(pause).await;
                    pause =
                        if self.probe(numbers).await { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
                }
            }
        };
        closing.run_until_cancelled(forever).await;
    }

    /// Whether any section is in service again.
    async fn probe(&self, numbers: &Numbers) -> bool {
        let asked: Vec<(UidSection, Uid)> =
            self.out().iter().map(|(section, uid)| (*section, *uid)).collect();
        let uids: Vec<Uid> = asked.iter().map(|(_, uid)| *uid).collect();
        let outcomes = numbers.each(&uids, NUMBER_WAIT).await;
        let served = asked.into_iter().zip(outcomes);
        let served = served.filter(|(_, outcome)| !matches!(outcome, Err(NumberError::Unavailable(_))));
        let served: Vec<UidSection> = served.map(|((section, _), _)| section).collect();
        if served.is_empty() {
            return false;
        }
        let mut state = self.state();
        let out = Arc::make_mut(&mut state.out);
        out.retain(|section, _| !served.contains(section));
        info!(in_service = served.len(), still_out = out.len(), "sections have ids again");
        state.wary_until = Some(Instant::now() + WARY);
        drop(state);
        self.ended.send_replace(());
        true
    }

    fn state(&self) -> MutexGuard<'_, OutageState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
