//! A real Redis of the test's own, the same as the library's tests use.

#[path = "../../src/servers/mod.rs"]
mod servers;

pub(crate) use servers::redis::Server as Redis;
