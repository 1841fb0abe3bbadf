//! Use cases: what a person can do, each as one call. No axum, no SQL.
//!
//! Handlers of HTTP and WebSocket call these, so that both ways of doing a thing are one. Reads go to the store, writes
//! go through the queues; nothing here keeps state of its own but accounts' sessions and limits.

pub mod conversations;
pub mod groups;
pub mod messages;
pub mod sync;

pub use conversations::Conversations;
pub use groups::Groups;
pub use messages::Messages;
pub use sync::Sync;

pub use crate::queue::SendError;
