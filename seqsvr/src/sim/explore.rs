//! The claim, table, lease and release protocol state by state: every order in which questions and answers can arrive, come late or
//! never, while an abstract clock goes on, for few replicas and few owners. The rules of the replicas and the rounds are the
//! real ones; owners are reduced to what the protocol asks of them (`owner`). Breadth first, so what is found is a shortest history.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::time::Duration;

use super::owner::{Call, Lane, Owning, Part};
use crate::clock::Moment;
use crate::flaws::{Flaw, Flaws};
use crate::ids::{Epoch, SectionId};
use crate::replica::comeback::{Comeback, Event, Step};
use crate::replica::state::State;
use crate::replica::{Answer, Question};
use crate::routing::{Assignment, Node, NodeState, Table};
use crate::store::quorum::Sizes;
use crate::store::quorum::rounds::Ask;
use crate::store::{Ceiling, Layout, Owner};

/// The one section that changes hands.
pub(super) const SECTION: SectionId = SectionId::new(0);

/// What its numbers mean.
pub(super) const LAYOUT: Layout = Layout { section_size: 8, step: 2 };

/// What is explored.
#[derive(Clone, Debug)]
pub(crate) struct Protocol {
    pub(crate) sizes: Sizes,
    pub(crate) flaws: Flaws,
    /// The owners, in the order of their epochs. The stored table is the first one's.
    pub(crate) owners: Vec<Part>,
    /// How many of them have claimed the section, one after the other: 1 and up.
    pub(crate) claimed: usize,
    /// How far the clock goes.
    pub(crate) ticks: u8,
    /// How many replicas have the second owner's table: with one of them the arbiter ended half-way.
    pub(crate) written: usize,
    /// Whether the first replica may lose its disk, once, and rejoin.
    pub(crate) loses: bool,
    /// Whether a raise of the first owner has reached the first replica at the beginning.
    pub(crate) raising: bool,
}

/// What exploring came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Explored {
    /// How many different states were seen.
    pub(crate) states: usize,
    /// Whether those were all.
    pub(crate) whole: bool,
    /// The shortest history that breaks a promise, step by step.
    pub(crate) broken: Option<Vec<String>>,
}

/// A question or an answer on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Wire {
    lane: Lane,
    /// Which of the calls of this lane.
    serial: u8,
    replica: usize,
    leg: Leg,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Leg {
    Out(Question),
    Back(Answer),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    tick: u8,
    replicas: Vec<State>,
    wires: Vec<Wire>,
    calls: Vec<(Lane, u8, Call)>,
    owners: Vec<Owning>,
    /// The first replica may still lose its disk.
    loses: bool,
    /// The largest number handed out, and by whom.
    last: (u64, usize),
    broken: bool,
}

impl Protocol {
    /// Looks at every state, up to `most` of them.
    pub(crate) fn explore(&self, most: usize) -> Explored {
        let start = self.start();
        let mut seen: HashMap<u64, (u64, String)> = HashMap::new();
        let first = fingerprint(&start);
        let mut next = VecDeque::from([(first, start)]);
        seen.insert(first, (0, String::new()));
        while let Some((from, world)) = next.pop_front() {
            for (label, after) in self.moves(&world) {
                let print = fingerprint(&after);
                if seen.contains_key(&print) {
                    continue;
                }
                seen.insert(print, (from, label));
                if after.broken {
                    let broken = Some(path(&seen, print));
                    return Explored { states: seen.len(), whole: false, broken };
                }
                if seen.len() >= most {
                    return Explored { states: seen.len(), whole: false, broken: None };
                }
                next.push_back((print, after));
            }
        }
        Explored { states: seen.len(), whole: true, broken: None }
    }

    fn start(&self) -> World {
        let now = Moment::default();
        let first = owner(0);
        let setup = [
            Question::Promise { term: 1 },
            Question::Write(Arc::new(table(0))),
            Question::Claim { sections: vec![SECTION..=SECTION], owner: first, layout: LAYOUT },
        ];
        let mut state = State::new(self.flaws);
        let claim = |index| Question::Claim {
            sections: vec![SECTION..=SECTION],
            owner: owner(index),
            layout: LAYOUT,
        };
        let last = self.claimed - 1;
        let ceilings = vec![Ceiling { section: SECTION, max: self.owners[last].base.unwrap_or(10) }];
        let raise = Question::Raise { owner: owner(last), ceilings };
        for question in setup.into_iter().chain((1..self.claimed).map(claim)).chain([raise]) {
            state.ask(now, &question);
        }
        let owners = self.owners.iter().enumerate();
        let mut replicas = vec![state; self.sizes.n()];
        for replica in &mut replicas[..self.written] {
            replica.ask(now, &Question::Write(Arc::new(table(1))));
        }
        let mut world = World {
            tick: 0,
            replicas,
            wires: Vec::new(),
            calls: Vec::new(),
            owners: owners.map(|(index, &part)| Owning::new(owner(index), part)).collect(),
            loses: self.loses,
            last: (10, 0),
            broken: false,
        };
        if self.raising {
            let lane = Lane::Raise(0);
            if let Some(call) = world.owners[0].begin(lane, 0, self.sizes, self.flaws) {
                self.begin(&mut world, lane, call);
            }
            for leg in ["the question", "its answer"] {
                let first = world.wires.iter().position(|wire| (wire.lane, wire.replica) == (lane, 0));
                let arrived = first.and_then(|first| self.arrive(&world, first));
                world = arrived.expect(leg).1;
            }
        }
        world
    }

    fn moves(&self, world: &World) -> Vec<(String, World)> {
        let mut moves = Vec::new();
        for index in 0..world.wires.len() {
            moves.extend(self.arrive(world, index));
        }
        if world.tick < self.ticks {
            let mut after = world.clone();
            after.tick += 1;
            moves.push((format!("the clock shows {}", after.tick), after));
        }
        for index in 0..world.owners.len() {
            self.act(world, index, &mut moves);
        }
        if world.loses {
            moves.extend((1..world.replicas.len()).map(|first| self.lose(world, first)));
        }
        moves
    }

    /// What an owner may do by itself.
    fn act(&self, world: &World, index: usize, moves: &mut Vec<(String, World)>) {
        let busy = |lane: Lane| world.calls.iter().any(|(one, ..)| *one == lane);
        let lanes = [Lane::Read, Lane::Claim, Lane::Raise, Lane::Release].map(|lane| lane(index));
        for lane in lanes.into_iter().filter(|&lane| !busy(lane)) {
            let mut after = world.clone();
            if let Some(call) = after.owners[index].begin(lane, after.tick, self.sizes, self.flaws) {
                self.begin(&mut after, lane, call);
                moves.push((format!("{lane:?} begins"), after));
            }
        }
        let mut after = world.clone();
        if let Some((first, last)) = after.owners[index].hand_out(world.tick, self.flaws) {
            let (largest, by) = world.last;
            // What is asked for now must be larger than all that was handed out.
            after.broken = first <= largest && by != index;
            after.last = world.last.max((last, index));
            moves.push((format!("owner {index} hands out {first} to {last}"), after));
        }
    }

    /// The first replica lost its disk a while ago, and comes back; of the others it copies `first` before the rest. What it
    /// has not answered since the loss stands for the time between: by the end of that, calls that counted an answer of
    /// the lost life are over.
    fn lose(&self, world: &World, first: usize) -> (String, World) {
        let mut after = world.clone();
        after.loses = false;
        let now = Moment::default();
        let mut back = Comeback::new(self.sizes, now, Duration::ZERO, None, self.flaws);
        let others = world.replicas.len() - 1;
        let order = (0..others).map(|turn| (first - 1 + turn) % others);
        for from in order {
            let copy = Some(world.replicas[from + 1].copy());
            if let Ok(Step::Vote(copy)) = back.on(now, Event::Answered { from, copy }) {
                after.replicas[0] = State::restored(copy, 1, self.flaws);
                break;
            }
        }
        if !self.flaws.has(Flaw::NoSettle) && !self.flaws.has(Flaw::CountLate) {
            let unanswered = |lane: Lane, serial: u8| {
                let asks = |wire: &Wire| {
                    (wire.lane, wire.serial, wire.replica) == (lane, serial, 0)
                        && matches!(wire.leg, Leg::Out(_))
                };
                world.wires.iter().any(asks)
            };
            after.calls.retain(|(lane, serial, _)| unanswered(*lane, *serial));
        }
        let calls: Vec<(Lane, u8)> = after.calls.iter().map(|(lane, serial, _)| (*lane, *serial)).collect();
        after
            .wires
            .retain(|wire| matches!(wire.leg, Leg::Out(_)) || calls.contains(&(wire.lane, wire.serial)));
        (format!("replica 0 lost its disk, and has copied replica {first} first"), after)
    }

    fn begin(&self, world: &mut World, lane: Lane, (call, asks): (Call, Vec<Ask>)) {
        let serial = world.owners.iter().map(|owner| owner.serials()).sum::<u8>();
        world.calls.push((lane, serial, call));
        send(world, lane, serial, asks);
    }

    /// A question reaches its replica, or an answer its caller.
    fn arrive(&self, world: &World, index: usize) -> Option<(String, World)> {
        let mut after = world.clone();
        let Wire { lane, serial, replica, leg } = after.wires.remove(index);
        let call = after.calls.iter().position(|(one, number, _)| (*one, *number) == (lane, serial));
        let label;
        match leg {
            Leg::Out(question) => {
                let decision = after.replicas[replica].ask(Moment::default(), &question);
                label = format!("replica {replica} is asked by {lane:?}: {question:?}");
                if let (Some(answer), Some(_)) = (decision.answer, call) {
                    after.wires.push(Wire { lane, serial, replica, leg: Leg::Back(answer) });
                }
            }
            Leg::Back(answer) => {
                let call = call?;
                label = format!("replica {replica} answers {lane:?}: {answer:?}");
                let (asks, done) = after.calls[call].2.on(replica, answer);
                send(&mut after, lane, serial, asks);
                if let Some(done) = done {
                    after.calls.remove(call);
                    // Nobody listens to its answers any more; its questions may still arrive.
                    let heard = |wire: &Wire| (wire.lane, wire.serial) == (lane, serial);
                    let idle = |wire: &Wire| {
                        matches!(wire.leg, Leg::Back(_) | Leg::Out(Question::Read { .. } | Question::Copy))
                    };
                    after.wires.retain(|wire| !(heard(wire) && idle(wire)));
                    after.owners[lane.owner()].done(done, after.tick, self.flaws);
                }
            }
        }
        after
            .wires
            .sort_by_key(|wire| (wire.lane, wire.serial, wire.replica, matches!(wire.leg, Leg::Back(_))));
        Some((label, after))
    }
}

fn send(world: &mut World, lane: Lane, serial: u8, asks: Vec<Ask>) {
    let wires =
        asks.into_iter().map(|(replica, question)| Wire { lane, serial, replica, leg: Leg::Out(question) });
    world.wires.extend(wires);
}

fn owner(index: usize) -> Owner {
    Owner { epoch: Epoch { term: 1, version: index as u64 + 1 }, incarnation: index as u64 + 100 }
}

/// The table that gives the section to that owner.
fn table(index: usize) -> Table {
    let node = |number: usize| Node {
        name: format!("a{number}"),
        addr: format!("http://a{number}:1"),
        state: NodeState::Active,
    };
    let Owner { epoch, incarnation } = owner(index);
    let node_of = index as u32;
    Table {
        set: 0,
        version: epoch,
        section_size: LAYOUT.section_size,
        uids: 0..=LAYOUT.section_size - 1,
        nodes: (0..=index).map(node).collect(),
        assignments: vec![Assignment {
            sections: SECTION..=SECTION,
            node: node_of,
            home: node_of,
            incarnation,
            epoch,
        }],
    }
}

fn fingerprint(world: &World) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(world)
}

fn path(seen: &HashMap<u64, (u64, String)>, last: u64) -> Vec<String> {
    let mut steps = Vec::new();
    let mut at = last;
    while let Some((from, label)) = seen.get(&at).filter(|(_, label)| !label.is_empty()) {
        steps.push(label.clone());
        at = *from;
    }
    steps.reverse();
    steps
}
