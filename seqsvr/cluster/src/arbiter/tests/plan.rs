//! Random lives of a Set, planned step by step.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::balance::balance;
use super::super::health::Status;
use super::super::plan::{Balance, Policy, add, drain, next, rebalance, remove, spare, without};
use super::super::slots::{Slot, open};
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::routing::{Node, NodeState, Order, Table};

const SIZE: u32 = 10_000;

/// A Set with its nodes, as an arbiter would lead it.
#[derive(Clone, Debug)]
struct PlanWorld {
    table: Table,
    statuses: Vec<Status>,
    policy: Policy,
    lives: u64,
}

#[derive(Clone, Debug)]
enum PlanStep {
    Die(usize),
    Return(usize),
    Restart(usize),
    Drain(usize),
    Add(usize),
    AddNew,
    Rebalance,
}

fn step() -> impl Strategy<Value = PlanStep> {
    prop_oneof![
        3 => (0_usize..6).prop_map(PlanStep::Die),
        3 => (0_usize..6).prop_map(PlanStep::Return),
        2 => (0_usize..6).prop_map(PlanStep::Restart),
        1 => (0_usize..6).prop_map(PlanStep::Drain),
        1 => (0_usize..6).prop_map(PlanStep::Add),
        1 => Just(PlanStep::AddNew),
        1 => Just(PlanStep::Rebalance),
    ]
}

fn spread() -> Policy {
    Policy::Spread(Balance::default())
}

impl PlanWorld {
    fn new(sections: u32, nodes: usize, policy: Policy) -> Self {
        let node = |index: usize| Node {
            name: format!("n{index}"),
            addr: format!("http://127.0.0.1:{}", index + 1),
            state: NodeState::Active,
        };
        let table = Table {
            set: 3,
            version: Epoch { term: 256, version: 0 },
            section_size: SIZE,
            uids: 2 * SIZE..=(2 + sections) * SIZE - 1,
            nodes: (0..nodes).map(node).collect(),
            assignments: Vec::new(),
        };
        let statuses = (0..nodes as u64).map(|life| Status::Live(life + 1)).collect();
        let mut world = Self { table, statuses, policy, lives: nodes as u64 };
        world.settle();
        world
    }

    fn version(&self) -> Epoch {
        self.table.version.next()
    }

    fn take(&mut self, table: Option<Table>) {
        self.table = table.unwrap_or_else(|| self.table.clone());
    }

    fn settle(&mut self) {
        self.take(next(&self.table, &self.statuses, &self.policy, self.version()));
    }

    fn life(&mut self) -> Status {
        self.lives += 1;
        Status::Live(self.lives)
    }

    fn walk(&mut self, step: &PlanStep) {
        let count = self.statuses.len();
        let name = |index: usize| format!("n{}", index % count);
        match *step {
            PlanStep::Die(index) => self.statuses[index % count] = Status::Dead,
            PlanStep::Return(index) if self.statuses[index % count] == Status::Dead => {
                self.statuses[index % count] = self.life();
            }
            PlanStep::Restart(index) if self.statuses[index % count] != Status::Dead => {
                self.statuses[index % count] = self.life();
            }
            PlanStep::Return(_) | PlanStep::Restart(_) => {}
            PlanStep::Drain(index) => {
                let drained = drain(&self.table, &name(index), &self.statuses, &self.policy, self.version());
                self.take(drained.unwrap_or_default());
            }
            PlanStep::Add(index) => {
                let addr = self.table.nodes[index % count].addr.clone();
                let added =
                    add(&self.table, &name(index), &addr, &self.statuses, &self.policy, self.version());
                self.take(added);
            }
            PlanStep::AddNew if count < 9 => {
                let addr = format!("http://127.0.0.1:{}", count + 1);
                let new = format!("n{count}");
                let added = add(&self.table, &new, &addr, &self.statuses, &self.policy, self.version());
                self.take(added);
                let life = self.life();
                self.statuses.push(life);
            }
            PlanStep::AddNew => {}
            PlanStep::Rebalance => {
                self.take(rebalance(&self.table, &self.statuses, &self.policy, self.version()));
            }
        }
        self.settle();
    }

    /// Sections per node that may serve.
    fn counts(&self) -> Vec<usize> {
        let slots = open(&self.table);
        let may = |index: &u32| self.may_serve(*index);
        let nodes = (0..self.statuses.len() as u32).filter(may);
        nodes.map(|node| slots.iter().filter(|slot| slot.node == Some(node)).count()).collect()
    }

    fn may_serve(&self, node: u32) -> bool {
        let active = self.table.nodes[node as usize].state == NodeState::Active;
        active && matches!(self.statuses[node as usize], Status::Live(_))
    }

    fn moved(&self, before: &Table) -> Vec<(Slot, Slot)> {
        let pairs = open(before).into_iter().zip(open(&self.table));
        pairs.filter(|(old, new)| old.node != new.node).collect()
    }

    fn check(&self, before: &PlanWorld) {
        self.table.check().unwrap();
        let fit = (0..self.statuses.len() as u32).any(|node| self.may_serve(node));
        for (old, new) in open(&before.table).into_iter().zip(open(&self.table)) {
            let changed = (old.node, old.incarnation) != (new.node, new.incarnation);
            if changed {
                assert!(new.epoch > old.epoch && new.epoch > before.table.version, "{old:?} {new:?}");
            } else {
                assert_eq!(new.epoch, old.epoch);
            }
            let owner = new.node.expect("nothing is ever without an owner again");
            if fit {
                assert!(self.may_serve(owner), "{new:?} in {self:?}");
                assert_eq!(self.statuses[owner as usize], Status::Live(new.incarnation));
            } else if changed {
                panic!("nobody could take {new:?}");
            }
        }
        assert_eq!(next(&self.table, &self.statuses, &self.policy, self.version()), None, "settled");
    }
}

fn within_one(counts: &[usize]) -> bool {
    let (least, most) = (counts.iter().min(), counts.iter().max());
    least.zip(most).is_none_or(|(least, most)| most - least <= 1)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_spread_set_stays_covered_even_and_fenced(
        sections in 1_u32..60, nodes in 1_usize..6, steps in prop::collection::vec(step(), 1..25),
    ) {
        let mut world = PlanWorld::new(sections, nodes, spread());
        for step in &steps {
            let before = world.clone();
            world.walk(step);
            world.check(&before);
            prop_assert!(within_one(&world.counts()), "{:?} after {:?}", world.counts(), step);
            let mut again = before.clone();
            again.walk(step);
            prop_assert_eq!(&again.table, &world.table, "the same input gives the same table");
        }
    }

    #[test]
    fn a_standby_set_stays_covered_and_fenced(
        sections in 1_u32..60, nodes in 1_usize..6, steps in prop::collection::vec(step(), 1..25), hash: bool,
    ) {
        let order = if hash { Order::Hash } else { Order::List };
        let mut world = PlanWorld::new(sections, nodes, Policy::Standby(order));
        for step in &steps {
            let before = world.clone();
            world.walk(step);
            world.check(&before);
            if !hash {
                prop_assert_eq!(world.table.assignments.len(), 1, "the whole Set on one node");
            }
            if matches!(step, PlanStep::Return(_) | PlanStep::Add(_) | PlanStep::AddNew)
                && before.counts().iter().sum::<usize>() > 0
            {
                prop_assert_eq!(world.moved(&before.table), vec![], "nothing is given back");
            }
        }
    }

    #[test]
    fn only_the_sections_of_the_dead_move_and_they_all_come_back(sections in 1_u32..500, nodes in 2_usize..8, who in 0_usize..8) {
        let mut world = PlanWorld::new(sections, nodes, spread());
        let who = who % nodes;
        let whole = world.clone();
        world.walk(&PlanStep::Die(who));
        prop_assert!(world.moved(&whole.table).iter().all(|(old, _)| old.node == Some(who as u32)));
        prop_assert!(world.table.assignments.len() <= 2 * nodes, "few runs: {:?}", world.table.assignments);
        world.walk(&PlanStep::Return(who));
        let owners = |table: &Table| open(table).into_iter().map(|slot| slot.node).collect::<Vec<_>>();
        prop_assert_eq!(owners(&world.table), owners(&whole.table));
        prop_assert!(world.table.assignments.len() <= nodes);
    }

    #[test]
    fn a_drained_node_gets_exactly_its_own_back(sections in 1_u32..500, nodes in 2_usize..8, who in 0_usize..8) {
        let mut world = PlanWorld::new(sections, nodes, spread());
        let whole = world.clone();
        for step in [PlanStep::Drain(who), PlanStep::Drain(who), PlanStep::Restart(who), PlanStep::Add(who)] {
            world.walk(&step);
        }
        let owners = |table: &Table| open(table).into_iter().map(|slot| slot.node).collect::<Vec<_>>();
        prop_assert_eq!(owners(&world.table), owners(&whole.table));
    }

    #[test]
    fn a_new_node_takes_its_share_and_nothing_else_moves(sections in 1_u32..500, nodes in 1_usize..8) {
        let mut world = PlanWorld::new(sections, nodes, spread());
        let before = world.clone();
        world.walk(&PlanStep::AddNew);
        let moved = world.moved(&before.table);
        prop_assert!(moved.iter().all(|(_, new)| new.node == Some(nodes as u32)));
        prop_assert_eq!(moved.len(), sections as usize / (nodes + 1));
        prop_assert!(world.table.assignments.len() <= 2 * nodes);
    }

    #[test]
    fn load_moves_are_bounded_and_make_the_busiest_less_busy(
        sections in 2_u32..200, nodes in 2_usize..5, rates in prop::collection::vec(0_u64..5_000, 200),
    ) {
        let mut world = PlanWorld::new(sections, nodes, spread());
        let rules = Balance { least: 1_000, sections: 8, ..Balance::default() };
        let first = world.table.sections().start().get();
        let rates: BTreeMap<SectionId, u64> = (first..first + sections).map(SectionId::new).zip(rates).collect();
        let busiest = |world: &PlanWorld| {
            let mut load = BTreeMap::new();
            for (section, slot) in (first..).zip(open(&world.table)) {
                *load.entry(slot.node).or_insert(0) += rates[&SectionId::new(section)];
            }
            load.into_values().max().unwrap_or_default()
        };
        for _ in 0..100 {
            let before = world.clone();
            let Some(table) = balance(&world.table, &world.statuses, &rates, &rules, world.version()) else {
                return Ok(());
            };
            world.table = table;
            world.check(&before);
            prop_assert!(world.moved(&before.table).len() <= 8);
            prop_assert!(busiest(&world) <= busiest(&before));
        }
        prop_assert!(false, "it never comes to rest");
    }
}

#[test]
fn one_hot_section_is_not_thrown_to_and_fro() {
    let world = PlanWorld::new(30, 3, spread());
    let hot = BTreeMap::from([(SectionId::new(2), 1_000_000)]);
    let moved = balance(&world.table, &world.statuses, &hot, &Balance::default(), world.version());
    assert_eq!(moved, None);
}

#[test]
fn quiet_or_nearly_even_nodes_are_left_alone() {
    let world = PlanWorld::new(30, 3, spread());
    let even = |rate| (2..32).map(SectionId::new).zip(std::iter::repeat(rate)).collect::<BTreeMap<_, _>>();
    let mut nearly = even(10_000);
    nearly.insert(SectionId::new(2), 15_000);
    let quiet = BTreeMap::from([(SectionId::new(2), 5), (SectionId::new(3), 5)]);
    for rates in [nearly, quiet] {
        let moved = balance(&world.table, &world.statuses, &rates, &Balance::default(), world.version());
        assert_eq!(moved, None);
    }
}

#[test]
fn who_only_answers_keeps_its_own_under_its_new_life_but_gains_nothing() {
    let mut world = PlanWorld::new(30, 3, spread());
    world.statuses = vec![Status::Answering(77), Status::Dead, Status::Live(3)];
    world.settle();
    let of = |node: u32| open(&world.table).into_iter().filter(move |slot| slot.node == Some(node)).collect();
    let (kept, gained): (Vec<Slot>, Vec<Slot>) = (of(0), of(2));
    assert_eq!((kept.len(), gained.len()), (10, 20));
    assert!(kept.iter().all(|slot| slot.incarnation == 77));
}

#[test]
fn who_only_answers_takes_over_when_nobody_lives() {
    let mut world = PlanWorld::new(30, 2, spread());
    world.statuses = vec![Status::Answering(77), Status::Dead];
    world.settle();
    assert!(open(&world.table).iter().all(|slot| (slot.node, slot.incarnation) == (Some(0), 77)));
}

#[test]
fn a_drain_that_nobody_could_follow_is_refused() {
    let mut world = PlanWorld::new(30, 2, spread());
    world.walk(&PlanStep::Die(1));
    let refusal = |world: &PlanWorld, name: &str| {
        drain(&world.table, name, &world.statuses, &world.policy, world.version()).unwrap_err()
    };
    assert!(refusal(&world, "n0").contains("no other node is live"));
    assert_eq!(refusal(&world, "n9"), "there is no node n9; the Set has n0, n1");
    world.walk(&PlanStep::Drain(1));
    assert!(refusal(&world, "n0").contains("no other node is live"));
}

#[test]
fn roles_swap_when_the_primary_of_a_list_dies() {
    let mut world = PlanWorld::new(30, 2, Policy::Standby(Order::List));
    let primary = |world: &PlanWorld| world.table.owner(SectionId::new(2)).unwrap().node;
    assert_eq!(primary(&world), 0);
    world.walk(&PlanStep::Die(0));
    assert_eq!(primary(&world), 1);
    world.walk(&PlanStep::Return(0));
    assert_eq!(primary(&world), 1, "the old primary stands by now");
    world.walk(&PlanStep::Die(1));
    assert_eq!(primary(&world), 0);
    world.walk(&PlanStep::Return(1));
    world.walk(&PlanStep::Die(0));
    world.walk(&PlanStep::Return(0));
    world.walk(&PlanStep::Rebalance);
    assert_eq!(primary(&world), 0, "the first in the list again, when asked for");
}

#[test]
fn a_whole_set_of_sections_is_planned_quickly_and_stays_small() {
    let mut world = PlanWorld::new(42_948, 8, spread());
    for who in [0, 7] {
        world.walk(&PlanStep::Die(who));
        assert!(world.table.assignments.len() <= 16);
        world.walk(&PlanStep::Return(who));
    }
    assert!(world.table.assignments.len() <= 8, "{}", world.table.assignments.len());
}

#[test]
fn a_removed_node_leaves_no_trace_and_moves_nothing() {
    let mut world = PlanWorld::new(30, 3, spread());
    let version = world.version();
    assert_eq!(
        remove(&world.table, "n1", version),
        Err("n1 still serves 10 sections; run `seqsvr drain n1` first".to_owned())
    );
    assert!(
        remove(&world.table, "n7", version)
            .unwrap_err()
            .contains("there is no node n7; the Set has n0, n1, n2")
    );
    let drained = drain(&world.table, "n1", &world.statuses, &world.policy, version).unwrap();
    world.take(drained);
    assert_eq!(spare(&world.table, &world.statuses), Some(1));
    let removed = remove(&world.table, "n1", world.version()).unwrap();
    assert_eq!(removed.check(), Ok(()));
    assert_eq!(removed, without(&world.table, 1, world.version()));
    let names = |table: &Table| table.nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&removed), ["n0", "n2"]);
    let owners = |table: &Table| {
        let owner = |slot: Slot| {
            (table.nodes[slot.node.unwrap() as usize].name.clone(), slot.incarnation, slot.epoch)
        };
        open(table).into_iter().map(owner).collect::<Vec<_>>()
    };
    assert_eq!(owners(&removed), owners(&world.table), "who serves what stays, under the same epochs");
    world.statuses.remove(1);
    world.table = removed;
    assert_eq!(
        next(&world.table, &world.statuses, &world.policy, world.version()),
        None,
        "and nothing is to be done"
    );
}
