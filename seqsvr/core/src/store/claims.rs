//! The owners of sections, present and earlier: the fencing rule as plain data, shared by the stores that keep claims themselves. Sorted
//! runs of adjacent sections in the same hands, so its size follows the claims and not the sections.

use std::mem;
use std::ops::RangeInclusive;

use super::{Owner, RaiseError, Ranges, StoreError};
use crate::ids::{Epoch, SectionId};
use crate::store::message::Earlier;
use crate::store::message::Held;

/// All claims of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// Sorted, without overlap; neighbours differ.
    runs: Vec<ClaimRun>,
}

/// Adjacent sections in the same hands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRun {
    /// Which sections.
    pub sections: RangeInclusive<SectionId>,
    /// Their owners.
    pub hands: Hands,
}

/// The newest and the earlier owner of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hands {
    /// The newest claim.
    pub owner: Held,
    /// The highest claim before it.
    pub earlier: Option<Held>,
}

impl Claims {
    /// From the runs that [`runs`](Self::runs) gave.
    pub fn from_runs(mut runs: Vec<ClaimRun>) -> Self {
        runs.sort_by_key(|run| *run.sections.start());
        Self { runs }
    }

    /// Everything, to be stored.
    pub fn runs(&self) -> &[ClaimRun] {
        &self.runs
    }

    /// The newest epoch of any claim, 0.0 without one.
    pub fn newest(&self) -> Epoch {
        self.runs.iter().map(|run| run.hands.owner.owner.epoch).max().unwrap_or_default()
    }

    /// Records `owner` for `sections`, or refuses and changes nothing. Says whether anything changed: a repeated claim
    /// changes nothing.
    pub fn accept(&mut self, sections: &Ranges, owner: Owner) -> Result<bool, StoreError> {
        for run in sections.iter().flat_map(|range| self.within(range)) {
            let holder = run.hands.owner.owner;
            if holder != owner && holder.epoch >= owner.epoch {
                return Err(StoreError::Claimed { newest: holder.epoch });
            }
        }
        let mine = Held { owner, released: false };
        let take = |hands: Option<Hands>| match hands {
            Some(hands) if hands.owner.owner == owner => Some(hands),
            hands => Some(Hands { owner: mine, earlier: hands.map(|hands| hands.owner) }),
        };
        Ok(self.change(sections, take))
    }

    /// Notes where the newest or the highest earlier owner is exactly this one that it has released. Says whether anything
    /// changed.
    pub fn release(&mut self, sections: &Ranges, owner: Owner) -> bool {
        let leave = |held: Held| if held.owner == owner { Held { released: true, ..held } } else { held };
        self.change(sections, |hands| {
            hands.map(|hands| Hands { owner: leave(hands.owner), earlier: hands.earlier.map(leave) })
        })
    }

    /// The owners of `sections` before the newest claim.
    pub fn earlier(&self, sections: &Ranges) -> Vec<Earlier> {
        let mut found: Vec<Earlier> = Vec::new();
        for range in sections {
            for run in self.within(range) {
                let Some(Held { owner, released }) = run.hands.earlier else { continue };
                let start = *run.sections.start().max(range.start());
                let end = *run.sections.end().min(range.end());
                found.push(Earlier { sections: start..=end, owner, released });
            }
        }
        found.sort_by_key(|one| *one.sections.start());
        found
    }

    /// Whether `owner` holds the newest claim of `section`.
    pub fn check(&self, section: SectionId, owner: Owner) -> Result<(), RaiseError> {
        match self.within(&(section..=section)).next().map(|run| run.hands.owner.owner) {
            Some(holder) if holder == owner => Ok(()),
            holder => {
                Err(RaiseError::NotOwner { newest: holder.map(|holder| holder.epoch).unwrap_or_default() })
            }
        }
    }

    /// The runs that share a section with `range`.
    fn within<'a>(
        &'a self,
        range: &RangeInclusive<SectionId>,
    ) -> impl Iterator<Item = &'a ClaimRun> + use<'a> {
        let (start, end) = (*range.start(), *range.end());
        let first = self.runs.partition_point(|run| *run.sections.end() < start);
        self.runs[first..].iter().take_while(move |run| *run.sections.start() <= end)
    }

    fn change(&mut self, sections: &Ranges, new: impl Fn(Option<Hands>) -> Option<Hands>) -> bool {
        let before = self.runs.clone();
        sections.iter().for_each(|range| self.change_one(range, &new));
        self.runs != before
    }

    fn change_one(
        &mut self,
        range: &RangeInclusive<SectionId>,
        new: impl Fn(Option<Hands>) -> Option<Hands>,
    ) {
        // Borders are exclusive at the end, and wide enough for the one behind the last section.
        let (start, end) = borders(range);
        let mut pieces: Vec<(u64, u64, Option<Hands>)> = Vec::with_capacity(self.runs.len() + 3);
        let mut reached = start;
        for run in mem::take(&mut self.runs) {
            let (first, behind) = borders(&run.sections);
            let (from, to) = (first.max(start), behind.min(end));
            if from >= to {
                pieces.push((first, behind, Some(run.hands)));
                continue;
            }
            pieces.push((first, from, Some(run.hands)));
            pieces.push((reached, from, new(None)));
            pieces.push((from, to, new(Some(run.hands))));
            pieces.push((to, behind, Some(run.hands)));
            reached = to;
        }
        pieces.push((reached, end, new(None)));
        pieces.sort_by_key(|(first, ..)| *first);
        for (first, behind, hands) in pieces {
            let Some(hands) = hands.filter(|_| first < behind) else { continue };
            let last = SectionId::new((behind - 1) as u32);
            match self.runs.last_mut() {
                Some(run) if run.hands == hands && borders(&run.sections).1 == first => {
                    run.sections = *run.sections.start()..=last;
                }
                _ => self.runs.push(ClaimRun { sections: SectionId::new(first as u32)..=last, hands }),
            }
        }
    }
}

fn borders(range: &RangeInclusive<SectionId>) -> (u64, u64) {
    (u64::from(range.start().get()), u64::from(range.end().get()) + 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn range(first: u32, length: u32) -> RangeInclusive<SectionId> {
        SectionId::new(first)..=SectionId::new(first.saturating_add(length))
    }

    /// The same rules over one entry for each section.
    #[derive(Default)]
    struct Plain(BTreeMap<u32, Hands>);

    impl Plain {
        fn accept(&mut self, range: &RangeInclusive<SectionId>, owner: Owner) -> bool {
            let all = range.start().get()..=range.end().get();
            let newer = |hands: &Hands| hands.owner.owner != owner && hands.owner.owner.epoch >= owner.epoch;
            if self.0.range(all.clone()).any(|(_, hands)| newer(hands)) {
                return false;
            }
            for section in all {
                let earlier = self.0.get(&section).copied();
                if earlier.is_none_or(|hands| hands.owner.owner != owner) {
                    let owner = Held { owner, released: false };
                    self.0.insert(section, Hands { owner, earlier: earlier.map(|hands| hands.owner) });
                }
            }
            true
        }

        fn release(&mut self, range: &RangeInclusive<SectionId>, owner: Owner) {
            for (_, hands) in self.0.range_mut(range.start().get()..=range.end().get()) {
                for held in [Some(&mut hands.owner), hands.earlier.as_mut()].into_iter().flatten() {
                    held.released |= held.owner == owner;
                }
            }
        }
    }

    proptest! {
        #[test]
        fn runs_say_what_one_entry_for_each_section_says(
            steps in prop::collection::vec((0..30u32, 0..12u32, 1..9u64, 0..2u64, any::<bool>()), 0..40)
        ) {
            let (mut claims, mut plain) = (Claims::default(), Plain::default());
            for (first, length, version, incarnation, claim) in steps {
                let range = range(first, length);
                let owner = Owner { epoch: Epoch { term: 1, version }, incarnation };
                if claim {
                    let accepted = claims.accept(std::slice::from_ref(&range), owner).is_ok();
                    prop_assert_eq!(accepted, plain.accept(&range, owner));
                } else {
                    claims.release(std::slice::from_ref(&range), owner);
                    plain.release(&range, owner);
                }
            }
            let runs = claims.runs();
            for pair in runs.windows(2) {
                prop_assert!(pair[0].sections.end() < pair[1].sections.start());
                let adjacent = borders(&pair[0].sections).1 == borders(&pair[1].sections).0;
                prop_assert!(!adjacent || pair[0].hands != pair[1].hands);
            }
            let spread = runs.iter().flat_map(|run| {
                (run.sections.start().get()..=run.sections.end().get()).map(|section| (section, run.hands))
            });
            prop_assert_eq!(spread.collect::<BTreeMap<_, _>>(), plain.0);
        }
    }

    #[test]
    fn the_whole_space_of_sections_is_one_run() {
        let owner = Owner { epoch: Epoch { term: 0, version: 1 }, incarnation: 1 };
        let mut claims = Claims::default();
        let all = range(0, u32::MAX);
        assert!(claims.accept(std::slice::from_ref(&all), owner).expect("nobody holds it"));
        assert_eq!(claims.runs().len(), 1);
        assert!(
            !claims.accept(&[all], owner).expect("it is the owner's own"),
            "a repeated claim changes nothing"
        );
    }
}
