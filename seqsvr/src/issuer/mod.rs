//! The number issuer: every other number that an application needs (order numbers, user ids, invite codes,
//! trace ids), each *business tag* with a line of its own (S21).
//!
//! A [`Strategy`] makes the numbers, plugins may watch and veto, and a repository keeps what must survive
//! (S26). Everything here is a library; the role `seqsvr issuer` and the chat server embed it.

pub mod clock;
pub mod snowflake;
pub mod strategy;
mod tag;

pub use strategy::{IssueError, Issued, Range, Strategy, TryIssueError};
pub use tag::{BadTag, Tag};
