//! What callers and the raiser share: all sections, and which of them are due to be raised. The due set is a
//! bit for each section, so it is bounded, needs no lock, and a section stands in it once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::{Notify, watch};

use super::metrics::{Counters, Metrics};
use super::section::Rules;
use super::slots::{Section, Take};
use super::split::Split;
use crate::error::{Refusal, TryNextError};
use crate::ids::{Granted, SectionId, Uid};
use crate::store::{Ceiling, Claimed, Owner};

pub(super) struct Shared {
    split: Split,
    pub(super) rules: Rules,
    max_count: u32,
    pub(super) owner: Owner,
    sections: Box<[Section]>,
    due: Box<[AtomicU64]>,
    pub(super) asked: Notify,
    /// Changes after every call of the store, successful or not; waiting callers then look again.
    pub(super) rounds: watch::Sender<u64>,
    stopped: AtomicBool,
    pub(super) counters: Counters,
    /// Numbers passed over by `advance`. Locked while slots are summed, so that the sum never goes back.
    skipped: Mutex<u64>,
}

impl Shared {
    pub(super) fn new(split: Split, rules: Rules, max_count: u32, owner: Owner, claimed: &Claimed) -> Self {
        let mut bases = vec![claimed.floor; split.sections()];
        for ceiling in &claimed.ceilings {
            // A section past the end can only come from a store whose layout was not checked; it has no uids.
            if let Some(base) = bases.get_mut(ceiling.section.get() as usize) {
                *base = ceiling.max.max(claimed.floor);
            }
        }
        let words = split.sections().div_ceil(64);
        Self {
            split,
            rules,
            max_count,
            owner,
            sections: bases.into_iter().map(Section::new).collect(),
            due: (0..words).map(|_| AtomicU64::new(0)).collect(),
            asked: Notify::new(),
            rounds: watch::Sender::new(0),
            stopped: AtomicBool::new(false),
            counters: Counters::default(),
            skipped: Mutex::new(0),
        }
    }

    pub(super) fn section(&self, section: SectionId) -> &Section {
        &self.sections[section.get() as usize]
    }

    #[inline]
    pub(super) fn take(&self, uid: Uid, count: u32) -> Result<Granted, TryNextError> {
        if count == 0 || count > self.max_count {
            return Err(self.refuse(Refusal::BadCount { count, max: self.max_count }));
        }
        let (id, offset) = self.split.locate(uid);
        match self.section(id).take(offset, self.split.size(), count, &self.rules) {
            Take::Granted { last, ahead } => {
                if let Some(to) = ahead {
                    self.ask(id, to);
                }
                Ok(Granted { first: last - u64::from(count) + 1, last, epoch: self.owner.epoch })
            }
            Take::Raise { to } => {
                self.ask(id, to);
                Err(TryNextError::WouldWait)
            }
            Take::Exhausted => Err(self.refuse(Refusal::Exhausted { limit: self.rules.limit })),
            Take::Closed => Err(self.refuse(self.why_closed())),
        }
    }

    pub(super) fn current(&self, uid: Uid) -> u64 {
        let (id, offset) = self.split.locate(uid);
        self.section(id).current(offset)
    }

    pub(super) fn advance(&self, uid: Uid, at_least: u64) -> Result<(), TryNextError> {
        if at_least > self.rules.limit {
            return Err(self.refuse(Refusal::Exhausted { limit: self.rules.limit }));
        }
        let (id, offset) = self.split.locate(uid);
        let section = self.section(id);
        let mut skipped = self.skipped.lock().unwrap_or_else(PoisonError::into_inner);
        match section.advance(offset, self.split.size(), at_least) {
            Some(numbers) => {
                *skipped += numbers;
                Ok(())
            }
            None if section.is_closed() => Err(self.refuse(self.why_closed())),
            None => {
                self.ask(id, self.rules.target(at_least));
                Err(TryNextError::WouldWait)
            }
        }
    }

    /// Up to `most` sections that are due, with their targets; they leave the due set.
    pub(super) fn collect_due(&self, most: usize) -> Vec<Ceiling> {
        let mut batch = Vec::new();
        for (index, word) in self.due.iter().enumerate() {
            let mut bits = word.load(Ordering::Relaxed);
            while bits != 0 && batch.len() < most {
                let bit = bits & bits.wrapping_neg();
                bits &= !bit;
                // The bit goes before the target is read: who asks for more afterwards sets it again.
                word.fetch_and(!bit, Ordering::AcqRel);
                let section = SectionId::new(index as u32 * 64 + bit.trailing_zeros());
                batch.extend(self.section(section).due().map(|max| Ceiling { section, max }));
            }
        }
        batch
    }

    /// Puts a section into the due set.
    pub(super) fn mark_due(&self, section: SectionId) {
        let bit = 1 << (section.get() % 64);
        self.due[section.get() as usize / 64].fetch_or(bit, Ordering::AcqRel);
    }

    /// Closes all sections: nothing is handed out afterwards.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.sections.iter().for_each(Section::close);
        self.rounds.send_modify(|round| *round += 1);
    }

    pub(super) fn metrics(&self) -> Metrics {
        let skipped = self.skipped.lock().unwrap_or_else(PoisonError::into_inner);
        let moved: u64 = self.sections.iter().map(Section::moved).sum();
        self.counters.snapshot(moved - *skipped)
    }

    #[cold]
    fn ask(&self, id: SectionId, to: u64) {
        if self.section(id).want(to) {
            self.mark_due(id);
            self.asked.notify_one();
        }
    }

    #[cold]
    fn refuse(&self, refusal: Refusal) -> TryNextError {
        self.counters.refused(&refusal);
        refusal.into()
    }

    fn why_closed(&self) -> Refusal {
        match self.stopped.load(Ordering::Acquire) {
            true => Refusal::Stopped,
            false => Refusal::Fenced { mine: self.owner.epoch },
        }
    }
}
