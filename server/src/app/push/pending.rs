//! The people whose inboxes have grown since their devices were looked at.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::{MessageId, Uid};
use crate::notify::{Notifier, Wake};

/// People that are remembered. Beyond it everybody is looked at.
const MOST: usize = 100_000;

/// See the module. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct PendingPeople(Arc<Mutex<NamedPeople>>);

struct NamedPeople {
    people: HashSet<Uid>,
    /// There were more than are remembered.
    is_full: bool,
    /// Whether any device is subscribed, as far as is known: if none is, commits name nobody.
    is_any: bool,
    /// Subscriptions made here so far: one that is made while the directory is asked makes its answer worthless.
    subscribed: u64,
}

impl Default for NamedPeople {
    fn default() -> NamedPeople {
        // Nobody has looked yet.
        NamedPeople { people: HashSet::new(), is_full: false, is_any: true, subscribed: 0 }
    }
}

impl PendingPeople {
    fn named(&self) -> MutexGuard<'_, NamedPeople> {
        // Each change is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names these people.
    pub(super) fn add(&self, people: impl IntoIterator<Item = Uid>) {
        let mut named = self.named();
        if !named.is_any {
            return;
        }
        for uid in people {
            if named.people.len() >= MOST {
                named.is_full = true;
                return;
            }
            named.people.insert(uid);
        }
    }

    /// A device of `uid` has subscribed, or says how far it has come.
    pub(super) fn subscribed(&self, uid: Uid) {
        let mut named = self.named();
        named.is_any = true;
        named.subscribed += 1;
        drop(named);
        self.add([uid]);
    }

    /// The people that were named since the last time; and whether there were more.
    pub(super) fn take(&self) -> (Vec<Uid>, bool) {
        let mut named = self.named();
        (named.people.drain().collect(), std::mem::take(&mut named.is_full))
    }

    /// How many are named.
    pub(super) fn len(&self) -> usize {
        self.named().people.len()
    }

    /// How many subscriptions were made here; to be read before the directory is asked whether there is any.
    pub(super) fn subscriptions(&self) -> u64 {
        self.named().subscribed
    }

    /// Whether there is any, as the directory said after `subscriptions` were made here.
    pub(super) fn learn(&self, is_any: bool, subscriptions: u64) {
        let mut named = self.named();
        if named.subscribed == subscriptions {
            named.is_any = is_any;
        }
        if !named.is_any {
            named.people = HashSet::new();
        }
    }
}

/// A notifier whose notices name people here, too.
pub(super) struct Overheard {
    pub(super) notifier: Arc<dyn Notifier>,
    pub(super) pending: PendingPeople,
}

impl Notifier for Overheard {
    fn notify(&self, rows: &[(Uid, MessageId)]) {
        self.notifier.notify(rows);
        self.pending.add(rows.iter().map(|(uid, _)| *uid));
    }

    fn subscribe(&self, uid: Uid) -> Wake {
        self.notifier.subscribe(uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::Local;

    #[test]
    fn commits_name_their_receivers_once() {
        let pending = PendingPeople::default();
        let overheard = Overheard { notifier: Arc::new(Local::new()), pending: pending.clone() };
        overheard.notify(&[(Uid(1), MessageId::ZERO), (Uid(2), MessageId::ZERO), (Uid(1), MessageId::MAX)]);
        assert_eq!(pending.len(), 2);
        let (mut people, more) = pending.take();
        people.sort_unstable();
        assert_eq!((people, more), (vec![Uid(1), Uid(2)], false));
        assert_eq!(pending.take(), (Vec::new(), false));
    }

    #[test]
    fn beyond_a_bound_everybody_is_looked_at() {
        let pending = PendingPeople::default();
        pending.add((0..2 * MOST as u32).map(Uid));
        let (people, more) = pending.take();
        assert_eq!((people.len(), more), (MOST, true));
        assert_eq!(pending.take(), (Vec::new(), false));
    }

    #[test]
    fn nobody_is_named_while_nobody_is_subscribed() {
        let pending = PendingPeople::default();
        pending.add([Uid(1)]);
        pending.learn(false, pending.subscriptions());
        pending.add([Uid(2)]);
        assert_eq!(pending.len(), 0);
        let before = pending.subscriptions();
        pending.subscribed(Uid(3));
        pending.learn(false, before);
        pending.add([Uid(4)]);
        assert_eq!(pending.len(), 2, "somebody subscribed while that was asked");
    }
}
