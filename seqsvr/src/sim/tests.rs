//! Seeds in the tests: that every promise holds under all faults, that a seed replays, and that a broken rule shows.

use super::clock::Shows;
use super::faults::Mix;
use super::trial::{Trial, Verdict};
use crate::flaws::{Flaw, Flaws};

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
