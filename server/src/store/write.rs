//! Writes and their outcomes: the arguments and the answers of `MessageStore::commit`.

use std::sync::Arc;

use super::error::StoreError;
use super::{AcceptanceId, Unused};
use crate::domain::{Content, Digest, GroupChange, MembershipEpoch, MessageId, Uid};

/// A copy to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The owner of the inbox.
    pub receiver: Uid,
    /// The new id; larger than every id in that inbox. [`MessageId::ZERO`]: the store assigns the next one in the transaction that
    /// stores the row (S19), and the outcome tells it.
    pub message_id: MessageId,
    /// The membership epoch in which the acceptance counted the receiver in; `MembershipEpoch(0)` outside groups.
    pub epoch: MembershipEpoch,
}

impl Row {
    /// Whether the store is to assign the id.
    pub fn is_unnumbered(&self) -> bool {
        self.message_id == MessageId::ZERO
    }

    /// Its receiver, to whom the copy is owed from now on.
    pub fn recipient(self) -> Recipient {
        Recipient { uid: self.receiver, epoch: self.epoch }
    }

    /// Takes the id after `latest`, the receiver's latest, if the store is to assign it.
    pub(super) fn assign_after(&mut self, latest: MessageId) -> Result<(), Outcome> {
        if self.is_unnumbered() {
            let next = MessageId::new(latest.get() + 1);
            self.message_id = next.ok_or_else(|| {
                Outcome::Rejected(format!(
                    "the inbox of user {} has reached the end of its ids",
                    self.receiver
                ))
            })?;
        }
        Ok(())
    }
}

/// One to whom a copy is still owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipient {
    /// The owner of the inbox.
    pub uid: Uid,
    /// The membership epoch in which the acceptance counted the receiver in; `MembershipEpoch(0)` outside groups.
    pub epoch: MembershipEpoch,
}

impl Recipient {
    /// The copy for it, with this id.
    pub fn row(self, message_id: MessageId) -> Row {
        Row { receiver: self.uid, message_id, epoch: self.epoch }
    }
}

/// The first half of a fan-out (I5): the sender's copy, the idempotency record, the members, in one transaction.
#[derive(Clone, Debug)]
pub struct Accept {
    /// The content of all copies.
    pub content: Arc<Content>,
    /// The digest of the request: it tells a repetition from a misuse of the same `client_id` (I4).
    pub digest: Digest,
    /// Copies of this transaction. The one that answers the sender comes first: the sender's own, or the only one of a post.
    pub rows: Vec<Row>,
    /// Copies that are written later: by other queues, in slices, once there are numbers, or after the earlier messages of a joiner.
    pub rest: Vec<Recipient>,
    /// The group's new state, where the content is a `membership`.
    pub change: Option<GroupChange>,
    /// The version of the group that the recipients are taken from, or that `change` starts from; `None` outside groups.
    pub group_version: Option<u64>,
    /// That the store has no record under the content's key, if it was asked. Without it the commit looks itself.
    pub unused: Option<Unused>,
}

impl Accept {
    /// Why an acceptance whose [first copy](Self::begins_well) is a wrong one is rejected.
    pub(super) const FIRST_COPY: &str = "the sender's own copy must come first";

    /// Whether its first copy is the sender's own, or the only one that there is to be.
    pub(super) fn begins_well(&self) -> bool {
        self.rows.first().is_some_and(|first| {
            first.receiver == self.content.sender || (self.rows.len() == 1 && self.rest.is_empty())
        })
    }
}

/// A later part of a fan-out: copies for receivers of one queue.
#[derive(Clone, Debug)]
pub struct Deliver {
    /// Of which acceptance.
    pub acceptance: AcceptanceId,
    /// Its content.
    pub content: Arc<Content>,
    /// The copies.
    pub rows: Vec<Row>,
    /// Rows that the receiver gets before the copy, if the copy is stored. Only where there is one copy.
    pub earlier: Vec<Earlier>,
}

/// A row that comes before a delivered copy, in the same inbox: something that was said before its receiver was there.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// What.
    pub content: Arc<Content>,
    /// Its id there, given by the caller: larger than every id in that inbox, smaller than that of the copy.
    pub message_id: MessageId,
}

impl Deliver {
    /// The ids of what comes before the copy, with the receiver.
    pub(super) fn earlier_rows(&self) -> impl Iterator<Item = Row> + '_ {
        let copy = self.rows.first().copied();
        self.earlier.iter().filter_map(move |earlier| Some(Row { message_id: earlier.message_id, ..copy? }))
    }

    /// Why a delivery is rejected whose earlier rows have no ids, or no copy to come before.
    pub(super) const EARLIER: &str = "what comes before a copy has ids, of which the copy's is the largest";

    /// Whether what comes before the copy has growing ids, up to that of the only copy.
    pub(super) fn is_in_order(&self) -> bool {
        if self.earlier.is_empty() {
            return true;
        }
        let ids =
            self.earlier_rows().map(|row| row.message_id).chain(self.rows.iter().map(|row| row.message_id));
        let ids: Vec<MessageId> = ids.collect();
        self.rows.len() == 1 && ids[0] > MessageId::ZERO && ids.is_sorted_by(|a, b| a < b)
    }
}

/// One thing to make durable. Each is done whole or not at all.
#[derive(Clone, Debug)]
pub enum Write {
    /// A new acceptance.
    Accept(Accept),
    /// More copies of an earlier one.
    Deliver(Deliver),
}

impl Write {
    /// Its copies.
    pub fn rows(&self) -> &[Row] {
        match self {
            Write::Accept(accept) => &accept.rows,
            Write::Deliver(deliver) => &deliver.rows,
        }
    }

    /// Rows that receivers get before its copies, if these are stored.
    pub(super) fn earlier(&self) -> impl Iterator<Item = (Uid, MessageId, Arc<Content>)> + '_ {
        let deliver = match self {
            Write::Deliver(deliver) => Some(deliver),
            Write::Accept(_) => None,
        };
        deliver.into_iter().flat_map(|deliver| {
            let contents = deliver.earlier.iter().map(|earlier| Arc::clone(&earlier.content));
            deliver.earlier_rows().zip(contents).map(|(row, content)| (row.receiver, row.message_id, content))
        })
    }

    /// Whether something comes before its copy, with ids that go with that of the copy.
    pub fn has_earlier(&self) -> bool {
        matches!(self, Write::Deliver(deliver) if !deliver.earlier.is_empty())
    }

    /// Its copies, to be numbered again.
    pub fn rows_mut(&mut self) -> &mut [Row] {
        match self {
            Write::Accept(accept) => &mut accept.rows,
            Write::Deliver(deliver) => &mut deliver.rows,
        }
    }
}

/// The outcome of one copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyOutcome {
    /// It is a row now.
    Stored,
    /// It had been a row before, under another id; the new number is a gap.
    Already,
    /// The receiver's membership epoch had ended with an earlier row (I13): nothing is owed any more.
    Void,
}

/// The outcome of one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An [`Accept`], durable now; its rows, in their order, and what became of them. The first is the sender's own.
    Accepted(AcceptanceId, Vec<(Row, CopyOutcome)>),
    /// A [`Deliver`], durable now; its rows, in their order, and what became of them.
    Delivered(Vec<(Row, CopyOutcome)>),
    /// The group had changed since the write was decided, or the sender's own membership epoch had ended; decide again.
    GroupChanged,
    /// The database refuses this write for good; the text is for the log, never for a stranger.
    Rejected(String),
}

impl Outcome {
    /// The copies of the write and what became of them; none where nothing was stored.
    pub fn copies(&self) -> &[(Row, CopyOutcome)] {
        match self {
            Outcome::Accepted(_, copies) | Outcome::Delivered(copies) => copies,
            Outcome::GroupChanged | Outcome::Rejected(_) => &[],
        }
    }
}

/// A commit did not return its outcomes.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CommitError {
    /// Nothing of it is stored, and nothing will be.
    #[error("nothing was stored: {0}")]
    Refused(StoreError),
    /// Nothing of it is stored: ids are not larger than the latest in their inboxes, so the sequence is behind the rows.
    #[error("nothing was stored: the sequence is behind the rows of {} users", .0.latest.len())]
    Behind(Box<Behind>),
    /// Nothing of it is stored: another process has changed what these writes (places in the call, at least one) were decided on.
    /// Decide again, on facts read anew.
    #[error("nothing was stored: the facts behind {} of the writes have changed", .0.len())]
    Stale(Vec<usize>),
    /// It may or may not be stored. The store has reopened; look before you write again.
    #[error("the outcome of a commit is unknown: {0}")]
    Unknown(StoreError),
}

/// A commit whose ids came from a sequence that is behind the rows.
#[derive(Clone, Debug)]
pub struct Behind {
    /// The writes of the commit, which need new ids.
    pub writes: Vec<Write>,
    /// The latest id of each inbox that the new ids must come after.
    pub latest: Vec<(Uid, MessageId)>,
}
