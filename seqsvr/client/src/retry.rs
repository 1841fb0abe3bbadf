//! Sections in trouble: their last question failed. Of all calls for such a section one asks again, and the others wait for its outcome, so
//! that a section that is not served costs a few frames however many wait. Pauses grow, are drawn, and keep to the pause that the server
//! asked for; all retries of a Set together keep to a rate. Times and chance are arguments.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::error::AttemptError;
use super::locked;
use seqsvr_core::ids::SectionId;

/// Sections that are told apart; those beyond share one turn.
const TROUBLED: usize = 4_096;

/// Stands for all sections beyond [`TROUBLED`]: no section has this number.
const OTHERS: SectionId = SectionId::new(u32::MAX);

/// How often in a row a newer table is followed at once.
const AT_ONCE: u32 = 4;

/// The pause after a first failed attempt, doubled with each further one.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(2);

/// The longest pause, unless the server asks for a longer one.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause that a server may ask for.
const OBEYED: Duration = Duration::from_secs(5);

/// When to ask again about one section, and which process.
#[derive(Debug)]
pub(super) struct RetryPace {
    pause: Duration,
    at_once: u32,
    next: Instant,
    /// The last failure that says more than that a process is not the owner.
    why: AttemptError,
    /// Whether to ask another process than the owner, which may know a newer table.
    pub(super) elsewhere: bool,
    /// How many retries there were.
    pub(super) attempt: usize,
}

impl RetryPace {
    pub(super) fn new(now: Instant) -> Self {
        let (pause, why) = (FIRST_PAUSE, AttemptError::NotOwner);
        Self { pause, at_once: 0, next: now, why, elsewhere: false, attempt: 0 }
    }

    /// A question failed; `newer`: a newer table came with the answer. `drawn`: 0 up to 1.
    pub(super) fn failed(&mut self, now: Instant, fault: AttemptError, newer: bool, drawn: f64) {
        let asked = match &fault {
            AttemptError::Unavailable { after, .. } => (*after).min(OBEYED),
            _ => Duration::ZERO,
        };
        if !matches!(fault, AttemptError::NotOwner) {
            self.why = fault;
        }
        if newer && self.at_once < AT_ONCE {
            self.at_once += 1;
            (self.next, self.elsewhere) = (now, false);
            return;
        }
        self.at_once = 0;
        // In turn at the owner and at somebody else.
        self.elsewhere = !self.elsewhere;
        // Drawn above what the server asked for, so that not all come back at the same moment.
        self.next = now + asked + self.pause.mul_f64(0.5 + drawn / 2.0);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// Not before this moment.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Why it is in trouble.
    pub(super) fn why(&self) -> &AttemptError {
        &self.why
    }
}

/// A budget of retries a second, a tenth of it at once.
#[derive(Debug)]
pub(super) struct Budget {
    interval: Duration,
    burst: Duration,
    /// When all that was taken has been earned.
    earned: Option<Instant>,
}

impl Budget {
    pub(super) fn new(a_second: u32) -> Self {
        let interval = Duration::from_secs(1) / a_second.max(1);
        Self { interval, burst: Duration::from_millis(100), earned: None }
    }

    /// When the next retry may be made, `now` or later; `None`, and nothing is taken, if that is not before `latest`.
    pub(super) fn take(&mut self, now: Instant, latest: Instant) -> Option<Instant> {
        let earned = self.earned.map_or(now, |earned| earned.max(now));
        let at = earned.checked_sub(self.burst).map_or(now, |at| at.max(now));
        if at >= latest {
            return None;
        }
        self.earned = Some(earned + self.interval);
        Some(at)
    }
}

/// One section in trouble.
#[derive(Debug)]
pub(super) struct Gate {
    /// One call at a time asks again. Closed once the section is served.
    turn: Semaphore,
    pub(super) pace: Mutex<RetryPace>,
}

impl Gate {
    /// Waits for the turn to ask again; `None`: the section is served by now.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turn.acquire().await.ok()
    }

    /// Why it is in trouble, in words.
    pub(super) fn why(&self) -> String {
        locked(&self.pace).why().to_string()
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    count: AtomicUsize,
    gates: Mutex<HashMap<SectionId, Arc<Gate>>>,
}

impl Trouble {
    /// Whether any section is in trouble. Asked for each call.
    pub(super) fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) != 0
    }

    /// The gate of a section, if it is in trouble.
    pub(super) fn gate(&self, section: SectionId) -> Option<Arc<Gate>> {
        if !self.any() {
            return None;
        }
        let gates = locked(&self.gates);
        gates.get(&section).or_else(|| gates.get(&OTHERS)).cloned()
    }

    /// A question about the section failed; if that is news, it is in trouble from now on at the pace that `pace` makes.
    pub(super) fn note(&self, section: SectionId, pace: impl FnOnce() -> RetryPace) {
        let mut gates = locked(&self.gates);
        let place = if gates.len() < TROUBLED { section } else { OTHERS };
        if gates.contains_key(&section) {
            return;
        }
        if let Entry::Vacant(free) = gates.entry(place) {
            free.insert(Arc::new(Gate { turn: Semaphore::new(1), pace: Mutex::new(pace()) }));
        }
        self.count.store(gates.len(), Ordering::Relaxed);
    }

    /// The section is served: waiting calls go on.
    pub(super) fn open(&self, gate: &Arc<Gate>) {
        let mut gates = locked(&self.gates);
        gates.retain(|_, one| !Arc::ptr_eq(one, gate));
        self.count.store(gates.len(), Ordering::Relaxed);
        gate.turn.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace() -> (Instant, RetryPace) {
        let now = Instant::now();
        (now, RetryPace::new(now))
    }

    fn unavailable(after: u64) -> AttemptError {
        AttemptError::Unavailable { reason: "no lease".to_owned(), after: Duration::from_millis(after) }
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_are_drawn_from_their_upper_half() {
        let (now, mut pace) = pace();
        let pauses: Vec<f64> = [0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0]
            .into_iter()
            .map(|drawn| {
                pace.failed(now, AttemptError::NotOwner, false, drawn);
                (pace.next() - now).as_secs_f64() * 1_000.0
            })
            .collect();
        assert_eq!(pauses, [1.0, 4.0, 4.0, 16.0, 32.0, 50.0, 25.0]);
    }

    #[test]
    fn what_the_server_asks_for_is_kept_to_within_reason() {
        let (now, mut pace) = pace();
        for (asked, least) in [(100, 100), (3_600_000, 5_000)] {
            pace.failed(now, unavailable(asked), false, 0.0);
            let pause = pace.next() - now;
            let least = Duration::from_millis(least);
            assert!(pause >= least && pause <= least + LONGEST_PAUSE, "{pause:?}");
        }
        pace.failed(now, AttemptError::NotOwner, false, 0.0);
        assert!(pace.why().to_string().contains("no lease"), "it tells more than that one is not the owner");
    }

    #[test]
    fn newer_tables_are_followed_at_once_but_not_for_ever() {
        let (now, mut pace) = pace();
        for _ in 0..AT_ONCE {
            pace.failed(now, AttemptError::NotOwner, true, 0.0);
            assert_eq!((pace.next(), pace.elsewhere), (now, false));
        }
        pace.failed(now, AttemptError::NotOwner, true, 0.0);
        assert!(pace.next() > now && pace.elsewhere);
    }

    #[test]
    fn retries_keep_to_their_rate_and_none_is_taken_in_vain() {
        let now = Instant::now();
        let mut budget = Budget::new(1_000);
        let latest = now + Duration::from_secs(1);
        let taken: Vec<Duration> =
            (0..2_000).map_while(|_| budget.take(now, latest)).map(|at| at - now).collect();
        assert_eq!(taken.iter().filter(|after| after.is_zero()).count(), 101);
        assert_eq!(taken.len(), 1_100);
        assert_eq!(budget.take(now, latest), None);
        assert!(budget.take(now, latest + Duration::from_secs(1)).is_some(), "who can wait for longer may");
    }

    #[test]
    fn beyond_so_many_sections_the_rest_share_one_turn() {
        let trouble = Trouble::default();
        for section in 0..TROUBLED as u32 + 10 {
            trouble.note(SectionId::new(section), || pace().1);
        }
        assert_eq!(trouble.count.load(Ordering::Relaxed), TROUBLED + 1);
        let shared = trouble.gate(SectionId::new(TROUBLED as u32 + 3)).expect("it is in trouble");
        trouble.open(&shared);
        assert!(trouble.gate(SectionId::new(TROUBLED as u32 + 3)).is_none());
        assert!(trouble.gate(SectionId::new(5)).is_some());
    }
}
