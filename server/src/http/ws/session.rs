//! One connection: heartbeats in, rows out, sends and their answers, by the "Sync rules" of PROTOCOL.md.
//!
//! Owns the connection's cursor. At most one `entries` frame is unacknowledged; the next heartbeat acknowledges it
//! and sets the cursor, also downwards. A connection that has not heartbeat yet gets nothing unasked.

use std::ops::ControlFlow::{self, Break, Continue};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, Sink, SinkExt as _, Stream, StreamExt as _};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};

use super::end::{BROKEN, End, FLOOD, LOGGED_OUT, NOT_UTF8, RESTART, SILENCE, TOO_LARGE};
use super::frame::{self, BadFrame, ClientFrame, Subject};
use super::meter::Flood;
use super::pace::ReadPace;
use crate::app::messages::Request;
use crate::app::{Connected, ConnectedDevice, LiveSession, Pipeline, Wake, Watermark};
use crate::domain::{HistoryId, MessageId, Uid};
use crate::http::budget::Charge;
use crate::http::error::Problem;
use crate::http::limits::ClientNetwork;
use crate::http::state::HttpState;

mod delivery;
mod ephemeral;

/// Frames taken in one go before answers and notices get their turn.
const IN_ONE_GO: usize = 64;

/// Sends that wait for their answer; then reading pauses.
const SENDS_IN_FLIGHT: usize = 64;

/// How long the other side may take to close after us.
pub(super) const FAREWELL: Duration = Duration::from_secs(2);

type FrameAnswer = Pin<Box<dyn Future<Output = Option<Utf8Bytes>> + Send>>;

/// The state of one connection.
pub(super) struct SocketSession {
    state: HttpState,
    live: Arc<LiveSession>,
    watermark: Watermark,
    wake: Wake,
    /// Typing and presence, which are told and never stored.
    connected: Connected,
    /// Tells that the device needs no push, where those are sent.
    device: Option<ConnectedDevice>,
    /// The look-up, under way, of the watched users that are online.
    news: Option<FrameAnswer>,
    history: HistoryId,
    /// The latest id that the device has; not known before its first heartbeat.
    cursor: Option<MessageId>,
    /// An `entries` frame waits to be acknowledged.
    unacknowledged: bool,
    /// The order of the sends.
    pipeline: Pipeline,
    /// Sends and read markers on their way.
    answers: FuturesUnordered<FrameAnswer>,
    /// Each `read` and `seen` among them holds a copy.
    marks: Arc<()>,
    /// The last `alive` frame: the same again for as long as nothing happens.
    alive: (MessageId, Utf8Bytes),
    heard: Instant,
    pace: ReadPace,
    /// The network whose share of the memory for rows this connection uses.
    network: ClientNetwork,
    /// The rows that were put on their way and may not have left.
    leaving: Option<Charge>,
}

impl SocketSession {
    /// A connection of `live`, whose inbox stands at `watermark`, from `network`.
    pub(super) fn new(
        state: HttpState,
        live: Arc<LiveSession>,
        watermark: Watermark,
        network: ClientNetwork,
    ) -> SocketSession {
        let heard = Instant::now();
        let limits = &state.settings.limits;
        let history = state.sync.history();
        SocketSession {
            wake: state.sync.watch(live.uid),
            connected: state.ephemerals.join(live.uid),
            device: state.push.connected(&live),
            news: None,
            cursor: None,
            unacknowledged: false,
            pipeline: state.messages.pipeline(),
            answers: FuturesUnordered::new(),
            marks: Arc::new(()),
            alive: (watermark.latest(), frame::alive(watermark.latest(), history)),
            heard,
            pace: ReadPace::new(limits, heard),
            network,
            leaving: None,
            state,
            live,
            watermark,
            history,
        }
    }

    fn uid(&self) -> Uid {
        self.live.uid
    }
}

/// A socket of frames: the real one, or one half of a channel in tests.
pub(super) trait Socket:
    Stream<Item = tungstenite::Result<Message>> + Sink<Message, Error = tungstenite::Error> + Unpin + Send
{
}

impl<S> Socket for S where
    S: Stream<Item = tungstenite::Result<Message>> + Sink<Message, Error = tungstenite::Error> + Unpin + Send
{
}

/// Serves one connection to its end, and returns the kind of end.
///
/// An idle connection keeps this future in memory, so it is kept small: the socket is borrowed and the session boxed (arguments by value
/// would lie in it twice), and work that happens only when a frame comes is boxed for as long as it lasts.
pub(super) async fn run(socket: &mut impl Socket, mut session: Box<SocketSession>) -> End {
    let connections = session.state.metrics.connections.clone();
    connections.inc();
    let end = match session.serve(socket).await {
        Break(end) => end,
        Continue(()) => End::Gone,
    };
    connections.dec();
    tracing::debug!(uid = session.uid().0, ?end, "a socket ended");
    // The farewell may take its time, and holds nothing but the socket.
    drop(session);
    if let End::Close(code, reason) = end {
        let reported = match end {
            FLOOD => Some(Problem::flood()),
            _ => None,
        };
        let close = Message::Close(Some(CloseFrame { code: code.into(), reason: reason.into() }));
        let goodbye = async {
            if let Some(problem) = reported {
                let _ = socket.feed(Message::Text(frame::error(&problem, None))).await;
            }
            if socket.send(close).await.is_ok() {
                while let Some(Ok(_)) = socket.next().await {}
            }
        };
        let _ = timeout(FAREWELL, goodbye).await;
    }
    end
}

type SessionStep = ControlFlow<End>;

/// One turn of the loop. One who does not read what is said to them for so long is gone.
fn in_time(
    patience: Duration,
    turn: impl Future<Output = SessionStep> + Send,
) -> impl Future<Output = SessionStep> + Send {
    let turn = Box::pin(timeout(patience, turn));
    async move { turn.await.unwrap_or(Break(End::Gone)) }
}

impl SocketSession {
    async fn serve(&mut self, socket: &mut impl Socket) -> SessionStep {
        let (live, stopping) = (Arc::clone(&self.live), self.state.sockets.stopping.clone());
        let (mut ended, mut stopping) = (pin!(live.ended()), pin!(stopping.cancelled()));
        let patience = self.state.settings.server.heartbeat() * 3;
        let mut silence = pin!(sleep_until(self.heard + patience));
        let (seconds, keep) =
            (self.state.settings.server.heartbeat_seconds, self.state.settings.retention.keep_seconds());
        let welcome = frame::welcome(self.uid(), self.watermark.latest(), self.history, seconds, keep);
        self.say(socket, welcome).await?;
        loop {
            self.flush(socket, patience).await?;
            let may_deliver = self.cursor.is_some() && !self.unacknowledged;
            tokio::select! {
                biased;
                () = &mut ended => return Break(LOGGED_OUT),
                () = &mut stopping => return in_time(patience, self.finish(socket)).await,
                Some(answer) = self.answers.next(), if !self.answers.is_empty() => {
                    in_time(patience, self.answer(socket, answer)).await?;
                }
                () = self.wake.notified(), if may_deliver => {
                    in_time(patience, self.deliver(socket)).await?;
                }
                () = self.pace.resume(), if self.pace.is_paused() => {}
                message = socket.next(), if self.answers.len() < SENDS_IN_FLIGHT && !self.pace.is_paused() => {
                    in_time(patience, self.take_all(socket, message)).await?;
                }
                news = ephemeral::told(&mut self.news), if self.news.is_some() => {
                    in_time(patience, self.tell_news(socket, news)).await?;
                }
                () = self.connected.ear.notified(), if self.cursor.is_some() => {
                    in_time(patience, self.tell_ephemeral(socket)).await?;
                }
                () = &mut silence => {
                    if self.heard.elapsed() >= patience {
                        return Break(SILENCE);
                    }
                    if self.state.accounts.is_over(&self.live) {
                        return Break(LOGGED_OUT);
                    }
                    silence.as_mut().reset(self.heard + patience);
                }
            }
        }
    }

    /// Takes `message` and what else has arrived; answers are collected and flushed once.
    async fn take_all(
        &mut self,
        socket: &mut impl Socket,
        message: Option<tungstenite::Result<Message>>,
    ) -> SessionStep {
        self.heard = Instant::now();
        let mut message = message;
        for _ in 0..IN_ONE_GO {
            self.take(socket, message).await?;
            if self.answers.len() >= SENDS_IN_FLIGHT || self.pace.is_paused() {
                return Continue(());
            }
            match socket.next().now_or_never() {
                Some(next) => message = next,
                None => return Continue(()),
            }
        }
        self.take(socket, message).await
    }

    async fn take(
        &mut self,
        socket: &mut impl Socket,
        message: Option<tungstenite::Result<Message>>,
    ) -> SessionStep {
        let text = match message {
            None => return Break(End::Gone),
            Some(Err(error)) => return self.broken(socket, &error).await,
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                self.pace.control_frame(self.heard, &self.state.metrics);
                return Continue(());
            }
            Some(Ok(Message::Close(_) | Message::Frame(_))) => return Continue(()),
            Some(Ok(Message::Binary(_))) => {
                let problem =
                    Problem { code: "binary_frame", ..Problem::invalid_body("send text frames of JSON") };
                return self.refuse(socket, &problem, None).await;
            }
        };
        if text.len() > self.state.settings.limits.frame_bytes {
            let most = self.state.settings.limits.frame_bytes;
            let detail = format!("the frame has {} bytes; at most {most} are allowed", text.len());
            let problem = Problem { code: "frame_too_large", ..Problem::invalid_body(detail) };
            return self.refuse(socket, &problem, None).await;
        }
        match frame::parse(&text) {
            Ok(ClientFrame::Heartbeat(seq)) => self.heartbeat(socket, seq).await,
            Ok(ClientFrame::Send(request)) => self.submit(socket, *request).await,
            Ok(ClientFrame::Mark(request, subject)) => {
                if let Err(problem) = self.count_send() {
                    return self.refuse(socket, &problem, Some(subject)).await;
                }
                let marked = self.state.messages.mark(self.uid(), request);
                let mark = Arc::clone(&self.marks);
                self.answers.push(Box::pin(async move {
                    let refused = marked.await.err();
                    drop(mark);
                    Some(frame::error(&refused?.into(), Some(subject)))
                }));
                Continue(())
            }
            Ok(ClientFrame::Typing(conversation)) => {
                self.typing(conversation);
                Continue(())
            }
            Ok(ClientFrame::Watch(people)) => self.watch(socket, people).await,
            Err(BadFrame { problem, about }) => self.refuse(socket, &problem, about).await,
        }
    }

    /// Hands a message to its queue at once, so that messages are accepted in the order of their frames (I12); behind one that was
    /// refused for the moment nothing is accepted until that one comes again.
    async fn submit(&mut self, socket: &mut impl Socket, mut request: Request) -> SessionStep {
        let Some(client_id) = request.client_id() else { return Continue(()) };
        if let Err(problem) = self.count_send() {
            self.pipeline.refuse(client_id);
            return self.refuse(socket, &problem, Some(Subject::Send(client_id))).await;
        }
        let began = Instant::now();
        // What comes behind it waits, too.
        if let Request::Message(message) = &mut request
            && let Err(error) = Box::pin(self.state.attachments.attach_to(self.uid(), message)).await
        {
            self.pipeline.refuse(client_id);
            return self.refuse(socket, &error.into(), Some(Subject::Send(client_id))).await;
        }
        let (metrics, is_message) = (Arc::clone(&self.state.metrics), matches!(request, Request::Message(_)));
        let stored = self.state.messages.submit_in(&self.pipeline, self.uid(), request);
        self.answers.push(Box::pin(async move {
            let answer = match stored.await {
                Ok(ack) => {
                    metrics.send_seconds.observe(began.elapsed().as_secs_f64());
                    metrics.messages_websocket.inc_by(u64::from(is_message && !ack.repeated));
                    frame::sent(client_id, &ack)
                }
                Err(refused) => frame::error(&refused.into(), Some(Subject::Send(client_id))),
            };
            Some(answer)
        }));
        Continue(())
    }

    /// Counts a send or read marker. If its account is ahead of its rate, the connection is read later.
    fn count_send(&mut self) -> Result<(), Problem> {
        let wait = self.state.rates.send_and_pause(self.uid())?;
        self.pace.sent(wait, &self.state.metrics);
        Ok(())
    }

    /// Passes on an answer and the others that are there already.
    async fn answer(&mut self, socket: &mut impl Socket, first: Option<Utf8Bytes>) -> SessionStep {
        let mut next = Some(Some(first));
        while let Some(Some(answer)) = next {
            if let Some(text) = answer {
                self.say(socket, text).await?;
            }
            next = self.answers.next().now_or_never();
        }
        Continue(())
    }

    /// Waits until each `read` and `seen` so far is stored or refused, and passes on the answers that come meanwhile.
    async fn settle_marks(&mut self, socket: &mut impl Socket) -> SessionStep {
        while Arc::strong_count(&self.marks) > 1 {
            let Some(answer) = self.answers.next().await else { break };
            if let Some(text) = answer {
                self.say(socket, text).await?;
            }
        }
        Continue(())
    }

    /// The process stops: answers everything that was taken, then closes.
    async fn finish(&mut self, socket: &mut impl Socket) -> SessionStep {
        while let Some(answer) = self.answers.next().await {
            if let Some(text) = answer {
                self.say(socket, text).await?;
            }
        }
        Break(RESTART)
    }

    /// Says what is wrong; one who goes on with that is closed.
    async fn refuse(
        &mut self,
        socket: &mut impl Socket,
        problem: &Problem,
        about: Option<Subject>,
    ) -> SessionStep {
        self.say(socket, frame::error(problem, about)).await?;
        if self.pace.may_fault(self.heard) { Continue(()) } else { Break(FLOOD) }
    }

    /// The stream cannot be read any further; says why where the other side can still hear it.
    async fn broken(&mut self, socket: &mut impl Socket, error: &tungstenite::Error) -> SessionStep {
        let (problem, end) = match error {
            tungstenite::Error::Io(error) if error.get_ref().is_some_and(|error| error.is::<Flood>()) => {
                return Break(FLOOD);
            }
            tungstenite::Error::Utf8(_) => (Problem::invalid_utf8(), NOT_UTF8),
            tungstenite::Error::Capacity(_) => {
                let most = self.state.settings.limits.frame_bytes;
                let detail = format!("the frame is far too large; at most {most} bytes are allowed");
                (Problem { code: "frame_too_large", ..Problem::invalid_body(detail) }, TOO_LARGE)
            }
            tungstenite::Error::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake) => {
                return Break(End::Gone);
            }
            tungstenite::Error::Protocol(_) => (Problem::invalid_body("this is not WebSocket"), BROKEN),
            _ => return Break(End::Gone),
        };
        self.say(socket, frame::error(&problem, None)).await?;
        Break(end)
    }

    /// Puts a frame on its way; it leaves with the next flush at the latest.
    async fn say(&mut self, socket: &mut impl Socket, text: Utf8Bytes) -> SessionStep {
        match socket.feed(Message::Text(text)).await {
            Ok(()) => Continue(()),
            Err(_) => Break(End::Gone),
        }
    }

    /// Sends what was put on its way. One who does not read for too long is gone.
    async fn flush(&mut self, socket: &mut impl Socket, patience: Duration) -> SessionStep {
        match timeout(patience, self.send_off(socket)).await {
            Ok(step) => step,
            Err(_) => Break(End::Gone),
        }
    }

    /// Sends what was put on its way; how long that may take is the caller's.
    async fn send_off(&mut self, socket: &mut impl Socket) -> SessionStep {
        match socket.flush().await {
            Ok(()) => {
                self.leaving = None;
                Continue(())
            }
            Err(_) => Break(End::Gone),
        }
    }
}
