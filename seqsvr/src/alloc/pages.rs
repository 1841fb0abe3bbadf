//! Memory for the uids that were touched, and for no others. What is kept for a uid is how far it has come
//! since its section was loaded: 32 bits, because the next number of a random uid costs what its cache and
//! TLB misses cost, and half the memory misses less. A uid that comes further than that
//! goes on in a 64-bit slot. Pages appear at the first touch and stay. Owned and called by `space`.

use super::sync::{AtomicU32, AtomicU64, LEAF_PAGES, OnceLock, Ordering, PAGE_UIDS, Slots};

/// The distance that says "look in the wide slot". Distances up to one less are stored as they are.
pub(crate) const WIDE: u32 = u32::MAX;

/// Uids of a leaf.
const LEAF_UIDS: usize = PAGE_UIDS * LEAF_PAGES;

type WidePage = [AtomicU64; PAGE_UIDS];

/// Adjacent pages, whether touched or not.
pub(crate) struct Leaf {
    /// The distances of all uids of the leaf, 0 where none was touched. Stands in the directory itself, so that a take finds the
    /// distance in two steps.
    distances: Slots,
    cold: Box<Cold>,
}

/// What a take within the room of its section does not look at.
struct Cold {
    /// A bit for each page that was touched: what need not be walked is not brought into memory by walking.
    touched: [AtomicU64; LEAF_PAGES.div_ceil(64)],
    wide: [OnceLock<Box<WidePage>>; LEAF_PAGES],
}

impl Leaf {
    fn new() -> Self {
        let cold = Cold {
            touched: std::array::from_fn(|_| AtomicU64::new(0)),
            wide: std::array::from_fn(|_| OnceLock::new()),
        };
        Self { distances: Slots::new(), cold: Box::new(cold) }
    }

    /// The distance of `uid`, 0 if it was never touched. For whoever finds 0 here it is only to be read: its page may not be
    /// marked as touched.
    #[inline]
    pub(crate) fn distance(&self, uid: u32) -> &AtomicU32 {
        &self.distances.all()[uid as usize % LEAF_UIDS]
    }

    /// The line of `uid`, to be read.
    pub(crate) fn line(&self, uid: u32) -> Line<'_> {
        Line { leaf: self, distance: self.distance(uid), uid }
    }

    /// The line of `uid`, touching its page.
    pub(crate) fn touch(&self, uid: u32) -> Line<'_> {
        let page = uid as usize / PAGE_UIDS % LEAF_PAGES;
        if !self.is_touched(page) {
            self.touch_page(page);
        }
        self.line(uid)
    }

    /// Marks a page, before anything is taken in it.
    #[cold]
    fn touch_page(&self, page: usize) {
        let bit = 1 << (page % 64);
        let before = self.cold.touched[page / 64].fetch_or(bit, Ordering::AcqRel);
        if before & bit == 0 {
            self.distances.page_touched();
        }
    }

    fn is_touched(&self, page: usize) -> bool {
        self.cold.touched[page / 64].load(Ordering::Acquire) & (1 << (page % 64)) != 0
    }

    /// The 64-bit slot of `uid`, 0 at first.
    fn wide(&self, uid: u32) -> &AtomicU64 {
        let fresh = || Box::new(std::array::from_fn(|_| AtomicU64::new(0)));
        let page = &self.cold.wide[uid as usize / PAGE_UIDS % LEAF_PAGES];
        &page.get_or_init(fresh)[uid as usize % PAGE_UIDS]
    }
}

/// The number line of one uid, in whichever slot it has reached.
pub(crate) struct Line<'a> {
    leaf: &'a Leaf,
    distance: &'a AtomicU32,
    uid: u32,
}

/// What a line held when it was looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen {
    /// The narrow slot holds the distance.
    Narrow(u32),
    /// The wide slot does, unless it is still below what a narrow one can say.
    Wide(u64),
}

impl Seen {
    /// How far the uid has come.
    pub(crate) fn distance(self) -> u64 {
        match self {
            Self::Narrow(distance) => u64::from(distance),
            Self::Wide(distance) => distance.max(u64::from(WIDE - 1)),
        }
    }

    /// Whether the same slot can hold the distance `to`.
    pub(crate) fn fits(self, to: u64) -> bool {
        matches!(self, Self::Wide(_)) || to < u64::from(WIDE)
    }
}

impl Line<'_> {
    /// Looks at the line.
    pub(crate) fn seen(&self) -> Seen {
        match self.distance.load(Ordering::Relaxed) {
            WIDE => Seen::Wide(self.leaf.wide(self.uid).load(Ordering::Relaxed)),
            distance => Seen::Narrow(distance),
        }
    }

    /// Moves the line to the distance `to`, which fits, unless it is no longer as `seen`.
    pub(crate) fn move_to(&self, seen: Seen, to: u64) -> bool {
        debug_assert!(seen.fits(to), "{to} would be cut off");
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        match seen {
            Seen::Narrow(seen) => self.distance.compare_exchange(seen, to as u32, success, failure).is_ok(),
            Seen::Wide(seen) => self.leaf.wide(self.uid).compare_exchange(seen, to, success, failure).is_ok(),
        }
    }

    /// Lets the line go on in its wide slot, at the largest distance that the narrow one can say, unless it is
    /// no longer as `seen`.
    pub(crate) fn widen(&self, seen: Seen) -> bool {
        let Seen::Narrow(seen) = seen else { return false };
        self.distance.compare_exchange(seen, WIDE, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// Finds the leaf of a uid by shifting.
pub(crate) struct Directory {
    /// The leaf that comes first.
    first: usize,
    leaves: Box<[OnceLock<Leaf>]>,
}

impl Directory {
    /// Room for the uids from `first` to `last`.
    pub(crate) fn new(first: u32, last: u32) -> Self {
        let (first, last) = (first as usize / LEAF_UIDS, last as usize / LEAF_UIDS);
        Self { first, leaves: (first..=last).map(|_| OnceLock::new()).collect() }
    }

    /// The leaf of `uid`, if any of its uids was touched.
    #[inline]
    pub(crate) fn leaf(&self, uid: u32) -> Option<&Leaf> {
        // Below the first it wraps around to what is not there.
        let index = (uid as usize / LEAF_UIDS).wrapping_sub(self.first);
        self.leaves.get(index)?.get()
    }

    /// The leaf of `uid`, which there is room for, made if need be.
    pub(crate) fn touch(&self, uid: u32) -> &Leaf {
        self.leaves[uid as usize / LEAF_UIDS - self.first].get_or_init(Leaf::new)
    }

    /// How far the uids from `first` to `last` have come together, wrapping. Walks their touched pages.
    pub(crate) fn moved(&self, first: u32, last: u32) -> u64 {
        let (first, last) = (first as usize, last as usize);
        let mut sum = 0_u64;
        for page in first / PAGE_UIDS..=last / PAGE_UIDS {
            let Some(leaf) = self.leaf((page * PAGE_UIDS) as u32) else { continue };
            if leaf.is_touched(page % LEAF_PAGES) {
                let uids = (page * PAGE_UIDS).max(first)..=(page * PAGE_UIDS + PAGE_UIDS - 1).min(last);
                let lines = uids.map(|uid| leaf.line(uid as u32).seen().distance());
                sum = lines.fold(sum, u64::wrapping_add);
            }
        }
        sum
    }
}
