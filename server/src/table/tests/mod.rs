//! The service as a client meets it: requests and answers as bytes.

mod assigned;
mod batch;
mod client;
mod faulty;
mod inbox;
mod metered;
mod model;
mod postgres;
mod races;
mod rows;
mod tables;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use client::Client;

use super::{Options, TableService};
use crate::domain::{Clock, Timestamp};
use crate::store::memory::MemoryTables;
use crate::store::tables::TableStore;

/// A service over a store, and the time that it sees.
pub(super) struct World {
    pub(super) service: TableService,
    pub(super) now: Arc<AtomicI64>,
}

/// When tests begin: milliseconds since 1970.
pub(super) const BEGIN: i64 = 1_700_000_000_000;

impl World {
    /// One over memory.
    pub(super) fn new() -> World {
        World::over(Arc::new(MemoryTables::new()), Options::default())
    }

    pub(super) fn over(store: Arc<dyn TableStore>, options: Options) -> World {
        let now = Arc::new(AtomicI64::new(BEGIN));
        let read = Arc::clone(&now);
        let clock = Clock::new(move || Timestamp(read.load(Ordering::Relaxed)));
        World { service: TableService::start(store, clock, options), now }
    }

    /// Lets so many milliseconds pass.
    pub(super) fn wait(&self, milliseconds: i64) {
        self.now.fetch_add(milliseconds, Ordering::Relaxed);
    }

    /// Somebody who may write.
    pub(super) fn client(&self) -> Client {
        Client::of(&self.service, "test")
    }
}
