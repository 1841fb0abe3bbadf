//! The memory of a leaf, and of the pointers to all leaves, which is brought in as it is written.
//!
//! A leaf is zeroed 64-bit slots that lie side by side. The kernel brings a small page at the first write to it, so
//! that scattered uids cost little. Once half of the pages were touched, the kernel is asked to make one huge page of
//! them, so that a random uid of a dense leaf costs one cache miss and a short walk of the page tables.

use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use memmap2::{Advice, MmapMut, MmapOptions};

/// Uids in a page: 4 KiB of slots, the grain of memory for touched uids.
pub(crate) const PAGE_UIDS: usize = 512;

/// Pages in a leaf of the directory: its slots fill one huge page of 2 MiB.
pub(crate) const LEAF_PAGES: usize = 512;

/// Leaves of the whole uid space.
const LEAVES: usize = (1 << 32) / (PAGE_UIDS * LEAF_PAGES);

/// Slots of a leaf.
const SLOTS: usize = PAGE_UIDS * LEAF_PAGES;
/// Their bytes: exactly a huge page of x86-64 and AArch64 with small pages of 4 KiB.
const BYTES: usize = SLOTS * size_of::<AtomicU64>();
/// At this many touched pages a leaf counts as dense: the huge page then at most doubles its memory.
const DENSE_PAGES: usize = LEAF_PAGES / 2;

/// See the module.
pub(crate) struct Slots {
    /// Twice as large as needed, in addresses only, so that a part of it is aligned as a huge page must be.
    mapping: MmapMut,
    /// Where that part begins.
    first: usize,
    touched_pages: AtomicUsize,
}

impl Slots {
    /// All slots, 0.
    ///
    /// # Panics
    ///
    /// The process may have no more address space: as when any other allocation fails.
    pub(crate) fn new() -> Self {
        let mapping = MmapOptions::new().len(2 * BYTES).no_reserve_swap().map_anon();
        let mapping = mapping.expect("the process has address space for 4 MiB");
        let first = mapping.as_ptr().align_offset(BYTES);
        Self { mapping, first, touched_pages: AtomicUsize::new(0) }
    }

    /// The slots. They do not move when `self` does.
    #[expect(unsafe_code, reason = "a random take is a third faster than with a box for each page")]
    pub(crate) fn all(&self) -> &[AtomicU64; SLOTS] {
        // SAFETY: `first` is the offset to the next multiple of BYTES, so less than BYTES, in a mapping of twice as many: the slots
        // lie within it and are aligned. The mapping is anonymous, private, readable, writable and zeroed, any bytes are a
        // valid AtomicU64, and nobody reaches these bytes but as such slots, and not beyond the life of `self.mapping`.
        unsafe { &*self.mapping.as_ptr().add(self.first).cast() }
    }

    /// Another page of the leaf is about to be written for the first time.
    pub(crate) fn page_touched(&self) {
        if self.touched_pages.fetch_add(1, Ordering::Relaxed) + 1 == DENSE_PAGES
            && let Err(error) = self.make_huge_page()
        {
            tracing::debug!(%error, "no huge page for a dense leaf: its numbers cost a little more");
        }
    }

    /// Not from the start: a leaf with one uid would take 2 MiB. And at once: the kernel's own pass over what was advised comes
    /// after many seconds, if at all.
    fn make_huge_page(&self) -> io::Result<()> {
        self.mapping.advise_range(Advice::HugePage, self.first, BYTES)?;
        self.collapse()
    }

    #[expect(unsafe_code, reason = "memmap2 does not know this advice")]
    fn collapse(&self) -> io::Result<()> {
        // SAFETY: the range lies within the mapping, as in `all`. The advice changes how the kernel keeps these bytes, not what
        // they are.
        let refused = unsafe {
            let begin = self.mapping.as_ptr().add(self.first);
            libc::madvise(begin.cast_mut().cast(), BYTES, libc::MADV_COLLAPSE)
        };
        if refused == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// A pointer for each leaf of the uid space, null at first. A node may have a section group for each of many sections, so only what is
/// written takes memory: 4 KiB for the first leaf, and 128 KiB for leaves all over the uid space.
pub(crate) struct Pointers<T> {
    mapping: MmapMut,
    to: PhantomData<AtomicPtr<T>>,
}

impl<T> Pointers<T> {
    /// All null.
    ///
    /// # Panics
    ///
    /// The process may have no more address space: as when any other allocation fails.
    pub(crate) fn new() -> Self {
        let length = size_of::<[AtomicPtr<T>; LEAVES]>();
        let mapping = MmapOptions::new().len(length).no_reserve_swap().map_anon();
        Self { mapping: mapping.expect("the process has address space for 128 KiB"), to: PhantomData }
    }

    /// The pointers.
    #[expect(unsafe_code, reason = "no allocator promises zeros that take no memory")]
    #[inline]
    pub(crate) fn all(&self) -> &[AtomicPtr<T>; LEAVES] {
        // SAFETY: the mapping is as long as the array and aligned to a page. It is anonymous, private, readable, writable and zeroed,
        // and zeros are null pointers. Nobody reaches these bytes but as such pointers, and not beyond the life of `self.mapping`.
        unsafe { &*self.mapping.as_ptr().cast() }
    }
}
