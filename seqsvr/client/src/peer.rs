//! One AllocSvr as a Set of the client sees it: one connection, one stream on it, opened again whenever it ends. Owns
//! the outbox; callers put questions in and wait for the answer of their own.

use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use tokio::sync::{Notify, oneshot};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::transport::Endpoint;
use tonic::{Request, Status, Streaming};

use super::error::AttemptError;
use super::locked;
use super::metrics::{Counters, add};
use super::outbox::{Answered, Bounds, CallRequest, Next, Outbox, TICKS, WaitingCalls};
use super::reply_dispatcher::ReplyDispatcher;
use super::route_cache::RouteCache;
use super::seen::SeenNumbers;
use seqsvr_core::flaws::Flaws;
use seqsvr_core::ids::Granted;
use seqsvr_rpc::security::{Call as CallWith, SecurityError};
use seqsvr_rpc::text;
use seqsvr_rpc::v1::sequence_client::SequenceClient;
use seqsvr_rpc::v1::{StreamReply, StreamRequest};

/// The most calls to one process that wait or are under way, and the most for one number each that share a frame.
const BOUNDS: Bounds = Bounds { calls: 65_536, gather: 256 };

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_millis(500);

/// The pause before a lost connection is made again, doubled with each failure,
const RECONNECT_FIRST: Duration = Duration::from_millis(20);

/// up to this one.
const RECONNECT_LONGEST: Duration = Duration::from_secs(1);

/// Whether it is worth asking, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Health {
    /// Answers come.
    Up,
    /// The first connection is being made: questions wait for it.
    Fresh,
    /// It is connected but answers do not come in time.
    Silent,
    /// There is no connection: questions fail at once.
    Down,
}

/// The state and the settings that all peers of a Set share.
#[derive(Clone)]
pub(super) struct Surroundings {
    pub(super) routes: Arc<RouteCache>,
    pub(super) seen: Arc<Mutex<SeenNumbers>>,
    pub(super) counters: Arc<Counters>,
    /// How long it may take for an answer.
    pub(super) answer: Duration,
    pub(super) call: Arc<CallWith>,
}

pub(super) struct Peer {
    link: Arc<PeerLink>,
    _stop: DropGuard,
}

struct PeerLink {
    addr: Arc<str>,
    outbox: Mutex<Outbox>,
    health: AtomicU8,
    /// Why the last connection ended or was not made.
    ended: Mutex<Arc<str>>,
    /// Somebody asked while there was no connection.
    wanted: Notify,
    around: Surroundings,
}

impl Peer {
    /// Where it is.
    pub(super) fn addr(&self) -> &str {
        &self.link.addr
    }

    /// Begins to connect to `addr`; questions may be asked at once.
    pub(super) fn dial(addr: &str, around: Surroundings) -> Arc<Self> {
        let link = Arc::new(PeerLink {
            addr: addr.into(),
            outbox: Mutex::new(Outbox::new(BOUNDS, Flaws::default())),
            health: AtomicU8::new(Health::Fresh as u8),
            ended: Mutex::new("there is no connection".into()),
            wanted: Notify::new(),
            around,
        });
        let stop = CancellationToken::new();
        let run = Arc::clone(&link).run();
        let (stopped, ending) = (stop.clone(), Arc::clone(&link));
        tokio::spawn(async move {
            stopped.run_until_cancelled(run).await;
            ending.down("it is no longer in the routing table");
        });
        Arc::new(Self { link, _stop: stop.drop_guard() })
    }

    pub(super) fn health(&self) -> Health {
        self.link.health()
    }

    /// Takes one number, in a frame with others.
    pub(super) async fn single(&self, uid: u32) -> Result<Granted, AttemptError> {
        let (answer, answered) = oneshot::channel();
        self.link.put(|outbox| outbox.single(uid, answer))?;
        answered.await.unwrap_or_else(|_| Err(self.link.lost("the connection was closed")))
    }

    /// Asks a question in a frame of its own.
    pub(super) async fn ask(&self, ask: CallRequest) -> Result<Answered, AttemptError> {
        let (answer, answered) = oneshot::channel();
        self.link.put(|outbox| outbox.call(ask, answer))?;
        answered.await.unwrap_or_else(|_| Err(self.link.lost("the connection was closed")))
    }
}

impl PeerLink {
    fn health(&self) -> Health {
        match self.health.load(Ordering::Acquire) {
            0 => Health::Up,
            1 => Health::Fresh,
            2 => Health::Silent,
            _ => Health::Down,
        }
    }

    fn put(
        &self,
        put: impl FnOnce(&mut Outbox) -> Result<Option<std::task::Waker>, AttemptError>,
    ) -> Result<(), AttemptError> {
        let wake = {
            let mut outbox = locked(&self.outbox);
            // Looked at under the lock, so that nothing is put in after the box was emptied for good.
            if self.health() == Health::Down {
                self.wanted.notify_one();
                return Err(self.lost(&locked(&self.ended)));
            }
            put(&mut outbox)?
        };
        if let Some(writer) = wake {
            writer.wake();
        }
        Ok(())
    }

    fn lost(&self, why: &str) -> AttemptError {
        AttemptError::Lost { addr: Arc::clone(&self.addr), why: why.into() }
    }

    /// Gives up everything, and refuses what comes.
    fn down(&self, why: &str) {
        let given_up = {
            let mut outbox = locked(&self.outbox);
            *locked(&self.ended) = why.into();
            self.health.store(Health::Down as u8, Ordering::Release);
            outbox.lose_all()
        };
        self.give_up(given_up, why);
    }

    fn give_up(&self, given_up: Vec<WaitingCalls>, why: &str) {
        let fault = self.lost(why);
        for waiting in given_up {
            add(&self.around.counters.lost, waiting.len());
            waiting.fail(&fault);
        }
    }

    async fn run(self: Arc<Self>) {
        let mut pause = RECONNECT_FIRST;
        loop {
            let ended = match timeout(CONNECT, self.open()).await {
                Ok(Ok((replies, era))) => {
                    pause = RECONNECT_FIRST;
                    self.health.store(Health::Up as u8, Ordering::Release);
                    tracing::debug!(addr = %self.addr, "connected");
                    self.listen(replies, era).await
                }
                Ok(Err(why)) => why,
                Err(_) => format!("it did not answer within {CONNECT:?}"),
            };
            if self.health() != Health::Down {
                tracing::info!(addr = %self.addr, why = ended, "no connection");
            }
            self.down(&ended);
            sleep(RECONNECT_FIRST).await;
            // A process that has just come back is not kept waiting for what it was before.
            let rest = pause.saturating_sub(RECONNECT_FIRST);
            let _ = timeout(rest, self.wanted.notified()).await;
            pause = (pause * 2).min(RECONNECT_LONGEST);
        }
    }

    async fn open(self: &Arc<Self>) -> Result<(Streaming<StreamReply>, u32), String> {
        let endpoint = self.endpoint().map_err(|error| text(&error))?;
        let channel = endpoint.connect().await.map_err(|error| text(&error))?;
        let era = locked(&self.outbox).begin();
        let frames = Frames { link: Arc::clone(self), era };
        let replies = SequenceClient::with_interceptor(channel, self.around.call.pass())
            .stream(Request::new(frames))
            .await
            .map_err(|status| unanswered(&self.addr, &status))?;
        Ok((replies.into_inner(), era))
    }

    fn endpoint(&self) -> Result<Endpoint, SecurityError> {
        // A process that is gone without a word is noticed by its silence.
        let answer = self.around.answer;
        let endpoint = self.around.call.endpoint(&self.addr)?;
        Ok(endpoint.http2_keep_alive_interval(answer).keep_alive_timeout(answer))
    }

    /// Hands out answers until the stream ends, and says why it did.
    async fn listen(&self, mut replies: Streaming<StreamReply>, era: u32) -> String {
        let Surroundings { routes, seen, counters, answer, .. } = &self.around;
        let dispatcher = ReplyDispatcher {
            addr: Arc::clone(&self.addr),
            routes: Arc::clone(routes),
            seen: Arc::clone(seen),
            counters: Arc::clone(counters),
        };
        let mut ticks = interval(*answer / TICKS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let reply = tokio::select! {
                reply = replies.message() => reply,
                _ = ticks.tick() => {
                    self.tick(*answer);
                    continue;
                }
            };
            match reply {
                Ok(Some(reply)) => {
                    let pending = locked(&self.outbox).answered(era, reply.id);
                    if self.health() == Health::Silent {
                        self.health.store(Health::Up as u8, Ordering::Release);
                    }
                    let Some(pending) = pending else { continue };
                    dispatcher.dispatch(pending, reply.answer);
                }
                Ok(None) => return "it closed the connection".to_owned(),
                Err(status) => return status_text(&status),
            }
        }
    }

    fn tick(&self, answer: Duration) {
        let given_up = locked(&self.outbox).tick(TICKS);
        if !given_up.is_empty() {
            self.health.store(Health::Silent as u8, Ordering::Release);
            self.give_up(given_up, &format!("none came within {answer:?}"));
        }
    }
}

/// The questions of one stream, drawn from the outbox when the connection has room: calls that come meanwhile share a frame.
struct Frames {
    link: Arc<PeerLink>,
    era: u32,
}

impl Stream for Frames {
    type Item = StreamRequest;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<StreamRequest>> {
        let Surroundings { routes, seen, counters, .. } = &self.link.around;
        let route = routes.route();
        let mut outbox = locked(&self.link.outbox);
        let next = outbox.next(self.era, context.waker(), route, &locked(seen));
        match next {
            Next::Frame(frame) => {
                add(&counters.frames, 1);
                Poll::Ready(Some(frame))
            }
            Next::Empty => Poll::Pending,
            Next::Ended => Poll::Ready(None),
        }
    }
}

/// Why a first question to `addr` was not answered.
pub(super) fn unanswered(addr: &str, status: &Status) -> String {
    // A server that expects TLS ends a connection in plain text without a word.
    let ended = std::error::Error::source(status).is_some();
    if ended && addr.starts_with("http://") {
        return "the connection was closed; if the server uses TLS, write https:// and set authority"
            .to_owned();
    }
    status_text(status)
}

/// A status as part of a line.
pub(super) fn status_text(status: &Status) -> String {
    format!("{}: {}", status.code(), status.message())
}
