//! How many replicas there are, and how many must answer: the arithmetic on which every promise of the quorum hangs.

use thiserror::Error;

/// N replicas, of which W must answer every call (S5), reads too: a table counts only when W replicas hold it, so a read that
/// fewer answered could not tell whether it does. Any two calls meet in a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sizes {
    n: usize,
    w: usize,
}

/// Sizes under which two quorums may miss each other, or that cannot be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SizesError {
    /// There must be 1 to 15 replicas, and W cannot be 0 or more than that.
    #[error("replicas N = {n}, W = {w}: N must be 1 to 15, and W 1 to N")]
    Range {
        /// Replicas.
        n: usize,
        /// Answers to a call.
        w: usize,
    },
    /// Two writes could miss each other.
    #[error(
        "W must be larger than N / 2, or two owners could be confirmed at the same time: W = {w}, N = {n}; set write = {} or more", n / 2 + 1
    )]
    WriteMissesWrite {
        /// Replicas.
        n: usize,
        /// Answers to a call.
        w: usize,
    },
}

impl Sizes {
    /// Sizes that fit together.
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    pub fn new(n: usize, w: usize) -> Result<Self, SizesError> {
        if !(1..=15).contains(&n) || !(1..=n).contains(&w) {
            return Err(SizesError::Range { n, w });
        }
        if 2 * w <= n {
            return Err(SizesError::WriteMissesWrite { n, w });
        }
        Ok(Self { n, w })
    }

    /// Majorities of `n` replicas: the sizes that survive the most losses.
    ///
    /// # Errors
    ///
    /// [`SizesError::Range`].
    pub fn majority(n: usize) -> Result<Self, SizesError> {
        Self::new(n, n / 2 + 1)
    }

    /// Replicas.
    pub const fn n(self) -> usize {
        self.n
    }

    /// Answers that every call needs.
    pub const fn w(self) -> usize {
        self.w
    }

    /// Sizes that break the rules, for proving that the simulation notices.
    #[cfg(any(test, feature = "simulation"))]
    pub const fn unsound(n: usize, w: usize) -> Self {
        Self { n, w }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quorums_that_could_miss_each_other_are_refused() {
        for (n, w) in [(1, 1), (3, 2), (3, 3), (5, 3), (5, 4)] {
            assert!(Sizes::new(n, w).is_ok(), "{w} of {n}");
        }
        assert_eq!(Sizes::new(4, 2), Err(SizesError::WriteMissesWrite { n: 4, w: 2 }));
        for (n, w) in [(0, 0), (3, 0), (3, 4), (16, 9)] {
            assert_eq!(Sizes::new(n, w), Err(SizesError::Range { n, w }));
        }
    }
}
