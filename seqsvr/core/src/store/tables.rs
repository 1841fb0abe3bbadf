//! Where routing tables are durable: the other half of what a cluster keeps in its stores (S8). The arbiter writes,
//! under a term that it was promised; everybody else reads, and a read renews a lease.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;

use crate::ids::Epoch;
use crate::routing::Table;
use crate::store::StoreError;
use crate::store::configuration::Bounds;

/// Keeps the routing table of one Set, ordered by (term, version).
///
/// The contract:
///
/// - A table that [`read`](Self::read) answers *counts*: no later read answers an older one, and no older one is answered by a
///   read that began after this one ended. (In a quorum: it was seen on W replicas or written back to W.)
/// - After a promise no table of a lower term becomes one that counts, unless the promise's answer carried it.
/// - A write is confirmed only when the table counts.
#[async_trait]
pub trait RoutingTableStore: Send + Sync {
    /// The table that counts now. Answers at once unless `known` is still the newest state, then at the next change (of the
    /// table, or a release) or after `wait`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`], also when a newer table is half written and cannot be completed.
    async fn read(&self, known: &Revisions, wait: Duration) -> Result<Reading, StoreError>;

    /// As [`read`](Self::read), for a reader that waits for no release: one alone need not end the wait.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    async fn read_table(&self, known: &Revisions, wait: Duration) -> Result<Reading, StoreError>;

    /// Asks to be the arbiter of `term`, and answers with the newest table that may count.
    ///
    /// # Errors
    ///
    /// [`WriteError::Outranked`] when this term, or a higher one, was promised before.
    async fn promise(&self, term: u64) -> Result<Option<Arc<Table>>, WriteError>;

    /// Makes `table` count, whose term was promised.
    ///
    /// # Errors
    ///
    /// [`WriteError::Outranked`] when a higher term was promised; [`WriteError::Older`]. After [`WriteError::Unknown`] the same
    /// table may be written again.
    async fn write(&self, table: &Arc<Table>) -> Result<(), WriteError>;

    /// Tells the stores that the arbiter of `term` is alive, and answers the largest promised term that was seen. No promise
    /// about safety hangs on it. Called several times in the time for which others wait for a sign.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    async fn acting(&self, term: u64) -> Result<u64, StoreError>;

    /// Which change of the stores is not complete, and what completes it, in one line for operators.
    async fn unfinished(&self) -> Option<String> {
        None
    }

    /// How each of the stores is that this one is made of; none where it is made of one alone. For operators: nothing hangs on it.
    async fn survey(&self) -> Vec<StoreHealth> {
        Vec::new()
    }
}

/// One store, as the asker reaches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreHealth {
    /// Its address.
    pub addr: String,
    /// Its state, or why it does not answer.
    pub state: Result<StoreState, String>,
}

/// The state of a store that answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreState {
    /// The largest term that it promised.
    pub promised: u64,
    /// Its table; `None` before the first.
    pub table: Option<Arc<Table>>,
    /// Sections of which another store has a newer claim or a larger ceiling.
    pub sections_behind: u32,
    /// How many revisions it is behind the newest of another member; 0 for stores without any.
    pub revisions_behind: u64,
}

impl StoreState {
    /// The version of its table, 0.0 before the first.
    pub fn version(&self) -> Epoch {
        self.table.as_ref().map(|table| table.version).unwrap_or_default()
    }
}

/// How far a reader has seen: one revision for each replica, 0 where it has seen nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Revisions(pub Vec<u64>);

/// The result of a read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reading {
    /// The table that counts; `None` before the first.
    pub table: Option<Arc<Table>>,
    /// The revisions for the next read.
    pub revisions: Revisions,
    /// The largest promised term that was seen.
    pub promised: u64,
    /// How long ago, at least, the arbiter of that term was last heard of; `None`: not that the answering replicas know.
    pub acting: Option<Duration>,
    /// The bounds of the read, by the configuration in which it was answered. `None`: none is stored.
    pub bounds: Option<Bounds>,
}

/// Why a table was not written, or a term not promised.
#[derive(Debug, Error)]
pub enum WriteError {
    /// Another arbiter was promised a higher term: step down.
    #[error("term {0} was promised to another arbiter")]
    Outranked(u64),
    /// A table of this version, as new or newer, is there.
    #[error("a table of version {0} is stored")]
    Older(Epoch),
    /// It may or may not have happened, wholly or in part; may be repeated.
    #[error("not confirmed: {0}")]
    Unknown(String),
}
