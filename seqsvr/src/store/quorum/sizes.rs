//! How many replicas there are, and how many must answer: the arithmetic on which every promise of the quorum hangs.

use thiserror::Error;

/// N replicas, of which R must answer a read and W a write (S5). Any two writes meet in a replica, and so do a read and a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sizes {
    n: usize,
    r: usize,
    w: usize,
}

/// Sizes under which two quorums may miss each other, or that cannot be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SizesError {
    /// There must be 1 to 15 replicas, and R and W cannot be 0 or more than that.
    #[error("replicas N = {n}, R = {r}, W = {w}: N must be 1 to 15, and R and W 1 to N")]
    Range {
        /// Replicas.
        n: usize,
        /// Answers to a read.
        r: usize,
        /// Answers to a write.
        w: usize,
    },
    /// A read could miss what was written.
    #[error(
        "R + W must be larger than N, else a read can miss a write: R = {r}, W = {w}, N = {n}; set read = {} or more", n - w + 1
    )]
    ReadMissesWrite {
        /// Replicas.
        n: usize,
        /// Answers to a read.
        r: usize,
        /// Answers to a write.
        w: usize,
    },
    /// Two writes could miss each other.
    #[error(
        "W must be larger than N / 2, else two owners can both be confirmed: W = {w}, N = {n}; set write = {} or more", n / 2 + 1
    )]
    WriteMissesWrite {
        /// Replicas.
        n: usize,
        /// Answers to a write.
        w: usize,
    },
}

impl Sizes {
    /// Sizes that fit together.
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    pub fn new(n: usize, r: usize, w: usize) -> Result<Self, SizesError> {
        if !(1..=15).contains(&n) || !(1..=n).contains(&r) || !(1..=n).contains(&w) {
            return Err(SizesError::Range { n, r, w });
        }
        if r + w <= n {
            return Err(SizesError::ReadMissesWrite { n, r, w });
        }
        if 2 * w <= n {
            return Err(SizesError::WriteMissesWrite { n, w });
        }
        Ok(Self { n, r, w })
    }

    /// Majorities of `n` replicas: the sizes that survive the most losses on both sides.
    ///
    /// # Errors
    ///
    /// [`SizesError::Range`].
    pub fn majority(n: usize) -> Result<Self, SizesError> {
        Self::new(n, n / 2 + 1, n / 2 + 1)
    }

    /// Replicas.
    pub const fn n(self) -> usize {
        self.n
    }

    /// Answers that a read needs.
    pub const fn r(self) -> usize {
        self.r
    }

    /// Answers that a write needs.
    pub const fn w(self) -> usize {
        self.w
    }

    /// Sizes that break the rules, for proving that the simulation notices.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) const fn unsound(n: usize, r: usize, w: usize) -> Self {
        Self { n, r, w }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quorums_that_could_miss_each_other_are_refused() {
        assert!(Sizes::new(3, 2, 2).is_ok());
        assert!(Sizes::new(5, 3, 3).is_ok());
        assert!(Sizes::new(5, 2, 4).is_ok());
        assert!(Sizes::new(1, 1, 1).is_ok());
        assert_eq!(Sizes::new(3, 1, 2), Err(SizesError::ReadMissesWrite { n: 3, r: 1, w: 2 }));
        assert_eq!(Sizes::new(4, 3, 2), Err(SizesError::WriteMissesWrite { n: 4, w: 2 }));
        for (n, r, w) in [(0, 0, 0), (3, 0, 3), (3, 3, 0), (3, 4, 2), (16, 9, 9)] {
            assert_eq!(Sizes::new(n, r, w), Err(SizesError::Range { n, r, w }));
        }
    }
}
