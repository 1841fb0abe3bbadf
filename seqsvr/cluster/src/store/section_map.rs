//! A value for each section, kept as runs of equal neighbours: whole Sets are claimed at once, so 42,950 sections are
//! usually a handful of runs. Pure; used by the state of a replica and by `merge`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use seqsvr_core::ids::SectionId;

/// Sections to values; a section may have none. Runs are as long as can be, so equal contents compare equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SectionMap<T> {
    /// The first section of each run, to its last and its value.
    runs: BTreeMap<u32, (u32, T)>,
}

impl<T> Default for SectionMap<T> {
    fn default() -> Self {
        Self { runs: BTreeMap::new() }
    }
}

impl<T: Copy + PartialEq> SectionMap<T> {
    /// The value of one section.
    pub(crate) fn get(&self, section: SectionId) -> Option<T> {
        let (_, &(last, value)) = self.runs.range(..=section.get()).next_back()?;
        (section.get() <= last).then_some(value)
    }

    /// The runs within `sections`, cut at its ends, in order.
    pub(crate) fn within(
        &self,
        sections: &RangeInclusive<SectionId>,
    ) -> impl Iterator<Item = (RangeInclusive<SectionId>, T)> {
        let (from, to) = (sections.start().get(), sections.end().get());
        let before = self.runs.range(..from).next_back();
        // Backwards it holds nothing, which the filter below sees to.
        let inside = self.runs.range(from..=to.max(from));
        before
            .into_iter()
            .chain(inside)
            .map(move |(&first, &(last, value))| (first.max(from), last.min(to), value))
            .filter(|(first, last, _)| first <= last)
            .map(|(first, last, value)| (SectionId::new(first)..=SectionId::new(last), value))
    }

    /// All runs, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (RangeInclusive<SectionId>, T)> {
        let run = |(&first, &(last, value)): (&u32, &(u32, T))| {
            (SectionId::new(first)..=SectionId::new(last), value)
        };
        self.runs.iter().map(run)
    }

    /// Gives every section of `sections` the value that `to` makes of its present one; `None` leaves it without.
    pub(crate) fn change(
        &mut self,
        sections: &RangeInclusive<SectionId>,
        mut to: impl FnMut(Option<T>) -> Option<T>,
    ) {
        let (from, end) = (sections.start().get(), sections.end().get());
        if from > end {
            return;
        }
        let old: Vec<_> = self.within(sections).collect();
        self.cut_out(from, end);
        let mut next = Some(from);
        for (run, value) in old {
            let (first, last) = (run.start().get(), run.end().get());
            if let Some(gap) = next.filter(|&next| next < first) {
                self.put(gap, first - 1, to(None));
            }
            self.put(first, last, to(Some(value)));
            next = last.checked_add(1);
        }
        if let Some(gap) = next.filter(|&next| next <= end) {
            self.put(gap, end, to(None));
        }
        if let Some(after) = end.checked_add(1)
            && let Some((last, value)) = self.runs.remove(&after)
        {
            self.put(after, last, Some(value));
        }
    }

    /// Empties `from..=end`, cutting the runs that reach into it.
    fn cut_out(&mut self, from: u32, end: u32) {
        let touched: Vec<u32> = self.runs.range(..=end).rev().map(|(&first, _)| first).collect();
        for first in touched {
            let (last, value) = self.runs[&first];
            if last < from {
                break;
            }
            self.runs.remove(&first);
            if first < from {
                self.runs.insert(first, (from - 1, value));
            }
            if last > end {
                self.runs.insert(end + 1, (last, value));
            }
        }
    }

    /// Adds a run behind all that lie before it, joining it to an equal neighbour.
    fn put(&mut self, first: u32, last: u32, value: Option<T>) {
        let Some(value) = value else { return };
        if let Some((_, run)) = self.runs.range_mut(..first).next_back()
            && run.0.checked_add(1) == Some(first)
            && run.1 == value
        {
            run.0 = last;
            return;
        }
        self.runs.insert(first, (last, value));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range(first: u32, last: u32) -> RangeInclusive<SectionId> {
        SectionId::new(first)..=SectionId::new(last)
    }

    fn listed(runs: &SectionMap<u8>) -> Vec<(u32, u32, u8)> {
        runs.iter().map(|(run, value)| (run.start().get(), run.end().get(), value)).collect()
    }

    #[test]
    fn the_last_section_of_all_is_like_any_other() {
        let mut runs = SectionMap::default();
        runs.change(&range(u32::MAX, u32::MAX), |_| Some(1));
        assert_eq!(listed(&runs), [(u32::MAX, u32::MAX, 1)]);
        runs.change(&range(0, u32::MAX), |old| Some(old.unwrap_or(1)));
        assert_eq!(listed(&runs), [(0, u32::MAX, 1)]);
        assert_eq!(runs.get(SectionId::new(u32::MAX)), Some(1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn runs_say_what_an_array_says(
            changes in prop::collection::vec((0u32..20, 0u32..20, 0u8..4, any::<bool>()), 0..30)
        ) {
            let mut runs = SectionMap::default();
            let mut array = [None; 20];
            for (a, b, value, add) in changes {
                let to = |old: Option<u8>| match value {
                    0 => None,
                    value if add => Some(old.map_or(value, |old| old.max(value))),
                    value => Some(value),
                };
                let (first, last) = (a.min(b), a.max(b));
                runs.change(&range(first, last), to);
                for slot in &mut array[first as usize..=last as usize] {
                    *slot = to(*slot);
                }
            }
            for (section, expected) in array.iter().enumerate() {
                prop_assert_eq!(runs.get(SectionId::new(section as u32)), *expected);
            }
            let listed = listed(&runs);
            let covered: u32 = listed.iter().map(|(first, last, _)| last - first + 1).sum();
            prop_assert_eq!(covered as usize, array.iter().flatten().count());
            for pair in listed.windows(2) {
                prop_assert!(pair[0].1 < pair[1].0);
                prop_assert!(pair[0].1 + 1 < pair[1].0 || pair[0].2 != pair[1].2, "neighbours are joined");
            }
        }
    }
}
