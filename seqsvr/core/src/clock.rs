//! Time for leases: moments on a clock that does not jump and that runs on while the machine sleeps. The cores take
//! moments as arguments; only [`now`] reads the clock, for the shells around them.

use std::ops::Add;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment on this machine's boot clock (CLOCK_BOOTTIME), in nanoseconds since an arbitrary start. Moments of two machines
/// cannot be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The moment this many nanoseconds after the start of the clock.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start of the clock.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero when it is before.
    pub const fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The moment `ago` before this one, at the earliest the start of the clock.
    pub const fn before(self, ago: Duration) -> Moment {
        let nanos = ago.as_nanos();
        Moment(if nanos < self.0 as u128 { self.0 - nanos as u64 } else { 0 })
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, after: Duration) -> Moment {
        Moment(self.0.saturating_add(u64::try_from(after.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// The present moment of the boot clock. `Instant` would stand still while the machine is suspended, and a lease with it.
pub fn now() -> Moment {
    let time = clock_gettime(ClockId::Boottime);
    // Neither is negative: the clock starts at 0 when the machine does.
    Moment(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
