//! Tidemark: a chat server that keeps every device in step.
//!
//! A message goes down once and comes back up as a pull:
//!
//! ```text
//!  http ──▶ app ──▶ queue ──┬─1─▶ seq     a number from the receiver's line
//!   ▲       ▲               ├─2─▶ store   the row, durable
//!   │       │               └─3─▶ notify  "uid U has something new", no payload
//!   └───────┴── pull by cursor ◀──────────────────────────────────┘
//! ```
//!
//! Imports point down only: `http → app → queue → {seq, store, notify} → domain`.

pub mod app;
pub mod boot;
pub mod cli;
pub mod config;
pub mod domain;
pub mod files;
pub mod http;
pub mod lifecycle;
mod log_limit;
pub mod notify;
pub mod push;
pub mod queue;
pub mod seq;
pub mod store;
pub mod table;
pub mod telemetry;
mod tls_roots;
pub mod transfer;
mod workers;
