//! One queue: its lanes and what must outlive a writer, and the writer that works it.
//!
//! `keep_alive` makes it and runs its writers. Their loop is in `writer`; the steps are in `numbering`, `commit`, `joining` and `recovery`.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::time::Interval;
use tokio_util::sync::CancellationToken;

use super::delayed_wakes::DelayedWakes;
use super::fan_out::FanOut;
use super::first_messages::FirstMessages;
use super::outage::Outages;
use super::permissions::WritePermissions;
use super::read_counts::Marks;
use super::request::Queued;
use super::slices::{Delivery, Slices};
use super::{Options, QueueParts, queue_of};
use crate::domain::Uid;
use crate::log_limit::LogLimit;
use crate::store::PendingKey;

/// The state of a queue, apart from the writer that works it.
pub(super) struct Shard {
    pub(super) index: usize,
    pub(super) requests: mpsc::Receiver<Queued>,
    pub(super) deliveries: mpsc::Receiver<Delivery>,
    /// The delivery lanes of all queues; emptied when this one has taken its last request.
    pub(super) peers: Vec<mpsc::Sender<Delivery>>,
    /// Copies to be handed to other queues, in acceptance order. No request is taken while it holds any.
    pub(super) outbox: VecDeque<(usize, Delivery)>,
    /// Copies to be written later to receivers of this queue.
    pub(super) slices: Slices,
    /// Requests taken from the lane that did not fit into the batch, or that wait for slices of their sender.
    pub(super) waiting: VecDeque<Queued>,
    /// Receivers to whom copies are owed for want of numbers; they get nothing more before those.
    pub(super) behind: HashSet<Uid>,
    /// The weight of the acceptances that owe them.
    pub(super) owed: usize,
    /// The walk that catches them up, if one is under way.
    pub(super) pass: Option<Pass>,
    /// Sections that were out are in service again.
    pub(super) ended: watch::Receiver<()>,
    /// When to look for copies that a commit left owed.
    pub(super) looks: Interval,
    /// For the lines that every refused batch would repeat.
    pub(super) log: LogLimit,
    /// Receivers of the commit under way: their watermarks are read again if its outcome is not learnt.
    pub(super) unsettled: Vec<Uid>,
}

/// A walk over all that is owed, in the order of acceptance.
#[derive(Debug, Default)]
pub(super) struct Pass {
    /// The last acceptance that was looked at.
    pub(super) after: PendingKey,
    /// Receivers whom it had to leave behind.
    pub(super) behind: HashSet<Uid>,
    /// The weight of the acceptances that wait for them.
    pub(super) owed: usize,
    pub(super) resumed: usize,
}

/// One writer at work on its queue.
pub(super) struct QueueWriter<'a> {
    pub(super) parts: &'a Arc<QueueParts>,
    pub(super) outages: &'a Outages,
    pub(super) options: Options,
    pub(super) closing: &'a CancellationToken,
    pub(super) permissions: &'a WritePermissions,
    pub(super) first_messages: &'a FirstMessages,
    pub(super) fan_out: &'a FanOut,
    pub(super) wakes: &'a DelayedWakes,
    pub(super) marks: &'a Marks,
    pub(super) shard: &'a mut Shard,
}

impl QueueWriter<'_> {
    pub(super) fn queue_of(&self, uid: Uid) -> usize {
        queue_of(uid, self.options.queues.max(1))
    }

    pub(super) fn is_mine(&self, uid: Uid) -> bool {
        self.queue_of(uid) == self.shard.index
    }

    /// Whether this queue writes new copies for `uid`. Where the store numbers the rows, every queue writes to everybody.
    pub(super) fn writes_to(&self, uid: Uid) -> bool {
        self.parts.numbers.come_from_the_store() || self.is_mine(uid)
    }
}
