//! Some sections in memory, or all: their ceilings, and the pages of touched uids. Any number
//! of threads take numbers without a lock; only the raiser moves ceilings, after the store confirmed them.
//! Sections go by their place among those that are held; the others are as if closed.

use std::ops::RangeInclusive;

use super::pages::{Directory, OPEN, last_of};
use super::section::{Advancing, Rules, TakePlan};
use super::split::{Places, Split};
use super::sync::{AtomicBool, AtomicU64, BLOCK, Mutex, MutexGuard, Ordering};

/// The outcome of a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpaceTake {
    /// The numbers up to `last` are the caller's.
    Granted {
        /// The last of them.
        last: u64,
        /// A ceiling that should be asked for now, ahead of need.
        ahead: Option<u64>,
    },
    /// The ceiling must be raised to `to` first.
    Raise {
        /// The absolute target.
        to: u64,
    },
    /// The limit would be passed.
    Exhausted,
    /// Closed for good: fenced off or shut down.
    Closed,
}

/// The outcome of an attempt to advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advance {
    /// Everything handed out from now on is larger.
    Done,
    /// The ceiling must be raised to `to` first.
    Raise {
        /// The absolute target.
        to: u64,
    },
    /// No number is left.
    Exhausted,
    /// Closed for good: fenced off or shut down.
    Closed,
}

/// The ceiling that adjacent uids share.
struct SectionCeiling {
    /// Numbers at or below this may be handed out: confirmed by the store, at most the limit, 0 once closed.
    ceiling: AtomicU64,
    /// The ceiling as loaded, where uids stand that were not touched since.
    base: u64,
    /// The largest ceiling that was asked for.
    wanted: AtomicU64,
    closed: AtomicBool,
    /// The part of `Space::skipped` that lies here.
    skipped: AtomicU64,
}

impl SectionCeiling {
    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// `numbers` were passed over; `all` is locked.
    fn skip(&self, all: &mut u64, numbers: u64) {
        *all = all.wrapping_add(numbers);
        self.skipped.fetch_add(numbers, Ordering::Relaxed);
    }
}

/// See the module.
pub(crate) struct Space {
    split: Split,
    rules: Rules,
    places: Places,
    /// By place.
    sections: Box<[SectionCeiling]>,
    directory: Directory,
    /// Numbers passed over without being handed out. Locked while they are, and while all distances are
    /// summed, so that their difference never goes back.
    skipped: Mutex<u64>,
}

impl Space {
    /// The sections in `places`, whose stored ceilings are `bases`, one for each: nothing can be taken before a raise.
    pub(crate) fn new(split: Split, rules: Rules, places: Places, bases: Vec<u64>) -> Self {
        let section = |base| SectionCeiling {
            ceiling: AtomicU64::new(base),
            base,
            wanted: AtomicU64::new(base),
            closed: AtomicBool::new(false),
            skipped: AtomicU64::new(0),
        };
        // Without a section no uid is asked for.
        let uids = places.ends().map_or((0, 0), |(first, last)| (split.first(first), split.last(last)));
        Self {
            split,
            rules,
            sections: bases.into_iter().map(section).collect(),
            places,
            directory: Directory::new(uids.0, uids.1),
            skipped: Mutex::new(0),
        }
    }

    /// The hot path: takes `count` numbers, 1 or more, for `uid` if they lie in its open block, and answers the last.
    #[inline]
    pub(crate) fn take_open(&self, uid: u32, count: u32) -> Option<u64> {
        let slot = self.directory.way(uid)?;
        // Relaxed: all that takers share is this one value, and a single atomic has one order of changes.
        let seen = slot.load(Ordering::Relaxed);
        let moved = seen.wrapping_add(u64::from(count));
        // A uid that crosses into another block stands less than `count` above its beginning, and none can stand a whole block above it.
        if seen < OPEN || moved % BLOCK < u64::from(count) {
            return None;
        }
        slot.compare_exchange(seen, moved, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        Some(moved & !OPEN)
    }

    /// Takes `count` numbers, 1 or more, for `uid`, also where no block was open: not touched yet, at the end of a block, near the
    /// ceiling, contended, or beside a closed section.
    pub(crate) fn take(&self, uid: u32, count: u32) -> SpaceTake {
        let Some(section) = self.section(uid) else { return SpaceTake::Closed };
        let slot = self.directory.touch(uid);
        loop {
            if section.is_closed() {
                return SpaceTake::Closed;
            }
            let ceiling = section.ceiling.load(Ordering::Acquire);
            let seen = slot.load(Ordering::Relaxed);
            match self.rules.plan(last_of(seen, section.base), count, ceiling) {
                TakePlan::Grant { last } => {
                    let open = self.rules.opens(last, ceiling);
                    let to = if open { last | OPEN } else { last };
                    if slot.compare_exchange(seen, to, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                        return SpaceTake::Granted { last, ahead: self.rules.ahead(last, ceiling) };
                    }
                }
                _ if section.is_closed() => return SpaceTake::Closed,
                TakePlan::Raise { to } => return SpaceTake::Raise { to },
                TakePlan::Exhausted => return SpaceTake::Exhausted,
            }
        }
    }

    /// Makes everything handed out for `uid` from now on larger than `at_least`, which the limit allows.
    pub(crate) fn advance(&self, uid: u32, at_least: u64) -> Advance {
        let Some(section) = self.section(uid) else { return Advance::Closed };
        let slot = self.directory.touch(uid);
        loop {
            let seen = slot.load(Ordering::Relaxed);
            let current = last_of(seen, section.base);
            if section.is_closed() {
                return Advance::Closed;
            }
            let ceiling = section.ceiling.load(Ordering::Acquire);
            match self.rules.advance(at_least, current, section.base, ceiling) {
                // It was closed meanwhile.
                _ if section.is_closed() => return Advance::Closed,
                Advancing::Done => return Advance::Done,
                Advancing::Raise { to } => return Advance::Raise { to },
                Advancing::Exhausted => return Advance::Exhausted,
                Advancing::Move => {}
            }
            let mut skipped = self.lock_skipped();
            if slot.compare_exchange(seen, at_least, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                section.skip(&mut skipped, at_least - current);
                return Advance::Done;
            }
        }
    }

    /// The last number handed out for `uid`, or where an untouched one stands. `None`: its section is not here.
    pub(crate) fn current(&self, uid: u32) -> Option<u64> {
        let base = self.section(uid)?.base;
        let slot = self.directory.slot(uid);
        Some(slot.map_or(base, |slot| last_of(slot.load(Ordering::Relaxed), base)))
    }

    /// How many numbers were handed out in the section at `place`, about: takers go on meanwhile. Walks its touched pages.
    pub(crate) fn allocated_in(&self, place: usize) -> u64 {
        let skipped = self.sections[place].skipped.load(Ordering::Relaxed);
        self.moved(place).saturating_sub(skipped)
    }

    /// The sections that are here, and their places.
    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    /// How many numbers were handed out. Walks every touched page.
    pub(crate) fn allocated(&self) -> u64 {
        let skipped = self.lock_skipped();
        // Wraps, as the sums do: only the difference is meant.
        let moved = (0..self.places.count()).map(|place| self.moved(place)).fold(0, u64::wrapping_add);
        moved.wrapping_sub(*skipped)
    }

    /// Notes that the ceiling of the section at `place` should be at `to`. True: nobody had asked for as much, so the
    /// raiser must hear of it.
    pub(crate) fn want(&self, place: usize, to: u64) -> bool {
        let wanted = &self.sections[place].wanted;
        // The load spares takers near the ceiling a write to a line that they all read.
        wanted.load(Ordering::Relaxed) < to && wanted.fetch_max(to, Ordering::AcqRel) < to
    }

    /// The ceiling to ask the store for; `None`: it is there, or the section is closed.
    pub(crate) fn due(&self, place: usize) -> Option<u64> {
        let section = &self.sections[place];
        let wanted = section.wanted.load(Ordering::Acquire);
        (wanted > section.ceiling.load(Ordering::Relaxed) && !section.is_closed()).then_some(wanted)
    }

    /// The store confirmed `ceiling`. For the raiser alone.
    pub(crate) fn confirm(&self, place: usize, ceiling: u64) {
        let section = &self.sections[place];
        if !section.is_closed() {
            section.ceiling.fetch_max(ceiling.min(self.rules.limit), Ordering::Release);
        }
    }

    /// Ends the sections at `places` for good: a take after this returned is refused.
    pub(crate) fn close(&self, places: RangeInclusive<usize>) {
        for section in &self.sections[places.clone()] {
            section.closed.store(true, Ordering::Release);
            section.ceiling.store(0, Ordering::Release);
        }
        // Also for blocks that are or will be opened there: from now on each take looks at its section.
        for place in places {
            let (first, last) = self.uids(place);
            self.directory.bar(first, last);
        }
    }

    fn lock_skipped(&self) -> MutexGuard<'_, u64> {
        self.skipped.lock().expect("nothing panics while it is locked")
    }

    fn section(&self, uid: u32) -> Option<&SectionCeiling> {
        self.places.of(self.split.section(uid)).map(|place| &self.sections[place])
    }

    /// The first and the last uid of the section at `place`.
    fn uids(&self, place: usize) -> (u32, u32) {
        let section = self.places.section(place);
        (self.split.first(section), self.split.last(section))
    }

    /// How far the uids of the section at `place` have come together, wrapping.
    fn moved(&self, place: usize) -> u64 {
        let (first, last) = self.uids(place);
        self.directory.moved(first, last, self.sections[place].base)
    }
}
