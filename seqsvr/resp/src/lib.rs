//! Counters over the Redis protocol (RESP2 and RESP3), for clients that already speak it.
//!
//! ```text
//!  bytes ─▶ parse ─▶ commands ─▶ session ─▶ connection ─▶ KeyCounters: whatever hands out the numbers
//!            (pure: limits, words, meaning, state)  (I/O)     ▼
//!  bytes ◀────────────────────── reply ◀──────────────────────┘
//! ```
//!
//! `parse`, `reply`, `commands` and `session` do no I/O. `connection` is the loop of one client, `server` accepts them.

mod commands;
mod connection;
mod counters;
mod parse;
mod reply;
mod server;
mod session;
mod told;

pub use counters::{KeyCounters, Refused, TryTake};
pub use server::RespServer;
