//! The common ground of the planning rules: the table of a Set opened up, one slot for each section, so that the rules can
//! treat every section alone, and closed again into as few assignments as say the same; and the nodes as the rules see
//! them. Pure.

use std::ops::RangeInclusive;

use super::health::Status;
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::routing::{Assignment, Node, NodeState, Table};

/// The node that serves one section, and its home; `None` where none is named yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) node: Option<u32>,
    pub(super) home: Option<u32>,
    pub(super) incarnation: u64,
    pub(super) epoch: Epoch,
}

/// One slot for each section of the Set, in order.
pub(super) fn open(table: &Table) -> Vec<Slot> {
    let first = table.sections().start().get();
    let count = (table.sections().end().get() - first) as usize + 1;
    let mut slots = vec![Slot::default(); count];
    for one in &table.assignments {
        let (start, end) = (one.sections.start().get() - first, one.sections.end().get() - first);
        slots[start as usize..=end as usize].fill(Slot {
            node: Some(one.node),
            home: Some(one.home),
            incarnation: one.incarnation,
            epoch: one.epoch,
        });
    }
    slots
}

/// The assignments that say the same as the slots; slots without a node are in none.
pub(super) fn close(sections: &RangeInclusive<SectionId>, slots: &[Slot]) -> Vec<Assignment> {
    let first = sections.start().get();
    let mut assignments: Vec<Assignment> = Vec::new();
    let mut before = None;
    for (section, slot) in (first..).zip(slots) {
        let same = before == Some(slot);
        before = Some(slot);
        let Some(node) = slot.node else { continue };
        let section = SectionId::new(section);
        match assignments.last_mut() {
            Some(last) if same => last.sections = *last.sections.start()..=section,
            _ => assignments.push(Assignment {
                sections: section..=section,
                node,
                home: slot.home.unwrap_or(node),
                incarnation: slot.incarnation,
                epoch: slot.epoch,
            }),
        }
    }
    assignments
}

/// `total` cut into one share for each of `count` parties, even within one; the parties named first by `favoured` (indexes, each
/// once) get the larger shares.
pub(super) fn shares(total: usize, count: usize, favoured: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut shares = vec![total / count; count];
    favoured.into_iter().take(total % count).for_each(|index| shares[index] += 1);
    shares
}

/// A node as the rules see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlannedNode {
    /// It may be given sections by the operator's will.
    pub(super) active: bool,
    pub(super) status: Status,
}

impl PlannedNode {
    /// The sections that it serves may stay with it.
    pub(super) fn keeps(self) -> bool {
        self.active && self.status != Status::Dead
    }

    pub(super) fn incarnation(self) -> Option<u64> {
        match self.status {
            Status::Answering(incarnation) | Status::Live(incarnation) if self.active => Some(incarnation),
            _ => None,
        }
    }
}

/// The nodes that sections may be given to: those that live, or without any those that answer at least.
pub(super) fn takers(members: &[PlannedNode]) -> Vec<u32> {
    let all = |wanted: fn(Status) -> bool| -> Vec<u32> {
        (0..).zip(members).filter(|(_, one)| one.active && wanted(one.status)).map(|(i, _)| i).collect()
    };
    let live = all(|status| matches!(status, Status::Live(_)));
    if live.is_empty() { all(|status| matches!(status, Status::Answering(_))) } else { live }
}

/// The nodes as the rules see them. `statuses` are parallel to them.
pub(super) fn members(nodes: &[Node], statuses: &[Status]) -> Vec<PlannedNode> {
    let active = nodes.iter().map(|node| node.state == NodeState::Active);
    active.zip(statuses).map(|(active, &status)| PlannedNode { active, status }).collect()
}
