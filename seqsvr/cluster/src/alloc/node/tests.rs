//! The decisions of a node, event by event, with a clock made of numbers.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use seqsvr_core::routing;
use seqsvr_core::store::Ceiling;
use seqsvr_core::store::configuration::Bounds;
use seqsvr_core::store::message::Earlier;

const LEASE: Duration = Duration::from_millis(2_000);
const LAYOUT: Layout = Layout { section_size: 100, step: 10 };

fn at(milliseconds: u64) -> Moment {
    Moment::from_nanos(milliseconds * 1_000_000)
}

fn sections(first: u32, last: u32) -> RangeInclusive<SectionId> {
    SectionId::new(first)..=SectionId::new(last)
}

fn epoch(version: u64) -> Epoch {
    Epoch { term: 1, version }
}

fn mine(version: u64) -> Owner {
    Owner { epoch: epoch(version), incarnation: 7 }
}

fn theirs(version: u64) -> Owner {
    Owner { epoch: epoch(version), incarnation: 99 }
}

fn rules() -> NodeRules {
    NodeRules { name: "a".to_owned(), incarnation: 7, lease: LEASE, layout: LAYOUT, flaws: Flaws::default() }
}

/// A table of ten sections that gives each listed run to (node 0 or 1, incarnation) under an epoch.
fn table(version: u64, given: &[(RangeInclusive<SectionId>, u32, Owner)]) -> Arc<Table> {
    let node = |name: &str| routing::Node {
        name: name.to_owned(),
        addr: "http://127.0.0.1:1".to_owned(),
        state: routing::NodeState::Active,
    };
    let assignment =
        |(sections, node, owner): &(RangeInclusive<SectionId>, u32, Owner)| routing::Assignment {
            sections: sections.clone(),
            node: *node,
            home: *node,
            incarnation: owner.incarnation,
            epoch: owner.epoch,
        };
    let table = Table {
        set: 0,
        version: epoch(version),
        section_size: LAYOUT.section_size,
        uids: 0..=999,
        nodes: vec![node("a"), node("b")],
        assignments: given.iter().map(assignment).collect(),
    };
    assert_eq!(table.check(), Ok(()));
    Arc::new(table)
}

fn reading(asked: Moment, table: &Arc<Table>) -> NodeEvent {
    let reading = Reading {
        table: Some(Arc::clone(table)),
        revisions: Revisions(vec![1]),
        promised: 1,
        acting: None,
        bounds: None,
    };
    NodeEvent::Read { asked, outcome: Ok(reading) }
}

/// As the configuration says that answered it.
fn bounded(asked: Moment, table: &Arc<Table>, lease: Duration) -> NodeEvent {
    let NodeEvent::Read { asked, outcome: Ok(reading) } = reading(asked, table) else {
        unreachable!("it is")
    };
    let bounds = Some(Bounds { lease, uids: table.uids.clone() });
    NodeEvent::Read { asked, outcome: Ok(Reading { bounds, ..reading }) }
}

fn claimed(owner: Owner, earlier: Vec<Earlier>) -> NodeEvent {
    let ceilings = (0..10).map(|section| Ceiling { section: SectionId::new(section), max: 1_000 }).collect();
    NodeEvent::Claimed { owner, outcome: Ok(Claimed { ceilings, floor: 0, earlier }) }
}

fn held_by(owner: Owner, sections: RangeInclusive<SectionId>, released: bool) -> Vec<Earlier> {
    vec![Earlier { sections, owner, released }]
}

/// The actions but for the next read, which is always there.
fn but_reads(actions: Vec<Action>) -> Vec<Action> {
    actions.into_iter().filter(|action| !matches!(action, Action::Read { .. })).collect()
}

fn claim(owner: Owner, sections: RangeInclusive<SectionId>) -> Action {
    Action::Claim { sections: vec![sections], owner }
}

fn served(actions: &[Action]) -> Vec<(Owner, Vec<RangeInclusive<SectionId>>)> {
    let serve = |action: &Action| match action {
        Action::Serve { owner, sections, .. } => Some((*owner, sections.clone())),
        _ => None,
    };
    actions.iter().filter_map(serve).collect()
}

fn started(predecessor: Option<Predecessor>) -> Node {
    let mut node = Node::new(rules(), predecessor);
    let first = node.on(at(0), NodeEvent::Start);
    assert_eq!(first, [Action::Read { revisions: Revisions::default(), wait: Duration::ZERO }]);
    node
}

/// A node that serves the sections 0 to 4 under epoch 1.1, without anybody before it; its lease began at 0.
fn serving() -> Node {
    let mut node = started(None);
    let given = table(1, &[(sections(0, 4), 0, mine(1))]);
    assert_eq!(but_reads(node.on(at(5), reading(at(0), &given))), [claim(mine(1), sections(0, 4))]);
    let recorded = vec![(mine(1), vec![sections(0, 4)])];
    assert_eq!(node.on(at(6), claimed(mine(1), vec![])), [Action::Record(recorded)]);
    let actions = node.on(at(7), NodeEvent::Recorded);
    assert_eq!(served(&actions), [(mine(1), vec![sections(0, 4)])]);
    node
}

#[test]
fn the_lease_runs_from_before_the_request() {
    let node = serving();
    assert_eq!(node.lease_until(), Some(at(0) + LEASE));
}

#[test]
fn a_read_follows_the_one_before_and_a_failed_one_after_a_pause() {
    let mut node = started(None);
    let given = table(1, &[]);
    let next = node.on(at(5), reading(at(0), &given));
    assert_eq!(next, [Action::Read { revisions: Revisions(vec![1]), wait: LEASE / 4 }]);
    let failed =
        NodeEvent::Read { asked: at(5), outcome: Err(StoreError::Unavailable("cut off".to_owned())) };
    assert_eq!(node.on(at(10), failed), []);
    assert_eq!((node.wake_at(), node.lease_until()), (Some(at(60)), Some(at(0) + LEASE)));
    assert_eq!(
        node.on(at(60), NodeEvent::Wake),
        [Action::Read { revisions: Revisions(vec![1]), wait: Duration::ZERO }]
    );
}

#[test]
fn what_another_may_still_serve_waits_until_its_lease_is_over() {
    let mut node = started(None);
    let given = table(2, &[(sections(0, 4), 0, mine(2))]);
    node.on(at(100), reading(at(90), &given));
    assert_eq!(node.on(at(101), claimed(mine(2), held_by(theirs(1), sections(0, 4), false))), []);
    // Counted from the arrival of the reading, 1.1 times the lease.
    assert_eq!(node.wake_at(), Some(at(2_300)));
    assert_eq!(node.on(at(2_299), NodeEvent::Wake), []);
    assert!(matches!(node.on(at(2_300), NodeEvent::Wake)[..], [Action::Record(_)]));
    assert_eq!(served(&node.on(at(2_301), NodeEvent::Recorded)), [(mine(2), vec![sections(0, 4)])]);
}

#[test]
fn the_lease_and_the_wait_are_those_of_the_configuration_that_answered() {
    let mut node = started(None);
    let given = table(2, &[(sections(0, 4), 0, mine(2))]);
    let short = LEASE / 4;
    let actions = node.on(at(100), bounded(at(90), &given, short));
    assert!(
        actions.contains(&Action::Read { revisions: Revisions(vec![1]), wait: short / 4 }),
        "{actions:?}"
    );
    assert_eq!(node.lease_until(), Some(at(90) + short));
    assert_eq!(node.on(at(101), claimed(mine(2), held_by(theirs(1), sections(0, 4), false))), []);
    assert_eq!(node.wake_at(), Some(at(100) + short * 11 / 10));
}

#[test]
fn what_the_set_gave_up_is_unloaded_at_once_also_under_the_table_that_gives_it() {
    let mut node = serving();
    let given = table(1, &[(sections(0, 4), 0, mine(1))]);
    let NodeEvent::Read { asked, outcome: Ok(reading) } = reading(at(100), &given) else {
        unreachable!("it is")
    };
    let bounds = Some(Bounds { lease: LEASE, uids: 0..=299 });
    let actions = node.on(at(105), NodeEvent::Read { asked, outcome: Ok(Reading { bounds, ..reading }) });
    let unload = Action::Unload { owner: mine(1), sections: vec![sections(3, 4)] };
    assert_eq!(but_reads(actions), [unload]);
    assert_eq!(node.table().map(|table| table.uids.clone()), Some(0..=299));
    assert_eq!(node.lease_until(), Some(at(100) + LEASE));
    assert_eq!(node.held(), Runs::new([sections(0, 2)]));
}

#[test]
fn a_release_that_a_repeated_claim_shows_ends_the_wait() {
    let mut node = started(None);
    let given = table(2, &[(sections(0, 4), 0, mine(2))]);
    node.on(at(100), reading(at(90), &given));
    node.on(at(101), claimed(mine(2), held_by(theirs(1), sections(0, 4), false)));
    // The release wakes the long poll with the same table.
    assert_eq!(but_reads(node.on(at(110), reading(at(100), &given))), [claim(mine(2), sections(0, 4))]);
    // Another change, while the claim is on its way, makes it be repeated once more.
    assert_eq!(but_reads(node.on(at(111), reading(at(110), &given))), []);
    let again = node.on(at(112), claimed(mine(2), held_by(theirs(1), sections(1, 4), false)));
    assert!(matches!(&again[..], [Action::Claim { .. }, Action::Record(_)]), "{again:?}");
    assert_eq!(served(&node.on(at(113), NodeEvent::Recorded)), [(mine(2), vec![sections(0, 0)])]);
    node.on(at(114), claimed(mine(2), held_by(theirs(1), sections(1, 4), true)));
    let actions = node.on(at(115), NodeEvent::Recorded);
    assert_eq!(served(&actions), [(mine(2), vec![sections(1, 4)])]);
    let Action::Serve { claimed, .. } = &actions[0] else { panic!("{actions:?}") };
    assert_eq!(claimed.ceilings.iter().map(|one| one.section.get()).collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[test]
fn a_dead_predecessor_is_not_waited_for_where_it_had_recorded_that_it_serves() {
    let before = Owner { epoch: epoch(1), incarnation: 6 };
    let dead = Predecessor { incarnation: 6, serving: vec![(before, vec![sections(0, 2)])] };
    let mut node = started(Some(dead));
    let given = table(2, &[(sections(0, 4), 0, mine(2))]);
    node.on(at(100), reading(at(90), &given));
    node.on(at(101), claimed(mine(2), held_by(before, sections(0, 4), false)));
    // 3 and 4 were claimed by it, but it was itself still waiting for them.
    assert_eq!(served(&node.on(at(102), NodeEvent::Recorded)), [(mine(2), vec![sections(0, 2)])]);
    assert_eq!(node.wake_at(), Some(at(2_300)));

    let dead = Predecessor { incarnation: 6, serving: vec![(before, vec![sections(0, 4)])] };
    let mut node = started(Some(dead));
    node.on(at(100), reading(at(90), &given));
    let other_epoch = Owner { epoch: epoch(0), ..before };
    assert_eq!(node.on(at(101), claimed(mine(2), held_by(other_epoch, sections(0, 4), false))), []);
}

#[test]
fn sections_of_another_incarnation_are_not_mine() {
    let mut node = started(None);
    let given = table(1, &[(sections(0, 4), 0, theirs(1)), (sections(5, 9), 1, mine(1))]);
    assert_eq!(but_reads(node.on(at(5), reading(at(0), &given))), []);
    assert!(node.held().is_empty());
}

#[test]
fn lost_sections_are_unloaded_at_once_and_released_when_their_answers_have_left() {
    let mut node = serving();
    let moved = table(2, &[(sections(0, 1), 0, mine(1)), (sections(2, 4), 1, theirs(2))]);
    let unload = Action::Unload { owner: mine(1), sections: vec![sections(2, 4)] };
    assert_eq!(but_reads(node.on(at(500), reading(at(10), &moved))), [unload]);
    let release = Action::Release { owner: mine(1), sections: vec![sections(2, 4)] };
    assert_eq!(node.on(at(510), NodeEvent::Drained), std::slice::from_ref(&release));
    // An answer that got lost: once more, after a pause.
    let lost = NodeEvent::Released { owner: mine(1), outcome: Err(StoreError::Unavailable(String::new())) };
    assert_eq!(node.on(at(520), lost), []);
    assert_eq!(node.on(at(570), NodeEvent::Wake), [release]);
    node.on(at(580), NodeEvent::Released { owner: mine(1), outcome: Ok(()) });
    assert_eq!(node.wake_at(), None);
    assert_eq!(node.held(), Runs::new([sections(0, 1)]));
}

#[test]
fn what_was_never_served_is_not_released() {
    let mut node = started(None);
    let given = table(2, &[(sections(0, 4), 0, mine(2))]);
    node.on(at(100), reading(at(90), &given));
    node.on(at(101), claimed(mine(2), held_by(theirs(1), sections(0, 4), false)));
    let taken = table(3, &[(sections(0, 4), 1, theirs(3))]);
    assert_eq!(but_reads(node.on(at(200), reading(at(150), &taken))), []);
    assert_eq!(node.on(at(201), NodeEvent::Drained), []);
    assert_eq!(node.on(at(2_300), NodeEvent::Wake), []);
}

#[test]
fn a_section_lost_while_it_is_recorded_is_not_served() {
    let mut node = started(None);
    let given = table(1, &[(sections(0, 4), 0, mine(1))]);
    node.on(at(5), reading(at(0), &given));
    node.on(at(6), claimed(mine(1), vec![]));
    let moved = table(2, &[(sections(0, 1), 0, mine(1)), (sections(2, 4), 1, theirs(2))]);
    assert_eq!(but_reads(node.on(at(7), reading(at(5), &moved))), []);
    assert_eq!(served(&node.on(at(8), NodeEvent::Recorded)), [(mine(1), vec![sections(0, 1)])]);
}

#[test]
fn after_a_gap_in_the_lease_the_same_assignment_is_served_on() {
    let mut node = serving();
    let given = table(1, &[(sections(0, 4), 0, mine(1))]);
    let failed = |asked| NodeEvent::Read { asked, outcome: Err(StoreError::Unavailable(String::new())) };
    node.on(at(2_500), failed(at(5)));
    assert!(node.lease_until() < Some(at(2_500)));
    node.on(at(2_550), NodeEvent::Wake);
    assert_eq!(but_reads(node.on(at(2_560), reading(at(2_550), &given))), []);
    assert_eq!(node.lease_until(), Some(at(4_550)));
    assert_eq!(node.held(), Runs::new([sections(0, 4)]));
}

#[test]
fn an_older_table_neither_takes_anything_nor_renews() {
    let mut node = serving();
    let newer = table(3, &[(sections(0, 4), 0, mine(1))]);
    node.on(at(500), reading(at(100), &newer));
    let until = node.lease_until();
    let older = table(2, &[(sections(0, 4), 1, theirs(2))]);
    assert_eq!(but_reads(node.on(at(600), reading(at(550), &older))), []);
    assert_eq!(node.lease_until(), until);
}

#[test]
fn coming_back_under_a_newer_epoch_is_a_new_section_group() {
    let mut node = serving();
    let back = table(3, &[(sections(0, 4), 0, mine(3))]);
    let unload = Action::Unload { owner: mine(1), sections: vec![sections(0, 4)] };
    let actions = but_reads(node.on(at(500), reading(at(100), &back)));
    assert_eq!(actions, [unload, claim(mine(3), sections(0, 4))]);
    // Its own old life is waited for as anybody's would be, until it has released.
    assert_eq!(node.on(at(501), claimed(mine(3), held_by(mine(1), sections(0, 4), false))), []);
    node.on(at(502), NodeEvent::Drained);
    node.on(at(503), NodeEvent::Released { owner: mine(1), outcome: Ok(()) });
    node.on(at(504), reading(at(500), &back));
    node.on(at(505), claimed(mine(3), held_by(mine(1), sections(0, 4), true)));
    assert_eq!(served(&node.on(at(506), NodeEvent::Recorded)), [(mine(3), vec![sections(0, 4)])]);
}

#[test]
fn a_section_that_a_newer_owner_has_claimed_is_given_up() {
    let mut node = serving();
    let lost = NodeEvent::Lost { owner: mine(1), section: SectionId::new(2) };
    let unload = Action::Unload { owner: mine(1), sections: vec![sections(2, 2)] };
    assert_eq!(node.on(at(500), lost), [unload]);
    // The old table does not bring it back.
    let given = table(1, &[(sections(0, 4), 0, mine(1))]);
    assert_eq!(but_reads(node.on(at(510), reading(at(505), &given))), []);
    assert!(!node.held().contains(SectionId::new(2)));
}

#[test]
fn a_refused_claim_is_made_again() {
    let mut node = started(None);
    let given = table(2, &[(sections(0, 4), 0, mine(2))]);
    node.on(at(100), reading(at(90), &given));
    let refused =
        NodeEvent::Claimed { owner: mine(2), outcome: Err(StoreError::Claimed { newest: epoch(9) }) };
    assert_eq!(node.on(at(110), refused), []);
    assert_eq!(node.wake_at(), Some(at(160)));
    assert_eq!(node.on(at(160), NodeEvent::Wake), [claim(mine(2), sections(0, 4))]);
}

#[test]
fn a_stop_unloads_and_releases_everything() {
    let mut node = serving();
    let unload = Action::Unload { owner: mine(1), sections: vec![sections(0, 4)] };
    assert_eq!(node.on(at(500), NodeEvent::Stop), [unload]);
    assert_eq!((node.lease_until(), node.is_stopped()), (None, false));
    let release = Action::Release { owner: mine(1), sections: vec![sections(0, 4)] };
    assert_eq!(node.on(at(501), NodeEvent::Drained), [release]);
    node.on(at(502), NodeEvent::Released { owner: mine(1), outcome: Ok(()) });
    assert!(node.is_stopped());
    let given = table(1, &[(sections(0, 4), 0, mine(1))]);
    assert_eq!(node.on(at(503), reading(at(5), &given)), []);
    assert_eq!((node.lease_until(), node.wake_at()), (None, None));
}

#[test]
fn releases_are_given_up_once_nobody_waits_for_them() {
    let mut node = serving();
    node.on(at(500), NodeEvent::Stop);
    node.on(at(501), NodeEvent::Drained);
    let failed =
        || NodeEvent::Released { owner: mine(1), outcome: Err(StoreError::Unavailable(String::new())) };
    assert_eq!(node.on(at(502), failed()), []);
    assert_eq!(node.on(at(4_501), NodeEvent::Wake), []);
    assert!(node.is_stopped());
}

proptest! {
    /// With any events in any order, a section is served only while the newest table gives it to this incarnation, under that
    /// epoch, and at most once at a time.
    #[test]
    fn only_what_the_table_gives_is_served(script in proptest::collection::vec((0..6_u8, 0..10_u32, 0..10_u32, any::<bool>()), 1..60)) {
        let mut node = started(None);
        let mut serving: BTreeMap<u32, Owner> = BTreeMap::new();
        let mut newest = table(1, &[]);
        for (now, (what, first, last, flag)) in (10..).step_by(300).zip(script) {
            let (first, last, version) = (first.min(last), first.max(last), newest.version.version + 1);
            let event = match what {
                0 => {
                    let owner = if flag { mine(version) } else { theirs(version) };
                    newest = table(version, &[(sections(first, last), u32::from(!flag), owner)]);
                    reading(at(now - 5), &newest)
                }
                1 => reading(at(now - 5), &newest),
                2 => {
                    let epoch = newest.assignments.first().map_or(1, |one| one.epoch.version);
                    claimed(mine(epoch), held_by(theirs(1), sections(first, last), flag))
                }
                3 => NodeEvent::Recorded,
                4 => NodeEvent::Drained,
                _ => NodeEvent::Wake,
            };
            for action in node.on(at(now), event) {
                match action {
                    Action::Serve { owner, sections, .. } => {
                        for section in sections.iter().flat_map(|run| run.start().get()..=run.end().get()) {
                            prop_assert_eq!(serving.insert(section, owner), None);
                        }
                    }
                    Action::Unload { owner, sections } => {
                        for section in sections.iter().flat_map(|run| run.start().get()..=run.end().get()) {
                            prop_assert_eq!(serving.remove(&section), Some(owner));
                        }
                    }
                    _ => {}
                }
            }
            for (&section, owner) in &serving {
                let given = newest.owner(SectionId::new(section)).expect("the table gives it");
                prop_assert_eq!((given.incarnation, given.epoch), (owner.incarnation, owner.epoch));
            }
        }
    }
}
