//! Limits how much the requests with an access key read and write: at once, and each second after it. Requests beyond it wait.
//!
//! A request [enters](Meter::enter) with its known bytes. The others that it reads and writes are [counted](Meter::count) when they
//! are known, and the key's next requests wait for them. Few reads of a key work at once, which bounds their bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidemark_table::TableError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};

use super::error::busy;

/// A request that would wait longer is refused.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The bytes that a key may use at once: as many as in this time.
const AT_ONCE: Duration = Duration::from_secs(1);

/// The bytes that a request counts for beside its own.
const REQUEST: usize = 512;

/// Reads of one key that work at once.
const READS_AT_ONCE: usize = 8;

/// Keys beyond which those are forgotten that owe nothing.
const KNOWN: usize = 1_024;

/// See the module.
pub(super) struct Meter {
    /// Bytes; zero lifts the limit.
    a_second: u64,
    keys: Mutex<HashMap<String, Used>>,
}

/// The state of one key.
struct Used {
    /// When it would have used nothing up.
    free: Instant,
    reads: Arc<Semaphore>,
}

/// Whether a request reads or writes rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowAccess {
    Read,
    Write,
}

/// A request that may work, until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Turn(#[expect(dead_code, reason = "held for its end")] Option<OwnedSemaphorePermit>);

impl Meter {
    /// So many KiB a second for each key; 0: any number.
    pub(super) fn new(kib_a_second: u32) -> Meter {
        Meter { a_second: u64::from(kib_a_second) * 1_024, keys: Mutex::default() }
    }

    /// Waits until the key may make a request of so many bytes, and counts them.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::ServerBusy`](tidemark_table::ErrorCode::ServerBusy): too much waits already. Nothing is counted. That is told late:
    /// at once, it would be asked for again.
    pub(super) async fn enter(&self, key: &str, way: RowAccess, bytes: usize) -> Result<Turn, TableError> {
        let turn = match way {
            RowAccess::Read => self.read_turn(key).await?,
            RowAccess::Write => None,
        };
        self.take(key, REQUEST + bytes).await?;
        Ok(Turn(turn))
    }

    /// Counts so many bytes, and waits until the key may have used them.
    ///
    /// # Errors
    ///
    /// As for [`enter`](Self::enter).
    pub(super) async fn take(&self, key: &str, bytes: usize) -> Result<(), TableError> {
        let wait = self.with(key, |used, now| {
            let ahead = |free: Instant| (free - now).saturating_sub(AT_ONCE);
            let is_allowed = ahead(used.free) < LONGEST_WAIT;
            if is_allowed {
                used.free += self.time(bytes);
            }
            (is_allowed, ahead(used.free))
        });
        let Some((is_allowed, wait)) = wait else { return Ok(()) };
        if !wait.is_zero() {
            sleep(wait.min(LONGEST_WAIT)).await;
        }
        if is_allowed { Ok(()) } else { Err(busy()) }
    }

    /// Waits until few enough other reads of the key work.
    async fn read_turn(&self, key: &str) -> Result<Option<OwnedSemaphorePermit>, TableError> {
        let Some(reads) = self.with(key, |used, _| Arc::clone(&used.reads)) else { return Ok(None) };
        let turn = timeout(LONGEST_WAIT, reads.acquire_owned()).await.map_err(|_| busy())?;
        Ok(Some(turn.expect("never closed")))
    }

    /// Counts what a request of the key has read or written.
    pub(super) fn count(&self, key: &str, bytes: usize) {
        self.with(key, |used, _| used.free += self.time(bytes));
    }

    /// The time that so many bytes take.
    fn time(&self, bytes: usize) -> Duration {
        // Exact as far as a day's worth.
        Duration::from_secs_f64(bytes as f64 / self.a_second as f64)
    }

    /// Does something with the state of `key`; `None`: there is no limit.
    fn with<T>(&self, key: &str, with: impl FnOnce(&mut Used, Instant) -> T) -> Option<T> {
        if self.a_second == 0 {
            return None;
        }
        let now = Instant::now();
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(used) = keys.get_mut(key) {
            used.free = used.free.max(now);
            return Some(with(used, now));
        }
        if keys.len() >= KNOWN {
            keys.retain(|_, used| used.free > now || Arc::strong_count(&used.reads) > 1);
        }
        let none = Used { free: now, reads: Arc::new(Semaphore::new(READS_AT_ONCE)) };
        Some(with(keys.entry(key.to_owned()).or_insert(none), now))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::future::join_all;

    use super::*;

    const KIB: usize = 1 << 10;

    /// 100 KiB a second; requests cost what they say.
    fn meter() -> Meter {
        Meter::new(100)
    }

    async fn write(meter: &Meter, key: &str, bytes: usize) {
        let entered = meter.enter(key, RowAccess::Write, bytes - REQUEST).await;
        drop(entered.expect("in turn"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_key_uses_beyond_a_second_s_worth_comes_in_turn_and_other_keys_wait_for_nothing() {
        let (meter, began) = (meter(), Instant::now());
        write(&meter, "a", 100 * KIB).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        let took = async |bytes| {
            write(&meter, "a", bytes).await;
            began.elapsed().as_millis()
        };
        let (first, second, third) = tokio::join!(took(50 * KIB), took(50 * KIB), took(10 * KIB));
        // The timers of the runtime go by milliseconds.
        assert!([500, 1_000, 1_100].into_iter().zip([first, second, third]).all(|(due, is)| is - due <= 1));
        assert!(write(&meter, "b", 100 * KIB).now_or_never().is_some(), "at once");
        meter.count("b", 40 * KIB);
        let before = Instant::now();
        write(&meter, "b", 10 * KIB).await;
        assert!((500..=501).contains(&before.elapsed().as_millis()), "{:?}", before.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn few_reads_of_a_key_work_at_once_and_the_others_wait_for_what_those_have_read() {
        let (meter, began) = (meter(), Instant::now());
        let turns = (0..READS_AT_ONCE).map(|_| meter.enter("a", RowAccess::Read, 0).now_or_never());
        let turns: Vec<_> = turns.map(|turn| turn.expect("at once").expect("allowed")).collect();
        assert!(meter.enter("a", RowAccess::Read, 0).now_or_never().is_none(), "one more");
        assert!(meter.enter("b", RowAccess::Read, 0).now_or_never().is_some(), "of another key");
        write(&meter, "a", KIB).await;
        let (next, ()) = tokio::join!(meter.enter("a", RowAccess::Read, 0), async {
            meter.count("a", 300 * KIB);
            drop(turns);
        });
        drop(next.expect("in turn"));
        assert!((2_000..2_100).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_owes_seconds_is_refused_later_and_0_lifts_the_limit() {
        let (meter, began) = (meter(), Instant::now());
        meter.count("a", 600 * KIB);
        assert_eq!(meter.enter("a", RowAccess::Write, 0).await.map(drop), Err(busy()));
        assert_eq!(began.elapsed(), LONGEST_WAIT);
        write(&meter, "a", KIB).await;
        assert_eq!(began.elapsed().as_secs(), 5, "nothing was counted for what was refused");
        let turns = join_all((0..READS_AT_ONCE).map(|_| meter.enter("b", RowAccess::Read, 0))).await;
        assert_eq!(meter.enter("b", RowAccess::Read, 0).await.map(drop), Err(busy()), "no turn comes");
        drop(turns);
        let lifted = Meter::new(0);
        let turns = (0..100).map(|_| lifted.enter("a", RowAccess::Read, 1 << 30).now_or_never());
        assert!(turns.collect::<Vec<_>>().iter().all(|turn| matches!(turn, Some(Ok(_)))));
        assert!(lifted.keys.lock().expect("unpoisoned").is_empty());
    }
}
