//! The next table, given the nodes that live (S11, S13): pure functions from a table, the statuses of its nodes and a
//! policy to the next table, or to nothing when the table is right as it is. `spread` and `standby` hold the two
//! policies, `balance` moves sections between nodes that are unevenly busy, `slots` is their common ground.
//!
//! Under every policy, a node that is drained or dead is given no sections; where no node could take them everything
//! stays as it is; an epoch is renewed exactly where the owner or its incarnation changes.

use std::time::Duration;

use super::health::Status;
use super::slots::{PlannedNode, Slot, close, members, open, takers};
use super::{spread, standby};
use seqsvr_core::ids::Epoch;
use seqsvr_core::routing::order::Order;
use seqsvr_core::routing::{Node, NodeState, Table};

/// The rule for the sections of a node that dies, and for its return.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Everyone is everyone's standby (2.0, S11).
    Spread(Balance),
    /// The next in the order takes everything and keeps it (1.0, S10).
    Standby(Order),
}

/// When sections move because one node is busier than others. Rates are numbers handed out a second.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Balance {
    /// How often rates are looked at: the pause between two moves. Zero: never.
    pub every: Duration,
    /// The busiest node must be at least this many percent as busy as the average.
    pub above_percent: u64,
    /// Nodes less busy than this are never relieved.
    pub least: u64,
    /// The most sections that move at a time.
    pub sections: usize,
    /// No move while the table has this many assignments: each one may add two.
    pub assignments: usize,
}

impl Default for Balance {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(30),
            above_percent: 125,
            least: 10_000,
            sections: 64,
            assignments: 1_024,
        }
    }
}

/// The table as it should be by now, under `version`, or nothing when it is so already. `statuses` are parallel to the nodes.
pub(crate) fn next(table: &Table, statuses: &[Status], policy: &Policy, version: Epoch) -> Option<Table> {
    revise(table, table.nodes.clone(), statuses, policy, version, Homes::Kept)
}

/// The table after everything was moved away from `node`, as far as anyone can take it.
///
/// # Errors
///
/// One line for the operator.
pub(crate) fn drain(
    table: &Table,
    node: &str,
    statuses: &[Status],
    policy: &Policy,
    version: Epoch,
) -> Result<Option<Table>, String> {
    let Some(index) = table.index(node) else {
        return Err(format!("there is no node {node}; {}", known(table)));
    };
    let mut nodes = table.nodes.clone();
    let before = std::mem::replace(&mut nodes[index as usize].state, NodeState::Drained);
    if before == NodeState::Active && takers(&members(&nodes, statuses)).is_empty() {
        return Err(format!("no other node is live to take what {node} serves; add one first"));
    }
    Ok(revise(table, nodes, statuses, policy, version, Homes::Kept))
}

/// The table with the node `name` at `addr` in it and active. One that was drained gets back its own sections; a new one gets an
/// even share of homes. `statuses` are parallel to the nodes of `table`.
pub(crate) fn add(
    table: &Table,
    name: &str,
    addr: &str,
    statuses: &[Status],
    policy: &Policy,
    version: Epoch,
) -> Option<Table> {
    let mut nodes = table.nodes.clone();
    let mut statuses = statuses.to_vec();
    let node = Node { name: name.to_owned(), addr: addr.to_owned(), state: NodeState::Active };
    let index = match table.index(name) {
        Some(index) => index,
        None => {
            nodes.push(node.clone());
            statuses.push(Status::Unknown);
            table.nodes.len() as u32
        }
    };
    if nodes[index as usize].addr != addr {
        statuses[index as usize] = Status::Unknown;
    }
    nodes[index as usize] = node;
    let new = !table.assignments.iter().any(|one| one.home == index);
    let homes = if new && matches!(policy, Policy::Spread(_)) { Homes::Evened } else { Homes::Kept };
    revise(table, nodes, &statuses, policy, version, homes)
}

/// The table without the node `name`: sections at home there are at home from now on with the node that serves them.
///
/// # Errors
///
/// One line for the operator: the node is unknown, or still serves sections.
pub(crate) fn remove(table: &Table, name: &str, version: Epoch) -> Result<Table, String> {
    let Some(index) = table.index(name) else {
        return Err(format!("there is no node {name}; {}", known(table)));
    };
    let serves: u64 =
        table.of(name).map(|one| u64::from(one.sections.end().get() - one.sections.start().get()) + 1).sum();
    if serves > 0 {
        return Err(format!("{name} still serves {serves} sections; run `seqsvr drain {name}` first"));
    }
    Ok(without(table, index, version))
}

/// The table without the node of this index, which serves nothing.
pub(crate) fn without(table: &Table, index: u32, version: Epoch) -> Table {
    let mut nodes = table.nodes.clone();
    nodes.remove(index as usize);
    let moved = |node: u32| if node > index { node - 1 } else { node };
    let mut slots = open(table);
    for slot in &mut slots {
        slot.home = slot.home.filter(|&home| home != index).or(slot.node).map(moved);
        slot.node = slot.node.map(moved);
    }
    Table { version, nodes, assignments: close(&table.sections(), &slots), ..table.clone() }
}

/// The first node that serves nothing and is drained or dead: it may be forgotten where there is no room for another name.
pub(crate) fn spare(table: &Table, statuses: &[Status]) -> Option<u32> {
    let idle = |node: &Node| table.of(&node.name).next().is_none();
    let gone = |(node, status): &(&Node, &Status)| {
        idle(node) && (node.state == NodeState::Drained || **status == Status::Dead)
    };
    table.nodes.iter().zip(statuses).position(|pair| gone(&pair)).map(|index| index as u32)
}

/// The table with homes spread evenly over the active nodes, and everything at home that can be.
pub(crate) fn rebalance(
    table: &Table,
    statuses: &[Status],
    policy: &Policy,
    version: Epoch,
) -> Option<Table> {
    revise(table, table.nodes.clone(), statuses, policy, version, Homes::Evened)
}

/// Whether the homes of sections change beside their owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Homes {
    Kept,
    Evened,
}

fn revise(
    table: &Table,
    nodes: Vec<Node>,
    statuses: &[Status],
    policy: &Policy,
    version: Epoch,
    homes: Homes,
) -> Option<Table> {
    let members = members(&nodes, statuses);
    let before = open(table);
    let mut slots = before.clone();
    match policy {
        Policy::Spread(_) => {
            if homes == Homes::Evened {
                spread::even_homes(&mut slots, &members);
            }
            spread::settle(&mut slots, &members);
        }
        Policy::Standby(order) => {
            let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
            let order = standby::Ring::new(*order, &names, table.sections());
            if homes == Homes::Evened {
                standby::to_the_first(&mut slots, &members, &order);
            }
            standby::settle(&mut slots, &members, &order);
        }
    }
    seal(&before, &mut slots, &members, version);
    finish(table, nodes, &before, &slots, version)
}

/// Gives every slot whose owner or incarnation changed the new epoch.
fn seal(before: &[Slot], slots: &mut [Slot], members: &[PlannedNode], version: Epoch) {
    for (old, slot) in before.iter().zip(slots) {
        let Some(node) = slot.node else { continue };
        let incarnation = members[node as usize].incarnation();
        let moved = old.node != slot.node;
        if let Some(incarnation) = incarnation
            && (moved || incarnation != slot.incarnation)
        {
            slot.incarnation = incarnation;
            slot.epoch = version;
        }
    }
}

pub(super) fn finish(
    table: &Table,
    nodes: Vec<Node>,
    before: &[Slot],
    slots: &[Slot],
    version: Epoch,
) -> Option<Table> {
    (nodes != table.nodes || before != slots).then(|| Table {
        version,
        nodes,
        assignments: close(&table.sections(), slots),
        ..table.clone()
    })
}

fn known(table: &Table) -> String {
    let names: Vec<&str> = table.nodes.iter().map(|node| node.name.as_str()).collect();
    format!("the Set has {}", names.join(", "))
}
