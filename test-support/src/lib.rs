//! What the tests and measurements of several crates need. No service depends on it.

pub mod gate;
pub mod ports;
pub mod servers;
pub mod until;
