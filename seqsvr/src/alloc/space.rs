//! Some sections in memory, or all: their ceilings, and the pages of touched uids. Any number
//! of threads take numbers without a lock; only the raiser moves ceilings, after the store confirmed them.
//! Wide slots hold distances too, so everything here counts from where the section was loaded. Sections go by their
//! place among those that are held; the others are as if closed.

use std::ops::RangeInclusive;

use super::pages::{Directory, Line, Seen, WIDE};
use super::section::{Plan, Rules};
use super::split::{Places, Split};
use super::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering, fence};

/// What a take came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
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

/// What an attempt to advance came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advance {
    /// Everything handed out from now on is larger.
    Done,
    /// The ceiling must be raised to `to` first.
    Raise {
        /// The absolute target.
        to: u64,
    },
    /// Closed for good: fenced off or shut down.
    Closed,
}

/// What lets most takes of a section do without looking at anything else of it. Apart from the rest, so that the gates of busy
/// sections stay in the nearest cache.
struct Gate {
    /// Up to this distance numbers may be handed out without asking: never more than the section's confirmed
    /// ceiling allows, often less. 0 where nothing was taken yet, and once the section is closed or where it is not here.
    room: AtomicU32,
    /// Where the uids stood when their section was loaded.
    base: u64,
}

/// The ceiling that adjacent uids share.
struct Section {
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

impl Section {
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
    sections: Box<[Section]>,
    /// The section of the first gate.
    first_section: usize,
    /// One for each section from the first to the last that is here, also for those between that are not.
    gates: Box<[Gate]>,
    directory: Directory,
    /// Numbers passed over without being handed out. Locked while they are, and while all distances are
    /// summed, so that their difference never goes back.
    skipped: Mutex<u64>,
}

impl Space {
    /// The sections in `places`, whose stored ceilings are `bases`, one for each: nothing can be taken before a raise.
    pub(crate) fn new(split: Split, rules: Rules, places: Places, bases: Vec<u64>) -> Self {
        let section = |base| Section {
            ceiling: AtomicU64::new(base),
            base,
            wanted: AtomicU64::new(base),
            closed: AtomicBool::new(false),
            skipped: AtomicU64::new(0),
        };
        let gate = |section| Gate {
            room: AtomicU32::new(0),
            base: places.of(section).map_or(0, |place| bases[place]),
        };
        // Without a section there is no gate, and so no uid.
        let (uids, gates) = match places.ends() {
            Some((first, last)) => ((split.first(first), split.last(last)), first..last + 1),
            None => ((0, 0), 0..0),
        };
        Self {
            split,
            rules,
            first_section: gates.start,
            gates: gates.map(gate).collect(),
            sections: bases.into_iter().map(section).collect(),
            places,
            directory: Directory::new(uids.0, uids.1),
            skipped: Mutex::new(0),
        }
    }

    /// The hot path: takes `count` numbers, 1 or more, for `uid` if it was touched and its section has room, and answers the last.
    #[inline]
    pub(crate) fn take_within_room(&self, uid: u32, count: u32) -> Option<u64> {
        // Below the first it wraps around to what is not there.
        let gate = self.gates.get(self.split.section(uid).wrapping_sub(self.first_section))?;
        let distance = self.directory.leaf(uid)?.distance(uid);
        // Relaxed: all that takers share is this one value, and a single atomic has one order of changes.
        let seen = distance.load(Ordering::Relaxed);
        let last = u64::from(seen) + u64::from(count);
        if seen == 0 || last > u64::from(gate.room.load(Ordering::Acquire)) {
            return None;
        }
        // Cannot cut anything off: the room is an u32.
        let moved = distance.compare_exchange(seen, last as u32, Ordering::Relaxed, Ordering::Relaxed);
        moved.is_ok().then_some(gate.base + last)
    }

    /// Takes `count` numbers, 1 or more, for `uid`, also where there was no room: not touched yet, near the
    /// ceiling, contended, or wide.
    pub(crate) fn take(&self, uid: u32, count: u32) -> Take {
        let Some(section) = self.section(uid) else { return Take::Closed };
        let line = self.line(uid);
        loop {
            let ceiling = section.ceiling.load(Ordering::Acquire);
            let seen = line.seen();
            match self.rules.plan(section.base + seen.distance(), count, ceiling) {
                Plan::Grant { last } if self.step(section, &line, seen, last - section.base) => {
                    self.widen_room(section, uid, ceiling);
                    return Take::Granted { last, ahead: self.rules.ahead(last, ceiling) };
                }
                Plan::Grant { .. } => {}
                _ if section.is_closed() => return Take::Closed,
                Plan::Raise { to } => return Take::Raise { to },
                Plan::Exhausted => return Take::Exhausted,
            }
        }
    }

    /// Makes everything handed out for `uid` from now on larger than `at_least`, which the limit allows.
    pub(crate) fn advance(&self, uid: u32, at_least: u64) -> Advance {
        let Some(section) = self.section(uid) else { return Advance::Closed };
        let line = self.line(uid);
        loop {
            let seen = line.seen();
            let current = section.base + seen.distance();
            if section.is_closed() {
                return Advance::Closed;
            }
            if at_least <= current {
                return Advance::Done;
            }
            if at_least > section.ceiling.load(Ordering::Acquire) {
                return Advance::Raise { to: self.rules.target(at_least) };
            }
            if !seen.fits(at_least - section.base) {
                self.promote(section, &line, seen);
                continue;
            }
            let mut skipped = self.lock_skipped();
            if line.move_to(seen, at_least - section.base) {
                section.skip(&mut skipped, at_least - current);
                return Advance::Done;
            }
        }
    }

    /// The last number handed out for `uid`, or where an untouched one stands. `None`: its section is not here.
    pub(crate) fn current(&self, uid: u32) -> Option<u64> {
        let base = self.section(uid)?.base;
        let leaf = self.directory.leaf(uid);
        Some(base + leaf.map_or(0, |leaf| leaf.line(uid).seen().distance()))
    }

    /// How many numbers were handed out in the section at `place`, about: takers go on meanwhile. Walks its touched pages.
    pub(crate) fn allocated_in(&self, place: usize) -> u64 {
        let section = self.places.section(place);
        let (first, last) = (self.split.first(section), self.split.last(section));
        let skipped = self.sections[place].skipped.load(Ordering::Relaxed);
        self.directory.moved(first, last).saturating_sub(skipped)
    }

    /// The sections that are here, and their places.
    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    /// How many numbers were handed out. Walks every touched page.
    pub(crate) fn allocated(&self) -> u64 {
        let skipped = self.lock_skipped();
        // Wraps, as the sums do: only the difference is meant.
        let moved = match self.places.ends() {
            Some((first, last)) => self.directory.moved(self.split.first(first), self.split.last(last)),
            None => 0,
        };
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

    /// Ends the sections at `places` for good: whatever is taken after this returned is refused.
    pub(crate) fn close(&self, places: RangeInclusive<usize>) {
        for section in &self.sections[places.clone()] {
            section.closed.store(true, Ordering::Release);
            section.ceiling.store(0, Ordering::Release);
        }
        // Pairs with the fence in `widen_room`: either that sees the section closed, or this comes later.
        fence(Ordering::SeqCst);
        for place in places {
            let gate = self.places.section(place) - self.first_section;
            self.gates[gate].room.store(0, Ordering::Release);
        }
    }

    fn lock_skipped(&self) -> MutexGuard<'_, u64> {
        self.skipped.lock().expect("nothing panics while it is locked")
    }

    fn section(&self, uid: u32) -> Option<&Section> {
        self.places.of(self.split.section(uid)).map(|place| &self.sections[place])
    }

    /// The line of `uid`, whose section is here.
    fn line(&self, uid: u32) -> Line<'_> {
        self.directory.touch(uid).touch(uid)
    }

    /// Moves a line, promoting it first if it has to be; false: look again.
    fn step(&self, section: &Section, line: &Line<'_>, seen: Seen, to: u64) -> bool {
        if !seen.fits(to) {
            self.promote(section, line, seen);
            return false;
        }
        line.move_to(seen, to)
    }

    /// Lets a line go on in its wide slot, from the largest distance that a narrow one can hold.
    #[cold]
    fn promote(&self, section: &Section, line: &Line<'_>, seen: Seen) {
        let mut skipped = self.lock_skipped();
        if line.widen(seen) {
            section.skip(&mut skipped, u64::from(WIDE - 1) - seen.distance());
        }
    }

    fn widen_room(&self, section: &Section, uid: u32, ceiling: u64) {
        let gate = &self.gates[self.split.section(uid) - self.first_section];
        let distance = self.rules.carefree(ceiling).saturating_sub(section.base);
        let room = distance.min(u64::from(WIDE - 1)) as u32;
        if room <= gate.room.load(Ordering::Relaxed) {
            return;
        }
        gate.room.fetch_max(room, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        if section.is_closed() {
            gate.room.store(0, Ordering::Release);
        }
    }
}
