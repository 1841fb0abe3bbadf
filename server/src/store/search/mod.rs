//! The index of words: derived from the rows, and never asked what a row says.
//!
//! The rows of an inbox are indexed a range of ids after the other, each range as a [`segment`]: its documents, its terms in
//! order, and for each term the documents that have it. Segments are never changed; neighbours are merged into larger ones
//! ([`merge`]). Segments lie as parts of some kilobytes under the key of their inbox, by a [`SearchIndex`]: a file beside the
//! database on SQLite, tables on PostgreSQL. `app::search` fills them and asks them.

use async_trait::async_trait;

use super::StoreError;
use crate::domain::{MessageId, Uid};

pub mod bytes;
#[cfg(any(test, feature = "test-support"))]
mod memory;
pub mod merge;
pub mod segment;

#[cfg(any(test, feature = "test-support"))]
pub use memory::MemoryIndex;
pub use segment::{NewSegment, SegmentHead};

/// How far an inbox is indexed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Indexed {
    /// Up to this id.
    pub to: MessageId,
    /// The build of its newest segment.
    pub build: u64,
}

/// A rebuild that was asked for, and how far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rebuild {
    /// How many were asked for ([`segment::build`]).
    pub wanted: u64,
    /// How many are done: the walk over all inboxes for them has come to its end.
    pub walked: u64,
    /// How much of the walk under way is done, in ten-thousandths.
    pub share: u32,
}

/// Keeps segments. What is lost is made again from the rows; nothing else depends on it.
///
/// A call of [`replace`](Self::replace) is done whole or not at all, and survives a crash of the process.
#[async_trait]
pub trait SearchIndex: Send + Sync + 'static {
    /// The segments of an inbox, newest first.
    async fn segments(&self, uid: Uid) -> Result<Vec<SegmentHead>, StoreError>;

    /// These parts of a segment, in order; `None`: the segment is not there any more.
    async fn parts(&self, uid: Uid, segment: u64, parts: &[u32]) -> Result<Option<Vec<Vec<u8>>>, StoreError>;

    /// How far these inboxes are indexed, in order.
    async fn indexed(&self, uids: &[Uid]) -> Result<Vec<Indexed>, StoreError>;

    /// Puts `new` into the place of the segments with these numbers. `false`: somebody else has changed them, and nothing is done.
    async fn replace(&self, uid: Uid, old: &[u64], new: Option<NewSegment>) -> Result<bool, StoreError>;

    /// Throws away all segments of an inbox.
    async fn forget(&self, uid: Uid) -> Result<(), StoreError>;

    /// Throws away what cannot be read: all segments of this inbox at least.
    async fn renew(&self, uid: Uid) -> Result<(), StoreError>;

    /// The rebuild that was asked for last.
    async fn rebuild(&self) -> Result<Rebuild, StoreError>;

    /// Asks for one, and says how many were asked for by now.
    async fn ask_rebuild(&self) -> Result<u64, StoreError>;

    /// So many are done, and so much of a further one.
    async fn note_walk(&self, walked: u64, share: u32) -> Result<(), StoreError>;

    /// Ends what is under way.
    async fn close(&self);
}

#[cfg(test)]
pub(super) mod conformance;
