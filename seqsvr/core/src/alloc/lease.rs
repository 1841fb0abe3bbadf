//! The arithmetic of leases: until when a node may hand out numbers, and how long a taker stays away from sections that it was given. Pure;
//! an AllocSvr has one for each Set (`seqsvr/cluster/src/alloc/node.rs`), and every request compares `until` with the clock.

use std::time::Duration;

use crate::clock::Moment;
use crate::flaws::{Flaw, Flaws};
use crate::store::configuration::Bounds;

/// The right to obey a table that was read (S9), for a bounded time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    length: Duration,
    until: Option<Moment>,
    flaws: Flaws,
}

impl Lease {
    /// Not yet granted; `length` is the same for every node of a Set, unless [`follow`](Self::follow) says otherwise.
    pub fn new(length: Duration, flaws: Flaws) -> Self {
        Self { length, until: None, flaws }
    }

    /// Goes by the configuration of the Set: it is granted, and waited for, as that one says.
    pub fn follow(&mut self, bounds: &Bounds) {
        self.length = bounds.lease;
    }

    /// How long a read lets this node serve.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// A table was read: asked for at `asked`, here at `now`. Valid until the first plus the length, since the stores may have
    /// answered at any moment after it.
    pub fn renew(&mut self, asked: Moment, now: Moment) {
        let from = if self.flaws.has(Flaw::LeaseFromAnswer) { now } else { asked };
        self.until = self.until.max(Some(from + self.length));
    }

    /// Ends it, for good unless renewed.
    pub fn end(&mut self) {
        self.until = None;
    }

    /// Numbers may leave before this moment.
    pub fn until(&self) -> Option<Moment> {
        self.until
    }

    /// When no other node can still go by a table older than the one that counted here at `counted`. Such a node asked for it before
    /// `counted`, so its lease is over one length later by its own clock. Two clocks differ by at most 5 % in rate; a tenth is waited more.
    pub fn takeover(&self, counted: Moment) -> Moment {
        if self.flaws.has(Flaw::NoTakeoverWait) {
            return counted;
        }
        counted + self.length * 11 / 10
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LENGTH: Duration = Duration::from_secs(2);

    proptest! {
        #[test]
        fn a_lease_is_over_everywhere_before_a_taker_serves(
            asked in 0..u64::MAX / 4, answered in 0..1_u64 << 40, counted in 0..1_u64 << 40, rate in 0.95..1.05_f64,
        ) {
            // On the old owner's clock: it asked, and the new table counted only after that.
            let asked = Moment::from_nanos(asked);
            let mut lease = Lease::new(LENGTH, Flaws::default());
            lease.renew(asked, asked + Duration::from_nanos(answered));
            let counted = asked + Duration::from_nanos(counted);
            // The taker's clock shows the same moment of counting, and runs at another rate from there.
            let waited = lease.takeover(counted).since(counted).div_f64(rate);
            prop_assert!(counted + waited > lease.until().expect("renewed"));
        }

        #[test]
        fn renewals_never_shorten_a_lease(asked in proptest::collection::vec(0..1_u64 << 40, 1..10)) {
            let mut lease = Lease::new(LENGTH, Flaws::default());
            for &asked in &asked {
                let before = lease.until();
                lease.renew(Moment::from_nanos(asked), Moment::from_nanos(asked + 5));
                prop_assert!(lease.until() >= before);
            }
            let newest = asked.iter().max().map(|&asked| Moment::from_nanos(asked) + LENGTH);
            prop_assert_eq!(lease.until(), newest);
        }
    }
}
