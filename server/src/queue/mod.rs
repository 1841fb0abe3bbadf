//! Queues: one writer for each, so that the ids of a receiver become visible in order (S16, I1).
//!
//! Every user belongs to one queue, by uid. A request goes through its sender's queue. Where seqsvr gives the ids, copies for receivers
//! of other queues go on to those, so that one writer writes to an inbox. Where the store assigns them, the writer of the sender's queue
//! writes all copies, and the store's lock of each inbox keeps the order. [`Queues`] is the bounded way in, called by `app`.
//!
//! Inside: `writer` is the loop (decide, number, commit, answer) over a `batch` of `request`s; `facts` reads the facts on which `plan`
//! decides without I/O; `numbering` asks for the numbers, and `outage` knows where there are none; `commit` stores and shows the rows;
//! `fan_out` bounds the rows that one account has stored with others, `quota` all rows that it has stored, `first_messages` the strangers
//! to whom it writes, and `daily` counts such things; `slices` writes rows for thousands bit by bit, and `delayed_wakes` wakes the
//! receivers together; `joining` writes the earlier messages for a joiner of a group, and `earlier` reads them; `read_counts` tells
//! authors how many have read; `pipeline` keeps the order of refused requests; `recovery` resumes pending copies; `shard` is the state of
//! a queue, and `keep_alive` replaces a writer that panicked.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::domain::{Clock, Uid};
use crate::notify::Notifier;
use crate::seq::Numbers;
use crate::store::{Directory, MessageStore, SharedRates};

mod batch;
mod commit;
mod daily;
mod delayed_wakes;
mod earlier;
mod error;
mod facts;
mod fan_out;
mod first_messages;
mod friend_lists;
mod joining;
mod keep_alive;
mod numbering;
mod outage;
mod permissions;
mod pipeline;
mod plan;
mod quota;
mod read_counts;
mod recovery;
mod request;
mod shard;
mod slices;
mod watermark;
mod writer;

use delayed_wakes::DelayedWakes;
use fan_out::FanOut;
use outage::Outages;
use pipeline::PipelinePlace;
use quota::{CHUNKS, Quota};
use read_counts::{Counter, Marks};
use request::{Queued, RequestAnswer};

pub use daily::{Counted, DailyLimit, Refused};
pub use error::SendError;
pub use friend_lists::{FriendList, FriendLists};
pub use pipeline::{Pipeline, RESEND_WAIT};
pub use request::{Amend, GroupAction, OutgoingMessage, Post, Publish, Request, SendAck};
pub use watermark::{Watermark, Watermarks};

/// How long a batch waits for its numbers. Copies whose numbers do not come stay owed, senders are refused.
pub const NUMBER_WAIT: Duration = Duration::from_millis(500);

/// The first pause after a failure; doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How many, how long, how much at once. Every field is a limit with its default (I9).
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Queues; 1 writes every fan-out in one transaction, more keep a failure among fewer receivers. Default 1.
    pub queues: usize,
    /// Requests that may wait in one queue; beyond it senders are refused at once. Default 4,096.
    pub length: usize,
    /// Requests, and deliveries, of one commit. Default 512.
    pub batch: usize,
    /// Rows after which a batch takes no further request. Default 8,192.
    pub batch_rows: usize,
    /// Copies of one moment that are written at once while others write, too. Default 256.
    pub slice_rows: usize,
    /// Bytes of the messages that may wait for the numbers of their receivers, over all queues; beyond it requests that would add to
    /// them are refused. Default 64 MiB.
    pub owed_bytes: usize,
    /// Characters of a text. Default 8,000.
    pub text_characters: usize,
    /// Members of a group. Default 500.
    pub members: usize,
    /// Bytes of rows that one account has stored with groups and friends in a second, in the long run; 0 lifts the limit. Default 0.
    pub fan_out_bytes: u64,
    /// KiB of rows that one account has stored in a day, with everybody; 0 lifts the limit. Default 0.
    pub stored_kib_a_day: u32,
    /// People to whom one account writes for the first time in a day, who are no friends of it; 0 lifts the limit. Default 0.
    pub first_messages: u32,
    /// Messages that somebody gets who joins a group whose history is visible; 0: none. Default 100.
    pub history_messages: usize,
    /// Bytes of all that such a one gets. Default 256 KiB.
    pub history_bytes: usize,
    /// Starred messages of one account. Default 1,000.
    pub stars: usize,
    /// For how long a message may be edited. Default one day.
    pub edit: Duration,
    /// For how long a message may be taken back. Default one day.
    pub recall: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            queues: 1,
            length: 4_096,
            batch: 512,
            batch_rows: 8_192,
            slice_rows: 256,
            owed_bytes: 64 << 20,
            text_characters: 8_000,
            members: 500,
            fan_out_bytes: 0,
            stored_kib_a_day: 0,
            first_messages: 0,
            history_messages: 100,
            history_bytes: 256 << 10,
            stars: 1_000,
            edit: Duration::from_secs(86_400),
            recall: Duration::from_secs(86_400),
        }
    }
}

/// The parts that queues work with: numbers, rows, notices, and time and chance as arguments (I10).
#[derive(Clone)]
pub struct QueueParts {
    /// For step 2 of a write (`writer`).
    pub numbers: Numbers,
    /// For steps 1 and 3.
    pub store: Arc<dyn MessageStore>,
    /// The accounts that exist.
    pub directory: Arc<Directory>,
    /// For the end of step 3.
    pub notifier: Arc<dyn Notifier>,
    /// Latest committed ids.
    pub watermarks: Watermarks,
    /// Wall-clock time for `sent_at`.
    pub clock: Clock,
    /// Names for rows that the server makes itself.
    pub new_uuid: Arc<dyn Fn() -> Uuid + Send + Sync>,
    /// Rates that all servers of one database share; `None` where this one is alone.
    pub rates: Option<Arc<dyn SharedRates>>,
}

/// The way into the queues; a cheap clone.
#[derive(Clone)]
pub struct Queues {
    lanes: Arc<[mpsc::Sender<Queued>]>,
    outages: Arc<Outages>,
    fan_out: Arc<FanOut>,
    friends: Arc<FriendLists>,
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl Queues {
    /// Starts the queues. Each first writes what earlier runs still owe to its receivers, then takes requests.
    pub fn start(parts: QueueParts, options: Options) -> Queues {
        let (closing, tasks) = (CancellationToken::new(), TaskTracker::new());
        let (parts, outages) = (Arc::new(parts), Arc::new(Outages::new()));
        let chunks = daily_limit("stored chunks", CHUNKS, &parts);
        let quota = Quota::new(options.stored_kib_a_day, chunks);
        let fan_out = Arc::new(FanOut::new(options.fan_out_bytes, quota));
        let friends = Arc::new(FriendLists::new(parts.numbers.come_from_the_store()));
        let (marks, moved) = Marks::new();
        let wakes = Arc::new(DelayedWakes::new(Arc::clone(&parts.notifier)));
        let shared = (&fan_out, &friends, &wakes);
        let lanes = keep_alive::start_all(&parts, &outages, shared, &marks, &options, &closing, &tasks);
        let (watched, numbers, closed) = (Arc::clone(&outages), parts.numbers.clone(), closing.clone());
        tasks.spawn(async move { watched.watch(&numbers, &closed).await });
        let closed = closing.clone();
        tasks.spawn(async move { wakes.run(delayed_wakes::PAUSE, &closed).await });
        let queues = Queues { lanes: lanes.into(), outages, fan_out, friends, closing, tasks };
        let counter = Counter::new(&parts, queues.clone());
        queues.tasks.spawn(counter.run(moved, queues.closing.clone()));
        queues.tasks.close();
        queues
    }

    /// The lists of friends that were asked for lately; what is written makes them forget.
    pub fn friends(&self) -> &FriendLists {
        &self.friends
    }

    /// Puts a request into its sender's queue (a post: its receiver's), at once: requests of one sender that go through one queue are
    /// accepted in the order of these calls (I12). The answer comes when it is durable or refused; dropping the future does not take it back.
    pub fn submit(
        &self,
        who: Uid,
        request: Request,
    ) -> impl Future<Output = Result<SendAck, SendError>> + Send + 'static {
        self.put(who, request, Ok(None))
    }

    /// The sends of one connection or batch, which keep their order also when one of them is refused for the moment.
    pub fn pipeline(&self) -> Pipeline {
        Pipeline::default()
    }

    /// Like [`submit`](Self::submit), in its place of `pipeline`.
    pub fn submit_in(
        &self,
        pipeline: &Pipeline,
        who: Uid,
        request: Request,
    ) -> impl Future<Output = Result<SendAck, SendError>> + Send + 'static {
        let place = request.client_id().map(|client_id| pipeline.enter(client_id)).transpose();
        self.put(who, request, place)
    }

    fn put(
        &self,
        who: Uid,
        request: Request,
        place: Result<Option<PipelinePlace>, SendError>,
    ) -> impl Future<Output = RequestAnswer> + Send + 'static {
        let (reply, answer) = oneshot::channel();
        let lane = &self.lanes[queue_of(Queued::goes_through(who, &request), self.lanes.len())];
        let put = place.and_then(|place| {
            let may = self.fan_out.check(who, &request, Instant::now());
            let queued = Queued { who, request, place, reply: Some(reply) };
            // Dropped here and now, a refused request closes its pipeline to what comes next.
            may?;
            lane.try_send(queued).map_err(|full| match full {
                mpsc::error::TrySendError::Full(_) => SendError::Busy,
                mpsc::error::TrySendError::Closed(_) => SendError::Stopping,
            })
        });
        async move {
            put?;
            // The writer died with the request in hand: it may be stored or not.
            answer.await.unwrap_or(Err(SendError::Unavailable))
        }
    }

    /// Requests waiting in each queue.
    pub fn depths(&self) -> impl Iterator<Item = usize> + '_ {
        self.lanes.iter().map(|lane| lane.max_capacity() - lane.capacity())
    }

    /// Sections of the uid space whose numbers cannot be had now.
    pub fn sections_out(&self) -> usize {
        self.outages.out().len()
    }

    /// Bytes of the messages that wait for the numbers of their receivers.
    pub fn owed_bytes(&self) -> usize {
        self.outages.owed()
    }

    /// Takes no more requests and returns when everything accepted is written, also the copies for others.
    pub async fn stop(&self) {
        self.closing.cancel();
        self.tasks.wait().await;
    }
}

/// So many of `what` in a day for each account, counted as the queues count.
fn daily_limit(what: &'static str, most: u32, parts: &QueueParts) -> DailyLimit {
    DailyLimit::new(what, most, parts.clock.clone(), parts.rates.clone())
}

/// The queue of a user, the same for every row of the inbox.
fn queue_of(uid: Uid, queues: usize) -> usize {
    uid.0 as usize % queues
}
