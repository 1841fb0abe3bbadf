//! An AllocSvr: the real core, which decides all but the numbers, and a small memory, which hands them out. This shell does what
//! the real one does: compares the clock with the lease when a request has arrived and before its answer leaves, records what it serves,
//! raises one call at a time for each assignment, and tells the core when the last answer of what was unloaded has left.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use super::chance::Chance;
use super::cx::Cx;
use super::memory::AllocMemory;
use super::message::{Input, Packet, Reply, Tick};
use super::quorum::{Access, Quorum, RoundOutcome};
use super::request::{CallerRequest, ProbedRates};
use super::{MICRO, MILLI};
use seqsvr_cluster::alloc::node::{Action, Node, NodeEvent, NodeRules, Predecessor, Serving};
use seqsvr_core::alloc::raised::Pauses;
use seqsvr_core::alloc::section::Rules;
use seqsvr_core::clock::Moment;
use seqsvr_core::flaws::Flaw;
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::routing::Table;
use seqsvr_core::store::{Owner, StoreError};

mod probing;
mod raising;

pub(crate) use probing::Ailment;
use probing::Hears;

/// How an AllocSvr is set up.
#[derive(Clone)]
pub(crate) struct AllocSetup {
    pub(crate) name: String,
    pub(crate) lease: Duration,
    /// How long the arbiter has to move the sections elsewhere before a stop ends them.
    pub(crate) drain_wait: Duration,
    /// How long a request waits for a raise.
    pub(crate) raise_wait: Duration,
    /// The first and the longest pause after a failed raise.
    pub(crate) pauses: (Duration, Duration),
    pub(crate) rules: Rules,
    pub(crate) access: Access,
}

/// See the module.
pub(crate) struct Alloc {
    setup: AllocSetup,
    /// The file in its data directory: the life that wrote it, and the sections that it served.
    file: Option<Predecessor>,
    /// The record that is being written to it.
    writing: Option<(u64, Option<Predecessor>)>,
    ails: Option<Ailment>,
    life: Option<AllocLife>,
}

/// State that ends with the process.
struct AllocLife {
    incarnation: u64,
    node: Node,
    quorum: Quorum,
    memory: AllocMemory,
    table: Option<Arc<Table>>,
    wake: Option<Moment>,
    /// The flag of a flawed one.
    expired: bool,
    next: u64,
    /// Requests that have their numbers and not left yet.
    leaving: BTreeMap<u64, Leaving>,
    /// Those of them whose section was unloaded since.
    draining: BTreeSet<u64>,
    /// Requests that wait for a raise.
    waiting: BTreeMap<u64, CallerRequest>,
    raising: BTreeSet<Epoch>,
    /// Between failed raises, as the raiser of each assignment makes them.
    pauses: BTreeMap<Epoch, Pauses>,
    /// Sections that a flawed one goes on serving until their release is noted.
    unreleased: Vec<(Owner, Vec<RangeInclusive<SectionId>>)>,
    /// Since the core asked to be told.
    drain_asked: bool,
    /// It was told to stop, and whether it stops by now.
    draining_on: Option<bool>,
    rates: ProbedRates,
    hears: Hears,
}

#[derive(Clone, Debug)]
struct Leaving {
    request: CallerRequest,
    reply: Reply,
    /// For unloaded sections: the lease that they were served under.
    until: Option<Option<Moment>>,
}

impl Alloc {
    pub(crate) fn new(setup: AllocSetup) -> Self {
        Self { setup, file: None, writing: None, ails: None, life: None }
    }

    pub(crate) fn access(&mut self) -> &mut Access {
        &mut self.setup.access
    }

    pub(crate) fn quorum(&self) -> Option<&Quorum> {
        self.life.as_ref().map(|life| &life.quorum)
    }

    pub(crate) fn crash(&mut self, chance: &mut Chance) {
        self.life = None;
        // The file is replaced as a whole: the old one or the new one is there.
        if let Some((_, Some(new))) = self.writing.take()
            && chance.permille(500)
        {
            self.file = Some(new);
        }
    }

    /// Sets its ailment; `None`: it is mended.
    pub(crate) fn ail(&mut self, ails: Option<Ailment>) {
        self.ails = ails;
    }

    pub(crate) fn on(&mut self, cx: &mut Cx<'_>, input: Input) {
        match input {
            Input::Start => self.start(cx),
            Input::Packet(_, Packet::Answer { id, answer }) => self.answered(cx, id, Some(answer)),
            Input::Tick(Tick::Late(id)) => self.answered(cx, id, None),
            Input::Packet(from, Packet::Ask { stream, frame }) => {
                if let Some(request) = CallerRequest::read(from, stream, frame) {
                    self.ask(cx, request);
                }
            }
            Input::Packet(from, Packet::Ended { stream }) => {
                if let Some(life) = &mut self.life {
                    life.waiting.retain(|_, request| (request.from, request.stream) != (from, stream));
                }
            }
            Input::Packet(_, Packet::Leave) => self.drain_all(cx),
            Input::Tick(Tick::DrainBy) => self.stop(cx),
            Input::Packet(from, Packet::Probe { id }) => self.probe(cx, from, id),
            Input::Tick(Tick::Wake) => {
                let now = cx.now;
                if let Some(life) = &mut self.life {
                    life.wake = None;
                    if life.node.wake_at().is_some_and(|at| at <= now) {
                        self.feed(cx, NodeEvent::Wake);
                    } else {
                        self.set_wake(cx);
                    }
                }
            }
            Input::Tick(Tick::Recorded(number)) => {
                if let Some((_, new)) = self.writing.take_if(|(written, _)| *written == number) {
                    self.file = new.or(self.file.take());
                    self.feed(cx, NodeEvent::Recorded);
                }
            }
            Input::Tick(Tick::Refused(owner)) => {
                let outcome = Err(StoreError::Unavailable("it is configured otherwise".to_owned()));
                self.feed(cx, NodeEvent::Claimed { owner, outcome });
            }
            Input::Tick(Tick::Leave(number)) => self.leave(cx, number),
            Input::Tick(Tick::GiveUp(number)) => {
                if let Some(request) = self.life.as_mut().and_then(|life| life.waiting.remove(&number)) {
                    self.tell(cx, &request, Reply::Unavailable);
                }
            }
            Input::Tick(Tick::Raise(owner)) => {
                if let Some(life) = &mut self.life {
                    life.raising.remove(&owner.epoch);
                }
                self.raise(cx);
            }
            Input::Tick(Tick::LeaseOver) => {
                if let Some(life) = &mut self.life {
                    life.expired = life.node.lease_until().is_none_or(|until| until <= cx.now);
                }
            }
            Input::Packet(..) | Input::Tick(_) => {}
        }
    }

    fn start(&mut self, cx: &mut Cx<'_>) {
        let AllocSetup { name, lease, rules, access, .. } = self.setup.clone();
        let incarnation = cx.chance.number();
        let node = NodeRules { name, incarnation, lease, layout: access.layout, flaws: access.flaws };
        self.life = Some(AllocLife {
            incarnation,
            node: Node::new(node, self.file.clone()),
            memory: AllocMemory::new(rules, access.layout.section_size, access.flaws),
            quorum: Quorum::new(access, cx.chance.number() >> 8),
            table: None,
            wake: None,
            expired: true,
            next: 0,
            leaving: BTreeMap::new(),
            draining: BTreeSet::new(),
            waiting: BTreeMap::new(),
            raising: BTreeSet::new(),
            pauses: BTreeMap::new(),
            hears: Hears::since(cx.now),
            unreleased: Vec::new(),
            drain_asked: false,
            draining_on: None,
            rates: ProbedRates::since(cx.now),
        });
        self.feed(cx, NodeEvent::Start);
    }

    fn answered(&mut self, cx: &mut Cx<'_>, id: u64, answer: Option<seqsvr_core::store::message::Answer>) {
        let Some(life) = &mut self.life else { return };
        match life.quorum.on(cx, id, answer) {
            Some(RoundOutcome::Read { asked, outcome }) => {
                if outcome.is_ok() {
                    life.hears.note(cx.now, asked + life.node.lease());
                }
                if let Some(table) = outcome.as_ref().ok().and_then(|reading| reading.table.clone())
                    && life.table.as_ref().is_none_or(|known| known.version < table.version)
                {
                    life.table = Some(table);
                }
                self.feed(cx, NodeEvent::Read { asked, outcome });
            }
            Some(RoundOutcome::Claim { standing, outcome }) => {
                self.feed(cx, NodeEvent::Claimed { owner: standing.owner, outcome });
            }
            Some(RoundOutcome::Release { owner, outcome }) => {
                let (before, late) = (life.node.lease_until(), std::mem::take(&mut life.unreleased));
                for (owner, sections) in late {
                    self.unload(cx, before, owner, &sections);
                }
                self.feed(cx, NodeEvent::Released { owner, outcome });
            }
            Some(RoundOutcome::Raise { owner, targets, outcomes }) => {
                self.raised(cx, owner, &targets, outcomes)
            }
            _ => {}
        }
    }

    /// Gives the core an event, and carries out what it says.
    fn feed(&mut self, cx: &mut Cx<'_>, event: NodeEvent) {
        let Some(life) = &mut self.life else { return };
        let before = life.node.lease_until();
        for action in life.node.on(cx.now, event) {
            self.carry_out(cx, before, action);
        }
        let Some(life) = &mut self.life else { return };
        if life.node.lease_until() != before
            && let Some(until) = life.node.lease_until()
        {
            life.expired = until <= cx.now;
            cx.tick(until, Tick::LeaseOver);
        }
        self.set_wake(cx);
        self.drained(cx);
        self.left(cx);
    }

    /// It is told to stop: it says so to whoever probes it, and serves on until its sections have moved.
    fn drain_all(&mut self, cx: &mut Cx<'_>) {
        let Some(life) = &mut self.life else { return };
        if life.draining_on.is_some() {
            return;
        }
        life.draining_on = Some(false);
        cx.tick(cx.now + self.setup.drain_wait, Tick::DrainBy);
        self.left(cx);
    }

    /// Nothing is served any more, or has been given to it: it stops, and ends once that is told.
    fn left(&mut self, cx: &mut Cx<'_>) {
        let Some(life) = &self.life else { return };
        match life.draining_on {
            Some(false) if life.memory.is_empty() => self.stop(cx),
            Some(true) if life.node.is_stopped() => self.life = None,
            _ => {}
        }
    }

    fn stop(&mut self, cx: &mut Cx<'_>) {
        let Some(life) = &mut self.life else { return };
        if life.draining_on == Some(false) {
            life.draining_on = Some(true);
            self.feed(cx, NodeEvent::Stop);
        }
    }

    fn set_wake(&mut self, cx: &mut Cx<'_>) {
        let Some(life) = &mut self.life else { return };
        if let Some(at) = life.node.wake_at()
            && life.wake.is_none_or(|set| at < set)
        {
            life.wake = Some(at);
            cx.tick(at, Tick::Wake);
        }
    }

    fn carry_out(&mut self, cx: &mut Cx<'_>, before: Option<Moment>, action: Action) {
        let Some(life) = &mut self.life else { return };
        match action {
            // Only who takes over from another waits for that one's release.
            Action::Read { revisions, wait } if life.node.waiting().is_empty() => {
                life.quorum.read_table(cx, &revisions, wait);
            }
            Action::Read { revisions, wait } => life.quorum.read(cx, &revisions, wait),
            Action::Claim { owner, .. } if self.ails == Some(Ailment::Refused) => {
                cx.tick_in(MILLI..5 * MILLI, Tick::Refused(owner));
            }
            Action::Claim { sections, owner } => life.quorum.claim(cx, sections, owner),
            Action::Release { owner, sections } => life.quorum.release(cx, sections, owner),
            Action::Record(serving) => {
                life.next += 1;
                cx.tick_in(100 * MICRO..5 * MILLI, Tick::Recorded(life.next));
                let fits = self.ails != Some(Ailment::FullDisk);
                self.writing = Some((life.next, fits.then(|| record(life.incarnation, serving))));
            }
            Action::Serve { owner, sections, claimed } => life.memory.serve(owner, &sections, &claimed),
            Action::Unload { owner, sections } => {
                life.drain_asked = true;
                if self.setup.access.flaws.has(Flaw::ReleaseWhileServing) {
                    life.unreleased.push((owner, sections));
                } else {
                    self.unload(cx, before, owner, &sections);
                }
            }
        }
    }

    /// Serves these no more. Answers to what was taken from them leave under the lease that stood `before`.
    fn unload(
        &mut self,
        cx: &mut Cx<'_>,
        before: Option<Moment>,
        owner: Owner,
        sections: &[RangeInclusive<SectionId>],
    ) {
        let Some(life) = &mut self.life else { return };
        life.memory.unload(owner, sections);
        let size = self.setup.access.layout.section_size;
        let gone = |uids: &[u32]| {
            uids.iter().any(|uid| {
                let section = SectionId::new(uid / size);
                sections.iter().any(|range| range.contains(&section))
            })
        };
        for (number, leaving) in &mut life.leaving {
            if gone(&leaving.request.uids) && leaving.until.is_none() {
                leaving.until = Some(before);
                life.draining.insert(*number);
            }
        }
        let waits = life.waiting.iter().filter(|(_, request)| gone(&request.uids));
        let refused: Vec<u64> = waits.map(|(number, _)| *number).collect();
        for number in refused {
            if let Some(request) = self.life.as_mut().and_then(|life| life.waiting.remove(&number)) {
                self.tell(cx, &request, Reply::NotOwner);
            }
        }
    }

    /// Tells the core once everything that was unloaded has left.
    fn drained(&mut self, cx: &mut Cx<'_>) {
        let Some(life) = &mut self.life else { return };
        if life.drain_asked && life.draining.is_empty() {
            life.drain_asked = false;
            self.feed(cx, NodeEvent::Drained);
        }
    }

    fn has_lease(&self, now: Moment) -> bool {
        let Some(life) = &self.life else { return false };
        if self.setup.access.flaws.has(Flaw::NoDeadlineCheck) {
            return !life.expired;
        }
        life.node.lease_until().is_some_and(|until| now < until)
    }

    fn ask(&mut self, cx: &mut Cx<'_>, mut request: CallerRequest) {
        if !self.has_lease(cx.now) {
            self.tell(cx, &request, Reply::Unavailable);
            return;
        }
        let Some(life) = &mut self.life else { return };
        let Some(reply) = request.take(&mut life.memory) else {
            life.next += 1;
            life.waiting.insert(life.next, request);
            cx.tick(cx.now + self.setup.raise_wait, Tick::GiveUp(life.next));
            self.raise(cx);
            return;
        };
        life.rates.count(self.setup.access.layout.section_size, &request, &reply);
        life.next += 1;
        life.leaving.insert(life.next, Leaving { request, reply, until: None });
        let takes = if cx.chance.permille(30) { 20 * MILLI } else { 200 * MICRO };
        cx.tick_in(0..takes, Tick::Leave(life.next));
        self.raise(cx);
    }

    /// The handler comes to its answer.
    fn leave(&mut self, cx: &mut Cx<'_>, number: u64) {
        let has_lease = self.has_lease(cx.now);
        let Some(life) = &mut self.life else { return };
        let Some(Leaving { request, reply, until }) = life.leaving.remove(&number) else { return };
        let allowed = match until {
            Some(until) if !self.setup.access.flaws.has(Flaw::NoDeadlineCheck) => {
                until.is_some_and(|until| cx.now < until)
            }
            _ => has_lease,
        };
        life.draining.remove(&number);
        self.tell(cx, &request, if allowed { reply } else { Reply::Unavailable });
        self.drained(cx);
    }

    fn tell(&mut self, cx: &mut Cx<'_>, request: &CallerRequest, reply: Reply) {
        let Some(life) = &self.life else { return };
        let table = life.table.clone().filter(|table| request.known < table.version);
        let CallerRequest { from, stream, id, .. } = *request;
        cx.send(from, Packet::Reply { stream, id, reply, table });
    }
}

fn record(incarnation: u64, serving: Vec<Serving>) -> Predecessor {
    Predecessor { incarnation, serving }
}
