//! The allocator. `section` decides (pure), `space` and its `pages` hold the numbers in memory and let many
//! threads take them without a lock, `shared` adds who waits for what, `raiser` is the one task that makes ceilings durable, `embedded` is the whole for
//! callers. `sync` names what the interleaving tests replace.

mod embedded;
#[allow(dead_code, reason = "the process around it follows")]
mod hold;
#[allow(dead_code, reason = "the process around it follows")]
mod lease;
#[allow(dead_code, reason = "the process around it follows")]
mod leaving;
mod metrics;
#[allow(dead_code, reason = "the process around it follows")]
pub(crate) mod node;
mod pages;
mod raiser;
#[allow(dead_code, reason = "the process around it follows")]
mod runs;
pub(crate) mod section;
pub(crate) mod shared;
mod space;
mod split;
mod sync;
pub(crate) mod tenure;
#[cfg(test)]
mod tests;

pub use embedded::Embedded;
pub use metrics::{Metrics, RAISE_BUCKETS};
