//! An arbiter without judgement: it keeps to the rules of terms and tables and to nothing else. It moves sections at any moment,
//! between nodes that live, that are gone, and that have just begun a new life, and bids for a new term whenever it likes. Promises
//! that hold under it depend on no arbiter's wisdom. Service is not promised under it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Place;
use super::arbiter::address;
use super::cx::Cx;
use super::message::{Input, Packet, Tick};
use super::quorum::{Access, Quorum, RoundOutcome};
use seqsvr_cluster::arbiter::core::Probe;
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::routing::{Assignment, Node, NodeState, Table};
use seqsvr_core::store::tables::WriteError;

/// How a wild arbiter is set up.
#[derive(Clone)]
pub(crate) struct WildSetup {
    /// Makes its terms unique: 0 to 255.
    pub(crate) number: u64,
    /// Where AllocSvrs are reached; two where two processes have one name.
    pub(crate) nodes: Vec<(String, Vec<Place>)>,
    /// The table before the first change: no assignments.
    pub(crate) empty: Table,
    pub(crate) access: Access,
    /// The mean time between two of its ideas, nanoseconds.
    pub(crate) pause: u64,
}

/// See the module.
pub(crate) struct Wild {
    setup: WildSetup,
    life: Option<WildLife>,
}

struct WildLife {
    quorum: Quorum,
    /// The newest term that it has heard of.
    heard: u64,
    term: Option<u64>,
    /// The newest table under its term.
    table: Option<Arc<Table>>,
    writing: bool,
    probes: BTreeMap<u64, u32>,
    /// The lives that it has heard of, by node.
    lives: BTreeMap<u32, Vec<u64>>,
    next: u64,
}

impl Wild {
    pub(crate) fn new(setup: WildSetup) -> Self {
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
                self.life = Some(WildLife {
                    quorum: Quorum::new(self.setup.access.clone(), cx.chance.number() >> 8),
                    heard: 0,
                    term: None,
                    table: None,
                    writing: false,
                    probes: BTreeMap::new(),
                    lives: BTreeMap::new(),
                    next: 0,
                });
                self.have_an_idea(cx);
            }
            Input::Tick(Tick::Next) => self.have_an_idea(cx),
            Input::Packet(_, Packet::Answer { id, answer }) => self.answered(cx, id, Some(answer)),
            Input::Tick(Tick::Late(id)) => self.answered(cx, id, None),
            Input::Packet(_, Packet::Probed { id, probe: Probe { incarnation, .. } }) => {
                if let Some(life) = &mut self.life
                    && let Some(node) = life.probes.remove(&id)
                {
                    let lives = life.lives.entry(node).or_default();
                    if !lives.contains(&incarnation) {
                        lives.push(incarnation);
                    }
                }
            }
            Input::Packet(..) | Input::Tick(_) => {}
        }
    }

    fn have_an_idea(&mut self, cx: &mut Cx<'_>) {
        cx.tick_in(1..2 * self.setup.pause, Tick::Next);
        let Some(life) = &mut self.life else { return };
        for (node, (_, places)) in self.setup.nodes.iter().enumerate() {
            life.next += 1;
            life.probes.insert(life.next, node as u32);
            let place = *cx.chance.pick(places);
            cx.send(place, Packet::Probe { id: life.next });
        }
        if life.writing {
            return;
        }
        match life.table.clone() {
            Some(table) if life.term.is_some() && !cx.chance.permille(50) => {
                let table = Arc::new(self.change(cx, &table));
                self.write(cx, table);
            }
            _ if life.term.is_none() && !cx.chance.permille(300) => {}
            _ => {
                let term = (life.heard / 256 + 1) * 256 + self.setup.number;
                (life.heard, life.term, life.writing) = (term, None, true);
                life.quorum.promise(cx, term);
            }
        }
    }

    fn answered(&mut self, cx: &mut Cx<'_>, id: u64, answer: Option<seqsvr_core::store::message::Answer>) {
        let Some(life) = &mut self.life else { return };
        match life.quorum.on(cx, id, answer) {
            Some(RoundOutcome::Promise { term, outcome: Ok(table) }) => {
                (life.term, life.writing) = (Some(term), false);
                let before = table.unwrap_or_else(|| Arc::new(self.setup.empty.clone()));
                let mut table = Table::clone(&before);
                table.version = Epoch { term, version: before.version.version + 1 };
                self.write(cx, Arc::new(table));
            }
            Some(RoundOutcome::Promise { outcome: Err(error), .. }) => {
                life.writing = false;
                self.failed(&error);
            }
            Some(RoundOutcome::Write { outcome: Ok(()), .. }) => life.writing = false,
            // The same again, until it is known what came of it.
            Some(RoundOutcome::Write { table, outcome: Err(WriteError::Unknown(_)) }) => {
                life.quorum.write(cx, table);
            }
            Some(RoundOutcome::Write { outcome: Err(error), .. }) => {
                (life.writing, life.term) = (false, None);
                self.failed(&error);
            }
            _ => {}
        }
    }

    fn failed(&mut self, error: &WriteError) {
        if let (Some(life), WriteError::Outranked(term)) = (&mut self.life, error) {
            life.heard = life.heard.max(*term);
        }
    }

    fn write(&mut self, cx: &mut Cx<'_>, table: Arc<Table>) {
        let Some(life) = &mut self.life else { return };
        life.writing = true;
        life.table = Some(Arc::clone(&table));
        life.quorum.write(cx, table);
    }

    /// The next table: some sections go to other lives.
    fn change(&self, cx: &mut Cx<'_>, before: &Table) -> Table {
        let mut table = before.clone();
        table.version = before.version.next();
        let lives = self.life.as_ref().map(|life| &life.lives);
        let known: Vec<(u32, u64)> = lives
            .into_iter()
            .flatten()
            .flat_map(|(node, lives)| lives.iter().rev().take(2).map(|life| (*node, *life)))
            .collect();
        let sections = table.sections();
        table.assignments.clear();
        for section in (sections.start().get()..=sections.end().get()).map(SectionId::new) {
            let old = before.owner(section).cloned();
            let moved = cx.chance.permille(if old.is_none() { 700 } else { 250 }) && !known.is_empty();
            if moved {
                let (node, incarnation) = *cx.chance.pick(&known);
                let same = old.as_ref().is_some_and(|old| (old.node, old.incarnation) == (node, incarnation));
                if !same {
                    let (sections, epoch) = (section..=section, table.version);
                    table.assignments.push(Assignment { sections, node, home: node, incarnation, epoch });
                    continue;
                }
            }
            table.assignments.extend(old.map(|old| Assignment { sections: section..=section, ..old }));
        }
        table
    }
}

/// A table of `nodes` and sections that nobody owns.
pub(crate) fn empty_table(nodes: &[(String, Vec<Place>)], section_size: u32, sections: u32) -> Table {
    let node = |(name, _): &(String, Vec<Place>)| Node {
        name: name.clone(),
        addr: address(name),
        state: NodeState::Active,
    };
    Table {
        set: 0,
        version: Epoch::default(),
        section_size,
        uids: 0..=section_size * sections - 1,
        nodes: nodes.iter().map(node).collect(),
        assignments: Vec::new(),
    }
}
