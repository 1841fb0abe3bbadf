//! How long to wait before the next attempt: longer each time, never the same for all.
//!
//! Without the randomness all clients of a server that was away would come back at the same moment, again and again.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Waits that double from `first` to `longest`, each shortened by a random part of up to a half.
#[derive(Debug)]
pub(super) struct Backoff {
    first: Duration,
    longest: Duration,
    attempts: u32,
    random: StdRng,
}

impl Backoff {
    pub(super) fn new(first: Duration, longest: Duration, seed: u64) -> Backoff {
        Backoff { first, longest, attempts: 0, random: StdRng::seed_from_u64(seed) }
    }

    /// The wait before the next attempt.
    pub(super) fn next(&mut self) -> Duration {
        let full = self.first.saturating_mul(1_u32.checked_shl(self.attempts).unwrap_or(u32::MAX));
        self.attempts = self.attempts.saturating_add(1);
        full.min(self.longest).mul_f64(self.random.random_range(0.5..=1.0))
    }

    /// It worked: the next wait is a short one again.
    pub(super) fn reset(&mut self) {
        self.attempts = 0;
    }

    /// The wait that the server asks for when it restarts.
    pub(super) fn after_restart(&mut self) -> Duration {
        Duration::from_secs_f64(self.random.random_range(1.0..=2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_vary_by_half() {
        let (first, longest) = (Duration::from_millis(500), Duration::from_secs(30));
        let mut backoff = Backoff::new(first, longest, 7);
        for attempt in 0..100_u32 {
            let full = first.saturating_mul(1 << attempt.min(10)).min(longest);
            let wait = backoff.next();
            assert!(wait >= full / 2 && wait <= full, "attempt {attempt}: {wait:?} of {full:?}");
        }
        backoff.reset();
        assert!(backoff.next() <= first);
    }

    #[test]
    fn two_clients_wait_differently_and_one_seed_the_same() {
        let waits = |seed| {
            let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30), seed);
            [(); 8].map(|()| backoff.next())
        };
        assert_eq!(waits(1), waits(1));
        assert_ne!(waits(1), waits(2));
    }

    #[test]
    fn after_a_restart_it_is_a_random_second_or_two() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30), 3);
        for _ in 0..100 {
            let wait = backoff.after_restart();
            assert!((Duration::from_secs(1)..=Duration::from_secs(2)).contains(&wait));
        }
    }
}
