//! A simulated caller's stream to one AllocSvr. The client's own code pairs answers with questions, checks and remembers the numbers,
//! and keeps the table that came along; only the connection is simulated. Its frames may be late, lost and doubled, unlike a real
//! connection's, and the stream may be ended and begun anew at any moment.

use std::sync::{Arc, Mutex};
use std::task::Waker;

use tokio::sync::oneshot;

use super::super::cx::Cx;
use super::super::message::{Packet, Reply, Tick};
use super::super::{MILLI, Place};
use seqsvr_client::error::AttemptError;
use seqsvr_client::metrics::Counters;
use seqsvr_client::outbox::{self, Bounds, CallRequest, Next, Outbox, TICKS};
use seqsvr_client::reply_dispatcher::ReplyDispatcher;
use seqsvr_client::route_cache::RouteCache;
use seqsvr_client::seen::SeenNumbers;
use seqsvr_core::flaws::Flaws;
use seqsvr_core::ids::Granted;
use seqsvr_core::routing::Table;
use seqsvr_rpc::v1::stream_reply::Answer;
use seqsvr_rpc::v1::{self, advance_reply, current_reply, next_each_reply, next_reply};

/// Small, so that frames are full and calls are turned away now and then.
const BOUNDS: Bounds = Bounds { calls: 32, gather: 3 };

/// Uids that are remembered; others are forgotten now and then.
const REMEMBERED: usize = 8;

/// State that all streams of one life of a caller share.
pub(super) struct StreamsShared {
    pub(super) routes: Arc<RouteCache>,
    seen: Arc<Mutex<SeenNumbers>>,
    counters: Arc<Counters>,
    flaws: Flaws,
}

impl StreamsShared {
    /// Of a Set of `uids`.
    pub(super) fn new(uids: u32, flaws: Flaws) -> Self {
        let counters = Arc::new(Counters::default());
        let routes = RouteCache::new(0, 0..=uids - 1, Arc::clone(&counters), None);
        Self {
            routes: Arc::new(routes),
            seen: Arc::new(Mutex::new(SeenNumbers::new(REMEMBERED))),
            counters,
            flaws,
        }
    }
}

/// The receiver of a call's answer.
pub(super) enum Waits {
    Single(oneshot::Receiver<Result<Granted, AttemptError>>),
    Call(oneshot::Receiver<Result<outbox::Answered, AttemptError>>),
}

impl Waits {
    /// The answer, once it is there.
    pub(super) fn look(&mut self) -> Option<Result<outbox::Answered, AttemptError>> {
        match self {
            Self::Single(waiting) => Some(waiting.try_recv().ok()?.map(outbox::Answered::Granted)),
            Self::Call(waiting) => waiting.try_recv().ok(),
        }
    }
}

/// See the module.
pub(super) struct Connection {
    to: Place,
    outbox: Outbox,
    dispatcher: ReplyDispatcher,
    seen: Arc<Mutex<SeenNumbers>>,
    /// The streams so far, each with its number in the outbox; the last one is the current.
    streams: Vec<(u64, u32)>,
}

impl Connection {
    /// The first stream of this life, under a number that no other has.
    pub(super) fn open(cx: &mut Cx<'_>, to: Place, stream: u64, shared: &StreamsShared) -> Self {
        let mut outbox = Outbox::new(BOUNDS, shared.flaws);
        let streams = vec![(stream, outbox.begin())];
        let dispatcher = ReplyDispatcher {
            addr: format!("place {to}").into(),
            routes: Arc::clone(&shared.routes),
            seen: Arc::clone(&shared.seen),
            counters: Arc::clone(&shared.counters),
        };
        cx.tick_in(0..MILLI, Tick::Write(to));
        Self { to, outbox, dispatcher, seen: Arc::clone(&shared.seen), streams }
    }

    /// Puts a question in, as the real client does: one for a single number may share its frame.
    pub(super) fn ask(&mut self, cx: &mut Cx<'_>, ask: CallRequest) -> Result<Waits, AttemptError> {
        let (waker, waits) = match ask {
            CallRequest::Next { uid, count: 1 } => {
                let (answer, waiting) = oneshot::channel();
                (self.outbox.single(uid, answer)?, Waits::Single(waiting))
            }
            ask => {
                let (answer, waiting) = oneshot::channel();
                (self.outbox.call(ask, answer)?, Waits::Call(waiting))
            }
        };
        if waker.is_some() {
            cx.tick_in(0..2 * MILLI, Tick::Write(self.to));
        }
        Ok(waits)
    }

    /// The connection takes what there is.
    pub(super) fn write(&mut self, cx: &mut Cx<'_>) {
        let (stream, era) = self.streams[self.streams.len() - 1];
        let seen = self.seen.lock().expect("one thread");
        while let Next::Frame(frame) =
            self.outbox.next(era, Waker::noop(), self.dispatcher.routes.route(), &seen)
        {
            cx.send(self.to, Packet::Ask { stream, frame });
        }
    }

    /// Whether a stream is its own, the current one or an earlier one; one of an earlier life is nobody's.
    pub(super) fn has(&self, stream: u64) -> bool {
        self.streams.iter().any(|(number, _)| *number == stream)
    }

    /// An answer came on one of its streams.
    pub(super) fn on_reply(&mut self, stream: u64, id: u64, reply: Reply, table: Option<Arc<Table>>) {
        let era = self.streams.iter().find(|(number, _)| *number == stream).map(|(_, era)| *era);
        if let Some(pending) = era.and_then(|era| self.outbox.answered(era, id)) {
            self.dispatcher.dispatch(pending, Some(wire_reply(reply, table)));
        }
    }

    /// Gives up what is too old.
    pub(super) fn age(&mut self) {
        for waiting in self.outbox.tick(TICKS) {
            waiting.fail(&AttemptError::Lost {
                addr: Arc::clone(&self.dispatcher.addr),
                why: "none came in time".into(),
            });
        }
    }

    /// The connection ended, and another one is made.
    pub(super) fn redial(&mut self, cx: &mut Cx<'_>, stream: u64) {
        for waiting in self.outbox.lose_all() {
            waiting.fail(&AttemptError::Lost {
                addr: Arc::clone(&self.dispatcher.addr),
                why: "it was closed".into(),
            });
        }
        let (ended, _) = self.streams[self.streams.len() - 1];
        cx.send(self.to, Packet::Ended { stream: ended });
        self.streams.push((stream, self.outbox.begin()));
        cx.tick_in(0..MILLI, Tick::Write(self.to));
    }
}

/// An AllocSvr's reply, as a stream carries it.
fn wire_reply(reply: Reply, table: Option<Arc<Table>>) -> Answer {
    let table = table.as_deref().map(v1::Table::from);
    let next = |outcome| Answer::Next(v1::NextReply { outcome: Some(outcome), table: table.clone() });
    match reply {
        Reply::Granted { first, last, epoch } => {
            next(next_reply::Outcome::Granted(v1::Granted { first, last, epoch: Some(epoch.into()) }))
        }
        Reply::Each(each) => {
            let run = |one: &Granted| v1::EpochRun { count: 1, epoch: Some(one.epoch.into()) };
            let epochs = each.iter().map(run).collect();
            let numbers = each.iter().map(|one| one.last).collect();
            let outcome = next_each_reply::Outcome::Granted(v1::GrantedEach { numbers, epochs });
            Answer::NextEach(v1::NextEachReply { outcome: Some(outcome), table })
        }
        Reply::Bounds(numbers) => {
            let outcome = current_reply::Outcome::UpperBounds(v1::UpperBounds { numbers });
            Answer::Current(v1::CurrentReply { outcome: Some(outcome), table })
        }
        Reply::Advanced => {
            let outcome = Some(advance_reply::Outcome::Advanced(v1::Advanced {}));
            Answer::Advance(v1::AdvanceReply { outcome, table })
        }
        Reply::NotOwner => next(next_reply::Outcome::NotOwner(v1::NotOwner {})),
        Reply::Unavailable => {
            let later = v1::Unavailable { reason: "not now".to_owned(), retry_after_ms: 0 };
            next(next_reply::Outcome::Unavailable(later))
        }
    }
}
