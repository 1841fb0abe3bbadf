//! The policy of 1.0 (S10): one serves, the next in the order stands by; when the one that serves is gone the next
//! takes everything and keeps it, and the old one, once back, stands by. Works on slots; `plan` calls it. Pure.

use std::ops::RangeInclusive;

use super::slots::{PlannedNode, Slot, takers};
use seqsvr_core::ids::SectionId;
use seqsvr_core::routing::order::Order;

/// The order of the nodes for every slice of the Set.
pub(super) struct Ring {
    sections: RangeInclusive<SectionId>,
    /// By slice.
    orders: Vec<Vec<u32>>,
}

impl Ring {
    pub(super) fn new(order: Order, names: &[&str], sections: RangeInclusive<SectionId>) -> Self {
        let last = Order::slice(&sections, *sections.end());
        let of = |slice| order.of(slice, names).into_iter().map(|index| index as u32).collect();
        Self { orders: (0..=last).map(of).collect(), sections }
    }

    fn of(&self, index: usize) -> &[u32] {
        let section = SectionId::new(self.sections.start().get() + index as u32);
        &self.orders[Order::slice(&self.sections, section) as usize]
    }
}

/// Gives every slot without a fit owner to the one behind it in the order.
pub(super) fn settle(slots: &mut [Slot], members: &[PlannedNode], ring: &Ring) {
    let takers = takers(members);
    for (index, slot) in slots.iter_mut().enumerate() {
        if takers.is_empty() || slot.node.is_some_and(|node| members[node as usize].keeps()) {
            continue;
        }
        let order = ring.of(index);
        let behind = order.iter().position(|&node| Some(node) == slot.node).map_or(0, |at| at + 1);
        let next = order.iter().cycle().skip(behind).take(order.len()).find(|node| takers.contains(node));
        if let Some(&next) = next {
            slot.node = Some(next);
            slot.home = Some(next);
        }
    }
}

/// Gives every slot to the first in its order that can take it.
pub(super) fn to_the_first(slots: &mut [Slot], members: &[PlannedNode], ring: &Ring) {
    let takers = takers(members);
    for (index, slot) in slots.iter_mut().enumerate() {
        if let Some(&first) = ring.of(index).iter().find(|node| takers.contains(node)) {
            slot.node = Some(first);
            slot.home = Some(first);
        }
    }
}
