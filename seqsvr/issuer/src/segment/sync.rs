//! The types that `buffer` needs from the standard library. The interleaving tests compile it against a module of the same name with a
//! model checker's types.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard};
