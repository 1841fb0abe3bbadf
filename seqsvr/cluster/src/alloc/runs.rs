//! Sets of sections as sorted runs: those that a table gives, that are claimed, that are served. Plain values; the
//! sections of a node lie in few runs, so everything walks them.

use std::fmt;
use std::ops::RangeInclusive;

use seqsvr_core::ids::SectionId;

/// A set of sections: sorted runs that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Runs(Vec<RangeInclusive<SectionId>>);

impl Runs {
    /// The sections of `ranges`, which may overlap and come in any order; an empty range adds nothing.
    pub(crate) fn new(ranges: impl IntoIterator<Item = RangeInclusive<SectionId>>) -> Self {
        let mut ranges: Vec<_> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        ranges.sort_unstable_by_key(|range| *range.start());
        let mut runs: Vec<RangeInclusive<SectionId>> = Vec::new();
        for range in ranges {
            match runs.last_mut() {
                Some(last) if u64::from(range.start().get()) <= u64::from(last.end().get()) + 1 => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                _ => runs.push(range),
            }
        }
        Self(runs)
    }

    /// The runs, in order.
    pub(crate) fn ranges(&self) -> &[RangeInclusive<SectionId>] {
        &self.0
    }

    /// The runs as their owner.
    pub(crate) fn into_ranges(self) -> Vec<RangeInclusive<SectionId>> {
        self.0
    }

    /// How many sections there are.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|run| run.end().get() - run.start().get() + 1).sum()
    }

    /// Whether there is no section.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `section` is among them.
    pub(crate) fn contains(&self, section: SectionId) -> bool {
        let after = self.0.partition_point(|run| *run.start() <= section);
        self.0[..after].last().is_some_and(|run| section <= *run.end())
    }

    /// The sections in either.
    pub(crate) fn union(&self, other: &Runs) -> Runs {
        Runs::new(self.0.iter().chain(&other.0).cloned())
    }

    /// The sections in both.
    pub(crate) fn intersection(&self, other: &Runs) -> Runs {
        let (mut mine, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut both = Vec::new();
        while let (Some(one), Some(two)) = (mine.peek(), theirs.peek()) {
            let run = *one.start().max(two.start())..=*one.end().min(two.end());
            let one_ends_first = one.end() < two.end();
            if !run.is_empty() {
                both.push(run);
            }
            if one_ends_first {
                mine.next()
            } else {
                theirs.next()
            };
        }
        Runs(both)
    }

    /// The sections that are here and not in `other`.
    pub(crate) fn difference(&self, other: &Runs) -> Runs {
        let mut rest = Vec::new();
        let mut taken = other.0.iter().peekable();
        for run in &self.0 {
            // The next section of the run that is not yet decided; past its end once all are.
            let mut next = u64::from(run.start().get());
            let end = u64::from(run.end().get());
            while let Some(hole) = taken.peek() {
                let (from, to) = (u64::from(hole.start().get()), u64::from(hole.end().get()));
                if from > end {
                    break;
                }
                if next < from {
                    rest.push(SectionId::new(next as u32)..=SectionId::new(from as u32 - 1));
                }
                next = next.max(to + 1);
                if to > end {
                    break;
                }
                taken.next();
            }
            if next <= end {
                rest.push(SectionId::new(next as u32)..=*run.end());
            }
        }
        Runs(rest)
    }
}

impl fmt::Display for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, run) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match run.start() == run.end() {
                true => write!(f, "{comma}{}", run.start())?,
                false => write!(f, "{comma}{}-{}", run.start(), run.end())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn ranges() -> impl Strategy<Value = Vec<RangeInclusive<SectionId>>> {
        let range = (0..40_u32, 0..6_u32)
            .prop_map(|(first, more)| SectionId::new(first)..=SectionId::new(first + more));
        proptest::collection::vec(range, 0..8)
    }

    fn members(runs: &Runs) -> BTreeSet<u32> {
        runs.0.iter().flat_map(|run| run.start().get()..=run.end().get()).collect()
    }

    fn is_canonical(runs: &Runs) -> bool {
        runs.0.iter().all(|run| !run.is_empty())
            && runs.0.windows(2).all(|two| two[0].end().get() + 1 < two[1].start().get())
    }

    proptest! {
        #[test]
        fn runs_are_sets(one in ranges(), two in ranges()) {
            let (one, two) = (Runs::new(one), Runs::new(two));
            let (ones, twos) = (members(&one), members(&two));
            for (runs, expected) in [
                (one.union(&two), &ones | &twos),
                (one.intersection(&two), &ones & &twos),
                (one.difference(&two), &ones - &twos),
            ] {
                prop_assert!(is_canonical(&runs), "{:?}", runs);
                prop_assert_eq!(members(&runs), expected);
            }
            for section in 0..50 {
                prop_assert_eq!(one.contains(SectionId::new(section)), ones.contains(&section));
            }
        }
    }

    #[test]
    fn the_last_section_of_all_is_no_special_case() {
        let all = Runs::new([SectionId::new(0)..=SectionId::new(u32::MAX)]);
        assert_eq!(all.difference(&all), Runs::default());
        assert_eq!(all.union(&all), all);
    }
}
