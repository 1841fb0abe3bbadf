//! The claim, table, lease and release protocol state by state: every order in which questions and answers can arrive, come late or
//! never, while an abstract clock goes on, for few replicas and few owners. The rules of the replicas and the rounds are the
//! real ones; owners are reduced to what the protocol asks of them (`owner`). Breadth first, so what is found is a shortest history.
//! Of a state that was seen only a fingerprint stays, and how it came about; the histories are told anew from that.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use super::owner::{LAYOUT, Lane, OwnerCall, OwnerPart, Owning, SECTION};
use seqsvr_cluster::replica::state::State;
pub(crate) use seqsvr_cluster::store::quorum::rounds::{self, ChangeRound, Round as _};
use seqsvr_core::clock::Moment;
use seqsvr_core::flaws::Flaws;
use seqsvr_core::ids::Epoch;
use seqsvr_core::routing::{Assignment, Node, NodeState, Table};
use seqsvr_core::store::Sizes;
use seqsvr_core::store::message::Copy;
use seqsvr_core::store::message::{Answer, Question};
use seqsvr_core::store::{Ceiling, Configuration, Configured, Member, Moves, Owner};

mod moves;

use moves::{send, tell};

/// States that wait to be looked at and are held whole; of more than these only the fingerprints are.
const WHOLE: usize = 100_000;

/// The start of an exploration, and its limits.
#[derive(Clone, Debug)]
pub(crate) struct Protocol {
    pub(crate) sizes: Sizes,
    pub(crate) flaws: Flaws,
    /// The owners, in the order of their epochs. The stored table is the first one's.
    pub(crate) owners: Vec<OwnerPart>,
    /// How many of them have claimed the section, one after the other: 1 and up.
    pub(crate) claimed: usize,
    /// How far the clock goes.
    pub(crate) ticks: u8,
    /// The owner whose table each replica has; replicas without an entry have the first owner's. Where fewer than W have the newest,
    /// its arbiter ended half-way.
    pub(crate) tables: Vec<usize>,
    /// A call that has begun, and the replicas that have been asked and have answered.
    pub(crate) begun: Option<(Lane, &'static [usize])>,
    /// How often a caller gives up on an answer that may still be on its way.
    pub(crate) late: u8,
    /// How many replace the last replica, in competition: the same new one takes its place.
    pub(crate) changes: usize,
    /// Whether one has come to its last step, and ended there: W replicas are sealed, and what they hold is on its way to those of
    /// them that stay and to the new one. The last owner has heard of it.
    pub(crate) decided: bool,
}

/// The outcome of an exploration.
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
    /// The configuration that it counts for.
    number: u64,
    replica: usize,
    leg: Leg,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Leg {
    Out(Arc<Question>),
    Back(Arc<Answer>),
    /// A question that nobody waits for any more.
    Given(Arc<Question>),
}

/// A state; parts that change seldom are shared with the states that come of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ProtocolState {
    tick: u8,
    replicas: Vec<Arc<State>>,
    wires: Vec<Wire>,
    calls: Vec<(Lane, u8, Arc<OwnerCall>)>,
    owners: Vec<Owning>,
    /// The configuration that each owner goes by.
    known: Vec<u64>,
    /// How many may still begin to replace a replica.
    changes: usize,
    /// How often callers may still give up.
    late: u8,
    /// The largest number handed out, and by whom.
    last: (u64, usize),
    broken: bool,
}

/// A step that may come next.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// This question or answer arrives.
    Arrive(usize),
    /// The caller gives up on this question or answer.
    GiveUp(usize),
    Tick,
    Begin(Lane),
    HandOut(usize),
    /// Somebody begins to replace the last replica.
    Change,
    /// This replica was down during the change, and is told of it.
    BringUp(usize),
}

/// How each state came about: out of which, by which of its moves.
type StateOrigins = HashMap<u64, (u64, u16), BuildHasherDefault<AsIs>>;

impl Protocol {
    /// Looks at every state, up to `most` of them, as long as `goes_on` says so of how many were seen.
    pub(crate) fn explore(&self, most: usize, goes_on: &mut dyn FnMut(usize) -> bool) -> Explored {
        let start = self.start();
        let first = fingerprint(&start);
        let mut seen = StateOrigins::default();
        seen.insert(first, (first, 0));
        let mut next = VecDeque::from([(first, Some(start))]);
        let bounded = |states| Explored { states, whole: false, broken: None };
        while let Some((from, world)) = next.pop_front() {
            let world = world.unwrap_or_else(|| self.again(&seen, from));
            for (index, one) in self.moves(&world).into_iter().enumerate() {
                let Some(after) = self.after(&world, one) else { continue };
                let print = fingerprint(&after);
                let Entry::Vacant(place) = seen.entry(print) else { continue };
                place.insert((from, u16::try_from(index).expect("a state has few moves")));
                if after.broken {
                    let broken = Some(self.path(&seen, print));
                    return Explored { states: seen.len(), whole: false, broken };
                }
                if seen.len() >= most {
                    return bounded(seen.len());
                }
                let held = (next.len() < WHOLE).then_some(after);
                next.push_back((print, held));
            }
            if !goes_on(seen.len()) {
                return bounded(seen.len());
            }
        }
        Explored { states: seen.len(), whole: true, broken: None }
    }

    /// The moves that lead from the start to this state.
    fn steps(seen: &StateOrigins, last: u64) -> Vec<u16> {
        let mut steps = Vec::new();
        let mut at = last;
        while let Some(&(from, index)) = seen.get(&at).filter(|(from, _)| *from != at) {
            steps.push(index);
            at = from;
        }
        steps.reverse();
        steps
    }

    fn again(&self, seen: &StateOrigins, last: u64) -> ProtocolState {
        let step = |world: ProtocolState, index: u16| {
            let one = self.moves(&world)[usize::from(index)];
            self.after(&world, one).expect("it was possible before")
        };
        Self::steps(seen, last).into_iter().fold(self.start(), step)
    }

    fn path(&self, seen: &StateOrigins, last: u64) -> Vec<String> {
        let mut world = self.start();
        let mut reported = Vec::new();
        for index in Self::steps(seen, last) {
            let one = self.moves(&world)[usize::from(index)];
            let after = self.after(&world, one).expect("it was possible before");
            reported.push(tell(&world, one, &after));
            world = after;
        }
        reported
    }

    fn start(&self) -> ProtocolState {
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
        for (replica, &newest) in replicas.iter_mut().zip(&self.tables) {
            for of in 1..=newest {
                replica.ask(now, &Question::Write(Arc::new(table(of))));
            }
        }
        let replicas = self.configured(replicas);
        let mut world = ProtocolState {
            tick: 0,
            replicas: replicas.into_iter().map(Arc::new).collect(),
            wires: Vec::new(),
            calls: Vec::new(),
            owners: owners.map(|(index, &part)| Owning::new(owner(index), part)).collect(),
            known: vec![1; self.owners.len()],
            changes: self.changes,
            late: self.late,
            last: (10, 0),
            broken: false,
        };
        if let Some((lane, answered)) = self.begun {
            world = self.after(&world, Move::Begin(lane)).expect("it has a reason to");
            for (&replica, leg) in
                answered.iter().flat_map(|one| [(one, "the question"), (one, "its answer")])
            {
                let first = world.wires.iter().position(|wire| (wire.lane, wire.replica) == (lane, replica));
                world = first.and_then(|first| self.after(&world, Move::Arrive(first))).expect(leg);
            }
        }
        if self.decided {
            self.decide(&mut world);
        }
        world
    }

    /// Whether the last replica is replaced in the course of it.
    fn is_replaced(&self) -> bool {
        self.changes > 0 || self.decided
    }

    /// The first configuration has all replicas but the new one; the second has that in the place of the one before.
    fn configuration(&self, number: u64) -> Arc<Configuration> {
        let n = self.sizes.n() as u64;
        let last = n + number - 1;
        let member = |id| Member { id, name: id.to_string(), addr: String::new() };
        Arc::new(Configuration {
            number,
            members: (1..n).chain([last]).map(member).collect(),
            write: self.sizes.w(),
            lease: Duration::from_secs(1),
            layout: LAYOUT,
            uids: 0..=LAYOUT.section_size - 1,
            taking: None,
            moves: Moves::default(),
        })
    }

    /// Each of these is a member of the first configuration; and where the last one is replaced, one replica is new.
    fn configured(&self, states: Vec<State>) -> Vec<State> {
        let current = Some(self.configuration(1));
        let member = |(state, id): (State, u64)| {
            let configured = Configured { current: current.clone(), ..Configured::default() };
            State::restored(Copy { configured, ..state.copy() }, 1, self.flaws).with_id(id)
        };
        let new = self.is_replaced().then(|| State::new(self.flaws).with_id(self.sizes.n() as u64 + 1));
        states.into_iter().zip(1..).map(member).chain(new).collect()
    }

    fn decide(&self, world: &mut ProtocolState) {
        let (n, w) = (self.sizes.n(), self.sizes.w());
        let mut round = ChangeRound::new(self.configuration(1), self.configuration(2), 1, self.flaws);
        let mut asks = round.open();
        while !asks.iter().any(|(_, question)| matches!(question, Question::Install { .. })) {
            for (index, question) in std::mem::take(&mut asks).split_off(n - w) {
                let state = Arc::make_mut(&mut world.replicas[index]);
                let answer = state.ask(Moment::default(), &question).answer;
                if let Some(rounds::Step::Ask(more)) = answer.map(|answer| round.on(index, Ok(answer))) {
                    asks.extend(more);
                }
            }
        }
        asks.retain(|(index, _)| (n - w..n - 1).contains(index) || *index == n);
        send(world, Lane::Change(1), (0, 1), asks);
        if let Some(last) = world.known.last_mut() {
            *last = 2;
        }
    }

    /// Once enough vote in the second configuration, those that were down may be told of it, without what they missed.
    fn sleepers(&self, world: &ProtocolState) -> Vec<usize> {
        let votes = |state: &State| state.configured().number() == 2;
        if !self.is_replaced() || world.replicas.iter().filter(|state| votes(state)).count() < self.sizes.w()
        {
            return Vec::new();
        }
        let next = self.configuration(2);
        let sleeps = |index: &usize| {
            let state = &world.replicas[*index];
            next.has(state.id()) && !votes(state)
        };
        (0..world.replicas.len()).filter(sleeps).collect()
    }
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

fn fingerprint(world: &ProtocolState) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(world)
}

/// A fingerprint needs no hashing.
#[derive(Clone, Copy, Debug, Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are fingerprints");
    }

    fn write_u64(&mut self, print: u64) {
        self.0 = print;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
