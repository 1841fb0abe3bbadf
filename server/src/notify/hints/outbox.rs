//! Hints that wait to be told: of each user the latest id only, so that a slow or silent database costs bounded memory.

use std::collections::HashMap;

use super::Hint;
use crate::domain::{MessageId, Uid};

/// Users, ends of sessions, and changes of names, that wait at most; with more of them, the others are told to look at everything.
pub const MOST: usize = 100_000;

/// See the module.
#[derive(Debug, Default)]
pub struct Outbox {
    rows: HashMap<Uid, MessageId>,
    ends: Vec<Hint>,
    everything: bool,
}

impl Outbox {
    /// Keeps `hint` until it is [taken](Self::take).
    pub fn put(&mut self, hint: Hint) {
        if self.everything {
            return;
        }
        match hint {
            Hint::Rows(rows) => {
                for (uid, id) in rows {
                    let latest = self.rows.entry(uid).or_default();
                    *latest = id.max(*latest);
                }
            }
            Hint::SessionEnded(_)
            | Hint::SessionsEnded(_)
            | Hint::OtherSessionsEnded(..)
            | Hint::Renamed(_) => {
                self.ends.push(hint);
            }
            Hint::Everything => self.everything = true,
        }
        if self.rows.len() + self.ends.len() > MOST {
            *self = Outbox { everything: true, ..Outbox::default() };
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        !self.everything && self.rows.is_empty() && self.ends.is_empty()
    }

    /// All that waits.
    pub fn take(&mut self) -> Vec<Hint> {
        let Outbox { rows, ends, everything } = std::mem::take(self);
        if everything {
            return vec![Hint::Everything];
        }
        let mut hints = ends;
        if !rows.is_empty() {
            hints.push(Hint::Rows(rows.into_iter().collect()));
        }
        hints
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(uid: u32, id: u64) -> Hint {
        Hint::Rows(vec![(Uid(uid), MessageId::new(id).expect("small"))])
    }

    #[test]
    fn of_each_user_the_latest_id_waits() {
        let mut outbox = Outbox::default();
        for id in [3, 9, 4] {
            outbox.put(rows(1, id));
        }
        outbox.put(Hint::SessionsEnded(Uid(2)));
        assert_eq!(outbox.take(), [Hint::SessionsEnded(Uid(2)), rows(1, 9)]);
        assert!(outbox.is_empty() && outbox.take().is_empty());
    }

    #[test]
    fn more_than_can_wait_is_everything() {
        let mut outbox = Outbox::default();
        (0..=MOST as u32).for_each(|uid| outbox.put(rows(uid, 1)));
        outbox.put(rows(1, 2));
        assert_eq!(outbox.take(), [Hint::Everything]);
        outbox.put(rows(1, 3));
        assert_eq!(outbox.take(), [rows(1, 3)]);
    }
}
