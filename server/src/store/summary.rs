//! A line of the conversation list, as stores count it.

use crate::domain::{Conversation, Entry, MessageId};

/// A row of the conversation list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Which conversation, from the owner's side.
    pub conversation: Conversation,
    /// Its newest row that is not a read marker.
    pub last: Entry,
    /// Others' `message` rows beyond `read_to`, counted up to [`Summary::MOST_UNREAD`].
    pub unread: u32,
    /// Those among the newest [`Summary::MOST_UNREAD`] of them that name the owner (`Content::counts_as_mention`).
    pub mentions: u32,
    /// How far the owner has read; [`MessageId::ZERO`] before the first read marker.
    pub read_to: MessageId,
}

impl Summary {
    /// Where counting stops (I9): people see "999+" long before.
    pub const MOST_UNREAD: u32 = 1_000;
}
