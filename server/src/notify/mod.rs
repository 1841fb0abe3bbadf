//! "uid U has something new": wakes connections, carries no rows, promises nothing.
//!
//! A lost or doubled notice is harmless, since rows are pulled by cursor. If this process loses a notice, the next
//! heartbeat finds the rows. If a hint of another server is lost, `app::follow` finds them within one heartbeat interval.
//! Called by the queues at the end of a commit (step 3 of a write) and subscribed to by connections. [`Local`] wakes the connections of
//! this process; [`SharedNotifier`] also tells the other servers of the same database, by [`Hints`]. [`Presence`] holds the
//! notices that are told to connections and stored nowhere.

use crate::domain::{MessageId, Uid};

pub mod hints;
pub mod local;
pub mod postgres;
pub mod presence;
pub mod shared;

pub use hints::{Heard, Hint, Hints};
pub use local::{Local, Wake};
pub use presence::{Connected, Ear, Presence};
pub use shared::SharedNotifier;

/// Wakes the connections that watch a user's inbox.
pub trait Notifier: Send + Sync + 'static {
    /// Rows up to these ids are visible. Never waits.
    fn notify(&self, rows: &[(Uid, MessageId)]);

    /// Watches `uid` until the [`Wake`] is dropped.
    fn subscribe(&self, uid: Uid) -> Wake;
}
