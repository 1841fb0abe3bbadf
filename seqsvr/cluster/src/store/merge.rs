//! The copies of several replicas, merged: of each value the highest that any of them has. A change of the stores and a
//! survey go by it. Pure.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use thiserror::Error;

use super::section_map::SectionMap;
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::routing::Table;
use seqsvr_core::store::message::{Copy, Held, SectionState};
use seqsvr_core::store::{Layout, Owner};

/// The copies cannot be of one Set.
#[derive(Clone, Debug, Error, PartialEq, Eq, Hash)]
#[error(
    "the other replicas disagree on the layout: sections of {} and {}, steps of {} and {}; are they of one Set?",
    .0.section_size, .1.section_size, .0.step, .1.step
)]
pub struct LayoutsDiffer(Layout, Layout);

/// Everything that any of `copies` has: a value that W replicas confirmed is in at least one of N - W + 1.
///
/// # Errors
///
/// [`LayoutsDiffer`].
pub(crate) fn merge(copies: impl IntoIterator<Item = Copy>) -> Result<Copy, LayoutsDiffer> {
    let mut merged = Copy::default();
    let mut sections: SectionMap<SectionState> = SectionMap::default();
    for copy in copies {
        merged.configured = merged.configured.newer(copy.configured);
        merged.promised = merged.promised.max(copy.promised);
        merged.layout = match (merged.layout, copy.layout) {
            (Some(one), Some(other)) if one != other => return Err(LayoutsDiffer(one, other)),
            (one, other) => one.or(other),
        };
        let version = |table: &Option<Arc<Table>>| table.as_ref().map(|table| table.version);
        if version(&copy.table) > version(&merged.table) {
            merged.table = copy.table;
        }
        for (range, state) in copy.sections {
            sections.change(&range, |old| Some(old.map_or(state, |old| joined(old, state))));
        }
    }
    merged.sections = sections.iter().collect();
    Ok(merged)
}

/// In how many sections `copy` has an older claim or a smaller ceiling than `newest`, which is merged from it and others.
pub(crate) fn behind(copy: &Copy, newest: &Copy) -> u32 {
    let mut mine: SectionMap<SectionState> = SectionMap::default();
    for (range, state) in &copy.sections {
        mine.change(range, |_| Some(*state));
    }
    let epoch = |state: &SectionState| state.owner.map(|held| held.owner.epoch);
    let count = |run: &RangeInclusive<SectionId>| run.end().get() - run.start().get() + 1;
    let mut behind = 0;
    for (range, top) in &newest.sections {
        let known = mine
            .within(range)
            .filter(|(_, state)| state.ceiling >= top.ceiling && epoch(state) >= epoch(top));
        behind += count(range) - known.map(|(run, _)| count(&run)).sum::<u32>();
    }
    behind
}

/// The highest ceiling, the highest owner, the highest of the others, each released when any replica noted it.
fn joined(one: SectionState, other: SectionState) -> SectionState {
    let mut held: BTreeMap<(Epoch, u64), Held> = BTreeMap::new();
    for next in [one.owner, one.earlier, other.owner, other.earlier].into_iter().flatten() {
        let Owner { epoch, incarnation } = next.owner;
        let known = held.entry((epoch, incarnation)).or_insert(next);
        known.released |= next.released;
    }
    let mut newest_first = held.into_values().rev();
    let (owner, earlier) = (newest_first.next(), newest_first.next());
    SectionState { ceiling: one.ceiling.max(other.ceiling), owner, earlier }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::state::State;
    use seqsvr_core::clock::Moment;
    use seqsvr_core::flaws::Flaws;
    use seqsvr_core::store::Ceiling;
    use seqsvr_core::store::message::{Answer, Question, Raised};

    const LAYOUT: Layout = Layout { section_size: 100_000, step: 10_000 };

    fn owner(version: u64) -> Owner {
        Owner { epoch: Epoch { term: 1, version }, incarnation: version }
    }

    fn ask(state: &mut State, question: Question) -> Answer {
        state.ask(Moment::default(), &question).answer.expect("nothing waits")
    }

    fn claim(state: &mut State, first: u32, last: u32, owner: Owner) {
        let sections = vec![SectionId::new(first)..=SectionId::new(last)];
        let answer = ask(state, Question::Claim { sections, owner, layout: LAYOUT });
        assert!(matches!(answer, Answer::Claimed { .. }), "{answer:?}");
    }

    fn raise(state: &mut State, owner: Owner, section: u32, max: u64) -> Raised {
        let ceilings = vec![Ceiling { section: SectionId::new(section), max }];
        match ask(state, Question::Raise { owner, ceilings }) {
            Answer::Raised(raised) => raised[0],
            other => panic!("{other:?}"),
        }
    }

    fn fresh() -> State {
        State::new(Flaws::default())
    }

    #[test]
    fn a_merged_replica_refuses_what_any_of_the_copied_would_refuse() {
        let (mut one, mut other) = (fresh(), fresh());
        claim(&mut one, 0, 9, owner(1));
        raise(&mut one, owner(1), 4, 500);
        claim(&mut other, 0, 9, owner(1));
        claim(&mut other, 3, 5, owner(2));
        raise(&mut other, owner(2), 5, 700);
        ask(&mut one, Question::Promise { term: 8 });
        let merged = merge(vec![one.copy(), other.copy()]).unwrap();
        assert_eq!(merged, merge(vec![other.copy(), one.copy()]).unwrap());
        let mut state = State::restored(merged, 1, Flaws::default());
        assert_eq!(ask(&mut state, Question::Promise { term: 7 }), Answer::Outranked(8));
        assert_eq!(raise(&mut state, owner(1), 4, 900), Raised::NotOwner(owner(2).epoch));
        assert_eq!(raise(&mut state, owner(2), 4, 499), Raised::Smaller(500));
        assert_eq!(raise(&mut state, owner(2), 5, 699), Raised::Smaller(700));
        assert_eq!(raise(&mut state, owner(1), 2, 1), Raised::Confirmed(1));
    }

    #[test]
    fn releases_are_kept_and_the_highest_earlier_owner_too() {
        let (mut one, mut other) = (fresh(), fresh());
        claim(&mut one, 0, 9, owner(1));
        claim(&mut one, 0, 9, owner(3));
        claim(&mut other, 0, 9, owner(1));
        claim(&mut other, 0, 9, owner(2));
        let merged = merge(vec![one.copy(), other.copy()]).unwrap();
        let earlier = merged.sections[0].1.earlier.unwrap();
        assert_eq!((earlier.owner, earlier.released), (owner(2), false));
        let sections = vec![SectionId::new(0)..=SectionId::new(9)];
        ask(&mut other, Question::Release { owner: owner(2), sections });
        let merged = merge(vec![one.copy(), other.copy()]).unwrap();
        assert_eq!(merged.sections.len(), 1);
        assert_eq!(merged.sections[0].1.owner.unwrap().owner, owner(3));
        assert!(merged.sections[0].1.earlier.unwrap().released);
    }

    #[test]
    fn a_store_that_slept_is_behind_in_the_sections_that_changed() {
        let (mut one, mut other) = (fresh(), fresh());
        claim(&mut one, 0, 9, owner(1));
        let newest = merge([one.copy(), other.copy()]).unwrap();
        assert_eq!((behind(&one.copy(), &newest), behind(&other.copy(), &newest)), (0, 10));
        claim(&mut other, 0, 9, owner(1));
        raise(&mut one, owner(1), 4, 500);
        claim(&mut one, 7, 8, owner(2));
        let newest = merge([one.copy(), other.copy()]).unwrap();
        assert_eq!((behind(&one.copy(), &newest), behind(&other.copy(), &newest)), (0, 3));
    }

    #[test]
    fn copies_of_different_sets_do_not_mix() {
        let other = Layout { step: 9, ..LAYOUT };
        let copy = |layout| Copy { layout: Some(layout), ..Copy::default() };
        assert_eq!(merge(vec![copy(LAYOUT), copy(other)]), Err(LayoutsDiffer(LAYOUT, other)));
    }
}
