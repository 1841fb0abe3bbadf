//! Hints between the servers of one database. A hint says where to look and carries no rows: one that is lost or comes
//! twice costs time, not rows.

use async_trait::async_trait;

use crate::domain::{MessageId, Uid};
use ephemeral::Ephemeral;
use text::ServerNumber;

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
    /// The name of this user has changed.
    Renamed(Uid),
    /// More than can be told: look at everything. It is sent by another server; what is lost on the way is [`Heard::Gap`].
    Everything,
}

/// Something that a server hears from the others.
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
    /// Tells all others. Never waits; a hint that cannot be told now is told later, or becomes [`Hint::Everything`].
    fn tell(&self, hint: Hint);

    /// Waits for the next hint of the others. One task calls it.
    async fn hear(&self) -> Heard;

    /// Tells all others a notice that is never stored. Never waits; one that cannot be told now is dropped, and no hint waits for it.
    fn tell_ephemeral(&self, said: Ephemeral);

    /// Waits for the next such notice of another server. One task calls it; a notice that it does not take in time is dropped.
    async fn hear_ephemeral(&self) -> (ServerNumber, Ephemeral);
}
