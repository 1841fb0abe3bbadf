//! The Redis protocol of the program, by clients that others wrote, unchanged: Redis's own tools, redis-py, node-redis,
//! ioredis and the crate `redis`. And kills, limits, tokens.

#![allow(clippy::unwrap_used, reason = "a test whose stage cannot be set fails")]

mod cluster;
mod issuer;
mod kills;
mod libraries;
mod limits;
mod process;
mod tools;
