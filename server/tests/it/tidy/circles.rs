//! Finds circles: modules that reach each other, directly or through others.

use std::collections::{BTreeMap, BTreeSet};

/// The groups of modules that reach each other, each in the order of the alphabet.
pub(crate) fn circles<'a>(edges: impl IntoIterator<Item = (&'a str, &'a str)>) -> BTreeSet<Vec<&'a str>> {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in edges {
        next.entry(from).or_default().push(to);
    }
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        next.keys().map(|from| (*from, reached(&next, from))).collect();
    let mutual = |from: &str, to: &str| reach.get(from).is_some_and(|found| found.contains(to));
    let inside = reach.keys().filter(|module| mutual(module, module));
    inside
        .map(|module| {
            reach.keys().copied().filter(|other| mutual(module, other) && mutual(other, module)).collect()
        })
        .collect()
}

fn reached<'a>(next: &BTreeMap<&'a str, Vec<&'a str>>, from: &'a str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(module) = waiting.pop() {
        let new = next.get(module).into_iter().flatten().filter(|to| found.insert(**to));
        waiting.extend(new.copied());
    }
    found
}
