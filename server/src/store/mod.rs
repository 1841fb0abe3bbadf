//! The durable state: rows, acceptances, groups and accounts survive a power cut.
//!
//! [`MessageStore`] holds everything that is stamped by sequences; the queues alone write to it. [`tables::TableStore`] holds
//! tables, and [`archive`] moves data in and out. SQLite and PostgreSQL implement them for real, `memory` for tests; one suite
//! (`conformance`) is run by each. [`Directory`] holds everything else, such as accounts, sessions and invitations: one text of
//! SQL for both databases (`sql`). Servers of one database share tickets and rates (`shared`). This layer knows neither
//! sequences nor sockets.

use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::{
    Content, Conversation, Digest, Direction, Entry, Group, GroupId, HistoryId, IdempotencyKey, MessageId,
    PageLimit, RangeQuery, Timestamp, Uid,
};

mod access_keys;
mod account;
mod accounts;
pub mod archive;
mod audit;
mod changes;
#[cfg(test)]
pub mod conformance;
mod credentials;
mod deletions;
mod directory;
mod directory_db;
pub mod error;
mod expiry;
#[cfg(any(test, feature = "test-support"))]
pub mod faulty;
mod file;
mod file_adoption;
mod file_archive;
mod files;
mod group_settings;
mod health;
mod invites;
mod last_seen;
pub mod marked;
#[cfg(any(test, feature = "test-support"))]
pub mod memory;
mod migrations;
mod name_index;
mod names;
mod operators;
pub mod page;
pub mod postgres;
mod push;
mod renames;
mod reports;
pub mod search;
mod sessions;
mod shared;
mod sql;
pub mod sqlite;
mod summary;
mod table_definitions;
pub mod tables;
mod write;

pub use access_keys::AccessKey;
pub use account::{Account, NewAccount, ShownName};
pub use audit::AuditLine;
pub use credentials::{CodeHash, SignUpInvite, SignedUp};
pub use directory::Directory;
pub use error::StoreError;
pub(crate) use expiry::unless_corrupt;
pub use expiry::{Expired, Keeping};
pub use file::{FileBegun, FileState, FileUse, NewFile, StoredFile};
pub use health::{Health, PoolUse};
pub use operators::ListedAccount;
pub use page::{Filling, Page};
pub use push::{NewPushSubscription, PushSubscription, PushTimes};
pub use renames::Renamed;
pub use reports::ReportOutcome;
pub use search::SearchIndex;
pub use sessions::Session;
pub use shared::{SharedRates, Tickets};
pub use summary::Summary;
pub use tables::TableStore;
pub use write::{Accept, Behind, CommitError, CopyOutcome, Deliver, Earlier, Outcome, Recipient, Row, Write};

/// The number of an acceptance: the order in which the store accepted. On SQLite over all senders; on PostgreSQL those of one sender
/// grow, and an acceptance that owes no copy has 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AcceptanceId(pub u64);

/// An acceptance and whose it is: where a walk over the copies owed has come to. The default comes before all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PendingKey {
    /// The sender.
    pub sender: Uid,
    /// Which one.
    pub acceptance: AcceptanceId,
}

impl Default for PendingKey {
    fn default() -> PendingKey {
        PendingKey { sender: Uid(0), acceptance: AcceptanceId(0) }
    }
}

/// The state of an idempotency key in the store.
#[derive(Clone, Copy, Debug)]
pub enum KeyState {
    /// A message was accepted under it.
    Used(IdempotencyRecord),
    /// None was.
    Unused(Unused),
}

impl KeyState {
    /// The record, if there is one.
    pub fn record(self) -> Option<IdempotencyRecord> {
        match self {
            KeyState::Used(record) => Some(record),
            KeyState::Unused(_) => None,
        }
    }
}

/// Proof that a key had no record when the store was asked ([`MessageStore::keys`]). Carried in the write, it saves the commit a second
/// look: what was stored since then is still in memory, or the proof is too old and the commit looks again. Where every commit looks
/// ([`MessageStore::unasked`]), it says that the write rests on what is found.
#[derive(Clone, Copy, Debug)]
pub struct Unused {
    /// The moment before the look, as the store counts. `None`: nobody looked.
    since: Option<u64>,
}

/// The idempotency record of an acceptance; it outlives the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// The id of the sender's own copy; of a post, that of its row.
    pub message_id: MessageId,
    /// When it was accepted.
    pub sent_at: Timestamp,
    /// The digest of the request.
    pub digest: Digest,
}

/// An acceptance with copies still owed.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Which.
    pub acceptance: AcceptanceId,
    /// Its content.
    pub content: Arc<Content>,
    /// To whom, in the order of the acceptance.
    pub owed: Vec<Recipient>,
}

impl Pending {
    /// Which acceptance, and whose.
    pub fn key(&self) -> PendingKey {
        PendingKey { sender: self.content.sender, acceptance: self.acceptance }
    }
}

/// The progress of the removal of a user's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// How many were removed now.
    pub removed: u64,
    /// Whether there are more, or may be: asking again removes them.
    pub more: bool,
}

/// Rows of a conversation among which a message of the other person is looked for.
const HEARD_AMONG: usize = 200;

/// A string that comes after all compaction keys that begin with `prefix`.
fn beyond(prefix: &str) -> String {
    format!("{prefix}\u{7f}")
}

/// Facts about an installation, in this order, each under a name.
pub type Facts = Vec<(&'static str, serde_json::Value)>;

/// Rows, acceptances, idempotency records, groups and read markers of every user.
///
/// # The contract
///
/// - **Durable first.** [`commit`](Self::commit) returns `Ok` only when the writes survive a power cut (I3).
///   Readers see a write when it is durable, not before, and then whole.
/// - **One writer per receiver**, where the caller gives the ids. Callers guarantee that two commits with such rows of one receiver never
///   overlap, and that ids of one receiver grow from commit to commit. Rows that get their ids from the store may come from anywhere. The
///   store relies on it and refuses a smaller id: the whole call, if the inbox held a newer row before it (`CommitError::Behind`), so that
///   the caller can give new ids in order; that write alone, if the row comes from the same call (`Rejected`). Copies of acceptances that
///   owe nothing are not looked at.
/// - **All writes of one call in one transaction**, several calls may share one. If the database refuses one
///   write, the store retries the others without it; the order of a receiver's rows is kept. A store of several databases has a
///   transaction for each sender and each receiver instead: copies of an acceptance that are missing in its outcome stay owed, and where
///   only a part of a call is stored for now, the outcome of the call is [`Unknown`](CommitError::Unknown).
/// - **Once.** A copy of the same acceptance for the same receiver is stored at most once (`Already`). A write under a key that has a
///   record is `Rejected`, whatever proof it carries, or stale (below).
/// - **Earlier rows** of a [`Deliver`] come before its copy, and are stored with the copy or not at all. They have no idempotency records
///   of their own, and nothing is owed for them. Their ids come from the caller, also where the store gives the others.
/// - **Amendments.** A row that amends a message (`Content::changes_message`) changes the message in the same inbox that came before it,
///   if it is there; every later read finds it changed. Callers do not edit recalled messages. Of the rows of one inbox with one
///   compaction key only the newest is shown; the ids of the others are gaps (I15).
/// - **Membership epochs.** A row whose content ends one (`GroupStep::ends`) closes it in its own transaction; later rows
///   of that epoch in that inbox are `Void` (I13).
/// - **Decided on what is there.** A store that other processes write, too, compares what the writes were decided on: that their keys
///   have no record (where they bring a proof), the versions of their groups (where they name one), and that read markers move
///   forward. If anything has changed, nothing of the call is stored (`CommitError::Stale`), so that the caller decides all of it
///   again in order. A write that brings neither is refused by itself.
/// - **After `CommitError::Unknown`** the store has reopened its database and knows again what is there before it
///   answers anything else; the caller looks up what it wrote before it goes on (I1, I3).
/// - **Two ways to read.** `keys`, `pending`, `latest_ids`, `entries`, `newest`, `read_markers` and `groups` are for the queues: no number of other
///   reads keeps them waiting. The others are for everybody, bounded in number, and refused as `Busy` beyond that.
#[async_trait]
pub trait MessageStore: Send + Sync + 'static {
    /// Makes `writes` durable, in order. One [`Outcome`] per write.
    async fn commit(&self, writes: Vec<Write>) -> Result<Vec<Outcome>, CommitError>;

    /// What stands for a look at a key where every commit looks at its keys itself and gives a write back as stale if its key has a record.
    /// `None`: [`keys`](Self::keys) is asked before.
    fn unasked(&self) -> Option<Unused> {
        None
    }

    /// The states of these keys, in order.
    async fn keys(&self, keys: &[IdempotencyKey]) -> Result<Vec<KeyState>, StoreError>;

    /// Acceptances after `after` with copies owed, at most `limit`, those of each sender in the order of acceptance.
    async fn pending(&self, after: PendingKey, limit: usize) -> Result<Vec<Pending>, StoreError>;

    /// The latest ids of these inboxes, in order, for a queue that must know what is there.
    async fn latest_ids(&self, uids: &[Uid]) -> Result<Vec<MessageId>, StoreError>;

    /// The latest id in `uid`'s inbox; [`MessageId::ZERO`] in an empty one.
    async fn watermark(&self, uid: Uid) -> Result<MessageId, StoreError>;

    /// All rows after `cursor`, oldest first, as far as they fit into a page, if memory alone has them. `known`: the largest id of the
    /// inbox that the caller knows of. Where other processes write, too, the answer is `None` if memory ends before it: a later row
    /// may have replaced one of these.
    /// `None` says that storage must be asked ([`range`](Self::range)), not that there are none.
    fn tail(&self, uid: Uid, cursor: MessageId, known: MessageId, limit: PageLimit) -> Option<Page>;

    /// Rows of `uid`'s inbox, as far as they fit into a page. No more are read.
    async fn range(&self, uid: Uid, query: RangeQuery) -> Result<Page, StoreError>;

    /// These rows of these inboxes, in order.
    async fn entries(&self, rows: &[(Uid, MessageId)]) -> Result<Vec<Option<Entry>>, StoreError>;

    /// The row `message_id` in `uid`'s inbox.
    async fn entry(&self, uid: Uid, message_id: MessageId) -> Result<Option<Entry>, StoreError> {
        Ok(self.entries(&[(uid, message_id)]).await?.pop().flatten())
    }

    /// Those of these rows of `uid`'s inbox that are there, in order, on somebody's behalf.
    async fn entries_of(&self, uid: Uid, ids: &[MessageId]) -> Result<Vec<Entry>, StoreError> {
        let rows: Vec<(Uid, MessageId)> = ids.iter().map(|id| (uid, *id)).collect();
        Ok(self.entries(&rows).await?.into_iter().flatten().collect())
    }

    /// `uid`'s conversations by their newest shown rows, newest first: those whose id is smaller than `before`, at most `limit`.
    async fn conversations(
        &self,
        uid: Uid,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<Vec<Summary>, StoreError>;

    /// Rows of a range of `uid`'s inbox that belong to one conversation, but those that only say how things stand (`Kind::is_state`).
    async fn conversation(
        &self,
        uid: Uid,
        conversation: Conversation,
        query: RangeQuery,
    ) -> Result<Page, StoreError>;

    /// The newest rows under these compaction keys (`Content::compaction_key`), in order: how things stand.
    async fn newest(&self, of: &[(Uid, String)]) -> Result<Vec<Option<Entry>>, StoreError>;

    /// The newest rows of `uid` under the compaction keys that begin with `prefix` and come after `after`, with their keys, in the order
    /// of the keys; at most `limit`. `prefix` is ASCII.
    async fn newest_under(
        &self,
        uid: Uid,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Entry)>, StoreError>;

    /// How many compaction keys of `uid` begin with `prefix`, up to `most`: at least as many as have rows. It reads no rows.
    async fn keys_under(&self, uid: Uid, prefix: &str, most: usize) -> Result<usize, StoreError>;

    /// The ids of these users' copies of what was accepted under `key`, in order; `None`: that user has none.
    async fn copies(&self, key: IdempotencyKey, uids: &[Uid]) -> Result<Vec<Option<MessageId>>, StoreError>;

    /// Removes rows of `uid` and what is kept beside them (idempotency records, read markers, compaction keys), at most `limit` of each
    /// kind. The latest id stays, so that no id comes twice. For an account that is deleted: nobody writes to its inbox any more.
    async fn forget_rows(&self, uid: Uid, limit: usize) -> Result<Forgotten, StoreError>;

    /// Removes rows that were sent before `sent_before`, of the inboxes after `after` (`None`: of all), in the order of (partition key, uid); it
    /// goes on where the answer says. One call looks at some inboxes and removes about `limit` rows, so that writers wait for little. Of an
    /// inbox rows go from the oldest on, up to the first that is not so old; those of lasting kinds (`Kind::is_lasting`) stay, and the row
    /// that stands for a conversation in lists leaves its shell (`Content::shell`). Rows go once: what lies in memory alone, or is held by a
    /// writer, goes with a later walk. Latest ids stay.
    async fn expire_rows(
        &self,
        after: Option<Uid>,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Expired, StoreError>;

    /// Removes idempotency records of what was sent before `sent_before`: looks at `limit` of those after `after`, and goes on where the answer
    /// says. Afterwards their keys may be used again.
    async fn expire_records(
        &self,
        after: Option<IdempotencyKey>,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Expired<IdempotencyKey>, StoreError>;

    /// Those of the next inboxes after `after`, in the order of (partition key, uid), in which somebody has said for how long messages of a
    /// conversation are kept (`Keep`). One call looks at some inboxes; the walk goes on where the answer says. What lies in memory alone may
    /// be left out.
    async fn keeping(&self, after: Option<Uid>) -> Result<Keeping, StoreError>;

    /// Removes rows of one conversation of `uid` that were sent before `sent_before`, at most `limit`, as [`expire_rows`](Self::expire_rows)
    /// removes those of an inbox. The inbox does not count as expired by that ([`expired_to`](Self::expired_to)).
    async fn expire_conversation(
        &self,
        uid: Uid,
        of: Conversation,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Forgotten, StoreError>;

    /// Up to which id rows of `uid` have expired; [`MessageId::ZERO`]: none has.
    async fn expired_to(&self, uid: Uid) -> Result<MessageId, StoreError>;

    /// Whether these conversations of these users have, or had, a message or a change of the group, in order.
    async fn have_messages(&self, of: &[(Uid, Conversation)]) -> Result<Vec<bool>, StoreError>;

    /// Whether these people have written to `uid`, in order, as far as the newest [`HEARD_AMONG`] rows of their conversations tell. It reads
    /// no rows.
    async fn heard_from(&self, uid: Uid, others: &[Uid]) -> Result<Vec<bool>, StoreError>;

    /// How far these users have read in these conversations, in order; [`MessageId::ZERO`] before the first read marker.
    async fn read_markers(&self, of: &[(Uid, Conversation)]) -> Result<Vec<MessageId>, StoreError>;

    /// How far `uid` has read in a conversation; [`MessageId::ZERO`] before the first read marker.
    async fn read_to(&self, uid: Uid, conversation: Conversation) -> Result<MessageId, StoreError> {
        Ok(self.read_markers(&[(uid, conversation)]).await?.pop().unwrap_or_default())
    }

    /// These groups as last accepted, in order.
    async fn groups(&self, gids: &[GroupId]) -> Result<Vec<Option<Arc<Group>>>, StoreError>;

    /// A group as last accepted.
    async fn group(&self, gid: GroupId) -> Result<Option<Arc<Group>>, StoreError> {
        Ok(self.groups(&[gid]).await?.pop().flatten())
    }

    /// The users whose inboxes a walk over all rows comes through (S15): in the order of (partition key, uid) or against it, from `from`
    /// on, at most `limit`. One whose rows are gone may be among them; nobody without an id is.
    async fn inboxes(
        &self,
        from: (&str, i64),
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Uid>, StoreError>;

    /// The largest number of a group; 0 without groups. New ones get larger numbers.
    async fn largest_group_id(&self) -> Result<GroupId, StoreError>;

    /// The name of this unbroken life of the data (I14).
    async fn history(&self) -> Result<HistoryId, StoreError>;

    /// Whether a commit may leave copies owed that nobody delivers but who walks over them ([`pending`](Self::pending)) now and then.
    fn leaves_copies_owed(&self) -> bool {
        false
    }

    /// Whether it refuses a copy that comes before an earlier one of the same sender for the same inbox which is still owed. Then nobody has to
    /// wait until what is owed is written.
    fn refuses_early_copies(&self) -> bool {
        false
    }

    /// How the store is doing; for readiness and metrics, not for deciding anything.
    fn health(&self) -> Health;

    /// Finishes background work and closes the files. Nothing may be asked afterwards.
    async fn close(&self);
}
