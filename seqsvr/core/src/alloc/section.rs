//! The arithmetic of a section, without state, I/O or time: may this many numbers be taken below the
//! ceiling, and to what should the ceiling be raised. Called by `space` for every take that is not plainly within it.

use super::sync::BLOCK;

/// The settings that bound every section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// By how much a ceiling is raised at a time, 2 or more.
    pub step: u64,
    /// The largest number that may be handed out, at most 2^63 - 1.
    pub limit: u64,
}

/// The outcome of a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakePlan {
    /// The numbers up to `last` may be handed out.
    Grant {
        /// The last of them, at or below the ceiling.
        last: u64,
    },
    /// The ceiling must be confirmed at `to` or above first.
    Raise {
        /// An absolute target: a step further, or as far as leaves half a step after the take.
        to: u64,
    },
    /// The take would pass the limit, at any ceiling.
    Exhausted,
}

/// The outcome of a wish to go on above a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advancing {
    /// It is so already, after every takeover too.
    Done,
    /// To be moved to the number, which lies below the confirmed ceiling.
    Move,
    /// The ceiling must be confirmed at `to` or above first.
    Raise {
        /// An absolute target above the ceiling.
        to: u64,
    },
    /// No number is left.
    Exhausted,
}

impl Rules {
    /// Going on above `at_least` after `current`. The ceiling that a claim found, `base`, may be on fewer stores than the next claim asks,
    /// so that one would begin below it: only a ceiling that was confirmed since is relied on.
    pub fn advance(&self, at_least: u64, current: u64, base: u64, ceiling: u64) -> Advancing {
        match self.target(at_least.max(ceiling)) {
            _ if at_least == 0 => Advancing::Done,
            to if ceiling == base && to > ceiling => Advancing::Raise { to },
            _ if ceiling == base => Advancing::Exhausted,
            _ if at_least <= current => Advancing::Done,
            _ if at_least <= ceiling => Advancing::Move,
            to => Advancing::Raise { to },
        }
    }

    /// Taking `count` numbers after `current`, under `ceiling`.
    pub fn plan(&self, current: u64, count: u32, ceiling: u64) -> TakePlan {
        let last = current.saturating_add(u64::from(count));
        if last <= ceiling {
            TakePlan::Grant { last }
        } else if last > self.limit {
            TakePlan::Exhausted
        } else {
            let ample = last.saturating_add(self.step / 2).min(self.limit);
            TakePlan::Raise { to: self.target(ceiling).max(ample) }
        }
    }

    /// The ceiling to ask for ahead of need once `last` was handed out: when less than half a step is left.
    pub fn ahead(&self, last: u64, ceiling: u64) -> Option<u64> {
        let low = ceiling.saturating_sub(last) < self.step / 2 && ceiling < self.limit;
        low.then(|| self.target(ceiling))
    }

    /// Whether a uid that took `last` may go on to the end of the block without asking: neither would it pass the ceiling, nor
    /// come to where that should be raised ahead.
    pub(crate) fn opens(&self, last: u64, ceiling: u64) -> bool {
        let carefree = if ceiling < self.limit { ceiling.saturating_sub(self.step / 2) } else { ceiling };
        last | (BLOCK - 1) <= carefree
    }

    /// One step above `need`, or the limit.
    pub(crate) fn target(&self, need: u64) -> u64 {
        need.saturating_add(self.step).min(self.limit)
    }
}
