//! What callers and the raiser share: all sections, and which of them are due to be raised. The due set is a
//! bit for each section, so it is bounded, needs no lock, and a section stands in it once.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::{Notify, watch};

use super::metrics::{Counters, Metrics};
use super::section::Rules;
use super::space::{Advance, Space, Take};
use super::split::Split;
use crate::config::Options;
use crate::error::{Refusal, TryNextError};
use crate::ids::{Granted, SectionId, Uid};
use crate::store::{Ceiling, Claimed, Owner};

pub(super) struct Shared {
    space: Space,
    split: Split,
    limit: u64,
    max_count: u32,
    pub(super) owner: Owner,
    due: Box<[AtomicU64]>,
    pub(super) asked: Notify,
    /// Changes after every call of the store, successful or not; waiting callers then look again.
    pub(super) rounds: watch::Sender<u64>,
    stopped: AtomicBool,
    pub(super) counters: Counters,
}

impl Shared {
    pub(super) fn new(options: &Options, owner: Owner, claimed: &Claimed) -> Self {
        let split = Split::new(options.section_size);
        let rules = Rules { step: u64::from(options.step), limit: options.limit };
        let mut bases = vec![claimed.floor; split.sections()];
        for ceiling in &claimed.ceilings {
            bases[ceiling.section.get() as usize] = ceiling.max.max(claimed.floor);
        }
        Self {
            space: Space::new(split, rules, bases),
            split,
            limit: options.limit,
            max_count: options.max_count,
            owner,
            due: (0..split.sections().div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            asked: Notify::new(),
            rounds: watch::Sender::new(0),
            stopped: AtomicBool::new(false),
            counters: Counters::default(),
        }
    }

    /// All sections of the uid space.
    pub(super) fn all(options: &Options) -> RangeInclusive<SectionId> {
        SectionId::new(0)..=SectionId::new(Split::new(options.section_size).sections() as u32 - 1)
    }

    #[inline]
    pub(super) fn take(&self, uid: Uid, count: u32) -> Result<Granted, TryNextError> {
        // One comparison: 0 wraps around to the largest.
        if count.wrapping_sub(1) < self.max_count
            && let Some(last) = self.space.take_within_room(uid.get(), count)
        {
            return Ok(self.granted(last, count));
        }
        self.take_with_care(uid, count)
    }

    /// All but the hot path, apart from it so that it stays small.
    #[cold]
    #[inline(never)]
    fn take_with_care(&self, uid: Uid, count: u32) -> Result<Granted, TryNextError> {
        if count == 0 || count > self.max_count {
            return Err(self.refuse(Refusal::BadCount { count, max: self.max_count }));
        }
        match self.space.take(uid.get(), count) {
            Take::Granted { last, ahead } => {
                if let Some(to) = ahead {
                    self.ask(uid, to);
                }
                Ok(self.granted(last, count))
            }
            Take::Raise { to } => Err(self.would_wait(uid, to)),
            Take::Exhausted => Err(self.refuse(Refusal::Exhausted { limit: self.limit })),
            Take::Closed => Err(self.refuse(self.why_closed())),
        }
    }

    fn granted(&self, last: u64, count: u32) -> Granted {
        Granted { first: last - u64::from(count) + 1, last, epoch: self.owner.epoch }
    }

    pub(super) fn current(&self, uid: Uid) -> u64 {
        self.space.current(uid.get())
    }

    pub(super) fn advance(&self, uid: Uid, at_least: u64) -> Result<(), TryNextError> {
        if at_least > self.limit {
            return Err(self.refuse(Refusal::Exhausted { limit: self.limit }));
        }
        match self.space.advance(uid.get(), at_least) {
            Advance::Done => Ok(()),
            Advance::Raise { to } => Err(self.would_wait(uid, to)),
            Advance::Closed => Err(self.refuse(self.why_closed())),
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
                let target = self.space.due(section.get() as usize);
                batch.extend(target.map(|max| Ceiling { section, max }));
            }
        }
        batch
    }

    /// The store confirmed a ceiling.
    pub(super) fn confirm(&self, section: SectionId, ceiling: u64) {
        self.space.confirm(section.get() as usize, ceiling);
    }

    /// Asks for a section's ceiling to be at least `to`; the raiser is the caller, so nobody is woken.
    pub(super) fn ask_again(&self, section: SectionId, to: u64) {
        self.space.want(section.get() as usize, to);
        self.mark_due(section);
    }

    /// Closes a section that was lost to another owner.
    pub(super) fn fence(&self, section: SectionId) {
        self.space.close(section.get() as usize, section.get() as usize);
    }

    /// Closes all sections: nothing is handed out afterwards.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.space.close(0, self.split.sections() - 1);
        self.rounds.send_modify(|round| *round += 1);
    }

    pub(super) fn metrics(&self) -> Metrics {
        self.counters.snapshot(self.space.allocated())
    }

    fn mark_due(&self, section: SectionId) {
        let bit = 1 << (section.get() % 64);
        self.due[section.get() as usize / 64].fetch_or(bit, Ordering::AcqRel);
    }

    fn ask(&self, uid: Uid, to: u64) {
        let section = self.split.section(uid.get());
        if self.space.want(section, to) {
            self.mark_due(SectionId::new(section as u32));
            self.asked.notify_one();
        }
    }

    fn would_wait(&self, uid: Uid, to: u64) -> TryNextError {
        self.ask(uid, to);
        TryNextError::WouldWait
    }

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
