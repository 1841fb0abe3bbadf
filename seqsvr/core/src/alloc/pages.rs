//! Memory for the uids that were touched, and for no others: one 64-bit slot for each. It holds the last number of the
//! uid, and whether its block is open. A block is a run of numbers that begins at a multiple of its size; it is open
//! for a uid that came into it when the ceiling already was so far above that the uid may go on to the end of the block
//! without asking again. So a take within an open block needs this slot and nothing else of the uid's section: what a
//! random take costs beside its one cache miss are the instructions that stand between this miss and the next
//! (docs/BENCHMARKS.md). Pages appear at the first touch and stay. Owned and called by `space`.

use std::array;
use std::ptr;

use super::sync::{AtomicU64, LEAF_PAGES, OnceLock, Ordering, PAGE_UIDS, Pointers, Slots};

/// Set in a slot whose block is open. No number has this bit.
pub(crate) const OPEN: u64 = 1 << 63;

/// Uids of a leaf.
const LEAF_UIDS: usize = PAGE_UIDS * LEAF_PAGES;

type LeafTable = [AtomicU64; LEAF_UIDS];

/// Stands in a way that is barred: the smallest address after null, where no table can be.
const BARRED: *mut LeafTable = ptr::without_provenance_mut(1);

/// The last number of a uid whose slot holds `seen` and whose section was loaded at `base`. A slot that was never touched is 0.
pub(crate) fn last_of(seen: u64, base: u64) -> u64 {
    if seen == 0 { base } else { seen & !OPEN }
}

/// Adjacent pages, whether touched or not.
struct Leaf {
    slots: Slots,
    /// A bit for each page that was touched: what need not be walked is not brought into memory by walking.
    touched: [AtomicU64; LEAF_PAGES.div_ceil(64)],
}

impl Leaf {
    fn new() -> Self {
        Self { slots: Slots::new(), touched: array::from_fn(|_| AtomicU64::new(0)) }
    }

    fn slot(&self, uid: u32) -> &AtomicU64 {
        &self.slots.all()[uid as usize % LEAF_UIDS]
    }

    /// The slot of `uid`, to be written: its page is touched.
    fn touch(&self, uid: u32) -> &AtomicU64 {
        let page = uid as usize / PAGE_UIDS % LEAF_PAGES;
        if !self.is_touched(page) {
            let bit = 1 << (page % 64);
            let before = self.touched[page / 64].fetch_or(bit, Ordering::AcqRel);
            if before & bit == 0 {
                self.slots.page_touched();
            }
        }
        self.slot(uid)
    }

    fn is_touched(&self, page: usize) -> bool {
        self.touched[page / 64].load(Ordering::Acquire) & (1 << (page % 64)) != 0
    }

    /// How far the uids from `first` to `last`, all of this leaf, have come together since they stood at `base`, wrapping.
    fn moved(&self, first: usize, last: usize, base: u64) -> u64 {
        let mut sum = 0_u64;
        for page in first / PAGE_UIDS..=last / PAGE_UIDS {
            if self.is_touched(page % LEAF_PAGES) {
                for uid in (page * PAGE_UIDS).max(first)..=(page * PAGE_UIDS + PAGE_UIDS - 1).min(last) {
                    let seen = self.slot(uid as u32).load(Ordering::Relaxed);
                    sum = sum.wrapping_add(last_of(seen, base) - base);
                }
            }
        }
        sum
    }
}

/// Finds the slot of a uid by shifting.
pub(crate) struct Directory {
    /// For each leaf of the uid space where its slots begin: null until it is made, [`BARRED`] at the end. Of a fixed length, so that
    /// finding a slot takes no comparison with it.
    ways: Pointers<LeafTable>,
    /// The leaf that comes first.
    first: usize,
    leaves: Box<[OnceLock<Leaf>]>,
}

impl Directory {
    /// Room for the uids from `first` to `last`.
    pub(crate) fn new(first: u32, last: u32) -> Self {
        let (first, last) = (first as usize / LEAF_UIDS, last as usize / LEAF_UIDS);
        Self { ways: Pointers::new(), first, leaves: (first..=last).map(|_| OnceLock::new()).collect() }
    }

    /// The slot of `uid` if its leaf is there and not barred. A caller that finds 0 in it may only read it: its page may not be marked as
    /// touched.
    #[expect(unsafe_code, reason = "a random take is a tenth faster than through the leaf")]
    #[inline]
    pub(crate) fn way(&self, uid: u32) -> Option<&AtomicU64> {
        let table = self.ways.all()[uid as usize / LEAF_UIDS].load(Ordering::Acquire);
        if table.addr() <= BARRED.addr() {
            return None;
        }
        // SAFETY: neither null nor BARRED, so these are the slots of a leaf in `self.leaves`. That leaf stays there until `self` is
        // dropped, and its slots do not move and are only reached through shared references.
        let table = unsafe { &*table };
        Some(&table[uid as usize % LEAF_UIDS])
    }

    /// Ends the ways to the leaves of the uids from `first` to `last`, for good.
    pub(crate) fn bar(&self, first: u32, last: u32) {
        for way in &self.ways.all()[first as usize / LEAF_UIDS..=last as usize / LEAF_UIDS] {
            way.swap(BARRED, Ordering::AcqRel);
        }
    }

    /// The slot of `uid`, which there is room for, to be read; `None`: no uid of its leaf was touched.
    pub(crate) fn slot(&self, uid: u32) -> Option<&AtomicU64> {
        Some(self.leaf(uid as usize)?.slot(uid))
    }

    /// The slot of `uid`, which there is room for, to be written.
    pub(crate) fn touch(&self, uid: u32) -> &AtomicU64 {
        let index = uid as usize / LEAF_UIDS;
        let fresh = || {
            let leaf = Leaf::new();
            let table = ptr::from_ref(leaf.slots.all()).cast_mut();
            // Where it was barred meanwhile, it stays barred.
            let _ = self.ways.all()[index].compare_exchange(
                ptr::null_mut(),
                table,
                Ordering::Release,
                Ordering::Relaxed,
            );
            leaf
        };
        self.leaves[index - self.first].get_or_init(fresh).touch(uid)
    }

    /// How far the uids from `first` to `last`, which there is room for, have come together since they stood at `base`, wrapping. Walks
    /// their touched pages.
    pub(crate) fn moved(&self, first: u32, last: u32, base: u64) -> u64 {
        let (mut first, last) = (first as usize, last as usize);
        let mut sum = 0_u64;
        while first <= last {
            let end = (first | (LEAF_UIDS - 1)).min(last);
            if let Some(leaf) = self.leaf(first) {
                sum = sum.wrapping_add(leaf.moved(first, end, base));
            }
            first = end + 1;
        }
        sum
    }

    fn leaf(&self, uid: usize) -> Option<&Leaf> {
        self.leaves[uid / LEAF_UIDS - self.first].get()
    }
}
