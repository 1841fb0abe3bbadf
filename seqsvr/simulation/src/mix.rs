//! How often each fault is drawn, compared with the others, and what the network does all the time: everything, or what shows a
//! single broken rule.

#[cfg(test)]
use super::SECOND;
use super::{At, MILLI};

/// See the module. Weights, where nothing else is said.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mix {
    /// The mean time between two faults.
    pub(crate) gap: At,
    /// A process ends and comes back in a new life, now and then on a machine that has started anew.
    pub(crate) crash: u64,
    /// An AllocSvr is told to stop, and is there again some seconds later.
    pub(crate) leave: u64,
    /// An AllocSvr answers and cannot serve, or not record what it serves, until people mend and restart it.
    pub(crate) ail: u64,
    /// A replica, dead or alive, is replaced by a new one, and who does that may end in the middle. A dead one may be started
    /// again, with the disk that it had.
    pub(crate) replace: u64,
    /// The Set gets one more replica or one fewer, or another W, and who does that may end in the middle.
    pub(crate) resize: u64,
    /// An arbiter ends when it has written a table to one replica only, which one AllocSvr does not hear of.
    pub(crate) halve: u64,
    /// A process stands still, often for longer than a lease, or a machine is suspended.
    pub(crate) pause: u64,
    /// One process is cut off from some of the others.
    pub(crate) part: u64,
    /// The same in one direction.
    pub(crate) one_way: u64,
    /// A process is cut off from callers only, or from all but callers.
    pub(crate) callers: u64,
    /// A boot clock runs at another rate.
    pub(crate) drift: u64,
    /// A wall clock jumps by up to an hour, back or forth.
    pub(crate) jump: u64,
    /// The network loses, doubles and delays more for a while.
    pub(crate) storm: u64,
    /// People drain and remove, add or rebalance.
    pub(crate) whim: u64,
    /// Packets lost, doubled, delayed, of a thousand, outside storms.
    pub(crate) packets: (u64, u64, u64),
    /// How long a delayed packet takes at most, outside storms.
    pub(crate) late: At,
}

impl Mix {
    /// Everything.
    pub(crate) fn all() -> Self {
        Self {
            gap: 400 * MILLI,
            crash: 4,
            leave: 2,
            ail: 1,
            replace: 2,
            resize: 1,
            halve: 1,
            pause: 6,
            part: 3,
            one_way: 2,
            callers: 1,
            drift: 2,
            jump: 1,
            storm: 2,
            whim: 2,
            packets: (5, 5, 20),
            late: 100 * MILLI,
        }
    }
}

/// The mixes under which single broken rules show.
#[cfg(test)]
impl Mix {
    /// Nothing but what is then set.
    fn none() -> Self {
        Self { gap: 400 * MILLI, late: 100 * MILLI, ..Self::default() }
    }

    /// Processes stand still and wake with stale messages.
    pub(crate) fn pauses() -> Self {
        Self { gap: 300 * MILLI, pause: 8, drift: 1, ..Self::none() }
    }

    /// Packets overtake each other.
    pub(crate) fn late() -> Self {
        Self { packets: (0, 0, 400), late: 300 * MILLI, ..Self::none() }
    }

    /// Replicas are replaced as often as there are new ones, while packets are late.
    pub(crate) fn replacements() -> Self {
        Self { gap: 800 * MILLI, replace: 6, drift: 1, crash: 1, ..Self::late() }
    }

    /// Replicas come and go, and W changes, while packets are late.
    pub(crate) fn sizes() -> Self {
        Self { gap: 800 * MILLI, replace: 2, resize: 6, drift: 1, crash: 1, ..Self::late() }
    }

    /// AllocSvrs answer and cannot serve, for long enough to be set aside.
    pub(crate) fn ailments() -> Self {
        Self { gap: 3 * SECOND, ail: 3, whim: 1, ..Self::none() }
    }

    /// AllocSvrs are restarted in good order, again and again, while packets are late.
    pub(crate) fn leaves() -> Self {
        Self { gap: 2 * SECOND, leave: 6, ..Self::late() }
    }

    /// Arbiters end half-way through writing a table.
    pub(crate) fn halves() -> Self {
        Self { gap: 4 * SECOND, halve: 1, ..Self::none() }
    }

    /// Processes are cut off from some of the others, again and again.
    pub(crate) fn cuts() -> Self {
        Self { gap: 250 * MILLI, part: 6, one_way: 2, crash: 1, ..Self::none() }
    }
}
