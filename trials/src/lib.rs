//! Tidemark's measurements and fault runs, over real processes.
//!
//! [`bench`](mod@bench) measures the server against baselines taken in the same run, so that every claim is a ratio;
//! [`chaos`] breaks it on purpose and checks its promises. Both start the real `tidemark` program ([`server`]) on a
//! free port of the loopback and talk to it as clients do.

use std::path::PathBuf;

pub mod bench;
pub mod chaos;
pub mod cluster;
pub mod server;
pub mod servers;

mod connection;
mod cpu;
mod failure;
mod grpc;
mod http;
mod table_setup;
mod users;

pub use failure::{Failure, Result};

/// A program of the workspace, which lies beside the one that runs, or above it where that is a test.
pub fn program(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.ancestors().skip(1).find(|folder| !folder.ends_with("deps"));
    let program = folder.map(|folder| folder.join(name)).filter(|program| program.is_file());
    program.ok_or_else(|| Failure::new(format!("{name} is missing; build it first: cargo build --workspace")))
}
