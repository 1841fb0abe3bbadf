//! Bodies of the HTTP interface's questions and answers.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{Conversation, Draft, Entry, Sent};
use crate::error::Problem;

/// A fresh session.
#[derive(Clone, Serialize, Deserialize)]
pub struct Account {
    /// The user's number.
    pub uid: u32,
    /// The user's name.
    pub name: String,
    /// Proves who one is, until logged out. Keep it secret.
    pub token: String,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Account {{ uid: {}, name: {:?}, token: … }}", self.uid, self.name)
    }
}

/// The logged-in user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Me {
    /// The user's number.
    pub uid: u32,
    /// The user's name.
    pub name: String,
    /// The user's latest id.
    pub seq: u64,
    /// The name of this life of the data (I14).
    pub history: String,
}

/// Somebody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// The user's number.
    pub uid: u32,
    /// The user's name.
    pub name: String,
}

/// Somebody as others see that person.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ShownPerson {
    /// The user's number.
    pub uid: u32,
    /// The user's name.
    pub name: String,
    /// The account is deleted.
    #[serde(default)]
    pub deleted: bool,
    /// The hue of the user's disc, 0 to 359.
    pub hue: Option<u16>,
    /// A line that the user says about himself.
    pub about: Option<String>,
    /// The user's picture, for [`crate::Http::picture`].
    pub picture: Option<Uuid>,
}

/// When somebody was online last.
#[derive(Deserialize)]
pub(crate) struct SeenLast {
    pub(crate) last_seen: Option<String>,
}

/// The latest committed id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seq {
    /// The caller's latest id.
    pub seq: u64,
    /// The name of this life of the data (I14).
    pub history: String,
}

/// The outcome of one message of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum BatchOutcome {
    /// Durable.
    Sent(Sent),
    /// Not stored.
    Refused {
        /// Why.
        error: Problem,
    },
}

/// A search among one's own messages and moments; at least one of the first five is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchQuery {
    /// Words and parts of words, each of which the text has; case and accents do not matter.
    pub words: Option<String>,
    /// In this conversation alone.
    pub conversation: Option<Conversation>,
    /// Of this user alone.
    pub sender: Option<u32>,
    /// Sent then or later, in milliseconds since 1970-01-01 UTC.
    pub from: Option<u64>,
    /// Sent before then.
    pub to: Option<u64>,
    /// With smaller ids: `next_before` of the page before.
    pub before: Option<u64>,
    /// The largest number of hits, 1 to 200 (the server's default when `None`).
    pub limit: Option<u32>,
}

/// A page of what was found.
#[derive(Clone, Debug, Deserialize)]
pub struct SearchPage {
    /// Newest first.
    pub hits: Vec<SearchHit>,
    /// Where the next page begins; `None`: there is nothing more.
    pub next_before: Option<u64>,
    /// `false`: messages that were edited lately may be missing on this page.
    pub complete: bool,
}

/// A row that was found.
#[derive(Clone, Debug, Deserialize)]
pub struct SearchHit {
    /// The row.
    pub row: Entry,
    /// Where the words stand in its text: from which character (`char`) up to before which.
    pub marks: Vec<(u32, u32)>,
}

/// One end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeEnd {
    /// Below every id.
    Min,
    /// This id.
    At(u64),
    /// Above every id.
    Max,
}

impl fmt::Display for RangeEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RangeEnd::Min => f.write_str("INF_MIN"),
            RangeEnd::At(id) => write!(f, "{id}"),
            RangeEnd::Max => f.write_str("INF_MAX"),
        }
    }
}

/// Which way a range is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Oldest first; `start` below `end`.
    Forward,
    /// Newest first; `start` above `end`.
    Backward,
}

/// A question to the caller's own rows (S20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeQuery {
    /// Where to begin, inclusive.
    pub start: RangeEnd,
    /// Where to stop, exclusive.
    pub end: RangeEnd,
    /// The largest number of rows, 1 to 5,000 (the server's default when `None`).
    pub limit: Option<u32>,
    /// Which way.
    pub direction: Direction,
}

impl RangeQuery {
    /// Everything newer than `cursor`, oldest first.
    pub fn after(cursor: u64) -> RangeQuery {
        let start = RangeEnd::At(cursor.saturating_add(1));
        RangeQuery { start, end: RangeEnd::Max, limit: None, direction: Direction::Forward }
    }
}

/// A page of a range.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RangePage {
    /// The rows, in the direction asked for.
    pub rows: Vec<Entry>,
    /// Ask again from here, with the same end; `None` = the whole range was answered.
    pub next_start: Option<u64>,
    /// The cost of the page.
    pub consumed: Consumed,
}

/// Capacity units of 4 KB, rounded up once over the page (S20).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Consumed {
    /// Units read.
    pub read: u64,
}

/// One line of the conversation list.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ConversationSummary {
    /// Which.
    pub id: Conversation,
    /// The person's or the group's name.
    pub title: String,
    /// The group's picture, for [`crate::Http::picture`].
    #[serde(default)]
    pub picture: Option<Uuid>,
    /// The newest row.
    pub last: Option<Entry>,
    /// Others' messages above the read marker.
    pub unread: u64,
    /// Those among the newest of them that name the caller, in a group.
    #[serde(default)]
    pub mentions: u64,
    /// The read marker.
    pub read_to: u64,
    /// How far the caller's messages have come there: the newest `seen` row of each state.
    #[serde(default)]
    pub seen: Vec<Entry>,
}

/// A page of one conversation, newest first.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ConversationPage {
    /// The rows.
    pub rows: Vec<Entry>,
    /// Ask for what is before this id; `None` = that was all, or [`ConversationPlace::After`] was asked for.
    pub next_before: Option<u64>,
    /// Ask for what is after this id; `None` = that was all, or no place was asked for.
    #[serde(default)]
    pub next_after: Option<u64>,
}

/// Which rows of a conversation are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversationPlace {
    /// Those that follow this id.
    After(u64),
    /// Those on both sides of this id.
    Around(u64),
    /// Those on both sides of the first row that was sent at this time or later: milliseconds since 1970-01-01 UTC.
    Since(u64),
    /// Those on both sides of the caller's copy of this message.
    Message {
        /// The user who sent it.
        sender: u32,
        /// The key under which it was sent.
        client_id: Uuid,
    },
}

/// A group and who is in it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Group {
    /// The group's number.
    pub gid: u64,
    /// The group's name.
    pub name: String,
    /// The group's purpose; may be empty.
    #[serde(default)]
    pub topic: String,
    /// The earlier messages that new members see.
    #[serde(default)]
    pub history: History,
    /// Seconds between two messages of one member who is no administrator; 0: no slow mode.
    #[serde(default)]
    pub slow_seconds: u16,
    /// Seconds for which messages are kept; 0: for good, as far as the server keeps them.
    #[serde(default)]
    pub keep_seconds: u32,
    /// Its picture, for [`crate::Http::picture`].
    #[serde(default)]
    pub picture: Option<Uuid>,
    /// Its members.
    pub members: Vec<Member>,
}

/// Somebody in a group.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Member {
    /// The member's uid.
    pub uid: u32,
    /// The member's name.
    pub name: String,
    /// The member's permissions.
    #[serde(default)]
    pub role: Role,
    /// Their messages to the group are refused.
    #[serde(default)]
    pub muted: Option<Muted>,
}

/// How long a member of a group is muted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Muted {
    /// When it ends, RFC 3339 in UTC; `None`: it is for good.
    #[serde(default)]
    pub until: Option<String>,
}

/// The earlier messages that new members of a group see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum History {
    /// Nothing.
    #[default]
    Hidden,
    /// The newest messages.
    Visible,
}

/// The permissions of a group member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// Write, add people, make invitations, leave.
    #[default]
    Member,
    /// That, and take back others' messages, pin, remove, ban and mute members, set name, topic, history and slow mode, see reports,
    /// revoke invitations.
    Administrator,
    /// That, and choose the administrators and the owner.
    Owner,
}

/// What is wrong with a message or a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Reason {
    /// Advertising and the like.
    Spam,
    /// Somebody is insulted or threatened.
    Harassment,
    /// A law is broken.
    Illegal,
    /// Something else, which the text says.
    Other,
}

/// Reports of a group's messages, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ReportPage {
    /// Those that no administrator has dismissed.
    pub reports: Vec<Report>,
    /// Ask for what comes after this number; `None`: that was all.
    pub next: Option<u64>,
}

/// A report of a group's message, as its administrators see it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Report {
    /// Its number.
    pub number: u64,
    /// When it was made, RFC 3339 in UTC.
    pub made_at: String,
    /// What is wrong.
    pub reason: Reason,
    /// The same in the reporter's own words; may be empty.
    pub text: String,
    /// The sender of the message.
    pub about: Person,
    /// The message.
    pub message: ReportedMessage,
}

/// A message that was reported.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ReportedMessage {
    /// Its text when it was reported.
    pub text: String,
    /// When it was sent, RFC 3339 in UTC.
    pub sent_at: String,
    /// The caller's own copy; `None`: it was taken back, or the caller has none.
    #[serde(default)]
    pub message_id: Option<u64>,
}

#[derive(Serialize)]
pub(crate) struct BatchRequest<'a> {
    pub(crate) messages: &'a [Draft],
}

#[derive(Deserialize)]
pub(crate) struct BatchAnswer {
    pub(crate) results: Vec<BatchOutcome>,
}

#[derive(Deserialize)]
pub(crate) struct Readers {
    pub(crate) readers: Vec<Person>,
}

#[derive(Deserialize)]
pub(crate) struct GroupMade {
    pub(crate) gid: u64,
}

#[derive(Serialize)]
pub(crate) struct NewValue<'a> {
    pub(crate) client_id: Uuid,
    pub(crate) value: &'a RawValue,
}

#[derive(Default, Serialize)]
pub(crate) struct Description<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) topic: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) history: Option<History>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slow_seconds: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) keep_seconds: Option<u32>,
}

#[derive(Deserialize)]
pub(crate) struct Ticket {
    pub(crate) ticket: String,
}
