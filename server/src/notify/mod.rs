//! "uid U has something new": wakes connections, carries no payload, promises nothing.
//!
//! A lost or doubled notice is harmless, since rows are pulled by cursor and the next heartbeat finds what a
//! notice missed. Called by the queues after the commit (step 3) and subscribed to by connections.

use crate::domain::Uid;

pub mod local;

pub use local::{Local, Wake};

/// Wakes whoever watches a user's line.
pub trait Notifier: Send + Sync + 'static {
    /// Something newer is visible for each of `uids`. Never waits.
    fn notify(&self, uids: &[Uid]);

    /// Watches `uid` until the [`Wake`] is dropped.
    fn subscribe(&self, uid: Uid) -> Wake;
}
