//! The rules of one replica: each by an example, and all of them under random questions.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use seqsvr_core::routing::{Assignment, Node, NodeState};

const LAYOUT: Layout = Layout { section_size: 100_000, step: 10_000 };
const NOW: Moment = Moment::from_nanos(1_000_000_000);

fn owner(version: u64, incarnation: u64) -> Owner {
    Owner { epoch: Epoch { term: 1, version }, incarnation }
}

fn range(first: u32, last: u32) -> RangeInclusive<SectionId> {
    SectionId::new(first)..=SectionId::new(last)
}

fn ceiling(section: u32, max: u64) -> Ceiling {
    Ceiling { section: SectionId::new(section), max }
}

fn table(term: u64, version: u64) -> Arc<Table> {
    let node = Node { name: "a".to_owned(), addr: "http://127.0.0.1:1".to_owned(), state: NodeState::Active };
    let version = Epoch { term, version };
    let sections = range(0, 9);
    let assignments = vec![Assignment { sections, node: 0, home: 0, incarnation: 1, epoch: version }];
    Arc::new(Table {
        set: 0,
        version,
        section_size: 100_000,
        uids: 0..=999_999,
        nodes: vec![node],
        assignments,
    })
}

fn fresh() -> State {
    State::new(Flaws::default())
}

fn ask(state: &mut State, question: Question) -> Answer {
    state.ask(NOW, &question).answer.expect("only a read with a wait is held back")
}

fn claim(state: &mut State, sections: &[RangeInclusive<SectionId>], owner: Owner) -> Answer {
    ask(state, Question::Claim { sections: sections.to_vec(), owner, layout: LAYOUT })
}

fn raise(state: &mut State, owner: Owner, section: u32, max: u64) -> Raised {
    let ceilings = vec![ceiling(section, max)];
    match ask(state, Question::Raise { owner, ceilings }) {
        Answer::Raised(raised) => raised[0],
        other => panic!("{other:?}"),
    }
}

fn release(state: &mut State, sections: RangeInclusive<SectionId>, owner: Owner) {
    assert_eq!(ask(state, Question::Release { owner, sections: vec![sections] }), Answer::Released);
}

fn claimed(ceilings: &[Ceiling], earlier: &[(u32, u32, Owner, bool)]) -> Answer {
    let earlier = earlier.iter().map(|&(first, last, owner, released)| {
        let sections = range(first, last);
        Earlier { sections, owner, released }
    });
    Answer::Claimed { ceilings: ceilings.to_vec(), earlier: earlier.collect() }
}

#[test]
fn a_claim_tells_ceilings_and_who_held_the_sections_before() {
    let mut state = fresh();
    assert_eq!(claim(&mut state, &[range(0, 3)], owner(1, 1)), claimed(&[], &[]));
    assert_eq!(claim(&mut state, &[range(4, 9)], owner(1, 2)), claimed(&[], &[]));
    assert_eq!(raise(&mut state, owner(1, 1), 2, 500), Raised::Confirmed(500));
    let answer = claimed(&[ceiling(2, 500)], &[(0, 3, owner(1, 1), false), (4, 9, owner(1, 2), false)]);
    assert_eq!(claim(&mut state, &[range(5, 12), range(0, 4)], owner(2, 3)), answer);
}

#[test]
fn a_repeated_claim_gets_the_same_answer() {
    let mut state = fresh();
    claim(&mut state, &[range(0, 9)], owner(1, 1));
    let first = claim(&mut state, &[range(0, 9)], owner(2, 2));
    let before = state.clone();
    assert_eq!(claim(&mut state, &[range(0, 9)], owner(2, 2)), first);
    assert_eq!(state, before);
}

#[test]
fn a_claim_takes_all_sections_or_none() {
    let mut state = fresh();
    claim(&mut state, &[range(5, 5)], owner(3, 1));
    let before = state.clone();
    assert_eq!(
        claim(&mut state, &[range(0, 4), range(5, 9)], owner(2, 2)),
        Answer::Outclaimed(owner(3, 1).epoch)
    );
    assert_eq!(state, before);
}

#[test]
fn an_equal_epoch_of_another_incarnation_is_refused() {
    let mut state = fresh();
    claim(&mut state, &[range(0, 9)], owner(1, 1));
    assert_eq!(claim(&mut state, &[range(9, 9)], owner(1, 2)), Answer::Outclaimed(owner(1, 1).epoch));
    assert_eq!(raise(&mut state, owner(1, 2), 0, 10), Raised::NotOwner(owner(1, 1).epoch));
    let mut flawed = State::new(Flaws::only(Flaw::EpochOfNode));
    claim(&mut flawed, &[range(0, 9)], owner(1, 1));
    assert_eq!(raise(&mut flawed, owner(1, 2), 0, 10), Raised::Confirmed(10));
}

#[test]
fn another_layout_is_refused() {
    let mut state = fresh();
    claim(&mut state, &[range(0, 9)], owner(1, 1));
    let layout = Layout { step: 9_999, ..LAYOUT };
    let question = Question::Claim { sections: vec![range(0, 9)], owner: owner(2, 1), layout };
    assert_eq!(ask(&mut state, question), Answer::OtherLayout(LAYOUT));
}

#[test]
fn a_release_is_noted_for_exactly_its_owner_also_after_the_next_claim() {
    let mut state = fresh();
    claim(&mut state, &[range(0, 9)], owner(1, 1));
    release(&mut state, range(0, 3), owner(1, 1));
    let answer = claimed(&[], &[(0, 3, owner(1, 1), true), (4, 9, owner(1, 1), false)]);
    assert_eq!(claim(&mut state, &[range(0, 9)], owner(2, 2)), answer);
    release(&mut state, range(0, 9), owner(1, 7));
    assert_eq!(claim(&mut state, &[range(0, 9)], owner(2, 2)), answer);
    let revision = state.revision();
    release(&mut state, range(4, 9), owner(1, 1));
    assert!(state.revision() > revision, "a release wakes readers");
    assert_eq!(claim(&mut state, &[range(0, 9)], owner(2, 2)), claimed(&[], &[(0, 9, owner(1, 1), true)]));
    assert_eq!(claim(&mut state, &[range(0, 9)], owner(3, 3)), claimed(&[], &[(0, 9, owner(2, 2), false)]));
    let mut flawed = State::new(Flaws::only(Flaw::LooseRelease));
    claim(&mut flawed, &[range(0, 9)], owner(1, 1));
    release(&mut flawed, range(0, 9), owner(9, 9));
    assert_eq!(claim(&mut flawed, &[range(0, 9)], owner(2, 2)), claimed(&[], &[(0, 9, owner(1, 1), true)]));
}

#[test]
fn a_ceiling_only_grows_and_only_for_its_owner() {
    let mut state = fresh();
    assert_eq!(raise(&mut state, owner(1, 1), 0, 10), Raised::NotOwner(Epoch::default()));
    claim(&mut state, &[range(0, 9)], owner(1, 1));
    assert_eq!(raise(&mut state, owner(1, 1), 0, 10), Raised::Confirmed(10));
    assert_eq!(raise(&mut state, owner(1, 1), 0, 10), Raised::Confirmed(10));
    assert_eq!(raise(&mut state, owner(1, 1), 0, 9), Raised::Smaller(10));
    claim(&mut state, &[range(0, 0)], owner(2, 1));
    assert_eq!(raise(&mut state, owner(1, 1), 0, 20), Raised::NotOwner(owner(2, 1).epoch));
    assert_eq!(raise(&mut state, owner(1, 1), 1, 20), Raised::Confirmed(20));
}

#[test]
fn a_lower_term_is_outranked_and_an_older_table_refused() {
    let mut state = fresh();
    assert_eq!(ask(&mut state, Question::Promise { term: 5 }), Answer::Promised(None));
    assert_eq!(ask(&mut state, Question::Promise { term: 4 }), Answer::Outranked(5));
    assert_eq!(ask(&mut state, Question::Write(table(4, 9))), Answer::Outranked(5));
    assert_eq!(ask(&mut state, Question::Write(table(5, 2))), Answer::Written);
    assert_eq!(ask(&mut state, Question::Write(table(5, 2))), Answer::Written);
    assert_eq!(ask(&mut state, Question::Write(table(5, 1))), Answer::Newer(table(5, 2).version));
    assert_eq!(ask(&mut state, Question::Write(table(7, 1))), Answer::Written);
    assert_eq!(ask(&mut state, Question::Promise { term: 6 }), Answer::Outranked(7));
    assert_eq!(ask(&mut state, Question::Promise { term: 8 }), Answer::Promised(Some(table(7, 1))));
    assert_eq!(ask(&mut state, Question::Write(table(7, 1))), Answer::Outranked(8));
}

#[test]
fn a_read_is_held_back_until_the_table_or_a_release_changes() {
    let mut state = fresh();
    claim(&mut state, &[range(0, 9)], owner(1, 1));
    let wait = Duration::from_millis(500);
    let mut known = state.revision();
    for change in
        [Question::Write(table(1, 1)), Question::Release { owner: owner(1, 1), sections: vec![range(3, 3)] }]
    {
        let read = Question::Read { revision: known, wait, releases: true };
        assert_eq!(state.ask(NOW, &read).answer, None);
        ask(&mut state, change);
        let Answer::Table { revision, table: read_table, .. } = ask(&mut state, read) else { panic!() };
        assert_eq!(read_table, Some(table(1, 1)));
        assert!(revision > known);
        known = revision;
    }
    let read = Question::Read { revision: known, wait: Duration::ZERO, releases: true };
    assert!(matches!(ask(&mut state, read), Answer::Table { .. }), "no wait is answered at once");
}

#[test]
fn the_acting_arbiter_is_the_one_of_the_promised_term() {
    let mut state = fresh();
    let acting = |state: &mut State, later: u64| {
        let read = Question::Read { revision: 0, wait: Duration::ZERO, releases: true };
        match state.ask(NOW + Duration::from_millis(later), &read).answer {
            Some(Answer::Table { acting, .. }) => acting,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(acting(&mut state, 0), None);
    ask(&mut state, Question::Promise { term: 5 });
    assert_eq!(acting(&mut state, 20), Some(Duration::from_millis(20)));
    ask(&mut state, Question::Acting { term: 4 });
    let beat = state.ask(NOW + Duration::from_millis(30), &Question::Acting { term: 5 });
    assert_eq!(beat, Answer::Acting(5).into());
    assert_eq!(acting(&mut state, 40), Some(Duration::from_millis(10)));
}

#[test]
fn a_whole_set_is_a_few_runs_until_its_ceilings_differ() {
    let mut state = fresh();
    claim(&mut state, &[range(0, 42_949)], owner(1, 1));
    claim(&mut state, &[range(0, 42_949)], owner(2, 1));
    assert_eq!(state.copy().sections.len(), 1);
    raise(&mut state, owner(2, 1), 7, 10);
    assert_eq!(state.copy().sections.len(), 3);
}

fn owners() -> impl Strategy<Value = Owner> {
    (1u64..5, 1u64..3).prop_map(|(version, incarnation)| owner(version, incarnation))
}

fn ranges() -> impl Strategy<Value = Vec<RangeInclusive<SectionId>>> {
    // Up to two disjoint ranges.
    (0u32..6, 0u32..4, prop::option::of(0u32..4)).prop_map(|(first, more, second)| {
        let last = first + more;
        let second = second.map(|more| range(last + 2, last + 2 + more));
        std::iter::once(range(first, last)).chain(second).collect()
    })
}

fn questions() -> impl Strategy<Value = Question> {
    let ceilings = prop::collection::vec((0u32..12, 1u64..6), 1..4);
    let ceilings =
        ceilings.prop_map(|all| all.into_iter().map(|(section, max)| ceiling(section, max)).collect());
    prop_oneof![
        3 => (ranges(), owners()).prop_map(|(sections, owner)| Question::Claim {
            sections, owner, layout: LAYOUT
        }),
        3 => (owners(), ceilings).prop_map(|(owner, ceilings)| Question::Raise { owner, ceilings }),
        2 => (owners(), ranges()).prop_map(|(owner, sections)| Question::Release { owner, sections }),
        1 => (1u64..5).prop_map(|term| Question::Promise { term }),
        1 => (1u64..5, 1u64..4).prop_map(|(term, version)| Question::Write(table(term, version))),
        1 => (1u64..5).prop_map(|term| Question::Acting { term }),
        1 => Just(Question::Read { revision: 0, wait: Duration::ZERO, releases: true }),
    ]
}

/// Every section by itself.
fn spread(copy: &Copy) -> BTreeMap<u32, SectionState> {
    let one = |(run, state): &(RangeInclusive<SectionId>, SectionState)| {
        let state = *state;
        (run.start().get()..=run.end().get()).map(move |section| (section, state))
    };
    copy.sections.iter().flat_map(one).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_ever_goes_back(asked in prop::collection::vec(questions(), 1..60)) {
        let mut state = fresh();
        for question in asked {
            let before = state.clone();
            let decision = state.ask(NOW, &question);
            prop_assert_eq!(decision.change.is_none(), before.copy() == state.copy());
            prop_assert!(before.promised <= state.promised && before.revision <= state.revision);
            let version = |state: &State| state.table.as_ref().map(|table| table.version);
            prop_assert!(version(&before) <= version(&state));
            prop_assert!(version(&state).is_none_or(|version| version.term <= state.promised));
            if version(&before) != version(&state)
                || matches!(decision.change, Some(StateChange::Release { .. }))
            {
                prop_assert!(before.revision < state.revision);
            }
            let after = spread(&state.copy());
            for (section, old) in spread(&before.copy()) {
                let new = after[&section];
                prop_assert!(old.ceiling <= new.ceiling);
                let (held, holds) = (old.owner.unwrap(), new.owner.unwrap());
                prop_assert!(held.owner == holds.owner || held.owner.epoch < holds.owner.epoch);
                prop_assert!(held.owner != holds.owner || held.released <= holds.released);
                let earlier = new.earlier.map(|earlier| earlier.owner.epoch);
                prop_assert!(earlier < Some(holds.owner.epoch));
                prop_assert!(held.owner == holds.owner || earlier == Some(held.owner.epoch));
            }
        }
    }

    #[test]
    fn repeating_a_question_changes_nothing_and_gets_the_same_answer(
        asked in prop::collection::vec(questions(), 1..40)
    ) {
        let mut state = fresh();
        for question in asked {
            let first = state.ask(NOW, &question);
            let repeated = state.ask(NOW, &question);
            prop_assert_eq!(repeated.change, None);
            if let Question::Promise { term } = question {
                // An arbiter that bids again bids for a higher term.
                prop_assert_eq!(repeated.answer, Some(Answer::Outranked(term.max(state.copy().promised))));
                continue;
            }
            if let (Some(Answer::Raised(first)), Some(Answer::Raised(again))) = (&first.answer, &repeated.answer) {
                // Only a later target in the same question makes an earlier one too small.
                prop_assert_eq!(first.len(), again.len());
            } else {
                prop_assert_eq!(first.answer, repeated.answer);
            }
        }
    }

    #[test]
    fn the_changes_alone_make_the_same_state(asked in prop::collection::vec(questions(), 1..60)) {
        let (mut state, mut replayed) = (fresh(), fresh());
        for question in asked {
            if let Some(change) = state.ask(NOW, &question).change {
                replayed.apply(&change);
            }
            prop_assert_eq!(replayed.copy(), state.copy());
            prop_assert_eq!(replayed.revision, state.revision);
            let restored = State::restored(state.copy(), state.revision, Flaws::default());
            prop_assert_eq!(&restored, &replayed);
        }
    }
}
