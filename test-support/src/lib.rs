//! Helpers for the tests and measurements of several crates. No service depends on them.

pub mod gate;
pub mod ports;
pub mod servers;
pub mod until;
