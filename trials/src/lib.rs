//! Tidemark's measurements and fault runs, over real processes.
//!
//! [`bench`](mod@bench) measures the server against baselines taken in the same run, so that every claim is a ratio;
//! [`chaos`] breaks it on purpose and checks its promises. Both start the real `tidemark` program ([`server`]) on a
//! free port of the loopback and talk to it as clients do.

pub mod bench;
pub mod chaos;
pub mod cluster;
pub mod server;
pub mod servers;

mod connection;
mod cpu;
mod failure;
mod grpc;
mod table_setup;
mod users;

pub use failure::{Failure, Result};
