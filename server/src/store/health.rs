//! How a store is doing, for readiness and metrics.

use std::sync::Arc;
use std::time::Duration;

use crate::domain::Timestamp;

/// How a store is doing.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// Why nothing can be stored now; `None`: it can, as far as is known.
    pub trouble: Option<Arc<str>>,
    /// How long ago the last commit was; `None` before the first one of this process.
    pub since_commit: Option<Duration>,
    /// Commits that were refused or whose outcome was not learnt.
    pub refused_commits: u64,
    /// Flushes that failed; each is tried again.
    pub failed_flushes: u64,
    /// Rows that the tables do not take and that lie in `set_aside`, since the first start.
    pub set_aside: u64,
    /// Pages of the database, and of the files beside it, that were found damaged since the process began. Reads of them are refused.
    pub damaged: Vec<String>,
    /// The bytes left on the disk of the database; `None` where the number is not known.
    pub free_bytes: Option<u64>,
    /// The moment of the last good backup that `tidemark backup` made of it; `None` where there was none, and where others make them.
    pub last_backup: Option<Timestamp>,
    /// Connections to the database, by what they are for; empty where there are none.
    pub pools: Vec<PoolUse>,
}

/// How many connections to a database there are for one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUse {
    /// The purpose.
    pub name: &'static str,
    /// How many there may be.
    pub most: usize,
    /// How many there are.
    pub open: usize,
    /// How many of those nobody uses.
    pub idle: usize,
}
