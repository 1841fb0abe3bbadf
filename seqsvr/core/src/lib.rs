//! seqsvr: one growing 64-bit number sequence for each user, which never goes back.
//!
//! ```text
//!  caller ──▶ Sequencer::try_next ──▶ slot of the uid (memory, lock-free)
//!                                        │ may not pass the section's ceiling
//!                                        ▼
//!             raiser, one task ──▶ SectionStore: the durable ceilings
//! ```
//!
//! Adjacent uids form a *section* that shares one durable *ceiling* (S4). Numbers are handed out from memory up to it,
//! and it is raised by a step ahead of need (S3), so a restart, which goes on at the ceiling, can only leave a gap.
//! [`Embedded`] serves the whole uid space inside the caller's process; [`store`] holds the places that keep ceilings.
//! A cluster adds plain values here: the routing table in [`routing`], the questions to stores in [`store::message`].

pub mod alloc;
pub mod clock;
pub mod config;
pub mod error;
pub mod file_lock;
#[allow(dead_code, reason = "without the simulation nothing switches a rule off")]
pub mod flaws;
pub mod ids;
#[cfg(feature = "sqlite")]
pub mod page_sums;
pub mod postgres_warnings;
pub mod routing;
pub mod sequencer;
pub mod store;

pub use alloc::{Embedded, Metrics, RAISE_BUCKETS};
pub use config::Options;
pub use error::{NextError, OpenAllocatorError, Refusal, TryNextError, Unavailable};
pub use ids::{Epoch, Granted, SectionId, Uid};
pub use sequencer::Sequencer;
