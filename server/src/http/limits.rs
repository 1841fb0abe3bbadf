//! Rates: so many requests a second or minute for one address, name or account, in bounded memory.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::error::Problem;
use crate::app::{Attempt, KnownDevice};
use crate::config::LimitsSection;
use crate::domain::{Uid, name_key};

/// A burst is this many times the rate.
const BURST: u32 = 10;

/// The same where each costs the hash of a password: a class that signs up at once passes, and the server is busy for seconds only.
const HASHED_BURST: u32 = 2;

/// Addresses, names or accounts that each rate remembers.
const REMEMBERED: usize = 100_000;

/// Notices of one account that it is typing, in a second; beyond it they are dropped.
const TYPING: u32 = 2;

/// Lists of one account of whom it watches, in a minute; beyond it nothing is read from its sockets for a while.
const WATCH_LISTS: u32 = 30;

/// How long sends over WebSockets may wait for the rate of their account.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The longest wait of an address whose requests are refused. One that has so much to wait for is not charged for more, so its debt is
/// bounded, too.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The time of the runtime, which tests can stop.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// How fast something may happen. One number of state per caller: the time at which its allowance is whole again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// Between two requests in the long run; zero lifts the limit.
    interval: Duration,
    /// By how much a caller may run ahead.
    burst: Duration,
}

impl Rate {
    pub(super) fn new(count: u32, period: Duration) -> Rate {
        Rate::with_burst(count, period, BURST)
    }

    /// With a burst of `periods` times the rate.
    fn with_burst(count: u32, period: Duration, periods: u32) -> Rate {
        let interval = period.checked_div(count).unwrap_or(Duration::ZERO);
        Rate { interval, burst: interval * count.saturating_mul(periods) }
    }

    /// One request of `caller`, for all servers to count.
    fn attempt(&self, caller: String) -> Attempt {
        Attempt { caller, interval: self.interval, burst: self.burst }
    }

    /// Takes `n` requests out of the allowance that is whole again at `whole`. Refuses without taking anything, and
    /// says how long to wait; what is larger than any burst passes when the allowance is whole.
    pub(super) fn take(&self, whole: &mut Instant, n: u32, now: Instant) -> Result<(), Duration> {
        let start = (*whole).max(now);
        let next = start + (self.interval * n).min(self.burst);
        let ahead = next - now;
        if ahead > self.burst {
            return Err(ahead - self.burst);
        }
        *whole = next;
        Ok(())
    }

    /// Takes `n` requests that are carried out in any case, however far that runs ahead. Says how long to wait before the next.
    pub(super) fn spend(&self, whole: &mut Instant, n: u32, now: Instant) -> Duration {
        *whole = (*whole).max(now) + self.interval * n;
        self.owed(*whole, now)
    }

    /// How long to wait until what was spent beyond the burst is made up for.
    fn owed(&self, whole: Instant, now: Instant) -> Duration {
        whole.saturating_duration_since(now).saturating_sub(self.burst)
    }
}

/// One [`Rate`] for many callers. Remembers the callers seen last, `capacity` of them at most; one that is forgotten
/// starts afresh.
#[derive(Debug)]
struct Buckets<K> {
    rate: Rate,
    half: usize,
    seen: Mutex<SeenKeys<K>>,
}

/// Two generations: when the young one is full it becomes the old one, and the old one is forgotten.
#[derive(Debug)]
struct SeenKeys<K> {
    young: HashMap<K, Instant>,
    old: HashMap<K, Instant>,
}

impl<K: Hash + Eq> Buckets<K> {
    fn new(count: u32, period: Duration, capacity: usize) -> Buckets<K> {
        Buckets::of(Rate::new(count, period), capacity)
    }

    fn of(rate: Rate, capacity: usize) -> Buckets<K> {
        let seen = SeenKeys { young: HashMap::new(), old: HashMap::new() };
        Buckets { rate, half: (capacity / 2).max(1), seen: Mutex::new(seen) }
    }

    fn take(&self, key: K, n: u32, now: Instant) -> Result<(), Duration> {
        match self.rate.interval.is_zero() {
            true => Ok(()),
            false => self.with(key, now, |rate, whole| rate.take(whole, n, now)),
        }
    }

    fn spend(&self, key: K, n: u32, now: Instant) -> Duration {
        match self.rate.interval.is_zero() {
            true => Duration::ZERO,
            false => self.with(key, now, |rate, whole| rate.spend(whole, n, now)),
        }
    }

    /// The same unless `most` or more is owed already: then nothing is spent, and it says how long to wait until less is.
    fn spend_within(&self, key: K, most: Duration, now: Instant) -> Result<Duration, Duration> {
        if self.rate.interval.is_zero() {
            return Ok(Duration::ZERO);
        }
        self.with(key, now, |rate, whole| match rate.owed(*whole, now) {
            owed if owed >= most => Err(owed),
            _ => Ok(rate.spend(whole, 1, now)),
        })
    }

    /// How long to wait until what `key` spent beyond the burst is made up for. Remembers nobody new.
    fn owed(&self, key: &K, now: Instant) -> Duration {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = seen.young.get(key).or_else(|| seen.old.get(key));
        whole.map_or(Duration::ZERO, |whole| self.rate.owed(*whole, now))
    }

    /// Does something with the allowance of `key`.
    fn with<T>(&self, key: K, now: Instant, with: impl FnOnce(&Rate, &mut Instant) -> T) -> T {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.young.contains_key(&key) {
            if seen.young.len() >= self.half {
                seen.old = std::mem::take(&mut seen.young);
            }
            let known = seen.old.remove(&key);
            return with(&self.rate, seen.young.entry(key).or_insert(known.unwrap_or(now)));
        }
        with(&self.rate, seen.young.entry(key).or_insert(now))
    }
}

/// An address as far as it stands for one caller: an IPv6 customer has a whole /64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClientNetwork(IpAddr);

impl ClientNetwork {
    pub(super) fn of(address: IpAddr) -> ClientNetwork {
        match address.to_canonical() {
            IpAddr::V6(v6) => {
                let network = u128::from(v6) & !u128::from(u64::MAX);
                ClientNetwork(IpAddr::V6(Ipv6Addr::from(network)))
            }
            v4 => ClientNetwork(v4),
        }
    }
}

/// All rates of one server. All sends of an account share one of them, through any interface.
#[derive(Debug)]
pub struct Rates {
    sign_ups: Buckets<ClientNetwork>,
    log_ins: Buckets<ClientNetwork>,
    /// By name and where the attempt comes from: others who try a name use up nothing of its owner's.
    log_ins_by_name_from: Buckets<(String, ClientNetwork)>,
    log_ins_by_name_on: Buckets<(String, String)>,
    log_ins_by_name: Buckets<String>,
    refusals: Buckets<ClientNetwork>,
    sends: Buckets<Uid>,
    typing: Buckets<Uid>,
    watch_lists: Buckets<Uid>,
    searches: Buckets<Uid>,
    /// In people.
    look_ups: Buckets<Uid>,
    /// In KiB.
    reads: Buckets<Uid>,
    downloads: Buckets<Uid>,
}

impl Rates {
    /// As configured; everybody's allowance is whole.
    pub fn new(limits: &LimitsSection) -> Rates {
        const SECOND: Duration = Duration::from_secs(1);
        const MINUTE: Duration = Duration::from_secs(60);
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        // Without a longer burst: nobody needs one, and the list of all people is worth a wait.
        let minute = |count| Buckets::of(Rate::with_burst(count, MINUTE, 1), REMEMBERED);
        let hashed = |count| Buckets::of(Rate::with_burst(count, MINUTE, HASHED_BURST), REMEMBERED);
        Rates {
            sign_ups: hashed(limits.sign_ups_per_address_per_minute),
            log_ins: hashed(limits.log_ins_per_address_per_minute),
            log_ins_by_name_from: Buckets::new(limits.log_ins_per_name_per_minute, MINUTE, REMEMBERED),
            log_ins_by_name_on: Buckets::new(limits.log_ins_per_name_per_minute, MINUTE, REMEMBERED),
            log_ins_by_name: Buckets::new(limits.log_ins_per_name_in_all_per_minute, MINUTE, REMEMBERED),
            refusals: Buckets::new(limits.refusals_per_address_per_second, SECOND, REMEMBERED),
            sends: Buckets::new(limits.sends_per_account_per_second, SECOND, REMEMBERED),
            typing: Buckets::new(TYPING, SECOND, REMEMBERED),
            watch_lists: Buckets::new(WATCH_LISTS, MINUTE, REMEMBERED),
            downloads: Buckets::of(
                Rate::with_burst(limits.downloads_per_account_per_day, DAY, 1),
                REMEMBERED,
            ),
            searches: minute(limits.searches_per_account_per_minute),
            look_ups: minute(limits.look_ups_per_account_per_minute),
            reads: Buckets::new(limits.read_kib_per_account_per_second, SECOND, REMEMBERED),
        }
    }

    /// Whether a sign-up from `address` may go on, as far as this server knows; and what the others are to count.
    pub(super) fn sign_up(&self, address: IpAddr) -> Result<[Attempt; 1], Problem> {
        let network = ClientNetwork::of(address);
        self.sign_ups.take(network, 1, now()).map_err(Problem::rate_limited)?;
        Ok([self.sign_ups.rate.attempt(format!("sign-up from {}", network.0))])
    }

    /// Whether an attempt to log in as `name` may go on, as far as this server knows; and what the others are to count. On a device that
    /// is known it is held to the limit of that device alone: whatever strangers try, from wherever, uses up nothing of it.
    pub(super) fn log_in(
        &self,
        address: IpAddr,
        name: &str,
        device: Option<&KnownDevice>,
    ) -> Result<Vec<Attempt>, Problem> {
        let name = counted_as(name);
        let Some(KnownDevice { name: device, .. }) = device else {
            let mut attempts = self.try_name(address, &name)?;
            attempts.push(self.log_ins_by_name.rate.attempt(format!("log-in as {name}")));
            // Last, so that one address uses up no more of it than its own limit lets through.
            self.log_ins_by_name.take(name, 1, now()).map_err(Problem::rate_limited)?;
            return Ok(attempts);
        };
        let on = &self.log_ins_by_name_on;
        let attempt = on.rate.attempt(format!("log-in as {name} on {device}"));
        on.take((name, device.clone()), 1, now()).map_err(Problem::rate_limited)?;
        Ok(vec![attempt])
    }

    /// The same for an access key, whose secret nobody guesses: without a limit over all addresses, by which strangers could shut it.
    pub(super) fn sign_in(&self, address: IpAddr, access_key: &str) -> Result<Vec<Attempt>, Problem> {
        self.try_name(address, &counted_as(&format!("access key {access_key}")))
    }

    fn try_name(&self, address: IpAddr, name: &str) -> Result<Vec<Attempt>, Problem> {
        let now = now();
        let network = ClientNetwork::of(address);
        let from = &self.log_ins_by_name_from;
        self.log_ins.take(network, 1, now).map_err(Problem::rate_limited)?;
        from.take((name.to_owned(), network), 1, now).map_err(Problem::rate_limited)?;
        let by_network = self.log_ins.rate.attempt(format!("log-in from {}", network.0));
        Ok(vec![by_network, from.rate.attempt(format!("log-in as {name} from {}", network.0))])
    }

    /// A request from `address` was refused, or its token is unknown. Says how long to wait with the answer.
    pub(super) fn refused(&self, address: IpAddr) -> Duration {
        let refused = self.refusals.spend_within(ClientNetwork::of(address), LONGEST_WAIT, now());
        refused.unwrap_or_else(|owed| owed.min(LONGEST_WAIT))
    }

    /// How long `address` is to wait because its requests were refused.
    pub(super) fn refusals_owed(&self, address: IpAddr) -> Duration {
        self.refusals.owed(&ClientNetwork::of(address), now()).min(LONGEST_WAIT)
    }

    /// Takes one message or other change of `uid` that came over a WebSocket, and says for how long its connection is then not to
    /// be read. Refuses when so many connections of the account were ahead of the rate that they wait for too long already.
    pub(super) fn send_and_pause(&self, uid: Uid) -> Result<Duration, Problem> {
        self.sends.spend_within(uid, LONGEST_PAUSE, now()).map_err(Problem::rate_limited)
    }

    /// Whether others may be told that `uid` is typing.
    pub(super) fn may_tell_typing(&self, uid: Uid) -> bool {
        self.typing.take(uid, 1, now()).is_ok()
    }

    /// Takes one list of people whom `uid` watches, and says for how long the connection is then not to be read. Refuses as
    /// [`send_and_pause`](Self::send_and_pause) does.
    pub(super) fn watch_and_pause(&self, uid: Uid) -> Result<Duration, Problem> {
        self.watch_lists.spend_within(uid, LONGEST_PAUSE, now()).map_err(Problem::rate_limited)
    }

    /// Whether `n` messages or other changes of `uid` may go on.
    pub(super) fn send(&self, uid: Uid, n: usize) -> Result<(), Problem> {
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        self.sends.take(uid, n, now()).map_err(Problem::rate_limited)
    }

    /// Takes one row that an access key puts into an inbox in the name of `uid`, if it may go on.
    pub fn may_post(&self, uid: Uid) -> bool {
        self.send(uid, 1).is_ok()
    }

    /// Whether `uid` may download all that is kept of it once more.
    pub(super) fn download(&self, uid: Uid) -> Result<(), Problem> {
        self.downloads.take(uid, 1, now()).map_err(Problem::rate_limited)
    }

    /// Whether `uid` may look for people by a part of their name.
    pub(super) fn search(&self, uid: Uid) -> Result<(), Problem> {
        self.searches.take(uid, 1, now()).map_err(Problem::rate_limited)
    }

    /// Whether `uid` may see who `n` people are.
    pub(super) fn look_up(&self, uid: Uid, n: usize) -> Result<(), Problem> {
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        self.look_ups.take(uid, n, now()).map_err(Problem::rate_limited)
    }

    /// Whether `uid` may read rows now, or how long it takes until then.
    pub(super) fn may_read(&self, uid: Uid) -> Result<(), Duration> {
        self.reads.take(uid, 1, now())
    }

    /// `uid` was given so many bytes of rows.
    pub(super) fn has_read(&self, uid: Uid, bytes: usize) {
        let kib = u32::try_from(bytes / 1_024).unwrap_or(u32::MAX);
        self.reads.spend(uid, kib, now());
    }
}

/// As what a name is counted. No account has a longer one, and memory is bounded by the number of names alone.
fn counted_as(name: &str) -> String {
    name_key(name.trim()).chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_burst_passes_then_the_rate_holds() {
        let buckets = Buckets::new(5, SECOND, 100);
        let start = Instant::now();
        for _ in 0..50 {
            assert_eq!(buckets.take("ann", 1, start), Ok(()));
        }
        assert_eq!(buckets.take("ann", 1, start), Err(Duration::from_millis(200)));
        assert_eq!(buckets.take("bob", 1, start), Ok(()));
        assert_eq!(buckets.take("ann", 1, start + Duration::from_millis(200)), Ok(()));
        assert!(buckets.take("ann", 1, start + Duration::from_millis(200)).is_err());
    }

    #[test]
    fn more_than_a_burst_passes_when_the_allowance_is_whole() {
        let buckets = Buckets::new(1, SECOND, 100);
        let start = Instant::now();
        assert_eq!(buckets.take("ann", 200, start), Ok(()));
        assert_eq!(buckets.take("ann", 200, start + SECOND), Err(9 * SECOND));
        assert_eq!(buckets.take("ann", 200, start + 10 * SECOND), Ok(()));
    }

    #[test]
    fn what_was_spent_already_is_waited_for() {
        let buckets = Buckets::new(1, SECOND, 100);
        let start = Instant::now();
        assert_eq!(buckets.take("ann", 1, start), Ok(()));
        buckets.spend("ann", 30, start);
        assert_eq!(buckets.take("ann", 1, start), Err(22 * SECOND));
        assert_eq!(buckets.take("ann", 1, start + 22 * SECOND), Ok(()));
    }

    #[test]
    fn what_is_carried_out_in_any_case_says_how_long_to_wait_and_the_debt_is_bounded() {
        let buckets = Buckets::new(1, SECOND, 100);
        let start = Instant::now();
        for _ in 0..10 {
            assert_eq!(buckets.spend_within("ann", 3 * SECOND, start), Ok(Duration::ZERO));
        }
        for owed in 1..=3 {
            assert_eq!(buckets.spend_within("ann", 3 * SECOND, start), Ok(owed * SECOND));
        }
        assert_eq!(buckets.spend_within("ann", 3 * SECOND, start), Err(3 * SECOND));
        assert_eq!(buckets.owed(&"ann", start), 3 * SECOND);
        assert_eq!(buckets.owed(&"ann", start + 2 * SECOND), SECOND);
        assert_eq!(buckets.owed(&"bob", start), Duration::ZERO);
        assert_eq!(buckets.spend_within("ann", 3 * SECOND, start + 2 * SECOND), Ok(2 * SECOND));
        let lifted = Buckets::new(0, SECOND, 100);
        assert!((0..100).all(|_| lifted.spend_within("ann", SECOND, start) == Ok(Duration::ZERO)));
    }

    #[test]
    fn zero_lifts_the_limit() {
        let buckets = Buckets::new(0, SECOND, 2);
        let now = Instant::now();
        assert!((0..10_000).all(|_| buckets.take("ann", 1_000_000, now).is_ok()));
    }

    #[test]
    fn memory_is_bounded_and_the_active_are_remembered() {
        let buckets = Buckets::new(1, SECOND, 10);
        let now = Instant::now();
        assert_eq!(buckets.take(0, 10, now), Ok(()));
        for other in 1..1_000 {
            assert_eq!(buckets.take(other, 1, now), Ok(()));
            assert!(buckets.take(0, 1, now).is_err(), "forgotten after {other}");
        }
        let seen = buckets.seen.lock().expect("unpoisoned");
        assert!(seen.young.len() + seen.old.len() <= 10);
    }

    #[test]
    fn one_network_of_ipv6_is_one_caller() {
        let network = |text: &str| ClientNetwork::of(text.parse().expect("an address"));
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:10.0.0.1"), network("10.0.0.1"));
    }
}
