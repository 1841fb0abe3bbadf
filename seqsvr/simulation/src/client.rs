//! A caller: asks for numbers and bounds of uids, hot ones more than others, tries again elsewhere when it is refused or hears
//! nothing, and tells the checker when it asked and what came back. Streams, tables and what is remembered are the client's own.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use super::checker::Floor;
use super::cx::Cx;
use super::message::{Input, Packet, Tick};
use super::{At, MILLI, Place};
use seqsvr_client::error::AttemptError;
use seqsvr_client::outbox::{Answered, CallRequest, TICKS};
use seqsvr_core::flaws::Flaws;
use seqsvr_core::ids::Uid;

mod connection;

use connection::{Connection, StreamsShared, Waits};

/// How a caller is set up.
#[derive(Clone, Debug)]
pub(crate) struct ClientSetup {
    /// Where AllocSvrs are reached; two where two processes have one name.
    pub(crate) nodes: Vec<(String, Vec<Place>)>,
    /// The uids are those below.
    pub(crate) uids: u32,
    /// Uids that half of the requests are for.
    pub(crate) hot: Vec<u32>,
    /// The most numbers in one request.
    pub(crate) count: u32,
    /// By how much ceilings are raised.
    pub(crate) step: u32,
    /// How many requests of a thousand are to go on above a number.
    pub(crate) leaps: u64,
    /// The mean time between two requests.
    pub(crate) pause: At,
    /// How long an AllocSvr may take for an answer.
    pub(crate) answer: Duration,
    pub(crate) flaws: Flaws,
}

/// See the module.
pub(crate) struct SimulatedClient {
    setup: ClientSetup,
    shared: StreamsShared,
    connections: BTreeMap<Place, Connection>,
    /// Streams so far, in all lives.
    streams: u64,
    next: u64,
    attempts: BTreeMap<u64, Attempt>,
    /// One uid of each section that must be served in the end.
    owed: Vec<u32>,
    asking: bool,
}

struct Attempt {
    ask: CallRequest,
    uids: Vec<u32>,
    /// The floor of each uid when the question was asked.
    floors: Vec<Floor>,
    to: Place,
    waits: Waits,
    left: u32,
    /// No retry has been made for it yet.
    open: bool,
}

impl SimulatedClient {
    pub(crate) fn new(setup: ClientSetup) -> Self {
        let shared = StreamsShared::new(setup.uids, setup.flaws);
        let (connections, attempts, owed) = Default::default();
        Self { setup, shared, connections, streams: 0, next: 0, attempts, owed, asking: true }
    }

    /// Asks for these, until it is served; for nothing else any more.
    pub(crate) fn insist(&mut self, uids: Vec<u32>) {
        self.owed = uids;
        self.asking = false;
    }

    /// The uids that it has insisted on in vain.
    pub(crate) fn owed(&self) -> &[u32] {
        &self.owed
    }

    pub(crate) fn crash(&mut self) {
        self.shared = StreamsShared::new(self.setup.uids, self.setup.flaws);
        self.connections.clear();
        self.attempts.clear();
    }

    pub(crate) fn on(&mut self, cx: &mut Cx<'_>, input: Input) {
        match input {
            Input::Start => {
                cx.tick(cx.now + self.setup.answer / TICKS, Tick::Age);
                self.work(cx);
            }
            Input::Tick(Tick::Next) => self.work(cx),
            Input::Tick(Tick::Write(place)) => {
                if let Some(connection) = self.connections.get_mut(&place) {
                    connection.write(cx);
                }
            }
            Input::Packet(_, Packet::Reply { stream, id, reply, table }) => {
                if let Some(connection) =
                    self.connections.values_mut().find(|connection| connection.has(stream))
                {
                    connection.on_reply(stream, id, reply, table);
                }
                self.look(cx);
            }
            Input::Tick(Tick::Age) => {
                cx.tick(cx.now + self.setup.answer / TICKS, Tick::Age);
                for connection in self.connections.values_mut() {
                    connection.age();
                }
                self.look(cx);
            }
            Input::Tick(Tick::Late(id)) => self.late(cx, id),
            Input::Packet(..) | Input::Tick(_) => {}
        }
    }

    fn work(&mut self, cx: &mut Cx<'_>) {
        cx.tick_in(1..2 * self.setup.pause, Tick::Next);
        if self.asking {
            // Several at the same moment share frames.
            let at_once = if cx.chance.permille(100) { 4 } else { 1 };
            for _ in 0..at_once {
                let ask = self.wish(cx);
                self.attempt(cx, ask, 8);
            }
        } else if !self.owed.is_empty() {
            let uid = *cx.chance.pick(&self.owed);
            self.attempt(cx, CallRequest::Next { uid, count: 1 }, 1);
        }
    }

    fn wish(&self, cx: &mut Cx<'_>) -> CallRequest {
        let hot = cx.chance.permille(500) && !self.setup.hot.is_empty();
        let any = cx.chance.between(0..u64::from(self.setup.uids)) as u32;
        let uid = if hot { *cx.chance.pick(&self.setup.hot) } else { any };
        let few = if cx.chance.permille(800) { 1 } else { self.setup.count };
        let count = cx.chance.between(1..u64::from(few) + 1) as u32;
        if cx.chance.permille(self.setup.leaps) {
            let far = u64::from(*cx.chance.pick(&[3 * self.setup.count, 2 * self.setup.step]));
            let at_least = cx.checker.asks(uid).number() + cx.chance.between(0..far);
            return CallRequest::Advance { uid, at_least };
        }
        match cx.chance.index(10) {
            0 => CallRequest::Current(self.several(cx, uid).into()),
            1 | 2 => CallRequest::Each(self.several(cx, uid).into()),
            _ => CallRequest::Next { uid, count },
        }
    }

    /// `uid` and a few more near it, now and then any, perhaps one of them twice.
    fn several(&self, cx: &mut Cx<'_>, uid: u32) -> Vec<u32> {
        let any = cx.chance.permille(200);
        let near = if any { u64::from(self.setup.uids) } else { 4 };
        let more = (0..1 + cx.chance.index(3)).map(|_| cx.chance.between(0..near) as u32);
        let mut uids = vec![uid];
        uids.extend(more.map(|other| if any { other } else { uid / 4 * 4 + other }));
        uids
    }

    fn attempt(&mut self, cx: &mut Cx<'_>, ask: CallRequest, left: u32) {
        let uids = match &ask {
            CallRequest::Next { uid, .. } | CallRequest::Advance { uid, .. } => vec![*uid],
            CallRequest::Each(uids) | CallRequest::Current(uids) => uids.to_vec(),
        };
        let places = self.places(cx, uids[0]);
        let to = *cx.chance.pick(&places);
        let connection = match self.connections.entry(to) {
            Entry::Occupied(connection) => connection.into_mut(),
            Entry::Vacant(free) => {
                self.streams += 1;
                free.insert(Connection::open(cx, to, self.streams, &self.shared))
            }
        };
        let floors = uids.iter().map(|&uid| cx.checker.asks(uid)).collect();
        // Too many are under way there: the next wish may go elsewhere.
        let Ok(waits) = connection.ask(cx, ask.clone()) else { return };
        self.next += 1;
        self.attempts.insert(self.next, Attempt { ask, uids, floors, to, waits, left, open: true });
        cx.tick_in(200 * MILLI..800 * MILLI, Tick::Late(self.next));
    }

    /// Where its table says, or any.
    fn places(&mut self, cx: &mut Cx<'_>, uid: u32) -> Vec<Place> {
        let (_, table) = self.shared.routes.table();
        let owner = table.as_deref().and_then(|table| {
            let owner = table.owner(table.section(Uid::new(uid)))?;
            table.nodes.get(owner.node as usize).map(|node| node.name.as_str())
        });
        let known = self.setup.nodes.iter().find(|(name, _)| Some(name.as_str()) == owner);
        match known {
            Some((_, places)) if !cx.chance.permille(100) => places.clone(),
            _ => cx.chance.pick(&self.setup.nodes).1.clone(),
        }
    }

    /// It asks again. Half of the time it waits for the answer all the same, which must then be right; now and then it makes a new
    /// connection.
    fn late(&mut self, cx: &mut Cx<'_>, id: u64) {
        let Some(attempt) = self.attempts.get_mut(&id).filter(|attempt| attempt.open) else { return };
        attempt.open = false;
        let (ask, to, left) = (attempt.ask.clone(), attempt.to, attempt.left);
        if cx.chance.permille(500) {
            self.attempts.remove(&id);
        }
        if cx.chance.permille(100) {
            self.streams += 1;
            if let Some(connection) = self.connections.get_mut(&to) {
                connection.redial(cx, self.streams);
            }
            self.look(cx);
        }
        self.again(cx, ask, left);
    }

    fn again(&mut self, cx: &mut Cx<'_>, ask: CallRequest, left: u32) {
        if left > 0 {
            self.attempt(cx, ask, left - 1);
        }
    }

    /// Takes what has been answered.
    fn look(&mut self, cx: &mut Cx<'_>) {
        let attempts = self.attempts.iter_mut();
        let answer: Vec<_> = attempts.filter_map(|(&id, one)| Some((id, one.waits.look()?))).collect();
        for (id, answer) in answer {
            if let Some(attempt) = self.attempts.remove(&id) {
                self.on_answer(cx, attempt, answer);
            }
        }
    }

    fn on_answer(&mut self, cx: &mut Cx<'_>, attempt: Attempt, answer: Result<Answered, AttemptError>) {
        let asked = attempt.uids.iter().zip(&attempt.floors);
        match (answer, &attempt.ask) {
            (Ok(Answered::Granted(granted)), _) => {
                cx.checker.granted(cx.at, attempt.uids[0], attempt.floors[0], granted);
                self.owed.retain(|owed| *owed != attempt.uids[0]);
            }
            (Ok(Answered::Numbers(bounds)), CallRequest::Current(_)) => {
                for ((&uid, &floor), bound) in asked.zip(bounds) {
                    cx.checker.bounded(cx.at, uid, floor, bound);
                }
            }
            (Ok(Answered::Numbers(numbers)), _) => {
                for ((&uid, &floor), number) in asked.zip(numbers) {
                    cx.checker.numbered(cx.at, uid, floor, number);
                }
            }
            (Err(AttemptError::Regression { uid, got, known }), _) => {
                cx.checker.refused(cx.at, uid.get(), got, known);
            }
            // It may go round in a few milliseconds: a table came with the refusal, or the next node knows better.
            (Ok(Answered::Advanced), ask) => {
                if let CallRequest::Advance { uid, at_least } = *ask {
                    cx.checker.advanced(uid, at_least);
                }
            }
            (Err(_), _) => {
                if attempt.open && (attempt.left > 4 || cx.chance.permille(300)) {
                    self.again(cx, attempt.ask, attempt.left);
                }
            }
        }
    }
}
