//! What `pages` and `space` need from the standard library, the memory of a leaf, and the sizes of pages. The interleaving tests
//! compile these two against a module of the same name with a model checker's types and tiny pages.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Mutex, MutexGuard, OnceLock};

pub(crate) use super::slots::Slots;

/// Uids in a page: 4 KiB of distances, the grain of memory for touched uids.
pub(crate) const PAGE_UIDS: usize = 1024;

/// Pages in a leaf of the directory: its distances fill one huge page of 2 MiB.
pub(crate) const LEAF_PAGES: usize = 512;
