//! Memory for the uids that were touched, and for no others. What is kept for a uid is how far it has come
//! since its section was loaded: 32 bits, because the next number of a random uid costs what its cache and
//! TLB misses cost, and half the memory misses less. A uid that comes further than that
//! goes on in a 64-bit slot. Pages appear at the first touch and stay. Owned and called by `space`.

use super::sync::{AtomicU32, AtomicU64, LEAF_PAGES, OnceLock, Ordering, PAGE_UIDS};

/// The distance that says "look in the wide slot". Distances up to one less are stored as they are.
pub(crate) const WIDE: u32 = u32::MAX;

/// The distances of adjacent uids, and what lets most takes do without looking at the section.
pub(crate) struct Page {
    /// Up to this distance numbers may be handed out without asking: never more than the section's confirmed
    /// ceiling allows, often less. Stays 0 in a page that lies across two sections.
    pub(crate) room: AtomicU32,
    /// Where the uids stood when their section was loaded; of its first uid in a page across two.
    base: u64,
    distances: OnceLock<Box<[AtomicU32; PAGE_UIDS]>>,
}

impl Page {
    /// The hot path: takes `count` numbers for `uid` if the room allows, and answers the last.
    #[inline]
    pub(crate) fn take(&self, uid: u32, count: u32) -> Option<u64> {
        let distance = &self.distances.get()?[uid as usize % PAGE_UIDS];
        // Relaxed: all that takers share is this one value, and a single atomic has one order of changes.
        let seen = distance.load(Ordering::Relaxed);
        let last = u64::from(seen) + u64::from(count);
        if last > u64::from(self.room.load(Ordering::Acquire)) {
            return None;
        }
        // Cannot cut anything off: the room is an u32.
        let moved = distance.compare_exchange(seen, last as u32, Ordering::Relaxed, Ordering::Relaxed);
        moved.is_ok().then_some(self.base + last)
    }

    fn touch(&self) -> &[AtomicU32; PAGE_UIDS] {
        self.distances.get_or_init(|| Box::new(std::array::from_fn(|_| AtomicU32::new(0))))
    }
}

type WidePage = [AtomicU64; PAGE_UIDS];

/// Adjacent pages, whether touched or not.
pub(crate) struct Leaf {
    pages: [Page; LEAF_PAGES],
    wide: OnceLock<Box<[OnceLock<Box<WidePage>>; LEAF_PAGES]>>,
}

impl Leaf {
    /// The line of `uid`, if its page was touched.
    pub(crate) fn line(&self, uid: u32) -> Option<Line<'_>> {
        let page = self.page(uid);
        let distance = &page.distances.get()?[uid as usize % PAGE_UIDS];
        Some(Line { leaf: self, page, distance, uid })
    }

    /// The line of `uid`, touching its page.
    pub(crate) fn touch(&self, uid: u32) -> Line<'_> {
        let page = self.page(uid);
        Line { leaf: self, page, distance: &page.touch()[uid as usize % PAGE_UIDS], uid }
    }

    fn page(&self, uid: u32) -> &Page {
        &self.pages[uid as usize / PAGE_UIDS % LEAF_PAGES]
    }

    /// The 64-bit slot of `uid`, 0 at first.
    fn wide(&self, uid: u32) -> &AtomicU64 {
        let pages = self.wide.get_or_init(|| Box::new(std::array::from_fn(|_| OnceLock::new())));
        let fresh = || Box::new(std::array::from_fn(|_| AtomicU64::new(0)));
        &pages[uid as usize / PAGE_UIDS % LEAF_PAGES].get_or_init(fresh)[uid as usize % PAGE_UIDS]
    }
}

impl Leaf {
    /// How far the uids of the page at `index` have come together.
    fn moved(&self, index: usize) -> u64 {
        if self.pages[index].distances.get().is_none() {
            return 0;
        }
        let lines = (index * PAGE_UIDS..(index + 1) * PAGE_UIDS).filter_map(|uid| self.line(uid as u32));
        lines.map(|line| line.seen().distance()).fold(0, u64::wrapping_add)
    }
}

/// The number line of one uid, in whichever slot it has reached.
pub(crate) struct Line<'a> {
    leaf: &'a Leaf,
    pub(crate) page: &'a Page,
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

/// Finds the page of a uid by shifting, in two steps.
pub(crate) struct Directory {
    /// The leaf that comes first.
    first: usize,
    leaves: Box<[OnceLock<Box<Leaf>>]>,
}

impl Directory {
    const LEAF_UIDS: usize = PAGE_UIDS * LEAF_PAGES;

    /// Room for the uids from `first` to `last`.
    pub(crate) fn new(first: u32, last: u32) -> Self {
        let (first, last) = (first as usize / Self::LEAF_UIDS, last as usize / Self::LEAF_UIDS);
        Self { first, leaves: (first..=last).map(|_| OnceLock::new()).collect() }
    }

    /// The page of `uid`, if any of its neighbourhood was touched.
    #[inline]
    pub(crate) fn page(&self, uid: u32) -> Option<&Page> {
        Some(self.leaf(uid)?.page(uid))
    }

    #[inline]
    pub(crate) fn leaf(&self, uid: u32) -> Option<&Leaf> {
        // Below the first it wraps around to what is not there.
        let index = (uid as usize / Self::LEAF_UIDS).wrapping_sub(self.first);
        self.leaves.get(index)?.get().map(|leaf| &**leaf)
    }

    /// The leaf of `uid`, which there is room for, made if need be; `base_of` answers where a uid stood when it was loaded.
    pub(crate) fn touch(&self, uid: u32, base_of: impl Fn(u32) -> u64) -> &Leaf {
        let leaf = uid as usize / Self::LEAF_UIDS;
        let page = |index: usize| Page {
            room: AtomicU32::new(0),
            base: base_of((leaf * Self::LEAF_UIDS + index * PAGE_UIDS) as u32),
            distances: OnceLock::new(),
        };
        self.leaves[leaf - self.first]
            .get_or_init(|| Box::new(Leaf { pages: std::array::from_fn(page), wide: OnceLock::new() }))
    }

    /// Calls `each` with every page that has uids from `first` to `last` and whose neighbourhood was touched.
    pub(crate) fn pages(&self, first: u32, last: u32, mut each: impl FnMut(&Page)) {
        let (first, last) = (first as usize / PAGE_UIDS, last as usize / PAGE_UIDS);
        self.walk(first, last, |leaf, index| each(&leaf.pages[index]));
    }

    /// How far all touched uids have come together, wrapping. Walks every touched page.
    pub(crate) fn moved(&self) -> u64 {
        let leaves = self.leaves.iter().filter_map(OnceLock::get);
        let pages = leaves.flat_map(|leaf| (0..LEAF_PAGES).map(move |index| leaf.moved(index)));
        pages.fold(0, u64::wrapping_add)
    }

    /// The same for the pages whose first uid lies between `first` and `last`.
    pub(crate) fn moved_between(&self, first: u32, last: u32) -> u64 {
        let (first, last) = ((first as usize).div_ceil(PAGE_UIDS), last as usize / PAGE_UIDS);
        let mut sum = 0_u64;
        self.walk(first, last, |leaf, index| sum = sum.wrapping_add(leaf.moved(index)));
        sum
    }

    /// Calls `each` with the pages from `first` to `last` of the leaves that were touched.
    fn walk(&self, first: usize, last: usize, mut each: impl FnMut(&Leaf, usize)) {
        let mut page = first;
        while page <= last {
            match self.leaves.get((page / LEAF_PAGES).wrapping_sub(self.first)).and_then(OnceLock::get) {
                Some(leaf) => {
                    each(leaf, page % LEAF_PAGES);
                    page += 1;
                }
                None => page = (page / LEAF_PAGES + 1) * LEAF_PAGES,
            }
        }
    }
}
