//! The allocator. `section` decides (pure), `slots` holds the numbers in memory and lets many threads take
//! them without a lock, `raiser` is the one task that makes ceilings durable, `embedded` is the whole for
//! callers. `sync` names what the interleaving tests replace.

mod embedded;
mod metrics;
mod raiser;
mod section;
mod shared;
mod slots;
mod split;
mod sync;
#[cfg(test)]
mod tests;

pub use embedded::Embedded;
pub use metrics::{Metrics, RAISE_BUCKETS};
