//! Where a device keeps its rows and its cursor.
//!
//! The one rule: rows and cursor change together, whole or not at all. A cursor that runs ahead of its rows loses
//! messages for good, since gaps between ids mean nothing and nobody would notice. [`crate::Client`] calls a store from
//! its one task, a change at a time.

mod file;
mod memory;

#[cfg(test)]
pub(crate) mod conformance;

use std::future::Future;
use std::io;

pub use file::FileStore;
pub use memory::MemoryStore;

use crate::sync::{Position, StoreChange};

/// A device's memory.
///
/// - [`Store::load`] answers what the last successful [`Store::apply`] left.
/// - A successful `apply` survives whatever the store promises to survive.
/// - A failed `apply` has changed nothing; the same change may come again.
/// - Both are dropped half-way when the client ends; a change is then there whole, or not at all.
pub trait Store: Send + 'static {
    /// Where the device stands.
    fn load(&mut self) -> impl Future<Output = io::Result<Position>> + Send;

    /// Carries out a change, in one transaction.
    fn apply(&mut self, change: &StoreChange) -> impl Future<Output = io::Result<()>> + Send;
}
