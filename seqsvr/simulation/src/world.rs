//! The one loop: events in the order of the true time, each handed to the process it is for, whose effects become further events.
//! Owns time, chance, the network, the processes' lives and clocks, and the checker. Single-threaded, and nothing in it asks
//! anything outside, so a seed gives one history.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::chance::Chance;
use super::checker::Checker;
use super::clock::SimulatedClock;
use super::cx::{Cx, Effect};
use super::history::RunHistory;
use super::message::{Input, Packet, Tick};
use super::network::Network;
use super::role::SimulatedRole;
use super::{At, MILLI, Place};
use seqsvr_core::clock::Moment;

/// How a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ProcessState {
    /// It runs.
    Up,
    /// It was stopped where it stood, and what comes for it waits (SIGSTOP, a suspended machine).
    Paused,
    /// It is not there.
    Down,
}

struct Process {
    run: ProcessState,
    /// The number of its life: ticks and words for an earlier one are void.
    life: u64,
    clock: SimulatedClock,
    held: Vec<WorldEvent>,
    role: SimulatedRole,
}

#[derive(Clone, Debug)]
enum WorldEvent {
    Packet {
        from: Place,
        to: Place,
        packet: Packet,
    },
    /// People's word to one life of a process, such as a signal.
    Word {
        place: Place,
        life: u64,
        packet: Packet,
    },
    Tick {
        place: Place,
        life: u64,
        due: Moment,
        tick: Tick,
    },
}

struct Queued {
    at: At,
    number: u64,
    event: WorldEvent,
}

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Queued {}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Queued {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// See the module.
pub(crate) struct World {
    now: At,
    number: u64,
    queue: BinaryHeap<Reverse<Queued>>,
    processes: Vec<Process>,
    instead: Option<(Place, Place)>,
    pub(crate) chance: Chance,
    pub(crate) network: Network,
    pub(crate) checker: Checker,
    pub(crate) history: RunHistory,
}

impl World {
    /// Nothing runs yet.
    pub(crate) fn new(chance: Chance, history: RunHistory) -> Self {
        Self {
            now: 0,
            number: 0,
            queue: BinaryHeap::new(),
            processes: Vec::new(),
            instead: None,
            chance,
            network: Network::calm(),
            checker: Checker::default(),
            history,
        }
    }

    /// Adds a process that is down, on a machine of its own.
    pub(crate) fn add(&mut self, clock: SimulatedClock, role: SimulatedRole) -> Place {
        self.processes.push(Process { run: ProcessState::Down, life: 0, clock, held: Vec::new(), role });
        self.processes.len() - 1
    }

    /// The true time.
    pub(crate) fn now(&self) -> At {
        self.now
    }

    /// How a process is.
    pub(crate) fn run_of(&self, place: Place) -> ProcessState {
        self.processes[place].run
    }

    /// A packet from people, over no network, arrives there now. It is void when that process has ended meanwhile.
    pub(crate) fn post(&mut self, place: Place, packet: Packet) {
        let life = self.processes[place].life;
        self.queue_at(self.now, WorldEvent::Word { place, life, packet });
    }

    /// A caller asks for nothing but one number for each of these uids, until it gets them.
    pub(crate) fn insist(&mut self, caller: Place, uids: Vec<u32>) {
        if let SimulatedRole::Client(client) = &mut self.processes[caller].role {
            client.insist(uids);
        }
    }

    /// Which of them it has not got.
    pub(crate) fn owed(&self, caller: Place) -> &[u32] {
        match &self.processes[caller].role {
            SimulatedRole::Client(client) => client.owed(),
            _ => &[],
        }
    }

    /// How many processes there are; their places are 0 and up.
    pub(crate) fn count(&self) -> usize {
        self.processes.len()
    }

    /// The role of the process at a place.
    pub(crate) fn role(&mut self, place: Place) -> &mut SimulatedRole {
        &mut self.processes[place].role
    }

    /// The clocks there.
    pub(crate) fn clock(&mut self, place: Place) -> &mut SimulatedClock {
        &mut self.processes[place].clock
    }

    /// Something that the world does to the processes, for the history.
    pub(crate) fn note(&mut self, what: &str, place: Place) {
        self.history.add(&(self.now, what, place), || format!("{:>12} {what} {place}", self.now));
    }

    /// A new life begins.
    pub(crate) fn start(&mut self, place: Place) {
        if self.processes[place].run == ProcessState::Down {
            self.note("start", place);
            self.processes[place].run = ProcessState::Up;
            self.handle(place, Input::Start);
        }
    }

    /// It ends at once, in the middle of anything.
    pub(crate) fn crash(&mut self, place: Place) {
        if self.processes[place].run != ProcessState::Down {
            self.note("crash", place);
            let process = &mut self.processes[place];
            process.run = ProcessState::Down;
            process.life += 1;
            process.held.clear();
            process.role.crash(&mut self.chance);
        }
    }

    /// It ends for good; who reaches for it reaches `instead` from now on.
    pub(crate) fn replace(&mut self, place: Place, instead: Place) {
        self.crash(place);
        self.instead = Some((place, instead));
    }

    /// It stands still.
    pub(crate) fn pause(&mut self, place: Place) {
        if self.processes[place].run == ProcessState::Up {
            self.note("pause", place);
            self.processes[place].run = ProcessState::Paused;
        }
    }

    /// It goes on, with everything that came meanwhile, in the order of its coming or not.
    pub(crate) fn resume(&mut self, place: Place) {
        if self.processes[place].run == ProcessState::Paused {
            self.note("resume", place);
            self.processes[place].run = ProcessState::Up;
            let mut held = std::mem::take(&mut self.processes[place].held);
            if self.chance.permille(700) {
                self.chance.shuffle(&mut held);
            }
            let mut at = self.now;
            for event in held {
                at += self.chance.between(0..MILLI / 5);
                self.queue_at(at, event);
            }
        }
    }

    /// Carries on until `until`, or until a promise is broken.
    pub(crate) fn run_until(&mut self, until: At) {
        while self.checker.broken().is_none() {
            if self.queue.peek().is_none_or(|Reverse(next)| next.at > until) {
                self.now = until;
                return;
            }
            let Some(Reverse(next)) = self.queue.pop() else { return };
            self.now = next.at;
            self.happen(next.event);
        }
    }

    fn happen(&mut self, event: WorldEvent) {
        let (place, life) = match &event {
            WorldEvent::Packet { to, .. } => (*to, None),
            WorldEvent::Word { place, life, .. } | WorldEvent::Tick { place, life, .. } => {
                (*place, Some(*life))
            }
        };
        let process = &mut self.processes[place];
        match process.run {
            ProcessState::Down => return,
            _ if life.is_some_and(|life| life != process.life) => return,
            ProcessState::Paused => {
                process.held.push(event);
                return;
            }
            ProcessState::Up => {}
        }
        match event {
            WorldEvent::Packet { from, packet, .. } => self.handle(place, Input::Packet(from, packet)),
            WorldEvent::Word { packet, .. } => self.handle(place, Input::Packet(place, packet)),
            WorldEvent::Tick { place, life, due, tick } => {
                let when = process.clock.when(self.now, due);
                if when > self.now {
                    // The clock went slower than was expected.
                    self.queue_at(when, WorldEvent::Tick { place, life, due, tick });
                } else {
                    self.handle(place, Input::Tick(tick));
                }
            }
        }
    }

    fn handle(&mut self, place: Place, input: Input) {
        let process = &mut self.processes[place];
        let now = process.clock.read(self.now);
        self.history.add(&(self.now, place, &input), || {
            format!("{:>12} at {place} ({:>12}): {input:?}", self.now, now.as_nanos())
        });
        let mut cx = Cx {
            at: self.now,
            now,
            chance: &mut self.chance,
            checker: &mut self.checker,
            effects: Vec::new(),
        };
        process.role.on(&mut cx, input);
        let (life, effects) = (process.life, cx.effects);
        for effect in effects {
            match effect {
                Effect::Send(to, packet) => {
                    let to = self.instead.filter(|(gone, _)| *gone == to).map_or(to, |(_, instead)| instead);
                    for way in self.network.ways(&mut self.chance, place, to) {
                        let event = WorldEvent::Packet { from: place, to, packet: packet.clone() };
                        self.queue_at(self.now + way, event);
                    }
                }
                Effect::Tick(due, tick) => {
                    let when = self.processes[place].clock.when(self.now, due);
                    self.queue_at(when, WorldEvent::Tick { place, life, due, tick });
                }
            }
        }
    }

    fn queue_at(&mut self, at: At, event: WorldEvent) {
        self.number += 1;
        self.queue.push(Reverse(Queued { at, number: self.number, event }));
    }
}
