//! The inboxes that a commit writes to, and the ids in them: given by the caller, or counted from what the database
//! holds.

use std::collections::HashMap;

use crate::domain::{MessageId, PartitionKey, Uid};
use crate::store::{Outcome, Row, StoreError};

/// An id: so many after the latest one of a head, which only the database knows, or one that the caller gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// The place of the head, from 1; 0: `plus` is the id.
    pub(super) base: i32,
    pub(super) plus: u64,
}

impl Position {
    /// The id, where these were the latest ones of the heads.
    pub(super) fn id(self, last: &[i64]) -> Result<MessageId, StoreError> {
        let base = match usize::try_from(self.base - 1) {
            Ok(at) => last.get(at).map(|last| last.cast_unsigned()),
            Err(_) => Some(0),
        };
        let id = base.and_then(|base| MessageId::new(base + self.plus));
        id.ok_or_else(|| {
            StoreError::corrupt(format!("no id {} after head {} of {last:?}", self.plus, self.base))
        })
    }
}

#[derive(Debug)]
struct InboxHead {
    key: PartitionKey,
    receiver: Uid,
    /// The latest id, as far as the writes have come.
    tail: Position,
    /// The largest latest id in the database with which the ids go on growing and do not come to their end.
    most: u64,
}

/// The heads of one call, in the order in which they are locked.
#[derive(Debug)]
pub(super) struct Heads {
    heads: Vec<InboxHead>,
    places: HashMap<Uid, i32>,
}

/// The heads as arguments.
pub(super) struct HeadColumns<'a> {
    pub(super) keys: Vec<&'a str>,
    pub(super) receivers: Vec<i64>,
    pub(super) bases: Vec<i32>,
    pub(super) plus: Vec<i64>,
    pub(super) most: Vec<i64>,
}

impl Heads {
    /// Those of these users.
    pub(super) fn of(receivers: impl Iterator<Item = Uid>) -> Heads {
        let mut receivers: Vec<Uid> = receivers.collect();
        receivers.sort_unstable();
        receivers.dedup();
        let mut order: Vec<(PartitionKey, Uid)> =
            receivers.into_iter().map(|uid| (uid.partition_key(), uid)).collect();
        order.sort_unstable();
        let (mut heads, mut places) = (Vec::with_capacity(order.len()), HashMap::with_capacity(order.len()));
        for ((key, receiver), place) in order.into_iter().zip(1..) {
            let tail = Position { base: place, plus: 0 };
            heads.push(InboxHead { key, receiver, tail, most: MessageId::MAX.get() });
            places.insert(receiver, place);
        }
        Heads { heads, places }
    }

    /// The place of a user's head, from 1.
    pub(super) fn place(&self, uid: Uid) -> i32 {
        self.places[&uid]
    }

    /// The users and the keys of their heads, in order.
    pub(super) fn receivers(&self) -> impl Iterator<Item = Uid> + '_ {
        self.heads.iter().map(|head| head.receiver)
    }

    fn of_user(&self, uid: Uid) -> &InboxHead {
        &self.heads[(self.place(uid) - 1) as usize]
    }

    fn of_user_mut(&mut self, uid: Uid) -> &mut InboxHead {
        let at = (self.place(uid) - 1) as usize;
        &mut self.heads[at]
    }

    /// The database must not hold the row's id or a larger one before the call.
    pub(super) fn expect_below(&mut self, row: &Row) {
        let head = self.of_user_mut(row.receiver);
        head.most = head.most.min(row.message_id.get().saturating_sub(1));
    }

    /// The id of a row that comes next in its inbox, and the largest latest id with which it can have it. `latest`: the latest one, if
    /// it is known.
    pub(super) fn next(&self, row: &Row, latest: Option<MessageId>) -> Result<(Position, u64), Outcome> {
        let tail = self.of_user(row.receiver).tail;
        let (next, most) = if row.is_unnumbered() {
            let next = Position { plus: tail.plus + 1, ..tail };
            (next, MessageId::MAX.get().checked_sub(next.plus))
        } else {
            let given = row.message_id.get();
            (Position { base: 0, plus: given }, given.checked_sub(tail.plus + 1))
        };
        // A tail that was given does not depend on what the database holds.
        let (most, latest) =
            if tail.base == 0 { (most.map(|_| MessageId::MAX.get()), None) } else { (most, latest) };
        match most {
            Some(most) if latest.is_none_or(|latest| latest.get() <= most) => Ok((next, most)),
            _ => Err(Outcome::Rejected(if row.is_unnumbered() {
                format!("the inbox of user {} has reached the end of its ids", row.receiver)
            } else {
                format!("id {} is not larger than the latest of user {}", row.message_id, row.receiver)
            })),
        }
    }

    /// The user's inbox ends with this id now.
    pub(super) fn take(&mut self, uid: Uid, (next, most): (Position, u64)) {
        let head = self.of_user_mut(uid);
        head.tail = next;
        head.most = head.most.min(most);
    }

    /// All of them.
    pub(super) fn columns(&self) -> HeadColumns<'_> {
        let heads = || self.heads.iter();
        HeadColumns {
            keys: heads().map(|head| head.key.as_str()).collect(),
            receivers: heads().map(|head| head.receiver.0.into()).collect(),
            bases: heads().map(|head| head.tail.base).collect(),
            plus: heads().map(|head| head.tail.plus.cast_signed()).collect(),
            most: heads().map(|head| head.most.cast_signed()).collect(),
        }
    }
}
