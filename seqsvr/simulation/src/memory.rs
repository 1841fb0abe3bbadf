//! The numbers of an AllocSvr in memory, small: for each assignment its sections, each with its ceiling and the uids that were
//! touched. Decides by the real arithmetic of a section; what the real `space` does without a lock, one process here does one
//! step at a time.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

pub(crate) use seqsvr_core::alloc::section::{Advancing, Rules, TakePlan};
use seqsvr_core::flaws::{Flaw, Flaws};
use seqsvr_core::ids::{Epoch, Granted, SectionId};
use seqsvr_core::store::{Ceiling, Claimed, Owner};

/// The outcome of a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakeOutcome {
    /// The caller's.
    Granted(Granted),
    /// It goes on above what was wished for.
    Advanced,
    /// The ceiling of that owner's section must be raised first, which has been noted.
    Raise(Owner),
    /// The section is not served here.
    NotServed,
}

#[derive(Clone, Debug)]
struct MemorySection {
    owner: Owner,
    ceiling: u64,
    base: u64,
    wanted: u64,
    /// The last number handed out, by uid.
    uids: BTreeMap<u32, u64>,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct AllocMemory {
    rules: Rules,
    section_size: u32,
    flaws: Flaws,
    sections: BTreeMap<SectionId, MemorySection>,
}

impl AllocMemory {
    pub(crate) fn new(rules: Rules, section_size: u32, flaws: Flaws) -> Self {
        Self { rules, section_size, flaws, sections: BTreeMap::new() }
    }

    /// Serves sections from where the claim found them.
    pub(crate) fn serve(&mut self, owner: Owner, sections: &[RangeInclusive<SectionId>], claimed: &Claimed) {
        for id in each(sections) {
            let stored = claimed.ceilings.iter().find(|ceiling| ceiling.section == id);
            let base = stored.map_or(0, |ceiling| ceiling.max).max(claimed.floor);
            let section = MemorySection { owner, ceiling: base, base, wanted: base, uids: BTreeMap::new() };
            self.sections.insert(id, section);
        }
    }

    /// Serves them no more.
    pub(crate) fn unload(&mut self, owner: Owner, sections: &[RangeInclusive<SectionId>]) {
        for id in each(sections) {
            if self.sections.get(&id).is_some_and(|section| section.owner == owner) {
                self.sections.remove(&id);
            }
        }
    }

    /// Takes `count` numbers, 1 or more, for `uid`.
    pub(crate) fn take(&mut self, uid: u32, count: u32) -> TakeOutcome {
        let Some(section) = self.sections.get_mut(&SectionId::new(uid / self.section_size)) else {
            return TakeOutcome::NotServed;
        };
        let owner = section.owner;
        let current = section.uids.entry(uid).or_insert(section.base);
        let ceiling = if self.flaws.has(Flaw::AnswerBeforeConfirm) { u64::MAX } else { section.ceiling };
        let granted = match self.rules.plan(*current, count, ceiling) {
            TakePlan::Grant { last } => Granted { first: *current + 1, last, epoch: owner.epoch },
            TakePlan::Raise { to } => {
                section.wanted = section.wanted.max(to);
                return TakeOutcome::Raise(owner);
            }
            TakePlan::Exhausted => return TakeOutcome::NotServed,
        };
        *current = granted.last;
        if let Some(to) = self.rules.ahead(granted.last, section.ceiling) {
            section.wanted = section.wanted.max(to).max(granted.last);
        }
        TakeOutcome::Granted(granted)
    }

    /// Lets `uid` go on above `at_least`.
    pub(crate) fn advance(&mut self, uid: u32, at_least: u64) -> TakeOutcome {
        let Some(section) = self.sections.get_mut(&SectionId::new(uid / self.section_size)) else {
            return TakeOutcome::NotServed;
        };
        let current = section.uids.entry(uid).or_insert(section.base);
        let base = if self.flaws.has(Flaw::AdvanceUnconfirmed) { u64::MAX } else { section.base };
        match self.rules.advance(at_least, *current, base, section.ceiling) {
            Advancing::Done => {}
            Advancing::Move => *current = at_least,
            Advancing::Raise { to } => {
                section.wanted = section.wanted.max(to);
                return TakeOutcome::Raise(section.owner);
            }
            Advancing::Exhausted => return TakeOutcome::NotServed,
        }
        TakeOutcome::Advanced
    }

    /// Nothing above this was handed out for `uid`.
    pub(crate) fn bound(&self, uid: u32) -> Option<(Epoch, u64)> {
        let section = self.sections.get(&SectionId::new(uid / self.section_size))?;
        Some((section.owner.epoch, section.uids.get(&uid).copied().unwrap_or(section.base)))
    }

    /// Whether nothing is served.
    pub(crate) fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// Owners of sections whose ceilings should be raised.
    pub(crate) fn owners_due(&self) -> Vec<Owner> {
        let due = self.sections.values().filter(|section| section.wanted > section.ceiling);
        let mut owners: Vec<Owner> = due.map(|section| section.owner).collect();
        owners.sort_unstable_by_key(|owner| owner.epoch);
        owners.dedup();
        owners
    }

    /// The ceilings to raise for `owner`.
    pub(crate) fn due(&self, owner: Owner) -> Vec<Ceiling> {
        let due = self.sections.iter().filter(|(_, one)| one.owner == owner && one.wanted > one.ceiling);
        due.map(|(&section, one)| Ceiling { section, max: one.wanted }).collect()
    }

    /// The store confirmed a ceiling.
    pub(crate) fn confirm(&mut self, owner: Owner, ceiling: Ceiling) {
        if let Some(section) = self.sections.get_mut(&ceiling.section)
            && section.owner == owner
        {
            section.ceiling = section.ceiling.max(ceiling.max);
        }
    }

    /// The store has a larger ceiling: only a target above it can succeed.
    pub(crate) fn want(&mut self, owner: Owner, ceiling: Ceiling) {
        if let Some(section) = self.sections.get_mut(&ceiling.section)
            && section.owner == owner
        {
            section.wanted = section.wanted.max(ceiling.max);
        }
    }
}

fn each(sections: &[RangeInclusive<SectionId>]) -> impl Iterator<Item = SectionId> {
    sections.iter().flat_map(|range| range.start().get()..=range.end().get()).map(SectionId::new)
}
