//! The state that callers and the raiser of a section group share: its sections, and which of them are due to be raised. The due set is a
//! bit for each section, so it is bounded, needs no lock, and a section stands in it once.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::{Notify, watch};

use super::metrics::{Counters, Metrics};
use super::section::Rules;
use super::space::{Advance, Space, SpaceTake};
use super::split::{Places, Split};
use crate::config::Options;
use crate::error::{Refusal, TryNextError};
use crate::ids::{Granted, SectionId, Uid};
use crate::store::{Ceiling, Claimed, Owner};

/// The memory of one section group: sections that came under one owner together.
pub struct SectionGroupState {
    space: Space,
    split: Split,
    limit: u64,
    max_count: u32,
    /// The owner that serves the sections.
    pub owner: Owner,
    due: Box<[AtomicU64]>,
    pub(super) asked: Notify,
    /// Changes after every call of the store, successful or not; waiting callers then look again.
    pub(super) rounds: watch::Sender<u64>,
    stopped: AtomicBool,
    pub(super) counters: Arc<Counters>,
}

impl SectionGroupState {
    /// `sections`, sorted and without overlap, from the ceilings that their claim by `owner` found.
    pub(crate) fn new(
        options: &Options,
        owner: Owner,
        sections: &[RangeInclusive<SectionId>],
        claimed: &Claimed,
        counters: Arc<Counters>,
    ) -> Self {
        let split = Split::new(options.section_size);
        let rules = Rules { step: u64::from(options.step), limit: options.limit };
        let places = Places::new(sections.iter().map(|run| run.start().get()..=run.end().get()));
        let mut bases = vec![claimed.floor; places.count()];
        for ceiling in &claimed.ceilings {
            if let Some(place) = places.of(ceiling.section.get() as usize) {
                bases[place] = ceiling.max.max(claimed.floor);
            }
        }
        Self {
            due: (0..places.count().div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            space: Space::new(split, rules, places, bases),
            split,
            limit: options.limit,
            max_count: options.max_count,
            owner,
            asked: Notify::new(),
            rounds: watch::Sender::new(0),
            stopped: AtomicBool::new(false),
            counters,
        }
    }

    /// All sections of the uid space.
    pub(crate) fn all(options: &Options) -> RangeInclusive<SectionId> {
        SectionId::new(0)..=SectionId::new(Split::new(options.section_size).sections() as u32 - 1)
    }

    /// Takes `count` numbers for `uid` from memory.
    #[inline]
    pub fn take(&self, uid: Uid, count: u32) -> Result<Granted, TryNextError> {
        // One number is always allowed. Else one comparison: 0 wraps around to the largest.
        if (count == 1 || count.wrapping_sub(1) < self.max_count)
            && let Some(last) = self.space.take_open(uid.get(), count)
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
            SpaceTake::Granted { last, ahead } => {
                if let Some(to) = ahead {
                    self.ask(uid, to);
                }
                Ok(self.granted(last, count))
            }
            SpaceTake::Raise { to } => Err(self.would_wait(uid, to)),
            SpaceTake::Exhausted => Err(self.refuse(Refusal::Exhausted { limit: self.limit })),
            SpaceTake::Closed => Err(self.refuse(self.why_closed())),
        }
    }

    fn granted(&self, last: u64, count: u32) -> Granted {
        Granted { first: last - u64::from(count) + 1, last, epoch: self.owner.epoch }
    }

    /// The last number handed out for `uid`; `None`: its section is not here.
    pub fn current(&self, uid: Uid) -> Option<u64> {
        self.space.current(uid.get())
    }

    /// Lets `uid` go on above `at_least`.
    pub fn advance(&self, uid: Uid, at_least: u64) -> Result<(), TryNextError> {
        if at_least > self.limit {
            return Err(self.refuse(Refusal::Exhausted { limit: self.limit }));
        }
        match self.space.advance(uid.get(), at_least) {
            Advance::Done => Ok(()),
            Advance::Raise { to } => Err(self.would_wait(uid, to)),
            Advance::Exhausted => Err(self.refuse(Refusal::Exhausted { limit: self.limit })),
            Advance::Closed => Err(self.refuse(self.why_closed())),
        }
    }

    /// Up to `most` sections that are due, with their targets; they leave the due set.
    pub(crate) fn collect_due(&self, most: usize) -> Vec<Ceiling> {
        let mut batch = Vec::new();
        for (index, word) in self.due.iter().enumerate() {
            let mut bits = word.load(Ordering::Relaxed);
            while bits != 0 && batch.len() < most {
                let bit = bits & bits.wrapping_neg();
                bits &= !bit;
                // The bit goes before the target is read: a caller that asks for more afterwards sets it again.
                word.fetch_and(!bit, Ordering::AcqRel);
                let place = index * 64 + bit.trailing_zeros() as usize;
                let section = SectionId::new(self.space.places().section(place) as u32);
                batch.extend(self.space.due(place).map(|max| Ceiling { section, max }));
            }
        }
        batch
    }

    /// The store confirmed a ceiling.
    pub(crate) fn confirm(&self, section: SectionId, ceiling: u64) {
        if let Some(place) = self.place(section) {
            self.space.confirm(place, ceiling);
        }
    }

    /// Asks for a section's ceiling to be at least `to`; the raiser is the caller, so nobody is woken.
    pub(crate) fn ask_again(&self, section: SectionId, to: u64) {
        if let Some(place) = self.place(section) {
            self.space.want(place, to);
            self.mark_due(place);
        }
    }

    /// Closes sections that another owner has or may get: nothing is taken in them afterwards, and waiting callers hear of it.
    pub fn fence(&self, sections: RangeInclusive<SectionId>) {
        let places = self.place(*sections.start()).zip(self.place(*sections.end()));
        if let Some((first, last)) = places {
            self.space.close(first..=last);
            self.rounds.send_modify(|round| *round += 1);
        }
    }

    /// Closes all sections: nothing is handed out afterwards.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        if let Some(last) = self.space.places().count().checked_sub(1) {
            self.space.close(0..=last);
        }
        self.rounds.send_modify(|round| *round += 1);
    }

    pub(super) fn metrics(&self) -> Metrics {
        self.counters.snapshot(self.space.allocated())
    }

    /// Changes after every call of the store, and when sections are closed.
    pub fn rounds(&self) -> watch::Receiver<u64> {
        self.rounds.subscribe()
    }

    /// How many numbers were handed out. Walks every touched page.
    pub fn allocated(&self) -> u64 {
        self.space.allocated()
    }

    /// How many numbers were handed out in `section`, about. Walks its touched pages.
    pub fn allocated_in(&self, section: SectionId) -> u64 {
        self.place(section).map_or(0, |place| self.space.allocated_in(place))
    }

    fn place(&self, section: SectionId) -> Option<usize> {
        self.space.places().of(section.get() as usize)
    }

    fn mark_due(&self, place: usize) {
        self.due[place / 64].fetch_or(1 << (place % 64), Ordering::AcqRel);
    }

    fn ask(&self, uid: Uid, to: u64) {
        let place = self.space.places().of(self.split.section(uid.get()));
        if let Some(place) = place.filter(|&place| self.space.want(place, to)) {
            self.mark_due(place);
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
