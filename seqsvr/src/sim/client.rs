//! A caller: asks for numbers and bounds of uids, hot ones more than others, by a cached table, tries again elsewhere when it is
//! refused or hears nothing, and tells the checker when it asked and what came back.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::checker::Floor;
use super::message::{Input, Packet, Tick, Told, Want};
use super::world::Cx;
use super::{At, MILLI, Place};
use crate::ids::Uid;
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

#[derive(Clone, Debug)]
struct Attempt {
    uids: Vec<u32>,
    want: Want,
    /// What had been answered for each uid.
    floors: Vec<Floor>,
    to: Place,
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
                    let attempt = attempt.clone();
                    if attempt.left == 0 {
                        cx.send(attempt.to, Packet::Cancel { id });
                    }
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
            let (want, uids) = match cx.chance.index(10) {
                0 => (Want::Current, vec![uid]),
                1 | 2 => (Want::Each, self.several(cx, uid)),
                _ => (Want::Next(count), vec![uid]),
            };
            self.attempt(cx, uids, want, 8);
        } else if !self.owed.is_empty() {
            let uid = *cx.chance.pick(&self.owed);
            self.attempt(cx, vec![uid], Want::Next(1), 1);
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

    fn attempt(&mut self, cx: &mut Cx<'_>, uids: Vec<u32>, want: Want, left: u32) {
        let places = self.places(cx, uids[0]);
        let to = *cx.chance.pick(&places);
        self.next += 1;
        let floors = uids.iter().map(|&uid| cx.checker.asks(uid)).collect();
        let attempt = Attempt { uids: uids.clone(), want, floors, to, left, open: true };
        self.attempts.insert(self.next, attempt);
        let known = self.table.as_ref().map(|table| table.version);
        cx.send(to, Packet::Ask { id: self.next, uids, want, known });
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
            self.attempt(cx, attempt.uids, attempt.want, attempt.left - 1);
        }
    }

    fn told(&mut self, cx: &mut Cx<'_>, id: u64, told: &Told) {
        let Some(attempt) = self.attempts.remove(&id) else { return };
        match told {
            Told::Granted { .. } | Told::Each(_) => {
                let asked = attempt.uids.iter().zip(&attempt.floors);
                for ((&uid, &floor), granted) in asked.zip(told.granted()) {
                    cx.checker.granted(cx.at, uid, floor, granted);
                    self.owed.retain(|owed| *owed != uid);
                }
            }
            &Told::Bound(bound) => {
                cx.checker.bounded(cx.at, attempt.uids[0], attempt.floors[0], bound);
            }
            Told::NotOwner | Told::Unavailable => {
                // It may go round in a few milliseconds: a table came with the refusal, or the next node knows better.
                if attempt.open && (attempt.left > 4 || cx.chance.permille(300)) {
                    self.again(cx, attempt);
                }
            }
        }
    }
}
