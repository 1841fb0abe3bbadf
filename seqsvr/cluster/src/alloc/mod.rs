//! An AllocSvr. `node` (pure, with `hold`, `releases`, `runs`) decides when sections are served, `shell` carries that
//! out, and requests find the served sections in the `view` of the `set_server`.

pub mod config;
pub mod each;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
mod hold;
pub mod node;
pub mod page;
pub mod probe_service;
mod rates;
pub mod record;
mod releases;
mod runs;
pub mod sequence;
pub mod set_server;
pub mod shell;
pub mod view;
