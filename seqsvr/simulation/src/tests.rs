//! Seeds in the tests: that every promise holds under all faults, that a seed replays, and that a broken rule shows.

use std::time::Duration;

use super::MILLI;
use super::alloc::AllocSetup;
use super::chance::Chance;
use super::clock::Shows;
use super::cluster::{Arbiters, Shape, SimulatedCluster};
use super::history::RunHistory;
use super::mix::Mix;
use super::moves;
use super::trial::{Trial, Verdict};
use super::{Exploration, ExplorationVerdict, explorations};
use seqsvr_cluster::alloc::config::AllocConfig;
use seqsvr_cluster::arbiter::config::ArbiterConfig;
use seqsvr_cluster::arbiter::health::HealthRules;
use seqsvr_cluster::arbiter::plan::{Balance, Policy};
use seqsvr_core::flaws::{Flaw, Flaws};
use seqsvr_core::routing::Order;
use seqsvr_core::store::Sizes;

/// Where a broken rule shows: under which mix of faults, in which clusters.
type Where = (Mix, fn(Shape) -> Shape);

/// The first seed below `most` under which the broken rule shows, as a broken promise about numbers.
fn caught(flaw: Flaw, (mix, bend): &Where, most: u64) -> Option<u64> {
    let trial = Trial { flaws: Flaws::only(flaw), mix: mix.clone(), bend: *bend, ..Trial::all() };
    (0..most).find(|&seed| trial.run(seed).is_wrong())
}

/// Everything is twice as fast as shipped, and nothing moves for load.
fn quick(shape: Shape) -> Shape {
    let lease = Duration::from_secs(1);
    let policy = Policy::Spread(Balance { every: Duration::ZERO, ..Balance::default() });
    let patience = lease / 3;
    Shape { lease, patience, policy, ..shape }
}

/// Sections move several times a second, and their ceilings are raised by so much at a time.
fn moving(step: u32, shape: Shape) -> Shape {
    Shape { arbiters: Arbiters::Wild, restless: 400 * MILLI, step, ..quick(shape) }
}

/// Little is asked for, half of it to go on above a number, while sections move all the time.
fn leaping(shape: Shape) -> Shape {
    let sizes = Sizes::new(3, 2).expect("these quorums meet");
    let shape = Shape { sizes, spares: 0, sections: 12, allocs: 3, ..moving(40, shape) };
    Shape { callers: 1, count: 4, leaps: 500, restless: 100 * MILLI, ..shape }
}

/// An owner that nobody tells serves on for long: it has many numbers.
fn roomy(shape: Shape) -> Shape {
    Shape { count: 4, ..moving(1_000, shape) }
}

fn busy(shape: Shape) -> Shape {
    Shape { count: 6, sections: 2, allocs: 3, callers: 6, ..moving(40, shape) }
}

/// Nearly every request needs a raise.
fn tight(shape: Shape) -> Shape {
    Shape { count: 4, sections: 1, allocs: 3, ..moving(2, shape) }
}

/// Three replicas, which are replaced again and again.
fn changing(shape: Shape) -> Shape {
    let sizes = Sizes::new(3, 2).expect("these quorums meet");
    Shape { sizes, spares: 8, ..busy(shape) }
}

/// The second arbiter's file lists one of the stores together with others.
fn listed_twice(shape: Shape) -> Shape {
    let sizes = Sizes::new(3, 2).expect("these quorums meet");
    Shape { sizes, spares: 2, wrong_list: true, ..busy(shape) }
}

/// Sections move only because somebody leaves, dies or is drained, and everybody asks for them.
fn draining(shape: Shape) -> Shape {
    let real = Shape { arbiters: Arbiters::Real, sections: 3, allocs: 2, callers: 6, ..shape };
    Shape { step: 40, count: 4, ..quick(real) }
}

/// Answers of replicas are counted for longer than a lease lasts.
fn patient(shape: Shape) -> Shape {
    Shape { patience: Duration::from_secs(2), ..quick(shape) }
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
    let mixes = [Mix::pauses(), Mix::late(), Mix::cuts(), Mix::sizes(), Mix::halves(), Mix::leaves()];
    for mix in mixes.into_iter().chain([Mix::replacements(), Mix::ailments()]) {
        assert_holds(&Trial { mix, ..Trial::all() }, 0..20);
    }
    let bent: [Where; 5] = [
        (Mix::halves(), roomy),
        (Mix::sizes(), changing),
        (Mix::cuts(), listed_twice),
        (Mix::replacements(), changing),
        (Mix { callers: 6, ..Mix::cuts() }, tight),
    ];
    for (mix, bend) in bent {
        assert_holds(&Trial { mix, bend, ..Trial::all() }, 0..10);
    }
}

/// A broken rule that is not noticed would mean that the checker proves nothing about it.
#[test]
fn each_broken_rule_is_noticed() {
    for (flaw, place, most) in shown_by_seeds() {
        assert!(caught(flaw, &place, most).is_some(), "{flaw:?} in {most} seeds");
    }
}

/// Each rule that seeds show, where, and within how many of them.
fn shown_by_seeds() -> [(Flaw, Where, u64); 17] {
    [
        (Flaw::AdvanceUnconfirmed, (Mix::late(), leaping), 60),
        (Flaw::ServeUnconfigured, (Mix::cuts(), listed_twice), 40),
        (Flaw::FenceFromRead, (Mix { crash: 6, ..Mix::late() }, draining), 60),
        (Flaw::EpochOfNode, (Mix::pauses(), quick), 20),
        (Flaw::NoTakeoverWait, (Mix::cuts(), quick), 20),
        (Flaw::LeaseFromAnswer, (Mix::pauses(), patient), 60),
        (Flaw::NoDeadlineCheck, (Mix::pauses(), quick), 40),
        (Flaw::AnswerBeforeConfirm, (Mix::late(), quick), 20),
        (Flaw::LooseRelease, (Mix::leaves(), draining), 20),
        (Flaw::SmallQuorum, (Mix::late(), quick), 60),
        (Flaw::TableOnOne, (Mix::halves(), roomy), 60),
        (Flaw::FirstByFew, (Mix::cuts(), listed_twice), 40),
        (Flaw::ReleaseWhileServing, (Mix::leaves(), draining), 40),
        (Flaw::AnyNumber, (Mix { gap: 300_000_000, ..Mix::replacements() }, changing), 150),
        (Flaw::UnknownCounts, (Mix { callers: 6, ..Mix::cuts() }, tight), 40),
        (Flaw::AnswerByPlace, (Mix::late(), quick), 20),
        (Flaw::InstallWithoutState, (Mix::replacements(), changing), 20),
    ]
}

/// Those that an operator with the wrong file needs.
const SHOWN_BY_MOVES: [Flaw; 2] = [Flaw::TakeTwice, Flaw::TakeElsewhere];

#[test]
fn each_broken_rule_of_moves_is_noticed() {
    for flaw in SHOWN_BY_MOVES {
        assert!(moves::caught(flaw).is_some(), "{flaw:?}");
    }
}

/// A rule that can be broken and is shown by nothing would prove nothing.
#[test]
fn each_rule_that_can_be_broken_is_shown_by_seeds_a_move_or_an_exploration() {
    let explored: Vec<Exploration> = explorations();
    for flaw in Flaw::ALL {
        let seeds = shown_by_seeds().iter().any(|(shown, ..)| *shown == flaw);
        let moves = SHOWN_BY_MOVES.contains(&flaw);
        assert!(seeds || moves || explored.iter().any(|row| row.flaw() == Some(flaw)), "{flaw:?}");
    }
}

/// The seeds draw each of these: a scenario that never happens would prove nothing.
#[test]
fn clusters_are_drawn_as_shipped_and_faster_under_every_policy() {
    let shapes: Vec<Shape> =
        (0..200).map(|seed| Shape::drawn(&mut Chance::new(seed), Flaws::default())).collect();
    let shipped = ArbiterConfig::shipped().rules().expect("as shipped");
    let has = |fits: &dyn Fn(&Shape) -> bool| shapes.iter().filter(|shape| fits(shape)).count() > 5;
    for order in [Order::List, Order::Hash] {
        assert!(has(&|shape| shape.policy == Policy::Standby(order)), "{order:?}");
    }
    assert!(has(&|shape| shape.policy == shipped.policy && shape.lease == shipped.takeover));
    let moves = |shape: &Shape| matches!(&shape.policy, Policy::Spread(balance) if balance.least < 10);
    assert!(has(&|shape| moves(shape) && shape.arbiters == Arbiters::Real));
    assert!(has(&|shape| shape.lease < shipped.takeover));
}

/// Compared with what a configuration comes to that says nothing, so that what ships is what is simulated, also when it changes.
#[test]
fn a_cluster_at_full_speed_goes_by_what_ships() {
    let config = AllocConfig::shipped();
    let alloc = config.settings(1).expect("as shipped").swap_remove(0);
    let arbiter = ArbiterConfig::shipped().rules().expect("as shipped");
    let ms = Duration::from_millis;
    let mut shapes = (0..200).map(|seed| Shape::drawn(&mut Chance::new(seed), Flaws::default()));
    let whole = |shape: &Shape| shape.lease == alloc.rules.lease;
    let shape = shapes.find(whole).expect("some are as shipped");
    let cluster = SimulatedCluster::new(shape, Chance::new(0), RunHistory::new(0));
    let AllocSetup { lease, drain_wait, raise_wait, pauses, rules, access, .. } =
        cluster.alloc_setup("a0".to_owned());
    assert_eq!(lease, alloc.rules.lease);
    assert_eq!((drain_wait, raise_wait), (alloc.drain_wait, alloc.options.raise_wait));
    assert_eq!(pauses, (alloc.options.retry_first, alloc.options.retry_longest));
    assert_eq!((rules.limit, access.patience), (alloc.options.limit, ms(config.sets[0].stores.patience_ms)));
    let simulated = cluster.rules(0, &[]);
    assert_eq!(
        (simulated.takeover, simulated.retry, simulated.probe_every),
        (arbiter.takeover, arbiter.retry, arbiter.probe_every)
    );
    // Only what counts as calm is shorter, as a run is.
    assert_eq!(HealthRules { calm: arbiter.health.calm, ..simulated.health }, arbiter.health);
}

#[test]
fn stores_are_replaced_nodes_leave_and_fail_callers_give_up_and_ask_for_several_uids() {
    let happen = |mix: Mix, what: &[&str]| {
        let mut left = what.to_vec();
        let mut seeds = 0..30;
        while let (false, Some(seed)) = (left.is_empty(), seeds.next()) {
            let lines = Trial { mix: mix.clone(), lines: 100_000, ..Trial::all() }.run(seed).lines;
            left.retain(|what| !lines.iter().any(|line| line.contains(what)));
        }
        assert_eq!(left, [""; 0], "these never happen");
    };
    let callers = ["Ended {", "reply: Each([", "reply: Bounds([", "rates: [("];
    happen(
        Mix::all(),
        &[
            &["ails", "gone", "Remove(", "Leave)", "DrainBy", "draining: true", "releases: false"],
            &callers[..],
        ]
        .concat(),
    );
    happen(
        Mix::replacements(),
        &["Sealed {", "Accepted", "Installed", "Newer", "Removed", "Behind", "Outbid"],
    );
    happen(Mix::ailments(), &["Refused(", "overdue: 5."]);
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
    let trial = Trial { clocks: Shows::Wall, mix: Mix { jump: 6, ..Mix::pauses() }, ..Trial::all() };
    assert!((0..40).any(|seed| trial.run(seed).is_wrong()));
}

/// Every row that starts like this, and how many rows hold and break.
fn explore(start: &str) -> (usize, usize) {
    let rows = explorations().into_iter().filter(|row| row.to_string().starts_with(start));
    rows.fold((0, 0), |(holding, breaking), row| match (row.must_break(), row.explore(row.first, |_| true)) {
        (false, ExplorationVerdict::Holds(_) | ExplorationVerdict::HoldsSoFar(_)) => (holding + 1, breaking),
        (true, ExplorationVerdict::Breaks { history, .. }) if history.len() < 30 => (holding, breaking + 1),
        (_, found) => panic!("{row}: {found:#?}"),
    })
}

/// With a separate read, the raise reaches the last replica after the read that should have seen it.
#[test]
fn no_order_of_messages_breaks_the_fence() {
    assert_eq!(explore("a raise of the old owner has reached one replica"), (4, 1));
}

/// Its rules: who is sealed votes no more in the old configuration, and who is new begins with what the old ones hold.
#[test]
fn a_replaced_replica_breaks_the_fence_only_when_a_rule_of_the_change_is_broken() {
    assert_eq!(explore("the same, and the last replica is replaced"), (3, 2));
    assert_eq!(explore("the same, from the first step of the change on"), (2, 0));
}

#[test]
fn a_half_written_table_gives_two_owners_only_when_one_replica_is_enough() {
    assert_eq!(explore("an arbiter ended when one replica had its table"), (1, 1));
}

#[test]
fn of_three_tables_none_counts_by_an_answer_about_another() {
    assert_eq!(explore("the same, and another replica missed the table"), (1, 0));
    assert_eq!(explore("the same, while the new owner reads"), (2, 1));
}

#[test]
fn no_order_of_messages_lets_a_release_give_two_owners() {
    assert_eq!(explore("the owner hears of the table, leaves and releases"), (2, 0));
    assert_eq!(explore("the owner before the last releases late"), (1, 1));
}
