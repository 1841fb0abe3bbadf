//! The types that `pages` and `space` need from the standard library, the memory of a leaf, and the sizes of blocks and pages. The
//! interleaving tests compile these two against a module of the same name with a model checker's types, tiny blocks and tiny pages.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard, OnceLock};

pub(crate) use super::slots::{LEAF_PAGES, PAGE_UIDS, Pointers, Slots};

/// Numbers in a block, a power of two. The larger it is, the fewer takes look at the section; steps of less than twice as much
/// never open a block.
pub(crate) const BLOCK: u64 = 128;
