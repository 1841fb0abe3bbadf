//! One queue: its lanes and what must outlive a writer. When a writer panics, a new one takes over (S18).
//!
//! Called by `Queues::start`. The state lies behind a lock that the living writer holds for its whole life, so there are
//! never two; orders that wait in the lanes survive a writer's death, the batch in its hand is found again in the store.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::error;

use super::writer::Writer;
use super::{Ask, Options, Parts};
use crate::domain::{Content, Uid};
use crate::store::{AcceptanceId, Recipient};

/// Copies of one acceptance that this queue owes to its receivers.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    pub(super) acceptance: AcceptanceId,
    pub(super) content: Arc<Content>,
    pub(super) to: Vec<Recipient>,
}

/// What a queue is, apart from the writer that works it.
pub(super) struct Shard {
    pub(super) index: usize,
    pub(super) asks: mpsc::Receiver<Ask>,
    pub(super) deliveries: mpsc::Receiver<Delivery>,
    /// The delivery lanes of all queues; emptied when this one has taken its last order.
    pub(super) peers: Vec<mpsc::Sender<Delivery>>,
    /// Copies to be handed to other queues, in acceptance order. No order is taken while it holds any.
    pub(super) outbox: VecDeque<(usize, Delivery)>,
    /// Orders taken from the lane that did not fit into the batch.
    pub(super) waiting: VecDeque<Ask>,
    /// Receivers of the commit under way: their watermarks are read again if its outcome is not learnt.
    pub(super) unsettled: HashSet<Uid>,
}

/// Makes all queues, starts their writers, and returns the lanes for orders.
pub(super) fn start_all(
    parts: &Arc<Parts>,
    options: &Options,
    closing: &CancellationToken,
    tasks: &TaskTracker,
) -> Vec<mpsc::Sender<Ask>> {
    let queues = options.queues.max(1);
    let (peers, inboxes): (Vec<_>, Vec<_>) =
        (0..queues).map(|_| mpsc::channel(options.deliveries.max(1))).unzip();
    let start = |(index, deliveries)| {
        let (lane, asks) = mpsc::channel(options.length.max(1));
        let shard = Shard {
            index,
            asks,
            deliveries,
            peers: peers.clone(),
            outbox: VecDeque::new(),
            waiting: VecDeque::new(),
            unsettled: HashSet::new(),
        };
        tasks.spawn(keep_alive(Arc::new(Mutex::new(shard)), Arc::clone(parts), *options, closing.clone()));
        lane
    };
    inboxes.into_iter().enumerate().map(start).collect()
}

/// Runs a writer, and another one each time it panics, until one returns.
async fn keep_alive(
    shard: Arc<Mutex<Shard>>,
    parts: Arc<Parts>,
    options: Options,
    closing: CancellationToken,
) {
    let mut pause = options.first_pause;
    for takeover in 0_u64.. {
        let (shard, parts, closing) = (Arc::clone(&shard), Arc::clone(&parts), closing.clone());
        let life = tokio::spawn(async move {
            let mut shard = shard.lock_owned().await;
            Writer::new(&parts, options, &closing, &mut shard).run(takeover > 0).await;
        });
        match life.await {
            Err(end) if end.is_panic() => {
                error!(takeover, "a queue's writer panicked; a new one takes over");
                // What made it panic may lie in the store: do not spin on it.
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(options.longest_pause);
            }
            _ => return,
        }
    }
}
