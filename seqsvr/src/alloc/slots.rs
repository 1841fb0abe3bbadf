//! The numbers of one loaded section in memory: a slot for each uid, in pages that appear when a uid is first
//! touched and stay as long as the section, under one ceiling. Any number of threads take numbers
//! without a lock; only the raiser moves the ceiling, after the store confirmed it.

use super::section::{Plan, Rules};
use super::sync::{AtomicBool, AtomicU64, OnceLock, Ordering, PAGE_SLOTS};

type Page = [AtomicU64; PAGE_SLOTS];

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

/// One section. Aligned so that a raise of one section does not slow takers of its neighbours.
#[repr(align(64))]
pub(crate) struct Section {
    /// Numbers at or below this may be handed out: confirmed by the store, at most the limit, 0 once closed.
    ceiling: AtomicU64,
    /// The ceiling as loaded, where uids that were not touched since stand. A slot below it (a fresh one
    /// holds 0) means the same.
    base: u64,
    /// The largest ceiling that was asked for.
    wanted: AtomicU64,
    closed: AtomicBool,
    pages: OnceLock<Box<[OnceLock<Box<Page>>]>>,
}

impl Section {
    /// A section whose stored ceiling is `base`: nothing can be taken before a raise.
    pub(crate) fn new(base: u64) -> Self {
        Self {
            ceiling: AtomicU64::new(base),
            base,
            wanted: AtomicU64::new(base),
            closed: AtomicBool::new(false),
            pages: OnceLock::new(),
        }
    }

    /// Takes `count` numbers for the uid at `offset`, in a section of `size` uids.
    #[inline]
    pub(crate) fn take(&self, offset: u32, size: u32, count: u32, rules: &Rules) -> Take {
        let slot = self.slot(offset, size);
        // Relaxed: all that takers share is the slot itself, and a single atomic has one order of changes.
        let mut seen = slot.load(Ordering::Relaxed);
        loop {
            let ceiling = self.ceiling.load(Ordering::Acquire);
            match rules.plan(seen.max(self.base), count, ceiling) {
                Plan::Grant { last } => {
                    match slot.compare_exchange_weak(seen, last, Ordering::Relaxed, Ordering::Relaxed) {
                        Ok(_) => return Take::Granted { last, ahead: rules.ahead(last, ceiling) },
                        Err(now) => seen = now,
                    }
                }
                Plan::Raise { .. } | Plan::Exhausted if self.is_closed() => return Take::Closed,
                Plan::Raise { to } => return Take::Raise { to },
                Plan::Exhausted => return Take::Exhausted,
            }
        }
    }

    /// Lifts the uid at `offset` to `at_least` if the ceiling allows, and answers how many numbers that
    /// skipped; `None`: the ceiling must be raised first.
    pub(crate) fn advance(&self, offset: u32, size: u32, at_least: u64) -> Option<u64> {
        if at_least > self.ceiling.load(Ordering::Acquire) {
            return None;
        }
        let before = self.slot(offset, size).fetch_max(at_least, Ordering::Relaxed).max(self.base);
        Some(at_least.saturating_sub(before))
    }

    /// The last number handed out for the uid at `offset`, or where an untouched one stands.
    pub(crate) fn current(&self, offset: u32) -> u64 {
        let (page, slot) = (offset as usize / PAGE_SLOTS, offset as usize % PAGE_SLOTS);
        let page = self.pages.get().and_then(|pages| pages[page].get());
        page.map_or(0, |page| page[slot].load(Ordering::Relaxed)).max(self.base)
    }

    /// Notes that the ceiling should be at `to`. True: nobody had asked for as much, so the raiser must hear of it.
    pub(crate) fn want(&self, to: u64) -> bool {
        // The load spares the takers at a window's edge a write to the line that they all read.
        self.wanted.load(Ordering::Relaxed) < to && self.wanted.fetch_max(to, Ordering::AcqRel) < to
    }

    /// The ceiling to ask the store for; `None`: it is there, or the section is closed.
    pub(crate) fn due(&self) -> Option<u64> {
        let wanted = self.wanted.load(Ordering::Acquire);
        (wanted > self.ceiling.load(Ordering::Relaxed) && !self.is_closed()).then_some(wanted)
    }

    /// The store confirmed `ceiling`. For the raiser alone.
    pub(crate) fn confirm(&self, ceiling: u64, rules: &Rules) {
        if !self.is_closed() {
            self.ceiling.fetch_max(ceiling.min(rules.limit), Ordering::Release);
        }
    }

    /// Ends the section for good: nothing is handed out afterwards. For the raiser alone.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.ceiling.store(0, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// How far all touched uids have moved since the section was loaded. Walks every touched page.
    pub(crate) fn moved(&self) -> u64 {
        let pages = self.pages.get().into_iter().flatten().filter_map(OnceLock::get);
        let slots = pages.flat_map(|page| page.iter());
        slots.map(|slot| slot.load(Ordering::Relaxed).saturating_sub(self.base)).sum()
    }

    #[inline]
    fn slot(&self, offset: u32, size: u32) -> &AtomicU64 {
        let pages = self
            .pages
            .get_or_init(|| (0..(size as usize).div_ceil(PAGE_SLOTS)).map(|_| OnceLock::new()).collect());
        let page = pages[offset as usize / PAGE_SLOTS]
            .get_or_init(|| Box::new(std::array::from_fn(|_| AtomicU64::new(0))));
        &page[offset as usize % PAGE_SLOTS]
    }
}
