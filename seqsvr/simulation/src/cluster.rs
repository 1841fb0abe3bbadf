//! A whole cluster in one world: replicas, AllocSvrs, arbiters and callers, each on a machine of its own, of a shape that is drawn
//! from the seed. Owns the world and knows who is where.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::alloc::{Ailment, Alloc, AllocSetup};
use super::arbiter::{Arbiter, ArbiterSetup, address};
use super::chance::Chance;
use super::client::{ClientSetup, SimulatedClient};
use super::clock::{RATES, Shows, SimulatedClock};
use super::history::RunHistory;
use super::quorum::{Access, member_at, place_of};
use super::replacer::{Replacer, Task};
use super::replica::Replica;
use super::role::SimulatedRole;
use super::wild::{Wild, WildSetup, empty_table};
use super::world::{ProcessState, World};
use super::{At, MILLI, Place, SECOND};
use seqsvr_client::ANSWER;
use seqsvr_cluster::alloc::config::AllocConfig;
use seqsvr_cluster::arbiter::config::ArbiterConfig;
use seqsvr_cluster::arbiter::core::{ArbiterRules, Seed};
use seqsvr_cluster::arbiter::health::HealthRules;
use seqsvr_cluster::arbiter::plan::{Balance, Policy};
use seqsvr_core::alloc::section::Rules;
use seqsvr_core::flaws::{Flaw, Flaws};
use seqsvr_core::routing::Order;
use seqsvr_core::store::configuration::LEASE;
use seqsvr_core::store::{Configuration, Layout, Moves, SetTerms, Sizes};

/// The arbiters that decide on tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arbiters {
    /// Arbiters without judgement, which only keep to the rules of terms.
    Wild,
    /// The real ones, which spread sections over the nodes that live.
    Real,
}

/// The make-up of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) sizes: Sizes,
    pub(crate) allocs: usize,
    /// Whether a second process has the name of the first AllocSvr.
    pub(crate) twin: bool,
    pub(crate) arbiters: Arbiters,
    /// Whether both arbiters were given one number, by mistake.
    pub(crate) one_number: bool,
    /// The mean time between two ideas of a wild arbiter.
    pub(crate) restless: At,
    pub(crate) callers: usize,
    pub(crate) sections: u32,
    /// Small, so that ceilings are raised often.
    pub(crate) step: u32,
    pub(crate) lease: Duration,
    /// How real arbiters give out sections.
    pub(crate) policy: Policy,
    /// How long a question to a replica may take.
    pub(crate) patience: Duration,
    /// Whether the files of the second arbiter and the second AllocSvr list one of the stores together with others, by mistake; that
    /// one is absent at first.
    pub(crate) wrong_list: bool,
    /// The most numbers in one request.
    pub(crate) count: u32,
    /// How many requests of a thousand are to go on above a number.
    pub(crate) leaps: u64,
    /// New replicas that may take the place of others, or be more.
    pub(crate) spares: usize,
    pub(crate) clocks: Shows,
    pub(crate) flaws: Flaws,
}

/// Processes that store the first configuration and change it later: two may do so at once.
const REPLACERS: usize = 2;

/// Uids in a section.
const SECTION_SIZE: u32 = 8;

impl Shape {
    /// A shape as the seed has it.
    pub(crate) fn drawn(chance: &mut Chance, flaws: Flaws) -> Self {
        let sizes = [(3, 2), (3, 2), (5, 3), (5, 4)];
        let (n, w) = *chance.pick(&sizes);
        let mut sizes = Sizes::new(n, w).expect("these quorums meet");
        if flaws.has(Flaw::SmallQuorum) {
            sizes = Sizes::unsound(4, 2);
        }
        let shipped = AllocConfig::shipped();
        let patience = shipped.sets[0].stores.patience_ms;
        // Half of the clusters are as shipped; in the others everything is twice as fast, and balance moves are often.
        let mut other = chance.clone();
        let quick = other.permille(500);
        let lease = if quick { LEASE / 2 } else { LEASE };
        let policy = match other.index(6) {
            0 => Policy::Standby(Order::List),
            1 => Policy::Standby(Order::Hash),
            2 => ArbiterConfig::shipped().rules().expect("as shipped").policy,
            _ => Policy::Spread(Balance { every: lease * 3, least: 5, ..Balance::default() }),
        };
        let mut shape = Self {
            sizes,
            allocs: 2 + chance.index(2),
            twin: chance.permille(250),
            arbiters: if chance.permille(500) { Arbiters::Wild } else { Arbiters::Real },
            restless: *chance.pick(&[400 * MILLI, 2 * SECOND, 5 * SECOND]),
            one_number: chance.clone().permille(100),
            callers: 3,
            sections: 1 + chance.index(4) as u32,
            step: *chance.pick(&[2, 6, 40]),
            lease,
            policy,
            patience: if quick { lease / 3 } else { Duration::from_millis(patience) },
            wrong_list: other.clone().permille(100),
            count: 0,
            leaps: 100,
            spares: if other.permille(750) && !flaws.has(Flaw::SmallQuorum) { 6 } else { 0 },
            clocks: Shows::Boot,
            flaws,
        };
        shape.count = shape.step * 2;
        shape
    }
}

/// See the module.
pub(crate) struct SimulatedCluster {
    pub(crate) world: World,
    pub(crate) shape: Shape,
    /// Those that are or were members, or are about to be.
    pub(crate) replicas: Vec<Place>,
    /// New ones that nobody has started yet.
    pub(crate) spares: Vec<Place>,
    pub(crate) replacers: Vec<Place>,
    pub(crate) allocs: Vec<Place>,
    pub(crate) arbiters: Vec<Place>,
    pub(crate) callers: Vec<Place>,
    /// The names of the AllocSvrs.
    pub(crate) names: Vec<String>,
}

impl SimulatedCluster {
    /// Everything is there and starts, one after the other.
    pub(crate) fn new(shape: Shape, chance: Chance, history: RunHistory) -> Self {
        let world = World::new(chance, history);
        let none = Vec::new;
        let mut new = Self {
            world,
            shape,
            replicas: none(),
            spares: none(),
            replacers: none(),
            allocs: none(),
            arbiters: none(),
            callers: none(),
            names: Vec::new(),
        };
        new.add_replicas();
        let nodes = new.add_allocs();
        new.add_arbiters(&nodes);
        new.add_replacers();
        new.names = nodes.iter().map(|(name, _)| name.clone()).collect();
        let setup = ClientSetup {
            nodes,
            uids: new.shape.sections * SECTION_SIZE,
            hot: vec![0, SECTION_SIZE * new.shape.sections - 1],
            count: new.shape.count,
            step: new.shape.step,
            leaps: new.shape.leaps,
            pause: 60 * MILLI,
            answer: ANSWER / new.speed(),
            flaws: new.shape.flaws,
        };
        new.callers = (0..new.shape.callers)
            .map(|_| new.add(SimulatedRole::Client(Box::new(SimulatedClient::new(setup.clone())))))
            .collect();
        let absent = new.absent();
        for place in 0..new.world.count() {
            if !new.spares.contains(&place) && absent != Some(place) {
                new.world.start(place);
            }
        }
        new
    }

    /// The replicas of the newest configuration that any of them votes in; those of the beginning where none is stored.
    pub(crate) fn members(&mut self) -> Vec<Place> {
        match self.newest() {
            Some(newest) => newest.members.iter().map(|one| place_of(one.id)).collect(),
            None => self.replicas[..self.shape.sizes.n()].to_vec(),
        }
    }

    /// W of that configuration.
    pub(crate) fn write_quorum(&mut self) -> usize {
        self.newest().map_or(self.shape.sizes.w(), |newest| newest.write)
    }

    fn newest(&mut self) -> Option<Arc<Configuration>> {
        let replicas = self.replicas.clone();
        let known = replicas.iter().filter_map(|&place| match self.world.role(place) {
            SimulatedRole::Replica(replica) => replica.configuration(),
            _ => None,
        });
        known.max_by_key(|one| one.number)
    }

    /// Sets the ailment of the AllocSvr at a place.
    pub(crate) fn ail(&mut self, place: Place, ails: Option<Ailment>) {
        if let SimulatedRole::Alloc(alloc) = self.world.role(place) {
            alloc.ail(ails);
        }
    }

    /// Operators list the present members in every file, as CLUSTER asks. They restart processes that no living member can tell of the
    /// newest configuration: all that those know of are gone.
    pub(crate) fn list_members(&mut self) {
        // A broken rule may leave sizes that no process takes.
        let Some(sizes) = self.newest().and_then(|newest| newest.sizes().ok()) else { return };
        let members = self.members();
        let living: BTreeSet<Place> =
            members.iter().copied().filter(|&one| self.world.run_of(one) == ProcessState::Up).collect();
        for place in [&self.allocs[..], &self.arbiters, &self.replacers].concat() {
            let role = self.world.role(place);
            let knows_one = role.replicas().iter().any(|one| living.contains(one));
            if let Some(access) = role.access() {
                access.replicas.clone_from(&members);
                access.sizes = sizes;
            }
            if !knows_one {
                self.world.crash(place);
                self.world.start(place);
            }
        }
    }

    /// The open task of the replacer at a place.
    pub(crate) fn task(&mut self, place: Place) -> Option<&mut Option<Task>> {
        match self.world.role(place) {
            SimulatedRole::Replacer(replacer) => Some(replacer.task()),
            _ => None,
        }
    }

    /// Numbers of all sections, by one uid of each.
    pub(crate) fn one_of_each(&self) -> Vec<u32> {
        (0..self.shape.sections).map(|section| section * SECTION_SIZE).collect()
    }

    /// A clock of a machine that has just started.
    pub(crate) fn fresh_clock(&mut self, shown: At) -> SimulatedClock {
        let rate = self.rate();
        SimulatedClock::new(self.shape.clocks, self.world.now(), shown, rate)
    }

    /// A rate that a clock may have, often one of the two ends.
    pub(crate) fn rate(&mut self) -> u64 {
        let chance = &mut self.world.chance;
        match chance.index(5) {
            0 | 1 => RATES.0,
            2 | 3 => RATES.1,
            _ => chance.between(RATES.0..RATES.1 + 1),
        }
    }

    fn add(&mut self, role: SimulatedRole) -> Place {
        // Beyond what a wall clock may jump back.
        let shown = self.world.chance.between(10_000 * SECOND..100_000 * SECOND);
        let clock = self.fresh_clock(shown);
        self.world.add(clock, role)
    }

    fn add_replicas(&mut self) {
        // They are the first to be added.
        let n = self.shape.sizes.n();
        for place in 0..n + self.shape.spares {
            let replica = Replica::new(member_at(place).id, self.shape.flaws);
            let added = self.add(SimulatedRole::Replica(Box::new(replica)));
            let kind = if place < n { &mut self.replicas } else { &mut self.spares };
            kind.push(added);
        }
        if self.has_wrong_list() {
            self.replicas.extend(self.spares.drain(..n - 1));
        }
    }

    /// The store that is not there at first: the one that two lists have in common.
    pub(crate) fn absent(&self) -> Option<Place> {
        self.has_wrong_list().then(|| self.replicas[0])
    }

    /// It takes as many new stores as are listed wrongly.
    fn has_wrong_list(&self) -> bool {
        self.shape.wrong_list && self.shape.spares >= self.shape.sizes.n() - 1
    }

    /// The stores in the file of a process; `second`: of the second process of its role, whose list may be the wrong one.
    fn access(&self, second: bool) -> Access {
        let n = self.shape.sizes.n();
        let wrong = second && self.has_wrong_list();
        let replicas = if wrong {
            [&self.replicas[..1], &self.replicas[n..]].concat()
        } else {
            self.replicas[..n].to_vec()
        };
        Access {
            replicas,
            sizes: self.shape.sizes,
            layout: self.layout(),
            patience: self.shape.patience,
            flaws: self.shape.flaws,
        }
    }

    /// The terms that a new Set begins with.
    fn terms(&self) -> SetTerms {
        let uids = 0..=self.shape.sections * SECTION_SIZE - 1;
        SetTerms { lease: self.shape.lease, layout: self.layout(), uids, moves: Moves::default() }
    }

    fn layout(&self) -> Layout {
        Layout { section_size: SECTION_SIZE, step: self.shape.step }
    }

    fn add_replacers(&mut self) {
        for number in 0..REPLACERS {
            let mut replacer = Replacer::new(self.access(number > 0));
            *replacer.task() = Some(Task::Establish(self.terms()));
            let added = self.add(SimulatedRole::Replacer(Box::new(replacer)));
            self.replacers.push(added);
        }
    }

    /// How much faster than as shipped everything is.
    fn speed(&self) -> u32 {
        (LEASE.as_millis() / self.shape.lease.as_millis()) as u32
    }

    pub(super) fn rules(&self, number: u8, nodes: &[(String, Vec<Place>)]) -> ArbiterRules {
        let (shipped, speed) = (ArbiterConfig::shipped().rules().expect("as shipped"), self.speed());
        ArbiterRules {
            number,
            takeover: shipped.takeover / speed,
            retry: shipped.retry / speed,
            probe_every: shipped.probe_every / speed,
            // A run is short: calm times are, too.
            health: HealthRules { calm: self.shape.lease * 5, ..shipped.health },
            policy: self.shape.policy.clone(),
            seed: Seed {
                set: 0,
                uids: 0..=self.shape.sections * SECTION_SIZE - 1,
                section_size: SECTION_SIZE,
                nodes: nodes.iter().map(|(name, _)| (name.clone(), address(name))).collect(),
            },
        }
    }

    pub(super) fn alloc_setup(&self, name: String) -> AllocSetup {
        let shipped = AllocConfig::shipped().settings(1).expect("as shipped").swap_remove(0);
        let speed = self.speed();
        AllocSetup {
            name,
            lease: self.shape.lease,
            drain_wait: shipped.drain_wait / speed,
            raise_wait: shipped.options.raise_wait / speed,
            pauses: (shipped.options.retry_first / speed, shipped.options.retry_longest / speed),
            rules: Rules { step: u64::from(self.shape.step), limit: shipped.options.limit },
            access: self.access(false),
        }
    }

    fn add_allocs(&mut self) -> Vec<(String, Vec<Place>)> {
        let mut nodes: Vec<(String, Vec<Place>)> = Vec::new();
        let twins = usize::from(self.shape.twin);
        for number in 0..self.shape.allocs + twins {
            let number = number % self.shape.allocs;
            let access = self.access(number == 1);
            let setup = AllocSetup { access, ..self.alloc_setup(format!("a{number}")) };
            let name = setup.name.clone();
            let place = self.add(SimulatedRole::Alloc(Box::new(Alloc::new(setup))));
            self.allocs.push(place);
            match nodes.get_mut(number) {
                Some((_, places)) => places.push(place),
                None => nodes.push((name, vec![place])),
            }
        }
        nodes
    }

    fn add_arbiters(&mut self, nodes: &[(String, Vec<Place>)]) {
        let empty = Arc::new(empty_table(nodes, SECTION_SIZE, self.shape.sections));
        for (index, number) in [0, u8::from(!self.shape.one_number)].into_iter().enumerate() {
            let access = self.access(index > 0);
            let role = match self.shape.arbiters {
                Arbiters::Wild => SimulatedRole::Wild(Box::new(Wild::new(WildSetup {
                    number: u64::from(number),
                    nodes: nodes.to_vec(),
                    empty: (*empty).clone(),
                    access,
                    pause: self.shape.restless,
                }))),
                Arbiters::Real => SimulatedRole::Arbiter(Box::new(Arbiter::new(ArbiterSetup {
                    rules: self.rules(number, nodes),
                    nodes: nodes.to_vec(),
                    access,
                }))),
            };
            let place = self.add(role);
            self.arbiters.push(place);
        }
    }
}
