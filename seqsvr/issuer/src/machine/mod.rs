//! Machine ids (S25): the id of this process in its snowflakes. A fixed id, or one that is registered under the
//! instance's name with a lease, so that ids of dead instances become free.
//!
//! A [`Holder`] owns the lease of one process: it claims, renews and gives back through a [`Registry`], keeps the
//! instance's local file, and stops handing out its id a margin before the lease ends. Two processes could
//! then share an id only if their clocks' rates differed by more than the margin, and even then not an id's
//! *time*: each holder stays within the time that it has registered, and the next one starts after it.

mod cache;
mod claim;
#[cfg(test)]
mod conformance;
#[cfg(feature = "service")]
mod etcd;
mod fixed;
mod hold;
mod holder;
mod instance;
mod keeper;
mod memory;
mod options;
#[cfg(feature = "service")]
mod redis;
mod registry;
mod sql;
#[cfg(test)]
mod tests;

pub use cache::CacheError;
pub use claim::ClaimError;
#[cfg(feature = "service")]
pub use etcd::EtcdRegistry;
pub use fixed::Fixed;
pub use holder::{Holder, MachineHealth, MachineMetrics, OpenHolderError};
pub use instance::{BadInstance, Instance};
pub use memory::MemoryRegistry;
#[cfg(feature = "service")]
pub(crate) use options::MOST_MACHINES;
pub use options::{BadHolderOption, HolderOptions};
#[cfg(feature = "service")]
pub use redis::RedisRegistry;
pub use registry::{Entry, MAX_VALUE, Registry, RegistryError, Row};
#[cfg(feature = "service")]
pub use sql::PostgresRegistry;
pub use sql::SqliteRegistry;
