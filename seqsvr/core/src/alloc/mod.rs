//! The allocator. `section` decides (pure), `space` and its `pages` hold the numbers in memory and let many threads take them without a
//! lock, `shared` adds the waits for raises, `raiser` makes ceilings durable, a `section_group` is all that for sections that came
//! together. `embedded` is one section group of everything; a cluster's part is in the crate `seqsvr-cluster`. `sync` names the types that
//! the interleaving tests replace.

mod embedded;
pub mod lease;
pub mod metrics;
mod pages;
pub mod raised;
mod raiser;
pub mod section;
pub mod section_group;
pub mod shared;
mod slots;
mod space;
pub mod split;
mod sync;
#[cfg(test)]
mod tests;

pub use embedded::Embedded;
pub use metrics::{Metrics, RAISE_BUCKETS};
