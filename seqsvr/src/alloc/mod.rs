//! The allocator. `section` decides (pure), `space` and its `pages` hold the numbers in memory and let many threads take
//! them without a lock, `shared` adds who waits for what, `raiser` makes ceilings durable, a `tenure` is all that for
//! sections that came together. `embedded` is one tenure of everything; in a cluster `node` (pure, with `hold`,
//! `leaving`, `lease`, `runs`) decides what is served when, `shell` carries that out, and requests find what is served
//! in the `hall`'s `view`. `sync` names what the interleaving tests replace.

pub(crate) mod config;
pub(crate) mod each;
mod embedded;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod hall;
mod hold;
pub(crate) mod lease;
mod leaving;
mod metrics;
pub(crate) mod node;
pub(crate) mod page;
mod pages;
pub(crate) mod raised;
mod raiser;
mod rates;
pub(crate) mod record;
mod runs;
pub(crate) mod section;
pub(crate) mod shared;
pub(crate) mod shell;
mod slots;
mod space;
mod split;
mod sync;
pub(crate) mod tenure;
#[cfg(test)]
mod tests;
pub(crate) mod view;

pub use embedded::Embedded;
pub use metrics::{Metrics, RAISE_BUCKETS};
