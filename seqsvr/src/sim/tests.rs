//! Seeds in the tests: that every promise holds under all faults, that a seed replays, and that a broken rule shows.

use super::clock::Shows;
use super::explore::Protocol;
use super::faults::Mix;
use super::owner::{Part, TAKEOVER};
use super::trial::{Trial, Verdict};
use crate::flaws::{Flaw, Flaws};
use crate::store::quorum::Sizes;

/// The first seed below `most` under which the broken rule shows, as a broken promise about numbers.
fn caught(flaw: Flaw, mix: &Mix, most: u64) -> Option<u64> {
    let trial = Trial { flaws: Flaws::only(flaw), mix: mix.clone(), ..Trial::all() };
    (0..most).find(|&seed| trial.run(seed).is_wrong())
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
    for mix in [Mix::pauses(), Mix::late(), Mix::cuts()] {
        assert_holds(&Trial { mix, ..Trial::all() }, 0..40);
    }
}

/// A broken rule that is not noticed would mean that the checker proves nothing about it.
#[test]
fn each_broken_rule_is_noticed() {
    let within = [
        (Flaw::FenceFromRead, Mix::late(), 60),
        (Flaw::EpochOfNode, Mix::pauses(), 20),
        (Flaw::NoTakeoverWait, Mix::cuts(), 20),
        (Flaw::LeaseFromAnswer, Mix::pauses(), 40),
        (Flaw::NoDeadlineCheck, Mix::pauses(), 40),
        (Flaw::AnswerBeforeConfirm, Mix::late(), 20),
        (Flaw::LooseRelease, Mix::late(), 60),
        (Flaw::SmallQuorum, Mix::late(), 60),
    ];
    for (flaw, mix, most) in within {
        assert!(caught(flaw, &mix, most).is_some(), "{flaw:?} in {most} seeds");
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
    Protocol { sizes, flaws, owners: vec![old, new], ticks: 1, half_written: false, raising: true }
}

/// The arbiter ended when one replica had the second owner's table; either reads, when it likes.
fn lease(flaws: Flaws) -> Protocol {
    let old = Part { serves: true, base: Some(20), reads: 1, answers: 1, ..Part::default() };
    let new = Part { base: Some(100), wait: TAKEOVER, lease: 9, reads: 1, answers: 1, ..Part::default() };
    let sizes = Sizes::new(3, 2, 2).expect("these quorums meet");
    Protocol { sizes, flaws, owners: vec![old, new], ticks: TAKEOVER, half_written: true, raising: false }
}

#[test]
fn no_order_of_messages_breaks_the_fence() {
    let sizes = |n, r, w| Sizes::new(n, r, w).expect("these quorums meet");
    let explored = fence(sizes(3, 2, 2), Flaws::default()).explore(10_000);
    assert!(explored.whole && explored.broken.is_none(), "{explored:?}");
    for larger in [sizes(5, 3, 3), sizes(5, 2, 4)] {
        assert_eq!(fence(larger, Flaws::default()).explore(5_000).broken, None);
    }
}

/// The raise reaches the last replica after the read that should have seen it.
#[test]
fn a_fence_by_a_separate_read_is_broken_by_some_order() {
    let flawed = fence(Sizes::new(3, 2, 2).expect("these quorums meet"), Flaws::only(Flaw::FenceFromRead));
    let broken = flawed.explore(20_000).broken.expect("there is such an order");
    assert!(broken.len() < 20, "{broken:#?}");
}

#[test]
fn a_half_written_table_gives_two_owners_only_when_one_replica_is_enough() {
    assert_eq!(lease(Flaws::default()).explore(10_000).broken, None);
    assert!(lease(Flaws::only(Flaw::TableOnOne)).explore(60_000).broken.is_some());
}
