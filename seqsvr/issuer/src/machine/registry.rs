//! The seam between machine ids and the place where they are registered. A registry is a small table with compare and set and a clock of
//! its own; `claim` decides which process gets which id, alike for all of them.

use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;

use super::Instance;

/// The largest `holder`, `version` or time that a registry must be able to keep: 2^63 - 1.
pub const MAX_VALUE: u64 = i64::MAX as u64;

/// The registration of one machine id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The machine id.
    pub machine: u32,
    /// The instance that has it, or had it last.
    pub instance: Instance,
    /// Tells two processes of one name apart: 0 to [`MAX_VALUE`].
    pub holder: u64,
    /// No id with this machine id is later than this: milliseconds since 1970, up to [`MAX_VALUE`]. The next holder of the machine id
    /// starts after it.
    pub used_until: u64,
}

/// An entry as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The registration.
    pub entry: Entry,
    /// Whether its lease still ran when it was read.
    pub live: bool,
    /// Changes with each write of the row; never 0.
    pub version: u64,
}

/// Keeps the machine ids of one pool.
///
/// The contract, which the conformance suite checks:
///
/// - A write takes place only if the row still has the version that the writer read (0: there was none), so of
///   several writers one succeeds.
/// - A lease begins when the write is carried out and is measured by the registry's own clock, to the
///   grain of a millisecond or longer.
/// - Rows whose lease is over stay, so that an instance gets its id again, and nobody an id's used time.
/// - A confirmed write survives the registry's process (in memory: lives as long as the value).
#[async_trait]
pub trait Registry: Send + Sync {
    /// All rows of the pool, in any order.
    ///
    /// # Errors
    ///
    /// [`RegistryError`].
    async fn rows(&self) -> Result<Vec<Row>, RegistryError>;

    /// Writes a row if it is still at version `over`, with a lease (zero: given back): whether it did.
    ///
    /// # Errors
    ///
    /// [`RegistryError`]: then the write may or may not have taken place, or may yet.
    async fn write(&self, entry: &Entry, over: u64, lease: Duration) -> Result<bool, RegistryError>;
}

/// A registry that cannot be used now; asking again may help.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the registry of machine ids cannot be used: {0}")]
pub struct RegistryError(pub String);

impl RegistryError {
    pub(super) fn new(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}
