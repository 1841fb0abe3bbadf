//! An arbiter: the real core over the simulated network. This shell carries its actions out, as the real one does: reads and writes by
//! the quorum's rounds, probes to the addresses of the table, each missed when no answer comes in time.

use std::collections::BTreeMap;

use super::Place;
use super::cx::Cx;
use super::message::{Input, Packet, Tick};
use super::quorum::{Access, Quorum, RoundOutcome};
pub(crate) use seqsvr_cluster::arbiter::core::{Action, Arbiter as Core, ArbiterEvent, ArbiterRules};
use seqsvr_core::clock::Moment;

/// How an arbiter is set up.
#[derive(Clone)]
pub(crate) struct ArbiterSetup {
    pub(crate) rules: ArbiterRules,
    /// Where AllocSvrs are reached; two where two processes have one name.
    pub(crate) nodes: Vec<(String, Vec<Place>)>,
    pub(crate) access: Access,
}

/// See the module.
pub(crate) struct Arbiter {
    setup: ArbiterSetup,
    life: Option<ArbiterLife>,
}

struct ArbiterLife {
    core: Core,
    quorum: Quorum,
    wake: Option<Moment>,
    next: u64,
    /// Probes without an answer, of which node.
    probes: BTreeMap<u64, String>,
}

impl Arbiter {
    pub(crate) fn new(setup: ArbiterSetup) -> Self {
        Self { setup, life: None }
    }

    pub(crate) fn access(&mut self) -> &mut Access {
        &mut self.setup.access
    }

    pub(crate) fn quorum(&self) -> Option<&Quorum> {
        self.life.as_ref().map(|life| &life.quorum)
    }

    pub(crate) fn crash(&mut self) {
        self.life = None;
    }

    pub(crate) fn on(&mut self, cx: &mut Cx<'_>, input: Input) {
        match input {
            Input::Start => {
                let core = Core::new(self.setup.rules.clone());
                let quorum = Quorum::new(self.setup.access.clone(), cx.chance.number() >> 8);
                self.life = Some(ArbiterLife { core, quorum, wake: None, next: 0, probes: BTreeMap::new() });
                self.feed(cx, ArbiterEvent::Start);
            }
            Input::Packet(_, Packet::Answer { id, answer }) => self.answered(cx, id, Some(answer)),
            Input::Tick(Tick::Late(id)) => self.answered(cx, id, None),
            Input::Packet(_, Packet::Probed { id, probe }) => {
                if let Some(node) = self.life.as_mut().and_then(|life| life.probes.remove(&id)) {
                    self.feed(cx, ArbiterEvent::Probed { node, outcome: Ok(probe) });
                }
            }
            Input::Tick(Tick::Missed(id)) => {
                if let Some(node) = self.life.as_mut().and_then(|life| life.probes.remove(&id)) {
                    self.feed(cx, ArbiterEvent::Probed { node, outcome: Err(()) });
                }
            }
            Input::Packet(_, Packet::Change { id, change }) => {
                self.feed(cx, ArbiterEvent::Change { id, change })
            }
            Input::Tick(Tick::Wake) => {
                let Some(life) = &mut self.life else { return };
                life.wake = None;
                if life.core.wake_at().is_some_and(|at| at <= cx.now) {
                    self.feed(cx, ArbiterEvent::Wake);
                } else {
                    self.set_wake(cx);
                }
            }
            Input::Packet(..) | Input::Tick(_) => {}
        }
    }

    fn answered(&mut self, cx: &mut Cx<'_>, id: u64, answer: Option<seqsvr_core::store::message::Answer>) {
        let Some(life) = &mut self.life else { return };
        match life.quorum.on(cx, id, answer) {
            Some(RoundOutcome::Read { outcome, .. }) => self.feed(cx, ArbiterEvent::Read { outcome }),
            Some(RoundOutcome::Promise { term, outcome }) => {
                self.feed(cx, ArbiterEvent::Promised { term, outcome })
            }
            Some(RoundOutcome::Write { table, outcome }) => {
                self.feed(cx, ArbiterEvent::Written { version: table.version, outcome });
            }
            Some(RoundOutcome::Acting { outcome }) => self.feed(cx, ArbiterEvent::Acted { outcome }),
            _ => {}
        }
    }

    fn feed(&mut self, cx: &mut Cx<'_>, event: ArbiterEvent) {
        let Some(life) = &mut self.life else { return };
        for action in life.core.on(cx.now, event) {
            match action {
                Action::Read { revisions, wait } => life.quorum.read(cx, &revisions, wait),
                Action::Promise { term } => life.quorum.promise(cx, term),
                Action::Write(table) => life.quorum.write(cx, table),
                Action::Acting { term } => life.quorum.acting(cx, term),
                Action::Probe { node, .. } => {
                    let known = self.setup.nodes.iter().find(|(name, _)| *name == node);
                    let Some((_, places)) = known else { continue };
                    life.next += 1;
                    life.probes.insert(life.next, node);
                    let place = *cx.chance.pick(places);
                    cx.send(place, Packet::Probe { id: life.next });
                    cx.tick(cx.now + self.setup.rules.probe_every, Tick::Missed(life.next));
                }
                // Nobody waits for it: what a change did is seen by what it does to the callers.
                Action::Answer { .. } => {}
                Action::Misfit(why) => unreachable!("all are set up alike: {why}"),
            }
        }
        self.set_wake(cx);
    }

    fn set_wake(&mut self, cx: &mut Cx<'_>) {
        let Some(life) = &mut self.life else { return };
        if let Some(at) = life.core.wake_at()
            && life.wake.is_none_or(|set| at < set)
        {
            life.wake = Some(at);
            cx.tick(at, Tick::Wake);
        }
    }
}

/// The address of a node in tables.
pub(crate) fn address(name: &str) -> String {
    format!("http://{name}:1")
}
