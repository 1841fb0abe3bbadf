//! An AllocSvr. `node` (pure, with `hold`, `leaving`, `runs`) decides what is served when, `shell` carries that out,
//! and requests find what is served in the `hall`'s `view`.

pub mod config;
pub mod each;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod hall;
mod hold;
mod leaving;
pub mod node;
pub mod page;
pub mod probed;
mod rates;
pub mod record;
mod runs;
pub mod sequence;
pub mod shell;
pub mod view;
