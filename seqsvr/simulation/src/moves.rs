//! An operator who moves uids between Sets with the files that lie around: new ones, old ones, each for the right Set and for wrong ones,
//! in any order. The real rules of configurations decide; behind each Set stands one ceiling a section.

use std::collections::BTreeMap;

use super::chance::Chance;
use super::quorum::member_at;
use seqsvr_core::flaws::Flaws;
use seqsvr_core::store::configuration::Given;
use seqsvr_core::store::{Configuration, Layout, Move, Moves};
use std::time::Duration;

const SECTION_SIZE: u32 = 8;
/// Of which the first half is Set 0's at first, and the second Set 1's. Sets 2 and 3 have no stores yet.
const SECTIONS: u32 = 6;
const SETS: u32 = 4;
/// The operator's steps in one run.
const STEPS: usize = 40;

/// A file as `seqsvr backup FILE --uids A-B --to SET` writes it.
#[derive(Clone)]
struct File {
    from: u32,
    given: Given,
    ceilings: BTreeMap<u32, u64>,
}

/// The contents of a Set's stores.
#[derive(Default)]
struct Set {
    configuration: Option<Configuration>,
    ceilings: BTreeMap<u32, u64>,
}

struct OperatorWorld {
    chance: Chance,
    flaws: Flaws,
    sets: Vec<Set>,
    files: Vec<File>,
    /// The last number of each section that a caller got.
    last: BTreeMap<u32, u64>,
    taken: usize,
}

fn beginning(uids: std::ops::RangeInclusive<u32>) -> Configuration {
    Configuration {
        number: 1,
        members: vec![member_at(0)],
        write: 1,
        lease: Duration::from_secs(1),
        layout: Layout { section_size: SECTION_SIZE, step: 10 },
        uids,
        taking: None,
        moves: Moves::default(),
    }
}

impl OperatorWorld {
    fn new(seed: u64, flaws: Flaws) -> Self {
        let all = SECTIONS * SECTION_SIZE;
        let mut sets: Vec<Set> = (0..SETS).map(|_| Set::default()).collect();
        sets[0].configuration = Some(beginning(0..=all / 2 - 1));
        sets[1].configuration = Some(beginning(all / 2..=all - 1));
        let (files, last) = Default::default();
        Self { chance: Chance::new(seed), flaws, sets, files, last, taken: 0 }
    }

    /// Every Set hands out a number of each section that it has: above its ceiling, as after a takeover.
    fn serve(&mut self) -> Result<(), String> {
        for (number, set) in self.sets.iter_mut().enumerate() {
            let Some(now) = &set.configuration else { continue };
            if now.taking.is_some() {
                continue;
            }
            let sections = now.sections();
            for section in sections.start().get()..=sections.end().get() {
                let ceiling = set.ceilings.entry(section).or_default();
                *ceiling += 10;
                if let Some(last) = self.last.insert(section, *ceiling).filter(|last| last >= ceiling) {
                    return Err(format!("section {section}: {ceiling} by Set {number} after {last}"));
                }
            }
        }
        Ok(())
    }

    /// Some sections at one end of a Set are for another one: the next file.
    fn give(&mut self) {
        let from = self.chance.index(self.sets.len());
        let to = self.chance.index(self.sets.len()) as u32;
        let Set { configuration: Some(now), ceilings } = &mut self.sets[from] else { return };
        let sections = now.sections();
        let (first, last) = (sections.start().get(), sections.end().get());
        let middle = first + self.chance.between(0..u64::from(last - first + 1)) as u32;
        let (first, last) = if self.chance.permille(500) { (first, middle) } else { (middle, last) };
        let uids = first * SECTION_SIZE..=(last + 1) * SECTION_SIZE - 1;
        let Ok(next) = now.giving(&uids, to) else { return };
        let given = next.given(&uids, to).expect("it was just given").clone();
        let ceilings = ceilings.range(first..=last).map(|(section, max)| (*section, *max)).collect();
        *now = next;
        self.files.push(File { from: from as u32, given, ceilings });
    }

    /// Any file is restored into any Set.
    fn take(&mut self) {
        if self.files.is_empty() {
            return;
        }
        let File { from, given, ceilings } = self.chance.pick(&self.files).clone();
        let number = self.chance.index(self.sets.len());
        let set = &mut self.sets[number];
        if !given.is_for(number as u32, self.flaws) {
            return;
        }
        let by = Move { from, number: given.number };
        let next = match &set.configuration {
            None => Ok(Some(beginning(given.uids.clone()).beginning_with(by))),
            Some(now) => now.taking(&given.uids, by, self.flaws),
        };
        let Ok(Some(next)) = next else { return };
        let is_larger = |(section, max): (&u32, &u64)| ceilings.get(section).is_none_or(|file| file < max);
        let sections = given.uids.start() / SECTION_SIZE..=given.uids.end() / SECTION_SIZE;
        if set.ceilings.range(sections).any(is_larger) {
            return;
        }
        set.ceilings.extend(ceilings);
        set.configuration = next.settled();
        self.taken += 1;
    }

    fn run(&mut self) -> Result<usize, String> {
        for _ in 0..STEPS {
            match self.chance.index(3) {
                0 => self.give(),
                1 => self.take(),
                _ => self.serve()?,
            }
        }
        Ok(self.taken)
    }
}

#[test]
fn whatever_files_are_used_wherever_no_number_comes_twice() {
    let taken: usize =
        (0..2_000).map(|seed| OperatorWorld::new(seed, Flaws::default()).run().expect("rises")).sum();
    assert!(taken > 2_000, "only {taken} moves");
}

/// The first seed that shows the broken rule.
pub(super) fn caught(flaw: seqsvr_core::flaws::Flaw) -> Option<u64> {
    (0..2_000).find(|&seed| OperatorWorld::new(seed, Flaws::only(flaw)).run().is_err())
}
