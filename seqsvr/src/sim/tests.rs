use super::clock::Shows;
use super::trial::Trial;
use crate::flaws::{Flaw, Flaws};

#[test]
fn every_promise_holds_whatever_goes_wrong() {
    let trial = Trial::all();
    let mut answers = 0;
    for seed in 0..40 {
        let verdict = trial.run(seed);
        assert_eq!(verdict.broken, None, "seed {seed}");
        answers += verdict.answers;
    }
    assert!(answers > 4_000, "only {answers} answers: the faults leave no service to be checked");
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
fn broken_rules_are_noticed() {
    for (flaw, seeds) in [(Flaw::EpochOfNode, 10), (Flaw::AnswerBeforeConfirm, 20)] {
        let trial = Trial { flaws: Flaws::only(flaw), ..Trial::all() };
        assert!((0..seeds).any(|seed| trial.run(seed).broken.is_some()), "{flaw:?}");
    }
}

#[test]
fn leases_on_a_clock_that_jumps_would_be_noticed() {
    let trial = Trial { clocks: Shows::Wall, ..Trial::all() };
    assert!((0..100).any(|seed| trial.run(seed).broken.is_some()));
}
