//! Where a uid lives. The section size is only known at run time, so the division is a multiplication by its
//! reciprocal: exact for every `u32`, and several times faster. Which sections are there is known only then, too.

use std::ops::RangeInclusive;

/// Cuts the uid space into sections of one size.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    size: u32,
    /// 2^64 / size, rounded up. With 64 bits of fraction for 32-bit operands the error never reaches the
    /// next integer (Lemire, Kaser, Kurz 2019).
    reciprocal: u64,
}

impl Split {
    /// Sections of `size` uids, 2 or more.
    pub fn new(size: u32) -> Self {
        Self { size, reciprocal: u64::MAX / u64::from(size) + 1 }
    }

    /// Sections in the whole uid space; the last may be shorter.
    pub(crate) fn sections(&self) -> usize {
        (1_u64 << 32).div_ceil(u64::from(self.size)) as usize
    }

    /// The section of `uid`.
    pub fn section(&self, uid: u32) -> usize {
        ((u128::from(self.reciprocal) * u128::from(uid)) >> 64) as usize
    }

    /// The first uid of `section`.
    pub(crate) fn first(&self, section: usize) -> u32 {
        section as u32 * self.size
    }

    /// The last uid of `section`.
    pub(crate) fn last(&self, section: usize) -> u32 {
        self.first(section).saturating_add(self.size - 1)
    }
}

/// The sections that a space holds, numbered without gaps: the place of each.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// Sorted; with the place of the first section of each.
    runs: Box<[(RangeInclusive<u32>, usize)]>,
    count: usize,
}

impl Places {
    /// Places for `sections`, which are sorted and do not overlap.
    pub(crate) fn new(sections: impl IntoIterator<Item = RangeInclusive<u32>>) -> Self {
        let mut count = 0;
        let mut place = |run: RangeInclusive<u32>| {
            let first = count;
            count += (run.end() - run.start()) as usize + 1;
            (run, first)
        };
        let runs = sections.into_iter().map(&mut place).collect();
        Self { runs, count }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The place of `section`, if it is there.
    pub(crate) fn of(&self, section: usize) -> Option<usize> {
        let section = section as u32;
        let after = self.runs.partition_point(|(run, _)| *run.start() <= section);
        let (run, first) = self.runs[..after].last()?;
        run.contains(&section).then(|| first + (section - run.start()) as usize)
    }

    /// The section at `place`, which is one.
    pub(crate) fn section(&self, place: usize) -> usize {
        let after = self.runs.partition_point(|&(_, first)| first <= place);
        let (run, first) = &self.runs[after - 1];
        *run.start() as usize + (place - first)
    }

    /// The first and the last section; `None` without any.
    pub(crate) fn ends(&self) -> Option<(usize, usize)> {
        let (first, last) = (self.runs.first()?, self.runs.last()?);
        Some((*first.0.start() as usize, *last.0.end() as usize))
    }
}
