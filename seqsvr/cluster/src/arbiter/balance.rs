//! Moves between nodes that are unevenly busy (S11): a bounded run of sections from the busiest node to the least busy
//! one, and only when that makes the busiest clearly less busy. Pure; the arbiter's core calls it now and then.

use std::collections::BTreeMap;

use super::health::Status;
use super::plan::{Balance, finish};
use super::slots::{Slot, members, open, takers};
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::routing::Table;

/// The table with one run of sections moved, home and all, or nothing when no move is worth it. `rates`: numbers a second of each section
/// that is not idle, as its owner reports it.
pub(crate) fn balance(
    table: &Table,
    statuses: &[Status],
    rates: &BTreeMap<SectionId, u64>,
    rules: &Balance,
    version: Epoch,
) -> Option<Table> {
    if table.assignments.len() >= rules.assignments {
        return None;
    }
    let takers = takers(&members(&table.nodes, statuses));
    let before = open(table);
    let first = table.sections().start().get();
    let rate = |index: usize| rates.get(&SectionId::new(first + index as u32)).copied().unwrap_or_default();
    let mut load: BTreeMap<u32, u64> = takers.iter().map(|&node| (node, 0)).collect();
    for (index, slot) in before.iter().enumerate() {
        if let Some(load) = slot.node.and_then(|node| load.get_mut(&node)) {
            *load = load.saturating_add(rate(index));
        }
    }
    // Ties go to the node that is named first, so that the same input always gives the same move.
    let (&busy, &most) = load.iter().max_by_key(|&(&node, &load)| (load, std::cmp::Reverse(node)))?;
    let (&calm, &least) = load.iter().min_by_key(|&(&node, &load)| (load, node))?;
    let average = load.values().map(|&load| u128::from(load)).sum::<u128>() / load.len() as u128;
    let bound = average * u128::from(rules.above_percent) / 100;
    if most < rules.least || u128::from(most) <= bound {
        return None;
    }
    // At most half of the difference, so that the receiver does not become the busiest in turn.
    let run = best_run(&before, busy, (most - least) / 2, rules.sections, rate)?;
    let moved: u64 = run.clone().map(rate).sum();
    // A move that relieves by less than a tenth of the difference is not worth a hand-over.
    if moved < (most - least) / 10 {
        return None;
    }
    let Status::Live(incarnation) = statuses[calm as usize] else { return None };
    let mut slots = before.clone();
    slots[run].fill(Slot { node: Some(calm), home: Some(calm), incarnation, epoch: version });
    finish(table, table.nodes.clone(), &before, &slots, version)
}

/// Adjacent sections that are at home with `node`, at most `longest`, whose rates add up to as much as possible but at most `wanted`.
fn best_run(
    slots: &[Slot],
    node: u32,
    wanted: u64,
    longest: usize,
    rate: impl Fn(usize) -> u64,
) -> Option<std::ops::Range<usize>> {
    let mut best = (0, None);
    let (mut start, mut sum) = (0, 0_u64);
    for (index, slot) in slots.iter().enumerate() {
        if slot.node != Some(node) || slot.home != Some(node) {
            (start, sum) = (index + 1, 0);
            continue;
        }
        sum = sum.saturating_add(rate(index));
        while start <= index && (sum > wanted || index - start >= longest) {
            sum = sum.saturating_sub(rate(start));
            start += 1;
        }
        if sum > best.0 {
            best = (sum, Some(start..index + 1));
        }
    }
    best.1
}
