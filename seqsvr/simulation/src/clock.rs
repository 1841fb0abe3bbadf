//! A machine's clocks, as functions of the one true time that only the world knows. Boot clocks differ in rate, by at most what
//! the lease assumes, and start anew with the machine; wall clocks jump, which no core can see unless a trial lets leases run on them.

use super::At;
use seqsvr_core::clock::Moment;

/// The slowest and the fastest boot clock, in millionths of the true rate: 5 % apart.
pub(crate) const RATES: (u64, u64) = (975_610, 1_024_390);

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedClock {
    /// Millionths of the true rate.
    rate: u64,
    /// A moment when both were known.
    known: (At, u64),
    shows: Shows,
}

/// Which clock leases run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shows {
    /// The one that only grows.
    Boot,
    /// The one that people set: to prove that jumps would be noticed.
    Wall,
}

impl SimulatedClock {
    /// A clock that shows `shown` nanoseconds at `at`.
    pub(crate) fn new(shows: Shows, at: At, shown: u64, rate: u64) -> Self {
        Self { rate, known: (at, shown), shows }
    }

    /// The time on the boot clock.
    pub(crate) fn read(&self, at: At) -> Moment {
        let (then, shown) = self.known;
        let passed = u128::from(at - then) * u128::from(self.rate) / 1_000_000;
        Moment::from_nanos(shown + passed as u64)
    }

    /// When it will show `moment`; at once if it has.
    pub(crate) fn when(&self, at: At, moment: Moment) -> At {
        let missing = moment.since(self.read(at)).as_nanos();
        at.saturating_add((missing * 1_000_000).div_ceil(u128::from(self.rate)) as u64)
    }

    /// Goes on at another rate.
    pub(crate) fn drift(&mut self, at: At, rate: u64) {
        self.known = (at, self.read(at).as_nanos());
        self.rate = rate;
    }

    /// Moves the wall clock.
    pub(crate) fn jump(&mut self, by: i64) {
        if self.shows == Shows::Wall {
            let (at, shown) = self.known;
            self.known = (at, shown.saturating_add_signed(by));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_a_moment_when_it_says_it_will() {
        let mut clock = SimulatedClock::new(Shows::Boot, 1_000, 77, RATES.0);
        let wanted = Moment::from_nanos(5_000_077);
        let when = clock.when(2_000, wanted);
        assert!(clock.read(when) >= wanted && clock.read(when - 2) < wanted);
        clock.drift(3_000, RATES.1);
        assert!(clock.when(3_000, wanted) < when, "it runs faster now");
    }

    #[test]
    fn no_two_clocks_differ_by_more_than_the_lease_assumes() {
        assert!(RATES.1 * 100 <= RATES.0 * 105);
    }
}
