//! The types that `pages` and `space` need from the standard library, the memory of a leaf, and the sizes of blocks and pages. The
//! interleaving tests compile these two against a module of the same name with a model checker's types, tiny blocks and tiny pages.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard, OnceLock};

pub(crate) use super::slots::{Pointers, Slots};

/// Numbers in a block, a power of two. The larger it is, the fewer takes look at the section; steps of less than twice as much
/// never open a block.
pub(crate) const BLOCK: u64 = 128;

/// Uids in a page: 4 KiB of slots, the grain of memory for touched uids.
pub(crate) const PAGE_UIDS: usize = 512;

/// Pages in a leaf of the directory: its slots fill one huge page of 2 MiB.
pub(crate) const LEAF_PAGES: usize = 512;

/// Leaves of the whole uid space.
pub(crate) const LEAVES: usize = (1 << 32) / (PAGE_UIDS * LEAF_PAGES);
