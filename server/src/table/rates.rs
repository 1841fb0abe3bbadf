//! Bounds of one caller: so much at once, and so much a second after it. [`Rates`] counts the operations on tables of an instance and
//! refuses those beyond; [`Meter`] counts the KiB of an access key's requests and lets them wait.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tidemark_table::TableError;
use tokio::time::{Instant, sleep};

use super::error::busy;

/// How many operations on tables an instance may do.
pub(super) struct Rates {
    a_second: u32,
    /// When the instance would have used nothing up.
    instances: Mutex<HashMap<String, Instant>>,
}

impl Rates {
    pub(super) fn new(a_second: u32) -> Rates {
        Rates { a_second: a_second.max(1), instances: Mutex::default() }
    }

    /// Counts one, if the instance may do one more now.
    pub(super) fn allow(&self, instance: &str) -> bool {
        let (now, each) = (Instant::now(), Duration::from_secs(1) / self.a_second);
        let mut instances = self.instances.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever has waited long enough is like one who never came.
        instances.retain(|_, free| *free > now);
        let free = instances.get(instance).copied().unwrap_or(now) + each;
        let is_allowed = free - now <= each * self.a_second;
        if is_allowed {
            instances.insert(instance.to_owned(), free);
        }
        is_allowed
    }
}

/// A request of a key that waits longer than so is refused.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The KiB that a request costs beside its bytes.
pub(super) const REQUEST: usize = 1;

/// Keys beyond which those are forgotten that owe nothing.
const KNOWN: usize = 1_024;

/// How much the requests with an access key may read and write. A request takes what it is likely to need before it works, so those that
/// have to wait come one after the other, and settles afterwards what it really was.
pub(super) struct Meter {
    /// The time that a KiB takes; zero lifts the limit.
    each: Duration,
    keys: Mutex<HashMap<String, Used>>,
}

/// The state of one key.
struct Used {
    /// When it would have used nothing up.
    free: Instant,
    /// The KiB of its last page of a range: the next one is taken for as many.
    page: usize,
}

impl Meter {
    /// So many KiB a second for each key; 0: any number.
    pub(super) fn new(kib_a_second: u32) -> Meter {
        let each = Duration::from_secs(1).checked_div(kib_a_second).unwrap_or_default();
        Meter { each, keys: Mutex::default() }
    }

    /// Takes `kib`, and waits until the key may have them, for [`LONGEST_WAIT`] at most.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::ServerBusy`](tidemark_table::ErrorCode::ServerBusy): too much waits already. Nothing is taken.
    pub(super) async fn take(&self, key: &str, kib: usize) -> Result<(), TableError> {
        let wait = self.with(key, |used, now| {
            let ahead = |free: Instant| (free - now).saturating_sub(Duration::from_secs(1));
            let is_allowed = ahead(used.free) < LONGEST_WAIT;
            if is_allowed {
                used.free += self.each * whole(kib);
            }
            (is_allowed, ahead(used.free))
        });
        let Some((is_allowed, wait)) = wait else { return Ok(()) };
        if !wait.is_zero() {
            // A refusal is not told at once, either: it would be asked for again.
            sleep(wait.min(LONGEST_WAIT)).await;
        }
        if is_allowed { Ok(()) } else { Err(busy()) }
    }

    /// Corrects what was taken to what was used.
    pub(super) fn settle(&self, key: &str, taken: usize, used: usize) {
        self.with(key, |key, now| {
            key.free += self.each * whole(used.saturating_sub(taken));
            let back = self.each * whole(taken.saturating_sub(used));
            key.free = key.free.checked_sub(back).map_or(now, |free| free.max(now));
        });
    }

    /// Takes as many KiB as the last page of a range had, and returns how many those are.
    ///
    /// # Errors
    ///
    /// As for [`take`](Self::take).
    pub(super) async fn take_a_page(&self, key: &str) -> Result<usize, TableError> {
        let page = self.with(key, |used, _| used.page).unwrap_or_default();
        self.take(key, page).await?;
        Ok(page)
    }

    /// Corrects what was taken for a page to what was used, which the next one is taken for.
    pub(super) fn settle_a_page(&self, key: &str, taken: usize, used: usize) {
        self.settle(key, taken, used);
        self.with(key, |key, _| key.page = used);
    }

    /// Does something with the state of `key`; `None`: there is no limit.
    fn with<T>(&self, key: &str, with: impl FnOnce(&mut Used, Instant) -> T) -> Option<T> {
        if self.each.is_zero() {
            return None;
        }
        let now = Instant::now();
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(used) = keys.get_mut(key) {
            used.free = used.free.max(now);
            return Some(with(used, now));
        }
        if keys.len() >= KNOWN {
            keys.retain(|_, used| used.free > now);
        }
        Some(with(keys.entry(key.to_owned()).or_insert(Used { free: now, page: 0 }), now))
    }
}

fn whole(kib: usize) -> u32 {
    u32::try_from(kib).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ten_at_once_and_ten_a_second_each_instance() {
        let rates = Rates::new(10);
        let allowed = |count: usize| (0..count).filter(|_| rates.allow("a")).count();
        assert_eq!(allowed(15), 10);
        assert!(rates.allow("b"));
        tokio::time::advance(Duration::from_millis(200)).await;
        assert_eq!(allowed(15), 2);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(allowed(15), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_key_reads_beyond_a_second_s_worth_comes_in_turn_and_other_keys_wait_for_nothing() {
        let (meter, began) = (Meter::new(100), Instant::now());
        meter.take("a", 100).await.expect("at once");
        assert_eq!(began.elapsed(), Duration::ZERO);
        let took = async |kib| {
            meter.take("a", kib).await.expect("in turn");
            began.elapsed().as_millis()
        };
        let (first, second, third) = tokio::join!(took(50), took(50), took(10));
        // The timers of the runtime go by milliseconds.
        assert!([500, 1_000, 1_100].into_iter().zip([first, second, third]).all(|(due, is)| is - due <= 1));
        meter.take("b", 100).await.expect("at once");
        meter.settle("b", 100, 40);
        assert!(meter.take("b", 60).now_or_never().is_some(), "what was not used");
        meter.settle("b", 60, 100);
        let before = Instant::now();
        meter.settle_a_page("b", 0, 10);
        assert_eq!(meter.take_a_page("b").await, Ok(10), "as many as the last");
        assert!((590..=610).contains(&before.elapsed().as_millis()), "{:?}", before.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_owes_seconds_is_refused_later_and_0_lifts_the_limit() {
        let (meter, began) = (Meter::new(100), Instant::now());
        assert!(meter.take("a", 700).now_or_never().is_none(), "it would wait for 6 seconds");
        assert_eq!(meter.take("a", 1).await, Err(busy()));
        assert_eq!(began.elapsed().as_secs(), 5);
        meter.take("a", 1).await.expect("later");
        assert!(began.elapsed() > Duration::from_secs(6), "nothing was taken for what was refused");
        let lifted = Meter::new(0);
        assert!((0..100).all(|_| lifted.take("a", 1 << 20).now_or_never() == Some(Ok(()))));
        assert!(lifted.keys.lock().expect("unpoisoned").is_empty());
    }
}
