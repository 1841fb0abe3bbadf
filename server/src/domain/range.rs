//! GetRange (S20): start inclusive, end exclusive, a direction and a limit, with the table's own refusals.

use super::MessageId;

/// One end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// Before every row.
    InfMin,
    /// At this id.
    Id(u64),
    /// After every row.
    InfMax,
}

/// Which way the rows come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ids ascending.
    Forward,
    /// Ids descending.
    Backward,
}

/// How much one page may hold (I9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimit {
    /// Rows.
    pub rows: usize,
    /// Bytes, by [`Entry::weight`](super::Entry::weight); the first row always goes.
    pub bytes: usize,
}

impl PageLimit {
    /// The most bytes of a page (S20).
    pub const MOST_BYTES: usize = 4 << 20;

    /// So many rows, and [`PageLimit::MOST_BYTES`].
    pub fn of_rows(rows: usize) -> PageLimit {
        PageLimit { rows, bytes: Self::MOST_BYTES }
    }
}

/// A range that can be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeQuery {
    start: Bound,
    end: Bound,
    direction: Direction,
    limit: PageLimit,
}

/// Why a range is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// Forward with start ≥ end.
    #[error("forward needs start < end; swap them or ask backward")]
    EmptyForward,
    /// Backward with start ≤ end.
    #[error("backward needs start > end; swap them or ask forward")]
    EmptyBackward,
    /// Limit 0.
    #[error("limit must be at least 1")]
    NoLimit,
}

impl RangeQuery {
    /// The most rows of one answer; a larger limit is taken as this (S20).
    pub const MAX_ROWS: usize = 5_000;

    /// Checks the three rules and caps the limit.
    pub fn new(
        start: Bound,
        end: Bound,
        direction: Direction,
        limit: usize,
    ) -> Result<RangeQuery, RangeError> {
        match direction {
            Direction::Forward if start >= end => Err(RangeError::EmptyForward),
            Direction::Backward if start <= end => Err(RangeError::EmptyBackward),
            _ if limit == 0 => Err(RangeError::NoLimit),
            _ => {
                Ok(RangeQuery { start, end, direction, limit: PageLimit::of_rows(limit.min(Self::MAX_ROWS)) })
            }
        }
    }

    /// Everything newer than `cursor`, oldest first: what a device that has up to `cursor` misses.
    pub fn after(cursor: MessageId, limit: usize) -> RangeQuery {
        RangeQuery {
            start: Bound::Id(cursor.get() + 1),
            end: Bound::InfMax,
            direction: Direction::Forward,
            limit: PageLimit::of_rows(limit.clamp(1, Self::MAX_ROWS)),
        }
    }

    /// Everything older than `before`, newest first; `None`: from the newest on.
    pub fn before(before: Option<MessageId>, limit: usize) -> RangeQuery {
        let start =
            before.map_or(Bound::InfMax, |id| id.get().checked_sub(1).map_or(Bound::InfMin, Bound::Id));
        RangeQuery {
            start,
            end: Bound::InfMin,
            direction: Direction::Backward,
            limit: PageLimit::of_rows(limit.clamp(1, Self::MAX_ROWS)),
        }
    }

    /// The same, no further than below `end` (exclusive, forward) or above it (exclusive, backward).
    pub fn up_to(mut self, end: Option<MessageId>) -> RangeQuery {
        self.end = end.map_or(self.end, |end| Bound::Id(end.get()));
        self
    }

    /// Which way the rows come.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// The same with pages of at most so many bytes, if that is less.
    pub fn within(mut self, bytes: usize) -> RangeQuery {
        self.limit.bytes = self.limit.bytes.min(bytes);
        self
    }

    /// The largest number of rows, 1 ..= 5,000.
    pub fn limit(&self) -> usize {
        self.limit.rows
    }

    /// How much a page of it may hold.
    pub fn page(&self) -> PageLimit {
        self.limit
    }

    /// The smallest and largest id that belong to it, both inclusive; `None` when no id does.
    pub fn ids(&self) -> Option<(u64, u64)> {
        let ceiling = MessageId::MAX.get();
        let (low, high) = match self.direction {
            Direction::Forward => (at_least(self.start)?, below(self.end)?),
            // Backward, the start is the upper end and inclusive; the end is the lower one and exclusive.
            Direction::Backward => {
                let high = match self.start {
                    Bound::InfMin => return None,
                    Bound::Id(id) => id,
                    Bound::InfMax => ceiling,
                };
                let low = match self.end {
                    Bound::InfMin => 0,
                    Bound::Id(id) => id.checked_add(1)?,
                    Bound::InfMax => return None,
                };
                (low, high)
            }
        };
        let high = high.min(ceiling);
        (low <= high).then_some((low, high))
    }
}

fn at_least(start: Bound) -> Option<u64> {
    match start {
        Bound::InfMin => Some(0),
        Bound::Id(id) => Some(id),
        Bound::InfMax => None,
    }
}

fn below(end: Bound) -> Option<u64> {
    match end {
        Bound::InfMin => None,
        Bound::Id(id) => id.checked_sub(1),
        Bound::InfMax => Some(MessageId::MAX.get()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Bound::{Id, InfMax, InfMin};
    use Direction::{Backward, Forward};

    #[test]
    fn start_is_inclusive_and_end_exclusive_both_ways() {
        let ids = |s, e, d| RangeQuery::new(s, e, d, 10).expect("good").ids();
        assert_eq!(ids(Id(5), Id(8), Forward), Some((5, 7)));
        assert_eq!(ids(Id(8), Id(5), Backward), Some((6, 8)));
        assert_eq!(ids(InfMin, InfMax, Forward), Some((0, MessageId::MAX.get())));
        assert_eq!(ids(InfMax, InfMin, Backward), Some((0, MessageId::MAX.get())));
        assert_eq!(ids(Id(u64::MAX), InfMax, Forward), None);
    }

    #[test]
    fn ranges_that_cannot_hold_a_row_are_refused() {
        assert_eq!(RangeQuery::new(Id(5), Id(5), Forward, 1), Err(RangeError::EmptyForward));
        assert_eq!(RangeQuery::new(Id(5), Id(5), Backward, 1), Err(RangeError::EmptyBackward));
        assert_eq!(RangeQuery::new(InfMax, InfMin, Forward, 1), Err(RangeError::EmptyForward));
        assert_eq!(RangeQuery::new(Id(1), Id(5), Forward, 0), Err(RangeError::NoLimit));
        assert_eq!(RangeQuery::new(Id(1), Id(5), Forward, 9_000).expect("good").limit(), 5_000);
    }
}
