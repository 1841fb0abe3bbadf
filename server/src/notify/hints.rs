//! What the servers of one database tell each other. A hint says where to look, and never what is there: one that is
//! lost or comes twice costs time, not rows.

use async_trait::async_trait;

use crate::domain::{MessageId, Uid};
use ephemeral::Ephemeral;
use text::Server;

pub mod ephemeral;
pub mod outbox;
pub mod text;

/// Something that another server should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Rows up to these ids are committed.
    Rows(Vec<(Uid, MessageId)>),
    /// The session with this hash of its token has ended.
    SessionEnded([u8; 32]),
    /// All sessions of this user have ended.
    SessionsEnded(Uid),
    /// All sessions of this user have ended, but the one with this hash of its token.
    OtherSessionsEnded(Uid, [u8; 32]),
    /// More than can be told: look at everything. It is sent by another server; what is lost on the way is [`Heard::Gap`].
    Everything,
}

/// What a server hears of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A hint of another server.
    Hint(Hint),
    /// Hints may have been lost, or came faster than they were taken. No server sends this: it is noticed here, and calls for the
    /// same as [`Hint::Everything`].
    Gap,
}

/// The way to the other servers and from them.
#[async_trait]
pub trait Hints: Send + Sync + 'static {
    /// Tells all others. Never waits; what cannot be told now is told later, or becomes [`Hint::Everything`].
    fn tell(&self, hint: Hint);

    /// What the others say next. One task calls it.
    async fn hear(&self) -> Heard;

    /// Tells all others what is never stored. Never waits; what cannot be told now is dropped, and no hint waits for it.
    fn tell_ephemeral(&self, said: Ephemeral);

    /// What another server says next of that kind. One task calls it; what it does not take in time is dropped.
    async fn hear_ephemeral(&self) -> (Server, Ephemeral);
}
