//! Seeds in the tests: that every promise holds under all faults, that a seed replays, and that a broken rule shows.

use std::time::Duration;

use super::MILLI;
use super::clock::Shows;
use super::cluster::{Arbiters, Shape};
use super::explore::Protocol;
use super::faults::Mix;
use super::owner::{Part, TAKEOVER};
use super::trial::{Trial, Verdict};
use crate::flaws::{Flaw, Flaws};
use crate::store::quorum::Sizes;

/// Where a broken rule shows: under which mix of faults, in which clusters.
type Where = (Mix, fn(Shape) -> Shape);

/// The first seed below `most` under which the broken rule shows, as a broken promise about numbers.
fn caught(flaw: Flaw, (mix, bend): &Where, most: u64) -> Option<u64> {
    let trial = Trial { flaws: Flaws::only(flaw), mix: mix.clone(), bend: *bend, ..Trial::all() };
    (0..most).find(|&seed| trial.run(seed).is_wrong())
}

fn any(shape: Shape) -> Shape {
    shape
}

/// Sections move several times a second, and their ceilings are raised by so much at a time.
fn moving(step: u32, shape: Shape) -> Shape {
    Shape { arbiters: Arbiters::Wild, restless: 400 * MILLI, step, ..shape }
}

/// An owner that nobody tells serves on for long: it has many numbers.
fn roomy(shape: Shape) -> Shape {
    Shape { count: 4, ..moving(1_000, shape) }
}

fn busy(shape: Shape) -> Shape {
    Shape { count: 6, sections: 2, allocs: 3, ..moving(40, shape) }
}

/// Nearly every request needs a raise.
fn tight(shape: Shape) -> Shape {
    Shape { count: 4, sections: 1, allocs: 3, ..moving(2, shape) }
}

/// Answers of replicas are counted for longer than a lease lasts.
fn patient(shape: Shape) -> Shape {
    Shape { patience: Duration::from_secs(2), ..shape }
}

fn assert_holds(trial: &Trial, seeds: std::ops::Range<u64>) -> u64 {
    let run = |seed| {
        let Verdict { broken, answers, .. } = trial.run(seed);
        assert_eq!(broken, None, "seed {seed}");
        answers
    };
    seeds.map(run).sum()
}

#[test]
fn every_promise_holds_whatever_goes_wrong() {
    let answers = assert_holds(&Trial::all(), 0..100);
    assert!(answers > 20_000, "only {answers} answers: the faults leave too little to be checked");
}

#[test]
fn every_promise_holds_under_the_mixes_that_catch_broken_rules() {
    for mix in [Mix::pauses(), Mix::late(), Mix::cuts(), Mix::losses(), Mix::halves()] {
        assert_holds(&Trial { mix, ..Trial::all() }, 0..20);
    }
    for (mix, bend) in [(Mix::halves(), roomy as fn(_) -> _), (Mix::losses(), busy), (Mix::losses(), tight)] {
        assert_holds(&Trial { mix, bend, ..Trial::all() }, 0..10);
    }
}

/// A broken rule that is not noticed would mean that the checker proves nothing about it.
#[test]
fn each_broken_rule_is_noticed() {
    let within: [(Flaw, Where, u64); 11] = [
        (Flaw::FenceFromRead, (Mix { crash: 6, ..Mix::late() }, any), 60),
        (Flaw::EpochOfNode, (Mix::pauses(), any), 20),
        (Flaw::NoTakeoverWait, (Mix::cuts(), any), 20),
        (Flaw::LeaseFromAnswer, (Mix::pauses(), patient), 60),
        (Flaw::NoDeadlineCheck, (Mix::pauses(), any), 40),
        (Flaw::AnswerBeforeConfirm, (Mix::late(), any), 20),
        (Flaw::LooseRelease, (Mix::late(), busy), 40),
        (Flaw::SmallQuorum, (Mix::late(), any), 60),
        (Flaw::TableOnOne, (Mix::halves(), roomy), 20),
        (Flaw::RejoinOnTooFew, (Mix::losses(), busy), 20),
        (Flaw::NoSettle, (Mix::losses(), tight), 20),
    ];
    for (flaw, place, most) in within {
        assert!(caught(flaw, &place, most).is_some(), "{flaw:?} in {most} seeds");
    }
}

#[test]
fn a_seed_replays_to_the_same_history() {
    let trial = Trial::all();
    for seed in 0..3 {
        assert_eq!(trial.run(seed), trial.run(seed));
    }
    assert_ne!(trial.run(0).hash, trial.run(1).hash);
}

#[test]
fn leases_on_a_clock_that_jumps_would_be_noticed() {
    let trial = Trial { clocks: Shows::Wall, ..Trial::all() };
    assert!((0..100).any(|seed| trial.run(seed).is_wrong()));
}

/// The first owner's raise has reached one replica when the second one claims; its lease ends with tick 1.
fn fence(sizes: Sizes, flaws: Flaws) -> Protocol {
    let old = Part { serves: true, lease: 1, raises: 1, answers: 1, ..Part::default() };
    let new = Part { given: Some(0), wait: 1, lease: 9, claims: 1, answers: 1, ..Part::default() };
    Protocol {
        sizes,
        flaws,
        owners: vec![old, new],
        claimed: 1,
        ticks: 1,
        written: 0,
        loses: false,
        raising: true,
    }
}

/// The arbiter ended when one replica had the second owner's table; either reads, when it likes.
fn lease(flaws: Flaws) -> Protocol {
    let old = Part { serves: true, base: Some(20), reads: 1, answers: 1, ..Part::default() };
    let new = Part { base: Some(100), wait: TAKEOVER, lease: 9, reads: 1, answers: 1, ..Part::default() };
    let sizes = Sizes::new(3, 2).expect("these quorums meet");
    Protocol {
        sizes,
        flaws,
        owners: vec![old, new],
        claimed: 1,
        ticks: TAKEOVER,
        written: 1,
        loses: false,
        raising: false,
    }
}

/// The section goes to the second owner by a table that counts; the first hears of it, leaves and releases.
fn release(sizes: Sizes, flaws: Flaws) -> Protocol {
    let old =
        Part { serves: true, base: Some(20), lease: 2, reads: 1, answers: 1, releases: 1, ..Part::default() };
    let new = Part { given: Some(0), wait: TAKEOVER, lease: 9, claims: 2, answers: 1, ..Part::default() };
    let (owners, written) = (vec![old, new], sizes.n());
    Protocol { sizes, flaws, owners, claimed: 1, ticks: TAKEOVER, written, loses: false, raising: false }
}

/// The first owner has left and says so only now, when the second one serves and the third is given the section.
fn late_release(flaws: Flaws) -> Protocol {
    let gone = Part { left: true, releases: 1, ..Part::default() };
    let old = Part { serves: true, base: Some(20), lease: 2, answers: 1, ..Part::default() };
    let new = Part { given: Some(0), wait: TAKEOVER, lease: 9, claims: 2, answers: 1, ..Part::default() };
    let sizes = Sizes::new(3, 2).expect("these quorums meet");
    Protocol {
        sizes,
        flaws,
        owners: vec![gone, old, new],
        claimed: 2,
        ticks: TAKEOVER,
        written: 0,
        loses: false,
        raising: false,
    }
}

#[test]
fn no_order_of_messages_breaks_the_fence() {
    let sizes = |n, w| Sizes::new(n, w).expect("these quorums meet");
    let explored = fence(sizes(3, 2), Flaws::default()).explore(10_000);
    assert!(explored.whole && explored.broken.is_none(), "{explored:?}");
    for larger in [sizes(5, 3), sizes(5, 4)] {
        assert_eq!(fence(larger, Flaws::default()).explore(5_000).broken, None);
    }
}

/// The raise reaches the last replica after the read that should have seen it.
#[test]
fn a_fence_by_a_separate_read_is_broken_by_some_order() {
    let flawed = fence(Sizes::new(3, 2).expect("these quorums meet"), Flaws::only(Flaw::FenceFromRead));
    let broken = flawed.explore(20_000).broken.expect("there is such an order");
    assert!(broken.len() < 20, "{broken:#?}");
}

/// Its rules: what was confirmed is found, and nobody counts what the lost disk had answered.
#[test]
fn a_lost_disk_breaks_the_fence_only_when_a_rule_of_the_rejoin_is_broken() {
    let explore = |sizes, flaws| Protocol { loses: true, ..fence(sizes, flaws) }.explore(20_000);
    let sizes = |n, w| Sizes::new(n, w).expect("these quorums meet");
    let explored = explore(sizes(3, 2), Flaws::default());
    assert!(explored.whole && explored.broken.is_none(), "{explored:?}");
    assert_eq!(explore(sizes(5, 3), Flaws::default()).broken, None);
    for flaw in [Flaw::NoSettle, Flaw::CountLate, Flaw::RejoinOnTooFew] {
        let broken = explore(sizes(3, 2), Flaws::only(flaw)).broken;
        assert!(broken.is_some_and(|path| path.len() < 20), "{flaw:?}");
    }
}

#[test]
fn a_half_written_table_gives_two_owners_only_when_one_replica_is_enough() {
    assert_eq!(lease(Flaws::default()).explore(10_000).broken, None);
    assert!(lease(Flaws::only(Flaw::TableOnOne)).explore(60_000).broken.is_some());
}

#[test]
fn no_order_of_messages_lets_a_release_give_two_owners() {
    let sizes = |n, w| Sizes::new(n, w).expect("these quorums meet");
    for sizes in [sizes(3, 2), sizes(5, 3)] {
        assert_eq!(release(sizes, Flaws::default()).explore(5_000).broken, None);
    }
    let explored = late_release(Flaws::default()).explore(20_000);
    assert!(explored.broken.is_none(), "{explored:?}");
}

#[test]
fn a_release_that_counts_whoever_sends_it_gives_two_owners_in_some_order() {
    let broken = late_release(Flaws::only(Flaw::LooseRelease)).explore(20_000).broken;
    assert!(broken.is_some_and(|path| path.len() < 20));
}
