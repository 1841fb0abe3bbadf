//! How long to wait before the next attempt: longer each time, never the same for all.
//!
//! Without the randomness all clients of a server that was away would come back at the same moment, again and again.
//! With several servers the wait grows once they have all been tried: the next one may well be up.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Waits that double from `first` to `longest`, each shortened by a random part of up to a half. Between the servers of
/// one round the wait is `first`.
#[derive(Debug)]
pub(super) struct Backoff {
    first: Duration,
    longest: Duration,
    /// How many servers are tried in turn.
    servers: usize,
    /// Failures since it last worked.
    failures: usize,
    random: StdRng,
}

impl Backoff {
    pub(super) fn new(first: Duration, longest: Duration, servers: usize, seed: u64) -> Backoff {
        let random = StdRng::seed_from_u64(seed);
        Backoff { first, longest, servers: servers.max(1), failures: 0, random }
    }

    /// The wait before the next attempt.
    pub(super) fn next(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let round_is_over = self.failures.is_multiple_of(self.servers);
        let doublings = if round_is_over { self.failures / self.servers - 1 } else { 0 };
        let factor = u32::try_from(doublings).ok().and_then(|bits| 1_u32.checked_shl(bits));
        let full = self.first.saturating_mul(factor.unwrap_or(u32::MAX));
        full.min(self.longest).mul_f64(self.random.random_range(0.5..=1.0))
    }

    /// It worked: the next wait is a short one again.
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }

    /// The wait when a server restarts: until it is back, or, when there are others, so that not all of its clients come
    /// to them at once.
    pub(super) fn after_restart(&mut self) -> Duration {
        let seconds = if self.servers > 1 { 0.0..=1.0 } else { 1.0..=2.0 };
        Duration::from_secs_f64(self.random.random_range(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_vary_by_half() {
        let (first, longest) = (Duration::from_millis(500), Duration::from_secs(30));
        let mut backoff = Backoff::new(first, longest, 1, 7);
        for attempt in 0..100_u32 {
            let full = first.saturating_mul(1 << attempt.min(10)).min(longest);
            let wait = backoff.next();
            assert!(wait >= full / 2 && wait <= full, "attempt {attempt}: {wait:?} of {full:?}");
        }
        backoff.reset();
        assert!(backoff.next() <= first);
    }

    #[test]
    fn of_several_servers_all_are_tried_before_the_wait_grows() {
        let (first, longest) = (Duration::from_millis(500), Duration::from_secs(30));
        let mut backoff = Backoff::new(first, longest, 3, 7);
        for round in 0..100_u32 {
            for _ in 0..2 {
                let wait = backoff.next();
                assert!(wait >= first / 2 && wait <= first, "round {round}: {wait:?} within it");
            }
            let (full, wait) = (first.saturating_mul(1 << round.min(10)).min(longest), backoff.next());
            assert!(wait >= full / 2 && wait <= full, "round {round}: {wait:?} of {full:?}");
        }
    }

    #[test]
    fn two_clients_wait_differently_and_one_seed_the_same() {
        let waits = |seed| {
            let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30), 1, seed);
            [(); 8].map(|()| backoff.next())
        };
        assert_eq!(waits(1), waits(1));
        assert_ne!(waits(1), waits(2));
    }

    #[test]
    fn after_a_restart_it_is_a_random_second_or_two() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30), 1, 3);
        for _ in 0..100 {
            let wait = backoff.after_restart();
            assert!((Duration::from_secs(1)..=Duration::from_secs(2)).contains(&wait));
        }
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30), 2, 3);
        let waits: Vec<_> = (0..100).map(|_| backoff.after_restart()).collect();
        assert!(waits.iter().all(|wait| *wait <= Duration::from_secs(1)), "another server is up: {waits:?}");
        assert_ne!(waits[0], waits[1]);
    }
}
