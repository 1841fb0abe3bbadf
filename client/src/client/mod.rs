//! A device that keeps itself in step.
//!
//! [`Client`] is a cheap handle; its one task (`driver`) owns the connection, the cursor, the store and the outbox. It
//! ends when every handle is dropped or the server says that the token is no longer good. Events come out of
//! [`Events`], each row once and only after it is in the store.

mod backoff;
mod dial;
mod driver;
mod outbox;

#[cfg(test)]
mod tests;

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::error::{Error, Problem};
use crate::http::Http;
use crate::socket::SocketOptions;
use crate::store::Store;
use crate::wire::{Conversation, Draft, Entry, Recipient, Sent};
use dial::TcpDial;
use driver::{ClientCommand, Driver};

/// Limits and waits of a [`Client`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Sizes of the connection.
    pub socket: SocketOptions,
    /// How long connecting, and then the welcome, may take (default 10 s).
    pub connect_timeout: Duration,
    /// The wait after the first failure; it doubles with each (default 500 ms). Every wait is shortened by a random part of
    /// up to a half. With several servers it doubles once all have been tried, and is this long between them.
    pub first_retry: Duration,
    /// The longest wait, before the random part (default 30 s).
    pub longest_retry: Duration,
    /// How many messages may be unsettled; [`Client::send`] waits for room beyond that (default 1,000).
    pub outbox: usize,
    /// How many messages may wait for their answer at a time (default 16). A message that was refused for the moment is not
    /// overtaken by later ones: the server refuses those as well, and all go out again in their order.
    pub in_flight: usize,
    /// How many events may wait to be read (default 64). Beyond that the client reads no more from the server until
    /// there is room; it goes on to heartbeat.
    pub events: usize,
    /// Makes the random part of every wait repeatable, for tests; `None` draws a seed.
    pub seed: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            socket: SocketOptions::default(),
            connect_timeout: Duration::from_secs(10),
            first_retry: Duration::from_millis(500),
            longest_retry: Duration::from_secs(30),
            outbox: 1_000,
            in_flight: 16,
            events: 64,
            seed: None,
        }
    }
}

/// Something happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// Connected and welcomed; catching up begins.
    Online {
        /// The logged-in user.
        uid: u32,
        /// The user's latest id on the server.
        seq: u64,
        /// The address of the server, one of those given to [`Http::any_of`].
        server: String,
        /// The version of the protocol that the server speaks; this client knows 1. Of a larger one it goes on, and an application may
        /// tell its user to update.
        version: u32,
    },
    /// New rows, in the store already.
    Rows(Vec<Entry>),
    /// The server has nothing newer than this cursor, for now. Comes once per connection and after rows.
    InStep {
        /// Where the device stands.
        cursor: u64,
    },
    /// The store dropped every row above this cursor: the server lost them (I14).
    Cleared {
        /// Where the device stands; 0 after a new history.
        cursor: u64,
    },
    /// Somebody is typing; worth showing for some seconds. Never stored.
    Typing {
        /// Where.
        conversation: Conversation,
        /// The typing user.
        sender: u32,
    },
    /// The users online, among those that [`Client::watch`] names. Unknown after [`Event::Offline`].
    Presence {
        /// All of them.
        online: Vec<u32>,
    },
    /// What is seen of a user has changed: the name, say. It can be asked for anew ([`Http::users`]). Never stored.
    Person {
        /// The user: one that [`Client::watch`] names, or oneself.
        uid: u32,
    },
    /// A frame other than a message was refused; refused messages are told to whoever sent them.
    Refused(Problem),
    /// The connection is gone; it comes back by itself, from another server if there are several.
    Offline {
        /// Why.
        error: Error,
        /// After this.
        retry_in: Duration,
    },
    /// The client has ended: the token is no longer good, or the address cannot be used. Nothing comes after it.
    Stopped(Error),
}

/// The events of one device, in order. Dropping it is fine: the device stays in step without.
#[derive(Debug)]
pub struct Events(mpsc::Receiver<Event>);

impl Events {
    /// The next event; `None` once the client has ended.
    pub async fn next(&mut self) -> Option<Event> {
        self.0.recv().await
    }
}

/// A handle to a device; clones are handles to the same one.
#[derive(Clone, Debug)]
pub struct Client {
    commands: mpsc::Sender<ClientCommand>,
}

impl Client {
    /// Starts a device that logs in with the token of `http` and keeps its rows in `store`.
    ///
    /// With several servers ([`Http::any_of`]) it goes on with the next one when a connection breaks, is refused, is
    /// closed because the server restarts, or when the server answers `unavailable` or `stopping`. Messages that were
    /// not acknowledged go out again there, in their order and under their `client_id`; rows come from the cursor on.
    ///
    /// Must be called within a tokio runtime; returns at once, and connects by itself.
    pub fn start<S: Store>(http: Http, store: S, options: Options) -> (Client, Events) {
        let dial = TcpDial::new(&http, &options);
        Client::over(dial, store, options)
    }

    fn over<D: dial::Dial, S: Store>(dial: D, store: S, options: Options) -> (Client, Events) {
        // Commands wait here only until the driver takes them into the outbox, where the limit is.
        let (commands, taken) = mpsc::channel(1);
        let (events, read) = mpsc::channel(options.events.max(1));
        tokio::spawn(Driver::new(dial, store, options, taken, events).run());
        (Client { commands }, Events(read))
    }

    /// Sends a message and waits until it is durable, over as many connections as that takes.
    ///
    /// Dropping the future does not take the message back. The same draft again is stored once (I4).
    ///
    /// # Errors
    /// [`Error::Refused`] when the server refuses it for good; [`Error::Stopped`] when the client ends before.
    pub async fn send(&self, draft: Draft) -> Result<Sent, Error> {
        let (answer, answered) = oneshot::channel();
        self.commands.send(ClientCommand::Send { draft, answer }).await.map_err(|_| Error::Stopped)?;
        answered.await.map_err(|_| Error::Stopped)?
    }

    /// Sends a text under a new `client_id`; see [`Client::send`].
    pub async fn send_text(&self, to: Recipient, text: &str) -> Result<Sent, Error> {
        self.send(Draft::text(to, text)).await
    }

    /// Tells the others of a conversation that the user is typing, if there is a connection now. Once every four seconds is enough.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the client has ended.
    pub async fn typing(&self, conversation: Conversation) -> Result<(), Error> {
        self.commands.send(ClientCommand::Typing(conversation)).await.map_err(|_| Error::Stopped)
    }

    /// Wants to be told who of these people is online ([`Event::Presence`]), on this connection and on later ones.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the client has ended.
    pub async fn watch(&self, people: Vec<u32>) -> Result<(), Error> {
        self.commands.send(ClientCommand::Watch(people)).await.map_err(|_| Error::Stopped)
    }

    /// Ends the wait for the next attempt to connect: the network is back, or somebody is impatient.
    pub async fn reconnect_now(&self) -> Result<(), Error> {
        self.commands.send(ClientCommand::ReconnectNow).await.map_err(|_| Error::Stopped)
    }
}
