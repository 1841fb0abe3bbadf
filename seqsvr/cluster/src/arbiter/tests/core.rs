//! Arbiters in virtual time, against the rules of a real replica (one, W = 1) and nodes that answer probes or do not.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use super::super::core::{Action, Arbiter, ArbiterEvent, ArbiterRules, Change, ChangeOutcome, Probe, Seed};
use super::super::health::HealthRules;
use super::super::plan::{Balance, Policy};
use crate::replica::state::State;
use seqsvr_core::clock::Moment;
use seqsvr_core::flaws::Flaws;
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::routing::Table;
use seqsvr_core::store::StoreError;
use seqsvr_core::store::message::{Answer, Question};
use seqsvr_core::store::tables::{Reading, Revisions, WriteError};

mod uids;
mod unserved;

const SIZE: u32 = 10_000;
const TAKEOVER: Duration = Duration::from_secs(2);

struct ArbiterWorld {
    now: Moment,
    replica: State,
    /// Whether the replica can be reached.
    up: bool,
    arbiters: Vec<Option<Arbiter>>,
    /// The uids that the Set has, where a configuration is stored.
    uids: Option<RangeInclusive<u32>>,
    /// Incarnation, or nothing when it does not answer.
    nodes: BTreeMap<String, Option<u64>>,
    rates: BTreeMap<String, Vec<(SectionId, u64)>>,
    answers: BTreeMap<u64, ChangeOutcome>,
    misfits: Vec<String>,
    tables: Vec<Arc<Table>>,
    /// The node that is about to end.
    draining: Option<String>,
    /// How many sections a node serves, how many it does not, and for how long it could have.
    stuck: BTreeMap<String, (u32, u32, Duration)>,
    /// The arbiter that no node can be reached by.
    cut: Option<usize>,
}

fn rules(number: u8) -> ArbiterRules {
    let nodes = (0..3).map(|index| (format!("n{index}"), format!("http://127.0.0.1:{}", index + 1)));
    ArbiterRules {
        number,
        takeover: TAKEOVER,
        retry: Duration::from_millis(100),
        probe_every: Duration::from_millis(200),
        health: HealthRules { back_after: 5, ..HealthRules::default() },
        policy: Policy::Spread(Balance { every: Duration::from_secs(10), ..Balance::default() }),
        seed: Seed { set: 1, uids: 0..=30 * SIZE - 1, section_size: SIZE, nodes: nodes.collect() },
    }
}

impl ArbiterWorld {
    fn new(arbiters: u8) -> Self {
        let mut world = Self {
            now: Moment::from_nanos(1),
            replica: State::new(Flaws::default()),
            up: true,
            arbiters: (0..arbiters).map(|number| Some(Arbiter::new(rules(number)))).collect(),
            uids: None,
            nodes: (0..3).map(|index| (format!("n{index}"), Some(index + 1))).collect(),
            rates: BTreeMap::new(),
            answers: BTreeMap::new(),
            misfits: Vec::new(),
            tables: Vec::new(),
            stuck: BTreeMap::new(),
            cut: None,
            draining: None,
        };
        (0..arbiters.into()).for_each(|index| world.tell(index, ArbiterEvent::Start));
        world
    }

    /// Lets an arbiter know, and carries out all that follows at once.
    fn tell(&mut self, index: usize, event: ArbiterEvent) {
        let Some(arbiter) = &mut self.arbiters[index] else { return };
        for action in arbiter.on(self.now, event) {
            self.carry_out(index, action);
        }
    }

    fn ask(&mut self, question: &Question) -> Option<Answer> {
        self.up.then(|| self.replica.ask(self.now, question).answer).flatten()
    }

    fn carry_out(&mut self, index: usize, action: Action) {
        let down = || WriteError::Unknown("down".to_owned());
        match action {
            Action::Read { .. } => {
                let outcome =
                    match self.ask(&Question::Read { revision: 0, wait: Duration::ZERO, releases: true }) {
                        Some(Answer::Table { revision, table, promised, acting }) => Ok(Reading {
                            table,
                            revisions: Revisions(vec![revision]),
                            promised,
                            acting,
                            bounds: self.bounds(),
                        }),
                        _ => Err(StoreError::Unavailable("down".into())),
                    };
                self.tell(index, ArbiterEvent::Read { outcome });
            }
            Action::Promise { term } => {
                let outcome = match self.ask(&Question::Promise { term }) {
                    Some(Answer::Promised(table)) => Ok(table),
                    Some(Answer::Outranked(by)) => Err(WriteError::Outranked(by)),
                    _ => Err(down()),
                };
                self.tell(index, ArbiterEvent::Promised { term, outcome });
            }
            Action::Write(table) => {
                let outcome = match self.ask(&Question::Write(Arc::clone(&table))) {
                    Some(Answer::Written) => {
                        self.tables.push(Arc::clone(&table));
                        Ok(())
                    }
                    Some(Answer::Outranked(by)) => Err(WriteError::Outranked(by)),
                    Some(Answer::Newer(version)) => Err(WriteError::Older(version)),
                    _ => Err(down()),
                };
                self.tell(index, ArbiterEvent::Written { version: table.version, outcome });
            }
            Action::Acting { term } => {
                let outcome = match self.ask(&Question::Acting { term }) {
                    Some(Answer::Acting(promised)) => Ok(promised),
                    _ => Err(StoreError::Unavailable("down".into())),
                };
                self.tell(index, ArbiterEvent::Acted { outcome });
            }
            Action::Probe { node, .. } => {
                let rates = self.rates.get(&node).cloned().unwrap_or_default();
                let version = Epoch::default();
                let outcome = match self.nodes.get(&node) {
                    Some(&Some(incarnation)) if self.cut != Some(index) => {
                        let draining = self.draining.as_ref() == Some(&node);
                        let (served, unserved, overdue) =
                            self.stuck.get(&node).copied().unwrap_or((1, 0, Duration::ZERO));
                        let (node, lapsed) = (node.clone(), false);
                        Ok(Probe {
                            node,
                            incarnation,
                            version,
                            lapsed,
                            draining,
                            served,
                            unserved,
                            overdue,
                            rates,
                        })
                    }
                    _ => Err(()),
                };
                self.tell(index, ArbiterEvent::Probed { node, outcome });
            }
            Action::Answer { id, outcome } => assert!(self.answers.insert(id, outcome).is_none()),
            Action::Misfit(line) => self.misfits.push(line),
        }
    }

    fn run(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        loop {
            let wakes = self.arbiters.iter().enumerate().filter_map(|(index, arbiter)| {
                arbiter.as_ref().and_then(Arbiter::wake_at).map(|at| (at, index))
            });
            match wakes.min() {
                Some((at, index)) if at <= end => {
                    self.now = self.now.max(at);
                    self.tell(index, ArbiterEvent::Wake);
                }
                _ => break,
            }
        }
        self.now = end;
    }

    fn acting(&self) -> Vec<usize> {
        let acts = |arbiter: &Option<Arbiter>| arbiter.as_ref().and_then(Arbiter::acting).is_some();
        (0..self.arbiters.len()).filter(|&index| acts(&self.arbiters[index])).collect()
    }

    fn table(&self) -> Arc<Table> {
        Arc::clone(self.tables.last().expect("a table was written"))
    }

    fn count(&self, node: &str) -> u32 {
        let runs = self.table();
        runs.of(node).map(|one| one.sections.end().get() - one.sections.start().get() + 1).sum()
    }

    fn change(&mut self, index: usize, id: u64, change: Change) {
        self.tell(index, ArbiterEvent::Change { id, change });
    }
}

fn add(index: u32) -> Change {
    Change::Add { name: format!("n{index}"), addr: format!("http://127.0.0.1:{}", index + 1) }
}

#[test]
fn the_first_arbiter_makes_the_first_table_at_once() {
    let mut world = ArbiterWorld::new(2);
    world.run(300);
    assert_eq!(world.acting(), [0]);
    assert_eq!([world.count("n0"), world.count("n1"), world.count("n2")], [10, 10, 10]);
    world.run(10_000);
    assert_eq!(world.tables.len(), 1, "and nothing more while nothing happens");
}

#[test]
fn the_first_table_waits_until_every_node_was_asked_and_one_answers() {
    let mut world = ArbiterWorld::new(1);
    world.nodes.values_mut().for_each(|node| *node = None);
    world.run(5_000);
    assert!(world.tables.is_empty());
    world.nodes.insert("n1".to_owned(), Some(9));
    world.run(300);
    assert_eq!(world.count("n1"), 30);
    world.nodes.insert("n0".to_owned(), Some(10));
    world.run(300);
    assert_eq!([world.count("n0"), world.count("n1")], [15, 15]);
}

#[test]
fn a_dead_node_is_relieved_after_three_misses_and_gets_its_own_back() {
    let mut world = ArbiterWorld::new(2);
    world.run(300);
    let whole = world.table();
    world.nodes.insert("n1".to_owned(), None);
    world.run(400);
    assert_eq!(world.tables.len(), 1);
    world.run(300);
    assert_eq!([world.count("n0"), world.count("n1"), world.count("n2")], [15, 0, 15]);
    world.nodes.insert("n1".to_owned(), Some(44));
    world.run(700);
    assert_eq!(world.count("n1"), 0, "not yet trusted");
    world.run(500);
    assert_eq!(world.count("n1"), 10);
    let back = world.table();
    assert!(back.of("n1").all(|one| one.incarnation == 44 && one.epoch > whole.version));
    assert!(back.of("n0").all(|one| one.epoch < back.version), "what stayed keeps its epoch");
}

#[test]
fn a_quick_restart_costs_one_probe_and_moves_nothing() {
    let mut world = ArbiterWorld::new(1);
    world.run(300);
    world.nodes.insert("n2".to_owned(), Some(50));
    world.run(200);
    assert_eq!(world.count("n2"), 10);
    assert!(world.table().of("n2").all(|one| one.incarnation == 50));
    assert_eq!(
        world.arbiters[0].as_ref().unwrap().leadership().unwrap().moves(),
        30,
        "those of the first table"
    );
}

#[test]
fn a_restart_with_a_goodbye_moves_its_sections_away_and_back_within_a_probe_each() {
    let mut world = ArbiterWorld::new(1);
    world.run(300);
    world.draining = Some("n1".to_owned());
    world.run(200);
    assert_eq!([world.count("n0"), world.count("n1"), world.count("n2")], [15, 0, 15]);
    world.draining = None;
    world.nodes.insert("n1".to_owned(), None);
    world.run(5_000);
    world.nodes.insert("n1".to_owned(), Some(70));
    world.run(200);
    assert_eq!([world.count("n0"), world.count("n1"), world.count("n2")], [10, 10, 10]);
}

#[test]
fn a_standby_takes_over_adopts_the_table_and_changes_no_epoch() {
    let mut world = ArbiterWorld::new(3);
    world.run(300);
    let first = world.table();
    world.arbiters[0] = None;
    world.run(1_900);
    assert_eq!(world.acting(), [] as [usize; 0]);
    world.run(1_100);
    assert_eq!(world.acting(), [1], "the one with the lowest number is first");
    let second = world.table();
    assert!(second.version > first.version && second.version.version == first.version.version + 1);
    assert_eq!(second.assignments, first.assignments);
    world.arbiters[0] = Some(Arbiter::new(rules(0)));
    world.tell(0, ArbiterEvent::Start);
    world.run(10_000);
    assert_eq!(world.acting(), [1], "who comes back stands by");
}

#[test]
fn an_arbiter_that_slept_through_a_takeover_steps_down_and_harms_nothing() {
    let mut world = ArbiterWorld::new(2);
    world.run(300);
    let sleeper = world.arbiters[0].take().unwrap();
    world.run(3_000);
    assert_eq!(world.acting(), [1]);
    let table = world.table();
    world.arbiters[0] = Some(sleeper);
    world.change(0, 1, Change::Drain("n0".to_owned()));
    world.run(3_000);
    assert_eq!(world.acting(), [1]);
    assert_eq!(world.answers[&1], ChangeOutcome::NotActing(table.version.term));
    assert_eq!(world.table(), table);
}

#[test]
fn an_arbiter_that_is_cut_off_from_every_node_lets_another_try() {
    let mut world = ArbiterWorld::new(2);
    world.run(300);
    let table = world.table();
    world.cut = Some(0);
    world.run(4_000);
    assert_eq!(world.acting(), [1]);
    assert_eq!(world.table().assignments, table.assignments, "nothing moved meanwhile");
    world.nodes.values_mut().for_each(|node| *node = None);
    world.run(20_000);
    assert_eq!(world.acting(), [0], "and once all nodes are gone, it does not matter who");
    let written = world.tables.len();
    world.run(20_000);
    assert_eq!(world.tables.len(), written, "but there is peace");
}

#[test]
fn both_bidding_at_once_leaves_one_acting() {
    let mut world = ArbiterWorld::new(2);
    world.run(300);
    // Both have waited long enough when the store comes back.
    world.up = false;
    world.run(20_000);
    world.up = true;
    world.arbiters[0] = Some(Arbiter::new(rules(0)));
    world.tell(0, ArbiterEvent::Start);
    world.run(5_000);
    assert_eq!(world.acting().len(), 1);
    let written = world.tables.len();
    world.run(20_000);
    assert_eq!((world.acting().len(), world.tables.len()), (1, written), "and there is peace");
}

#[test]
fn a_write_of_unknown_fate_is_repeated_until_it_counts() {
    let mut world = ArbiterWorld::new(1);
    world.run(300);
    world.nodes.insert("n1".to_owned(), None);
    world.run(450);
    world.up = false;
    world.run(1_000);
    assert_eq!(world.tables.len(), 1);
    world.up = true;
    world.run(200);
    assert_eq!(world.count("n1"), 0);
    assert_eq!(world.tables.len(), 2);
}

#[test]
fn changes_are_carried_out_once_however_often_they_are_asked_for() {
    let mut world = ArbiterWorld::new(2);
    world.run(300);
    world.change(1, 1, Change::Rebalance);
    assert_eq!(world.answers[&1], ChangeOutcome::NotActing(256));
    for id in [2, 3] {
        world.change(0, id, Change::Drain("n0".to_owned()));
        assert_eq!(world.answers[&id], ChangeOutcome::Done(world.table()));
    }
    assert_eq!((world.count("n0"), world.tables.len()), (0, 2));
    for id in [4, 5] {
        world.change(0, id, add(0));
        assert_eq!(world.answers[&id], ChangeOutcome::Done(world.table()));
    }
    assert_eq!((world.count("n0"), world.tables.len()), (10, 3));
}

#[test]
fn a_new_node_is_added_and_then_given_its_share() {
    let mut world = ArbiterWorld::new(1);
    world.run(300);
    world.nodes.insert("n3".to_owned(), Some(60));
    world.change(0, 1, add(3));
    assert!(matches!(world.answers[&1], ChangeOutcome::Done(_)));
    world.run(300);
    assert_eq!(world.count("n3"), 7);
}

#[test]
fn a_wrong_change_is_refused_in_one_line() {
    let mut world = ArbiterWorld::new(1);
    world.run(300);
    let wrong = [
        Change::Drain("n9".to_owned()),
        Change::Add { name: "N 1".to_owned(), addr: "http://127.0.0.1:1".to_owned() },
        Change::Add { name: "n4".to_owned(), addr: "127.0.0.1:1".to_owned() },
    ];
    for (id, change) in (1..).zip(wrong) {
        world.change(0, id, change);
        assert!(matches!(&world.answers[&id], ChangeOutcome::Refused(line) if !line.contains('\n')));
    }
    assert_eq!(world.tables.len(), 1);
}

#[test]
fn a_busy_node_is_relieved() {
    let mut world = ArbiterWorld::new(1);
    world.run(300);
    let busy = (0..10).map(|section| (SectionId::new(section), 10_000)).collect();
    world.rates.insert("n0".to_owned(), busy);
    world.run(10_000);
    assert_eq!(world.count("n0"), 5);
    assert_eq!(world.tables.len(), 2);
}

#[test]
fn a_flapping_node_moves_its_sections_ever_more_rarely() {
    let mut world = ArbiterWorld::new(1);
    world.run(300);
    for _ in 0..60 {
        world.nodes.insert("n1".to_owned(), None);
        world.run(1_000);
        world.nodes.insert("n1".to_owned(), Some(2));
        world.run(2_000);
    }
    assert!(world.tables.len() <= 6, "{} tables in three minutes", world.tables.len());
}

#[test]
fn another_shape_than_the_stored_one_is_a_misfit() {
    let mut world = ArbiterWorld::new(1);
    world.run(300);
    let mut other = rules(1);
    other.seed.section_size *= 2;
    world.arbiters.push(Some(Arbiter::new(other)));
    world.tell(1, ArbiterEvent::Start);
    world.run(300);
    assert!(
        world.misfits[0].contains("correct number, first_uid, last_uid and section_size"),
        "{:?}",
        world.misfits
    );
}
