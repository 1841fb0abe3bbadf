//! The policy of 2.0 (S11): every node has sections that are at home with it; while it is away, all the others foster
//! them alike, in few runs, and they go back when it returns. Works on slots; `plan` calls it. Pure.

use super::health::Status;
use super::slots::{PlannedNode, Slot, shares, takers};

/// Puts every slot where it belongs now, and moves no other.
pub(super) fn settle(slots: &mut [Slot], members: &[PlannedNode]) {
    let takers = takers(members);
    if takers.is_empty() {
        return;
    }
    if slots.iter().any(|slot| slot.home.is_none()) {
        even_homes(slots, members);
    }
    for slot in slots.iter_mut() {
        if slot.home.is_some_and(|home| takers.contains(&home)) {
            slot.node = slot.home;
        } else if slot.node.is_none_or(|node| !members[node as usize].keeps()) {
            slot.node = None;
        }
    }
    foster(slots, members, &takers);
}

/// Shares the sections of nodes that are away among the takers, even within one; sections that fit stay where they are.
fn foster(slots: &mut [Slot], members: &[PlannedNode], takers: &[u32]) {
    let place = |node: Option<u32>| node.and_then(|node| takers.iter().position(|&taker| taker == node));
    // Where the home is about to be back, or the holder is not known to be well, another move would be for nothing.
    let fostered = |slot: &Slot| match slot.node {
        None => true,
        held => place(held).is_some() && slot.home.is_some_and(|home| away(members[home as usize])),
    };
    let mut held = vec![0; takers.len()];
    let mut own = vec![0; takers.len()];
    let mut total = 0;
    for slot in slots.iter() {
        if fostered(slot) {
            total += 1;
            place(slot.node).into_iter().for_each(|taker| held[taker] += 1);
        } else {
            place(slot.node).into_iter().for_each(|taker| own[taker] += 1);
        }
    }
    let mut favoured: Vec<usize> = (0..takers.len()).collect();
    favoured.sort_by_key(|&taker| (own[taker], std::cmp::Reverse(held[taker])));
    let mut room = shares(total, takers.len(), favoured);
    let mut loose = Vec::new();
    for (index, slot) in slots.iter().enumerate() {
        if !fostered(slot) {
            continue;
        }
        match place(slot.node) {
            Some(taker) if room[taker] > 0 => room[taker] -= 1,
            _ => loose.push(index),
        }
    }
    let mut loose = loose.into_iter();
    for (&taker, room) in takers.iter().zip(room) {
        loose.by_ref().take(room).for_each(|index| slots[index].node = Some(taker));
    }
}

fn away(home: PlannedNode) -> bool {
    !home.active || home.status == Status::Dead
}

/// Makes the homes even within one over all active nodes, dead ones too, with as few changes as that takes.
pub(super) fn even_homes(slots: &mut [Slot], members: &[PlannedNode]) {
    let active: Vec<u32> = (0..).zip(members).filter(|(_, one)| one.active).map(|(index, _)| index).collect();
    if active.is_empty() {
        return;
    }
    let place = |home: Option<u32>| home.and_then(|home| active.iter().position(|&node| node == home));
    let mut have = vec![0; active.len()];
    slots.iter().filter_map(|slot| place(slot.home)).for_each(|node| have[node] += 1);
    let mut favoured: Vec<usize> = (0..active.len()).collect();
    favoured.sort_by_key(|&node| std::cmp::Reverse(have[node]));
    let mut room = shares(slots.len(), active.len(), favoured);
    let mut loose = Vec::new();
    for (index, slot) in slots.iter().enumerate() {
        match place(slot.home) {
            Some(node) if room[node] > 0 => room[node] -= 1,
            _ => loose.push(index),
        }
    }
    let mut loose = loose.into_iter();
    for (&node, room) in active.iter().zip(room) {
        loose.by_ref().take(room).for_each(|index| slots[index].home = Some(node));
    }
}
