//! Adjacent numbers: what is taken from storage and what is handed out.

/// Adjacent numbers from `first` to `last`, both included; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The smallest.
    pub first: u64,
    /// The largest, `first` or above.
    pub last: u64,
}

impl Range {
    /// A single number.
    pub fn one(number: u64) -> Self {
        Self { first: number, last: number }
    }

    /// How many numbers these are: 1 and up; the whole of 64 bits counts as 2^64 - 1.
    pub fn count(self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }
}
