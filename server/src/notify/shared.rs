//! The notifier of one of several servers over one database: it wakes the connections of this process and tells the
//! others.

use std::sync::Arc;

use super::{Hint, Hints, Local, Notifier, Wake};
use crate::domain::{MessageId, Uid};

/// See the module.
pub struct SharedNotifier {
    local: Local,
    hints: Arc<dyn Hints>,
}

impl SharedNotifier {
    /// Wakes the connections of `local`, and tells the others by `hints`.
    pub fn new(local: Local, hints: Arc<dyn Hints>) -> SharedNotifier {
        SharedNotifier { local, hints }
    }
}

impl Notifier for SharedNotifier {
    fn notify(&self, rows: &[(Uid, MessageId)]) {
        self.local.notify(rows);
        self.hints.tell(Hint::Rows(rows.to_vec()));
    }

    fn subscribe(&self, uid: Uid) -> Wake {
        self.local.subscribe(uid)
    }
}
