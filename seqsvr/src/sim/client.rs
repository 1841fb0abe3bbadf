//! A caller: asks for numbers and bounds of uids, hot ones more than others, by a cached table, tries again elsewhere when it is
//! refused or hears nothing, and tells the checker when it asked and what came back.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::checker::Floor;
use super::message::{Input, Packet, Tick, Told, Want};
use super::world::Cx;
use super::{At, MILLI, Place};
use crate::ids::{Granted, Uid};
use crate::routing::Table;

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
    /// The mean time between two requests.
    pub(crate) pause: At,
}

/// See the module.
pub(crate) struct Client {
    setup: ClientSetup,
    table: Option<Arc<Table>>,
    next: u64,
    attempts: BTreeMap<u64, Attempt>,
    /// One uid of each section that must be served in the end.
    owed: Vec<u32>,
    asking: bool,
}

#[derive(Clone, Copy, Debug)]
struct Attempt {
    uid: u32,
    want: Want,
    floor: Floor,
    left: u32,
    /// No retry has been made for it yet.
    open: bool,
}

impl Client {
    pub(crate) fn new(setup: ClientSetup) -> Self {
        Self { setup, table: None, next: 0, attempts: BTreeMap::new(), owed: Vec::new(), asking: true }
    }

    /// Asks for these, until it is served; for nothing else any more.
    pub(crate) fn insist(&mut self, uids: Vec<u32>) {
        self.owed = uids;
        self.asking = false;
    }

    /// What it has insisted on in vain.
    pub(crate) fn owed(&self) -> &[u32] {
        &self.owed
    }

    pub(crate) fn crash(&mut self) {
        self.table = None;
        self.attempts.clear();
    }

    pub(crate) fn on(&mut self, cx: &mut Cx<'_>, input: Input) {
        match input {
            Input::Start | Input::Tick(Tick::Next) => self.work(cx),
            Input::Packet(_, Packet::Told { id, told, table }) => {
                let newer = table
                    .filter(|table| self.table.as_ref().is_none_or(|known| known.version < table.version));
                self.table = newer.or(self.table.take());
                self.told(cx, id, &told);
            }
            // Its answer may still come, and must then be right.
            Input::Tick(Tick::Late(id)) => {
                if let Some(attempt) = self.attempts.get_mut(&id)
                    && attempt.open
                {
                    attempt.open = false;
                    let attempt = *attempt;
                    self.again(cx, attempt);
                }
            }
            Input::Packet(..) | Input::Tick(_) => {}
        }
    }

    fn work(&mut self, cx: &mut Cx<'_>) {
        cx.tick_in(1..2 * self.setup.pause, Tick::Next);
        if self.asking {
            let hot = cx.chance.permille(500) && !self.setup.hot.is_empty();
            let any = cx.chance.between(0..u64::from(self.setup.uids)) as u32;
            let uid = if hot { *cx.chance.pick(&self.setup.hot) } else { any };
            let few = if cx.chance.permille(800) { 1 } else { self.setup.count };
            let count = cx.chance.between(1..u64::from(few) + 1) as u32;
            let want = if cx.chance.permille(100) { Want::Current } else { Want::Next(count) };
            self.attempt(cx, uid, want, 8);
        } else if !self.owed.is_empty() {
            let uid = *cx.chance.pick(&self.owed);
            self.attempt(cx, uid, Want::Next(1), 1);
        }
    }

    fn attempt(&mut self, cx: &mut Cx<'_>, uid: u32, want: Want, left: u32) {
        let places = self.places(cx, uid);
        let to = *cx.chance.pick(&places);
        self.next += 1;
        let attempt = Attempt { uid, want, floor: cx.checker.asks(uid), left, open: true };
        self.attempts.insert(self.next, attempt);
        let known = self.table.as_ref().map(|table| table.version);
        cx.send(to, Packet::Ask { id: self.next, uid, want, known });
        cx.tick_in(200 * MILLI..800 * MILLI, Tick::Late(self.next));
    }

    /// Where its table says, or any.
    fn places(&mut self, cx: &mut Cx<'_>, uid: u32) -> Vec<Place> {
        let table = self.table.as_deref();
        let owner = table.and_then(|table| {
            let owner = table.owner(table.section(Uid::new(uid)))?;
            table.nodes.get(owner.node as usize).map(|node| node.name.as_str())
        });
        let known = self.setup.nodes.iter().find(|(name, _)| Some(name.as_str()) == owner);
        match known {
            Some((_, places)) if !cx.chance.permille(100) => places.clone(),
            _ => cx.chance.pick(&self.setup.nodes).1.clone(),
        }
    }

    fn again(&mut self, cx: &mut Cx<'_>, attempt: Attempt) {
        if attempt.left > 0 {
            self.attempt(cx, attempt.uid, attempt.want, attempt.left - 1);
        }
    }

    fn told(&mut self, cx: &mut Cx<'_>, id: u64, told: &Told) {
        let Some(attempt) = self.attempts.remove(&id) else { return };
        let Attempt { uid, floor, .. } = attempt;
        match *told {
            Told::Granted { first, last, epoch } => {
                cx.checker.granted(cx.at, uid, floor, Granted { first, last, epoch });
                self.owed.retain(|owed| *owed != uid);
            }
            Told::Bound(bound) => cx.checker.bounded(cx.at, uid, floor, bound),
            Told::NotOwner | Told::Unavailable => {
                // It may go round in a few milliseconds: a table came with the refusal, or the next node knows better.
                if attempt.open && (attempt.left > 4 || cx.chance.permille(300)) {
                    self.again(cx, attempt);
                }
            }
        }
    }
}
