//! What `slots` needs from the standard library and how large its pages are. The interleaving tests compile
//! `slots` against a module of the same name with the model checker's types and tiny pages.

pub(crate) use std::sync::OnceLock;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Uids in a page: 4 KiB of numbers, the granularity of memory for touched uids.
pub(crate) const PAGE_SLOTS: usize = 512;
