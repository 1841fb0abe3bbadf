//! Sections and routing tables in etcd: for operators that run it already or outgrow a quorum of their own. Owns one
//! connection to each member. Every read is linearizable; every change is one transaction that names the revision of
//! all that it was decided by, so a writer that saw less overwrites nothing.
//!
//! ```text
//!  PREFIX/configuration   lease, layout, uids
//!  PREFIX/layout     section size and step             PREFIX/term       the largest promised term
//!  PREFIX/hands      who owns which sections           PREFIX/acting     under a lease of its arbiter
//!  PREFIX/c SECTION  the ceiling of a section          PREFIX/t/table    the table        ⎫ watched
//!                                                      PREFIX/t/released put by a release ⎭
//! ```

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seqsvr_core::store::StoreError;
use seqsvr_etcd::{EtcdConfig, Members};

mod acting;
mod agreement;
mod keys;
mod sections;
mod tables;

use keys::Keys;

/// A [`SectionStore`](seqsvr_core::store::SectionStore) and [`RoutingTableStore`](seqsvr_core::store::tables::RoutingTableStore) in an etcd cluster. All its questions
/// may be asked twice, so an answer that was lost does no harm.
pub struct EtcdStore {
    members: Members,
    keys: Keys,
    /// The sections as last seen: saves a raise the question, and is checked by each transaction.
    seen: Mutex<sections::SeenSections>,
    last_activity: Mutex<acting::LastActivity>,
    /// The lease under which this process tells that it acts.
    lease: Mutex<Option<i64>>,
    /// This role was found to be configured as stored.
    agreed: AtomicBool,
}

impl EtcdStore {
    /// Reads the certificates. Nothing is connected yet. `prefix` begins all keys, one for each Set; `patience` is how long one
    /// member may take before the next is asked.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] with the mistake in the configuration.
    pub fn open(config: &EtcdConfig, prefix: &str, patience: Duration) -> Result<Self, StoreError> {
        Ok(Self {
            members: Members::open(config, patience)?,
            keys: Keys::new(prefix),
            seen: Mutex::default(),
            last_activity: Mutex::default(),
            lease: Mutex::default(),
            agreed: AtomicBool::new(false),
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics half-way through a change of the remembered state.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
