//! The task behind a [`super::Client`]: connect, stay in step, send, and when it breaks, wait and begin again.
//!
//! It owns everything: the connection, the cursor ([`SyncState`]), the store, the outbox and the events that nobody has
//! read yet. One loop per connection ([`Driver::connected`]) shows the whole flow; it ends with the reason why the
//! connection is over, and [`Driver::run`] decides what that means.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::debug;

use super::backoff::Backoff;
use super::dial::Dial;
use super::outbox::Outbox;
use super::{Event, Options};
use crate::error::{Error, Problem};
use crate::socket::{CLOSE_RESTART, Socket};
use crate::store::Store;
use crate::sync::{StoreChange, SyncState};
use crate::wire::{ClientFrame, Conversation, Draft, Sent, ServerFrame};

type SendAnswer = oneshot::Sender<Result<Sent, Error>>;

/// A request from a handle.
#[derive(Debug)]
pub(super) enum ClientCommand {
    Send { draft: Draft, answer: SendAnswer },
    ReconnectNow,
    Typing(Conversation),
    Watch(Vec<u32>),
}

/// Why a connection is over.
enum End {
    /// Every handle is dropped.
    Unused,
    /// It broke, or was closed.
    Failed(Error),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        End::Failed(error)
    }
}

pub(super) struct Driver<D, S> {
    dial: D,
    store: S,
    options: Options,
    commands: mpsc::Receiver<ClientCommand>,
    events: mpsc::Sender<Event>,
    /// Events for which there was no room yet; while there are any, nothing is read from the server.
    unread: VecDeque<Event>,
    outbox: Outbox<SendAnswer>,
    /// Where the user is typing; without a connection it is dropped.
    typing: Option<Conversation>,
    /// The watched users, and whether this connection has sent them to the server.
    watched: Vec<u32>,
    is_watching: bool,
    /// Nothing is sent before this: the server asked for a pause.
    paused_until: Option<Instant>,
    reconnects: Backoff,
    resends: Backoff,
}

/// The state of one connection, beside the driver's own.
struct DriverSession {
    sync: SyncState,
    period: Duration,
    next_beat: Instant,
    heard: Instant,
    /// The cursor of the last [`Event::InStep`] of this connection.
    in_step_at: Option<u64>,
}

impl DriverSession {
    /// Three heartbeats: the silence after which either side gives up.
    fn patience(&self) -> Duration {
        self.period * 3
    }
}

impl<D: Dial, S: Store> Driver<D, S> {
    pub(super) fn new(
        dial: D,
        store: S,
        options: Options,
        commands: mpsc::Receiver<ClientCommand>,
        events: mpsc::Sender<Event>,
    ) -> Self {
        let seed = options.seed.unwrap_or_else(rand::random);
        let servers = dial.servers();
        Driver {
            dial,
            store,
            commands,
            events,
            unread: VecDeque::new(),
            outbox: Outbox::new(options.in_flight, options.outbox),
            typing: None,
            watched: Vec::new(),
            is_watching: true,
            paused_until: None,
            reconnects: Backoff::new(options.first_retry, options.longest_retry, servers, seed),
            resends: Backoff::new(options.first_retry, options.longest_retry, 1, seed.wrapping_add(1)),
            options,
        }
    }

    pub(super) async fn run(mut self) {
        let reason = loop {
            let error = match self.attempt().await {
                Err(End::Failed(error)) => error,
                Err(End::Unused) => break None,
                Ok(never) => match never {},
            };
            self.outbox.all_again();
            let retry_in = match &error {
                Error::LoggedOut | Error::Usage(_) => break Some(error),
                Error::Closed { code: Some(CLOSE_RESTART), .. } => self.reconnects.after_restart(),
                // A frame refused a request (`unavailable`). The connection itself works, so the waits for those would
                // not grow.
                Error::Refused(problem) if problem.status == 0 => self.resends.next(),
                _ => self.reconnects.next(),
            };
            debug!(%error, ?retry_in, "offline");
            // One's own disk is no fault of the server.
            if !matches!(error, Error::Store(_)) {
                self.dial.failed();
            }
            self.unread.push_back(Event::Offline { error, retry_in });
            if let Err(End::Unused) = self.wait(retry_in).await {
                break None;
            }
        };
        if let Some(error) = reason {
            self.unread.push_back(Event::Stopped(error));
        }
        for answer in self.outbox.drain() {
            // The caller may no longer wait; ignore send errors.
            let _ = answer.send(Err(Error::Stopped));
        }
        self.commands.close();
        while !self.unread.is_empty() {
            deliver(&self.events, &mut self.unread).await;
        }
    }

    /// One connection, from dialling to its end.
    async fn attempt(&mut self) -> Result<Infallible, End> {
        let position = self.store.load().await.map_err(Error::from)?;
        let late = || Error::Transport("the server did not answer in time".to_owned());
        let patience = self.options.connect_timeout;
        let mut socket = timeout(patience, self.dial.dial()).await.map_err(|_| late())??;
        let frame = timeout(patience, socket.receive()).await.map_err(|_| late())??;
        let ServerFrame::Welcome { uid, seq, history, heartbeat_seconds, version } = frame else {
            return Err(Error::Protocol("the first frame was not a welcome".to_owned()).into());
        };
        let now = Instant::now();
        let period = Duration::from_secs(heartbeat_seconds.max(1));
        let mut session = DriverSession {
            sync: SyncState::new(position),
            period,
            next_beat: now,
            heard: now,
            in_step_at: None,
        };
        self.typing = None;
        self.is_watching = self.watched.is_empty();
        self.unread.push_back(Event::Online { uid, seq, server: self.dial.address(), version });
        let change = session.sync.on_welcome(&history);
        self.apply(&mut session, change).await?;
        self.connected(&mut socket, &mut session).await
    }

    /// The flow of a connection that stands: heartbeats and messages out, rows and answers in.
    async fn connected(
        &mut self,
        socket: &mut Socket<D::Stream>,
        session: &mut DriverSession,
    ) -> Result<Infallible, End> {
        loop {
            if let Err(error) = self.write(socket, session).await {
                return Err(why_closed(socket, error).await.into());
            }
            let now_read = self.unread.is_empty();
            tokio::select! {
                frame = socket.receive(), if now_read => {
                    session.heard = Instant::now();
                    self.on_frame(session, frame?).await?;
                }
                () = deliver(&self.events, &mut self.unread), if !now_read => {}
                command = self.commands.recv(), if self.outbox.has_room() => self.on_command(command)?,
                () = sleep_until(session.next_beat) => {}
                () = sleep_until(session.heard + session.patience()), if now_read => {
                    return Err(Error::Transport("the server sent nothing in time".to_owned()).into());
                }
                () = until(self.paused_until) => self.paused_until = None,
            }
            if !now_read {
                // While nothing was read, nothing could be heard.
                session.heard = Instant::now();
            }
        }
    }

    /// Writes what is due: the heartbeat, then as many messages as the window allows, in one go.
    async fn write(
        &mut self,
        socket: &mut Socket<D::Stream>,
        session: &mut DriverSession,
    ) -> Result<(), Error> {
        let (outbox, now) = (&mut self.outbox, Instant::now());
        let patience = session.patience();
        let paused = self.paused_until.is_some_and(|until| until > now);
        let (typing, watched) = (self.typing.take(), &self.watched);
        let is_watching = std::mem::replace(&mut self.is_watching, true);
        let writing = async {
            let mut fed = false;
            if session.next_beat <= now {
                socket.feed(&ClientFrame::Heartbeat { seq: session.sync.position().cursor }).await?;
                session.next_beat = now + session.period;
                fed = true;
            }
            while !paused && let Some(draft) = outbox.take_next() {
                socket.feed(&ClientFrame::Send(draft)).await?;
                fed = true;
            }
            if let Some(conversation) = typing {
                socket.feed(&ClientFrame::Typing { conversation }).await?;
                fed = true;
            }
            if !is_watching {
                socket.feed(&ClientFrame::Presence { of: watched }).await?;
                fed = true;
            }
            if fed { socket.flush().await } else { Ok(()) }
        };
        let stuck = |_| Error::Transport("the server read nothing in time".to_owned());
        timeout(patience, writing).await.map_err(stuck)?
    }

    async fn on_frame(&mut self, session: &mut DriverSession, frame: ServerFrame) -> Result<(), Error> {
        match frame {
            ServerFrame::Entries(entries) => {
                let change = session.sync.on_entries(entries)?;
                self.apply(session, change).await?;
                // Acknowledges what is stored; after a hole, asks for what is missing.
                session.next_beat = Instant::now();
            }
            ServerFrame::Alive { seq, history } => {
                let change = session.sync.on_alive(seq, &history);
                if change == StoreChange::None {
                    self.in_step(session);
                } else {
                    self.apply(session, change).await?;
                    session.next_beat = Instant::now();
                }
            }
            ServerFrame::Sent { client_id, sent } => {
                self.resends.reset();
                self.settle(client_id, Ok(sent));
            }
            ServerFrame::Error { problem, .. } if self.dial.servers() > 1 && of_the_server(&problem) => {
                return Err(Error::Refused(problem));
            }
            ServerFrame::Error { client_id: Some(client_id), problem, .. } if problem.retryable => {
                debug!(%problem, "a message is sent again later");
                self.outbox.again(client_id);
                self.paused_until = Some(Instant::now() + self.resends.next());
            }
            ServerFrame::Error { client_id: Some(client_id), problem, .. } => {
                self.settle(client_id, Err(problem));
            }
            ServerFrame::Error { client_id: None, problem, .. } => {
                if problem.retryable {
                    // It may have been the answer to a heartbeat, and rows may wait behind it.
                    session.next_beat = session.next_beat.min(Instant::now() + self.reconnects.next());
                }
                self.unread.push_back(Event::Refused(problem));
            }
            ServerFrame::Welcome { .. } => {
                return Err(Error::Protocol("a second welcome".to_owned()));
            }
            ServerFrame::Typing { conversation, sender } => {
                self.unread.push_back(Event::Typing { conversation, sender });
            }
            ServerFrame::Presence { online } => self.unread.push_back(Event::Presence { online }),
            ServerFrame::Person { uid } => self.unread.push_back(Event::Person { uid }),
            ServerFrame::Unknown(kind) => debug!(kind, "skipped a frame of an unknown kind"),
        }
        Ok(())
    }

    /// The server has nothing newer: the connection works.
    fn in_step(&mut self, session: &mut DriverSession) {
        self.reconnects.reset();
        let cursor = session.sync.position().cursor;
        if session.in_step_at.replace(cursor) != Some(cursor) {
            self.unread.push_back(Event::InStep { cursor });
        }
    }

    /// Stores first, moves the cursor then, tells last.
    async fn apply(&mut self, session: &mut DriverSession, change: StoreChange) -> Result<(), Error> {
        if change == StoreChange::None {
            return Ok(());
        }
        self.store.apply(&change).await?;
        let known = session.sync.position().history.is_some();
        session.sync.stored(&change);
        match change {
            StoreChange::Append { rows, .. } if !rows.is_empty() => self.unread.push_back(Event::Rows(rows)),
            StoreChange::Lower { cursor } => self.unread.push_back(Event::Cleared { cursor }),
            StoreChange::Reset { .. } if known => self.unread.push_back(Event::Cleared { cursor: 0 }),
            _ => {}
        }
        Ok(())
    }

    fn settle(&mut self, client_id: uuid::Uuid, outcome: Result<Sent, Problem>) {
        if let Some(answer) = self.outbox.settle(client_id) {
            // The caller may no longer wait; ignore send errors.
            let _ = answer.send(outcome.map_err(Error::Refused));
        }
    }

    fn on_command(&mut self, command: Option<ClientCommand>) -> Result<(), End> {
        match command {
            Some(ClientCommand::Send { draft, answer }) => self.outbox.push(draft, answer),
            Some(ClientCommand::ReconnectNow) => {}
            Some(ClientCommand::Typing(conversation)) => self.typing = Some(conversation),
            Some(ClientCommand::Watch(people)) => (self.watched, self.is_watching) = (people, false),
            None => return Err(End::Unused),
        }
        Ok(())
    }

    /// Waits before the next attempt; meanwhile messages are taken in and events given out.
    async fn wait(&mut self, delay: Duration) -> Result<(), End> {
        let deadline = Instant::now() + delay;
        loop {
            tokio::select! {
                () = sleep_until(deadline) => return Ok(()),
                () = deliver(&self.events, &mut self.unread), if !self.unread.is_empty() => {}
                command = self.commands.recv(), if self.outbox.has_room() => {
                    if matches!(command, Some(ClientCommand::ReconnectNow)) {
                        return Ok(());
                    }
                    self.on_command(command)?;
                }
            }
        }
    }
}

/// Whether another server may answer what this one refused: it stops, or its way to the storage is cut. One that is
/// merely busy is not left, since all its clients would come to the others.
fn of_the_server(problem: &Problem) -> bool {
    matches!(problem.code.as_str(), "unavailable" | "stopping")
}

/// Why nothing more could be written: the server's last word, if it left one to read, else the write's own error.
async fn why_closed<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut Socket<S>, error: Error) -> Error {
    let last_word = async {
        loop {
            if let Err(end) = socket.receive().await {
                return end;
            }
        }
    };
    match timeout(Duration::from_secs(1), last_word).await {
        Ok(end @ (Error::LoggedOut | Error::Closed { code: Some(_), .. })) => end,
        _ => error,
    }
}

/// Gives out the oldest event as soon as there is room. Loses nothing when dropped before it is done.
async fn deliver(events: &mpsc::Sender<Event>, unread: &mut VecDeque<Event>) {
    match events.reserve().await {
        Ok(room) => {
            if let Some(event) = unread.pop_front() {
                room.send(event);
            }
        }
        // Nobody reads events any more.
        Err(_) => unread.clear(),
    }
}

/// Until then; for ever if there is no such moment.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => future::pending().await,
    }
}
