//! The leadership of an arbiter, while it acts: it probes the nodes, plans, writes one table at a time, reports to the
//! stores that it is there, and carries out operators' changes. The core owns it and drops it when it steps down. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::balance::balance;
use super::event::{Action, Change, ChangeOutcome, Probe};
use super::health::{Health, Status};
use super::plan::{self, Policy};
use super::rules::ArbiterRules;
use super::slots::open;
use seqsvr_core::clock::Moment;
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::routing::{Node, NodeState, Table};
use seqsvr_core::store::tables::WriteError;

/// The most changes of operators that wait at a time.
const CHANGES: usize = 64;
/// The most nodes that a Set may know.
pub(super) const NODES: usize = 1_024;

/// One term of one arbiter.
#[derive(Clone, Debug)]
pub(crate) struct Leadership {
    term: u64,
    /// The table that counts; without one a blank that knows the nodes.
    table: Arc<Table>,
    first: bool,
    writing: Option<Writing>,
    changes: VecDeque<(u64, Change)>,
    members: BTreeMap<String, ProbedNode>,
    beating: bool,
    beat_at: Moment,
    balance_at: Option<Moment>,
    /// Something changed since the plan was last asked.
    stale: bool,
    /// Some node answered in this leadership.
    any_answered: bool,
    moves: u64,
}

/// A table on its way, and the change that waits for it.
#[derive(Clone, Debug)]
struct Writing {
    table: Arc<Table>,
    waiting: Option<u64>,
    again_at: Option<Moment>,
}

/// The leadership's knowledge of a node, beside the table.
#[derive(Clone, Debug)]
struct ProbedNode {
    addr: String,
    health: Health,
    rates: Vec<(SectionId, u64)>,
    /// Sections that it was given and does not serve, as it last said.
    unserved: u32,
    probing: bool,
    probe_at: Moment,
}

/// A sign of life, or the opposite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beat {
    /// Tell that this arbiter acts.
    Act,
    /// Only look whether another does.
    Listen,
}

/// The stores follow another arbiter.
#[derive(Debug)]
pub(super) struct Outranked;

impl Leadership {
    /// Begins by writing the adopted table anew, which completes it where it was half written.
    pub(super) fn new(
        now: Moment,
        rules: &ArbiterRules,
        term: u64,
        adopted: Option<Arc<Table>>,
        actions: &mut Vec<Action>,
    ) -> Self {
        let first = adopted.is_none();
        let table = adopted.unwrap_or_else(|| Arc::new(rules.seed.blank()));
        let balance_at = match &rules.policy {
            Policy::Spread(balance) if !balance.every.is_zero() => Some(now + balance.every),
            _ => None,
        };
        let mut leadership = Self {
            term,
            table,
            first,
            writing: None,
            changes: VecDeque::new(),
            members: BTreeMap::new(),
            beating: false,
            beat_at: now,
            balance_at,
            stale: true,
            any_answered: false,
            moves: 0,
        };
        leadership.meet(now);
        if !first {
            let anew = Table { version: leadership.version(), ..(*leadership.table).clone() };
            leadership.write(anew, None, actions);
        }
        leadership
    }

    pub(super) fn acted(&mut self) {
        self.beating = false;
    }

    pub(super) fn probed(
        &mut self,
        now: Moment,
        rules: &ArbiterRules,
        node: &str,
        outcome: Result<Probe, ()>,
    ) {
        let unable = outcome.as_ref().is_ok_and(|probe| self.is_unable(now, rules, node, probe));
        let Some(member) = self.members.get_mut(node) else { return };
        member.probing = false;
        member.unserved = outcome.as_ref().map_or(0, |probe| probe.unserved);
        let before = member.health.status();
        match outcome {
            Ok(probe) if unable => {
                member.health.unable(now, probe.incarnation);
                member.rates.clear();
            }
            Ok(probe) if probe.node == node && probe.draining => {
                member.health.left();
                member.rates.clear();
            }
            // Before the first table nobody has a lease.
            Ok(probe) if probe.node == node && (self.first || !probe.lapsed) => {
                member.health.answered(now, &rules.health, probe.incarnation);
                self.any_answered = true;
                member.rates = probe.rates;
            }
            _ => {
                member.health.missed(now, &rules.health);
                member.rates.clear();
            }
        }
        self.stale |= member.health.status() != before;
    }

    /// Whether a node answers, but cannot serve: its settings differ from the stored ones, say. One that still serves something
    /// is set aside only while no other one is: a section that no node can serve must not cost one node after the other its own.
    fn is_unable(&self, now: Moment, rules: &ArbiterRules, node: &str, probe: &Probe) -> bool {
        let late = probe.node == node && !probe.lapsed && probe.overdue >= rules.health.unserved;
        let others = || self.members.iter().filter(|(name, _)| *name != node).map(|(_, member)| member);
        late && !self.members.get(node).is_some_and(|member| member.health.is_aside(now))
            && others().any(|other| matches!(other.health.status(), Status::Live(_)))
            && (probe.served == 0 || !others().any(|other| other.health.is_aside(now)))
    }

    pub(super) fn change(&mut self, now: Moment, id: u64, change: Change, actions: &mut Vec<Action>) {
        if let Change::Add { name, .. } = &change {
            self.look_again(now, name);
        }
        if self.changes.len() < CHANGES {
            self.changes.push_back((id, change));
        } else {
            let outcome = ChangeOutcome::Refused(format!("{CHANGES} changes wait already; try again later"));
            actions.push(Action::Answer { id, outcome });
        }
    }

    /// A drained node has often been restarted before it is taken in again: it is asked first, so that its sections are not
    /// given to a life that is over.
    fn look_again(&mut self, now: Moment, name: &str) {
        let drained = |node: &Node| node.name == name && node.state == NodeState::Drained;
        if self.table.nodes.iter().any(drained)
            && let Some(member) = self.members.get_mut(name)
        {
            member.health.forget();
            member.probe_at = now;
        }
    }

    pub(super) fn written(
        &mut self,
        now: Moment,
        rules: &ArbiterRules,
        version: Epoch,
        outcome: Result<(), WriteError>,
        actions: &mut Vec<Action>,
    ) -> Result<(), Outranked> {
        let Some(writing) = self.writing.as_mut().filter(|writing| writing.table.version == version) else {
            return Ok(());
        };
        match outcome {
            Ok(()) => {
                let table = Arc::clone(&writing.table);
                if let Some(id) = writing.waiting {
                    actions.push(Action::Answer { id, outcome: ChangeOutcome::Done(Arc::clone(&table)) });
                }
                self.moves += moved(&self.table, &table);
                self.table = table;
                self.first = false;
                self.writing = None;
                self.stale = true;
                self.meet(now);
                Ok(())
            }
            Err(WriteError::Unknown(_)) => {
                writing.again_at = Some(now + rules.retry);
                Ok(())
            }
            // Another arbiter wrote, or has this term, too: a new term begins with the stored table.
            Err(WriteError::Outranked(_) | WriteError::Older(_)) => Err(Outranked),
        }
    }

    /// Takes out the changes that will not be carried out.
    pub(crate) fn waiting(&mut self) -> Vec<u64> {
        let written = self.writing.take().and_then(|writing| writing.waiting);
        written.into_iter().chain(self.changes.drain(..).map(|(id, _)| id)).collect()
    }

    /// The sign that is due to the stores by now.
    pub(super) fn beat(&mut self, now: Moment, rules: &ArbiterRules) -> Option<Beat> {
        if self.beating || now < self.beat_at {
            return None;
        }
        self.beat_at = now + rules.takeover / 4;
        // An arbiter that has lost every node is more likely cut off itself: its silence lets another try.
        let gone = |one: &ProbedNode| one.health.status() == Status::Dead && !one.health.is_aside(now);
        let lost = self.any_answered && self.members.values().all(gone);
        self.beating = !lost;
        Some(if lost { Beat::Listen } else { Beat::Act })
    }

    pub(super) fn go_on(&mut self, now: Moment, rules: &ArbiterRules, actions: &mut Vec<Action>) {
        for (name, member) in &mut self.members {
            if !member.probing && now >= member.probe_at {
                member.probing = true;
                member.probe_at = now + rules.probe_every;
                actions.push(Action::Probe { node: name.clone(), addr: member.addr.clone() });
            }
        }
        if let Some(writing) = &mut self.writing {
            if writing.again_at.is_some_and(|at| now >= at) {
                writing.again_at = None;
                actions.push(Action::Write(Arc::clone(&writing.table)));
            }
            return;
        }
        self.decide(now, rules, actions);
    }

    pub(super) fn wake_at(&self) -> Moment {
        let beat = (!self.beating).then_some(self.beat_at);
        let probes = self.members.values().filter(|one| !one.probing).map(|one| one.probe_at);
        let again = self.writing.as_ref().and_then(|writing| writing.again_at);
        let balance = self.balance_at.filter(|_| self.writing.is_none());
        // Something always comes; the bound only stands for "never".
        let far = Moment::from_nanos(u64::MAX);
        probes.chain(beat).chain(again).chain(balance).min().unwrap_or(far)
    }

    /// The table that counts, unless there is none yet.
    pub(crate) fn table(&self) -> Option<&Arc<Table>> {
        (!self.first).then_some(&self.table)
    }

    /// Each node with its status, and how many sections it was given and does not serve.
    pub(crate) fn statuses(&self) -> impl Iterator<Item = (&str, Status, u32)> {
        self.members.iter().map(|(name, member)| (name.as_str(), member.health.status(), member.unserved))
    }

    /// Sections that changed their owner during this leadership.
    pub(crate) fn moves(&self) -> u64 {
        self.moves
    }

    fn decide(&mut self, now: Moment, rules: &ArbiterRules, actions: &mut Vec<Action>) {
        if !self.first && self.writing.is_none() && self.table.uids != rules.seed.uids {
            let reshaped = self.table.reshaped(&rules.seed.uids);
            self.write(Table { version: self.version(), ..reshaped }, None, actions);
        }
        let statuses = self.parallel();
        let judged = !statuses.contains(&Status::Unknown);
        // A change, or the first table, is for nodes of which something is known; that takes a few probes.
        while judged && self.writing.is_none() {
            let Some((id, change)) = self.changes.pop_front() else { break };
            match self.revise(rules, &statuses, change) {
                Ok(Some(table)) => self.write(table, Some(id), actions),
                Ok(None) => {
                    let outcome = ChangeOutcome::Done(Arc::clone(&self.table));
                    actions.push(Action::Answer { id, outcome });
                }
                Err(line) => actions.push(Action::Answer { id, outcome: ChangeOutcome::Refused(line) }),
            }
        }
        // Deaths that come together, when this arbiter loses its network, are noticed one by one.
        let someone = self.members.values().any(|member| member.health.answers());
        if self.writing.is_none() && self.stale && someone && (judged || !self.first) {
            self.stale = false;
            if let Some(table) = plan::next(&self.table, &statuses, &rules.policy, self.version()) {
                self.write(table, None, actions);
            }
        }
        if self.writing.is_none()
            && let Some(due) = self.balance_at
            && now >= due
            && let Policy::Spread(balance_rules) = &rules.policy
        {
            self.balance_at = Some(now + balance_rules.every);
            let rates = self.rates();
            if let Some(table) = balance(&self.table, &statuses, &rates, balance_rules, self.version()) {
                self.write(table, None, actions);
            }
        }
    }

    fn revise(
        &self,
        rules: &ArbiterRules,
        statuses: &[Status],
        change: Change,
    ) -> Result<Option<Table>, String> {
        if self.first {
            return Err("there is no table yet; start an AllocSvr first".to_owned());
        }
        let (table, policy, version) = (&*self.table, &rules.policy, self.version());
        match change {
            Change::Drain(node) => plan::drain(table, &node, statuses, policy, version),
            Change::Add { name, addr } => {
                check_node(&name, &addr)?;
                if table.index(&name).is_some() || table.nodes.len() < NODES {
                    return Ok(plan::add(table, &name, &addr, statuses, policy, version));
                }
                let full = || format!("the Set has {NODES} nodes already, the maximum; remove one first");
                let spare = plan::spare(table, statuses).ok_or_else(full)?;
                let mut left = statuses.to_vec();
                left.remove(spare as usize);
                let table = plan::without(table, spare, version);
                Ok(plan::add(&table, &name, &addr, &left, policy, version))
            }
            Change::Remove(node) => plan::remove(table, &node, version).map(Some),
            Change::Rebalance => Ok(plan::rebalance(table, statuses, policy, version)),
        }
    }

    fn write(&mut self, table: Table, waiting: Option<u64>, actions: &mut Vec<Action>) {
        debug_assert_eq!(table.check(), Ok(()));
        let table = Arc::new(table);
        actions.push(Action::Write(Arc::clone(&table)));
        self.writing = Some(Writing { table, waiting, again_at: None });
    }

    /// Knows the nodes of the table, and no others; one at a new address is a stranger.
    fn meet(&mut self, now: Moment) {
        let mut known = std::mem::take(&mut self.members);
        for node in &self.table.nodes {
            let old = known.remove(&node.name).filter(|member| member.addr == node.addr);
            let member = old.unwrap_or_else(|| ProbedNode {
                addr: node.addr.clone(),
                health: Health::default(),
                rates: Vec::new(),
                unserved: 0,
                probing: false,
                probe_at: now,
            });
            self.members.insert(node.name.clone(), member);
        }
    }

    fn parallel(&self) -> Vec<Status> {
        let status = |node: &Node| self.members.get(&node.name).map(|member| member.health.status());
        self.table.nodes.iter().map(|node| status(node).unwrap_or(Status::Unknown)).collect()
    }

    /// The rates that owners report of their own sections; leftovers of earlier owners do not count.
    fn rates(&self) -> BTreeMap<SectionId, u64> {
        let mut rates = BTreeMap::new();
        for (name, member) in &self.members {
            let Some(index) = self.table.index(name) else { continue };
            for &(section, rate) in &member.rates {
                if self.table.owner(section).is_some_and(|owner| owner.node == index) {
                    rates.insert(section, rate);
                }
            }
        }
        rates
    }

    fn version(&self) -> Epoch {
        Epoch { term: self.term, version: self.table.version.version + 1 }
    }
}

/// Sections that `after` gives to another node than `before` did.
fn moved(before: &Table, after: &Table) -> u64 {
    let name = |table: &Table, node: Option<u32>| node.map(|node| table.nodes[node as usize].name.clone());
    // Indexes change when a node is removed.
    let same: Vec<Option<u32>> =
        (0..before.nodes.len() as u32).map(|node| after.index(&name(before, Some(node))?)).collect();
    // Sections that were given up or taken in have not moved within the Set.
    if before.uids != after.uids {
        return 0;
    }
    let pairs = open(before).into_iter().zip(open(after));
    pairs.filter(|(old, new)| old.node.and_then(|node| same[node as usize]) != new.node).count() as u64
}

/// Refuses a name or an address that no table may hold.
pub(super) fn check_node(name: &str, addr: &str) -> Result<(), String> {
    let fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(fit) {
        return Err(format!("the name {name:?} is not 1 to 64 of a-z, 0-9, `_`, `.` and `-`"));
    }
    if !(addr.starts_with("http://") || addr.starts_with("https://")) || addr.len() > 256 {
        return Err(format!("the address {addr:?} is not http://HOST:PORT or https://HOST:PORT"));
    }
    Ok(())
}
