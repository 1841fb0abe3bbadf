//! Starts the writers of all queues. When a writer panics, another one replaces it (S18).
//!
//! Called by `Queues::start`. The state of a queue ([`Shard`]) lies behind a lock that the living writer holds for its whole life, so there
//! are never two; requests that wait in the lanes survive a writer's death, the batch in its hand is found again in the store.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::delayed_wakes::DelayedWakes;
use super::fan_out::FanOut;
use super::first_messages::FirstMessages;
use super::friend_lists::FriendLists;
use super::outage::Outages;
use super::permissions::WritePermissions;
use super::read_counts::Marks;
use super::request::Queued;
use super::shard::{QueueWriter, Shard};
use super::slices::Slices;
use super::{Options, QueueParts, daily_limit};
use crate::log_limit::LogLimit;
use crate::workers::replaced_after_panics;

/// Deliveries from other queues that may wait in one; beyond it those queues accept no more.
const DELIVERIES: usize = 1_024;

/// How often copies are looked for that a commit left owed, where the store may leave some.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The parts that the writers of all queues share.
struct Around {
    parts: Arc<QueueParts>,
    outages: Arc<Outages>,
    permissions: WritePermissions,
    first_messages: FirstMessages,
    fan_out: Arc<FanOut>,
    wakes: Arc<DelayedWakes>,
    marks: Marks,
    options: Options,
    closing: CancellationToken,
}

/// Makes all queues, starts their writers, and returns the lanes for requests.
pub(super) fn start_all(
    parts: &Arc<QueueParts>,
    outages: &Arc<Outages>,
    (fan_out, friends, wakes): (&Arc<FanOut>, &Arc<FriendLists>, &Arc<DelayedWakes>),
    marks: &Marks,
    options: &Options,
    closing: &CancellationToken,
    tasks: &TaskTracker,
) -> Vec<mpsc::Sender<Queued>> {
    let queues = options.queues.max(1);
    let limit = daily_limit("first messages", options.first_messages, parts);
    let around = Arc::new(Around {
        parts: Arc::clone(parts),
        outages: Arc::clone(outages),
        permissions: WritePermissions::new(parts.numbers.come_from_the_store(), Arc::clone(friends)),
        first_messages: FirstMessages::new(limit),
        fan_out: Arc::clone(fan_out),
        wakes: Arc::clone(wakes),
        marks: marks.clone(),
        options: *options,
        closing: closing.clone(),
    });
    let (peers, inboxes): (Vec<_>, Vec<_>) = (0..queues).map(|_| mpsc::channel(DELIVERIES)).unzip();
    let start = |(index, deliveries)| {
        let (lane, requests) = mpsc::channel(options.length.max(1));
        let shard = Shard {
            index,
            requests,
            deliveries,
            peers: peers.clone(),
            outbox: VecDeque::new(),
            slices: Slices::new(options, Instant::now()),
            waiting: VecDeque::new(),
            behind: HashSet::new(),
            owed: 0,
            pass: None,
            ended: outages.subscribe(),
            looks: looks(),
            log: LogLimit::default(),
            unsettled: Vec::new(),
        };
        tasks.spawn(keep_alive(Arc::new(Mutex::new(shard)), Arc::clone(&around)));
        lane
    };
    inboxes.into_iter().enumerate().map(start).collect()
}

fn looks() -> Interval {
    let mut looks = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks
}

/// Runs a writer, and another one each time it panics, until one returns.
async fn keep_alive(shard: Arc<Mutex<Shard>>, around: Arc<Around>) {
    replaced_after_panics("queue", |replaced| {
        let (shard, around) = (Arc::clone(&shard), Arc::clone(&around));
        async move {
            let mut shard = shard.lock_owned().await;
            let Around {
                parts,
                outages,
                permissions,
                first_messages,
                fan_out,
                wakes,
                marks,
                options,
                closing,
            } = &*around;
            let options = *options;
            let writer = QueueWriter {
                parts,
                outages,
                permissions,
                first_messages,
                fan_out,
                wakes,
                marks,
                options,
                closing,
                shard: &mut shard,
            };
            writer.run(replaced > 0).await;
        }
    })
    .await;
}
