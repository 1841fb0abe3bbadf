//! The number issuer: every other number that an application needs (order numbers, user ids, invite codes,
//! trace ids), each *business tag* with a sequence of its own (S21).
//!
//! A [`Strategy`] makes the numbers, [plugins] may watch and veto, and a [repository] keeps what must survive
//! (S26). Everything here is a library; the role `seqsvr issuer` and the chat server embed it.

mod builder;
pub mod clock;
#[cfg(feature = "service")]
pub mod config;
mod error;
pub mod machine;
pub mod plugins;
mod range;
#[cfg(feature = "service")]
pub mod redis;
pub mod rejected;
pub mod repository;
#[cfg(feature = "service")]
pub mod rpc;
pub mod scramble;
pub mod segment;
mod service;
pub mod snowflake;
mod sql;
pub mod strategy;
mod tag;

pub use builder::{Builder, MAX_COUNT};
#[cfg(feature = "service")]
pub use config::{IssuerConfig, Running};
pub use error::{NextError, OpenError};
pub use plugins::{CallHistory, Plugin, Rate, Registry, Verdict};
pub use range::Range;
#[cfg(feature = "service")]
pub use redis::{RedisOptions, RedisStrategy};
pub use segment::{Journal, SegmentOptions, SegmentStrategy};
pub use service::{Counter, Decoded, Issuer, TagInfo};
pub use strategy::{IssueError, Issued, Part, Status, Strategy, TryIssueError};
pub use tag::{BadTag, Tag};
