//! The actions of people beside sending messages, one for each kind of row that people make.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use serde_json::json;
use serde_json::value::RawValue;
use tidemark_client::{
    ClientFrame, Conversation, Entry, Error, History, Http, Kind, Progress, Recipient, Role, Sent,
    ServerFrame, Socket, SocketOptions,
};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::stage::Joined;
use super::view::EntryKey;
use crate::{Failure, Result};

/// The kinds of rows that people make. For a new one there is an action in `Contacts::action`.
pub static KINDS: [Kind; 15] = [
    Kind::Message,
    Kind::ReadMarker,
    Kind::Membership,
    Kind::Edit,
    Kind::Recall,
    Kind::Reaction,
    Kind::Setting,
    Kind::Friend,
    Kind::Moment,
    Kind::Like,
    Kind::Comment,
    Kind::Delete,
    Kind::Seen,
    Kind::Pin,
    Kind::Star,
];

/// Rows that somebody remembers, to do something to them.
const REMEMBERED: usize = 64;
/// How long one action may take, over all attempts, after the last fault.
const PATIENCE: Duration = Duration::from_secs(240);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(50);
/// How long the answer to a `seen` frame is waited for.
const SEEN_PATIENCE: Duration = Duration::from_secs(10);
/// A heartbeat that is answered by one short frame.
const FAR_AHEAD: u64 = (1 << 53) - 1;

const EMOJI: [&str; 4] = ["👍", "❤️", "😀", "🎉"];

/// A row of one's own inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowPlace {
    pub(super) conversation: Conversation,
    pub(super) message_id: u64,
    pub(super) sender: u32,
    pub(super) client_id: Uuid,
}

impl RowPlace {
    /// By what all copies of the row are known.
    pub(super) fn key(&self) -> EntryKey {
        (self.sender, self.client_id)
    }
}

/// An action of a person.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Edit { at: RowPlace, text: String },
    Recall { at: RowPlace },
    React { at: RowPlace, emoji: Vec<String> },
    Delete { at: RowPlace },
    Pin { at: RowPlace, pinned: bool },
    Star { at: RowPlace, starred: bool },
    Set { conversation: Conversation, name: &'static str, value: String },
    SetForAll { name: &'static str, value: String },
    Befriend { uid: u32, wanted: bool },
    Post { text: String },
    Like { at: RowPlace, liked: bool },
    Comment { at: RowPlace, text: String },
    DeleteMoment { at: RowPlace },
    Read { at: RowPlace },
    Seen { at: RowPlace, progress: Progress },
    Rename { gid: u64, name: String },
    Topic { gid: u64, topic: String },
    History { gid: u64, history: History },
    Role { gid: u64, uid: u32, role: Role },
    Add { gid: u64, uid: u32 },
    Remove { gid: u64, uid: u32 },
    Ban { gid: u64, uid: u32 },
    Unban { gid: u64, uid: u32 },
}

/// How it ended.
#[derive(Clone, Debug)]
pub(super) enum ActionOutcome {
    /// It is durable; what makes a row of a key has an answer.
    Done(Option<Sent>),
    /// Refused for good at the first attempt: it has not happened.
    Refused,
    /// Refused after an attempt without an answer: that one may have done it, or somebody made it impossible meanwhile.
    Unknown,
}

impl Action {
    /// The kind of its row.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Action::Edit { .. } => Kind::Edit,
            Action::Recall { .. } => Kind::Recall,
            Action::React { .. } => Kind::Reaction,
            Action::Delete { .. } | Action::DeleteMoment { .. } => Kind::Delete,
            Action::Set { .. } | Action::SetForAll { .. } => Kind::Setting,
            Action::Befriend { .. } => Kind::Friend,
            Action::Post { .. } => Kind::Moment,
            Action::Like { .. } => Kind::Like,
            Action::Comment { .. } => Kind::Comment,
            Action::Read { .. } => Kind::ReadMarker,
            Action::Seen { .. } => Kind::Seen,
            Action::Pin { .. } => Kind::Pin,
            Action::Star { .. } => Kind::Star,
            Action::Rename { .. }
            | Action::Topic { .. }
            | Action::History { .. }
            | Action::Role { .. }
            | Action::Add { .. }
            | Action::Remove { .. }
            | Action::Ban { .. }
            | Action::Unban { .. } => Kind::Membership,
        }
    }

    /// Does it once, under `key` where it has one.
    pub(super) async fn attempt(&self, http: &Http, key: Uuid) -> std::result::Result<Option<Sent>, Error> {
        let raw =
            |json: &str| RawValue::from_string(json.to_owned()).map_err(|e| Error::Usage(e.to_string()));
        let done = |()| None;
        match self {
            Action::Edit { at, text } => http.edit(key, at.conversation, at.message_id, text).await.map(Some),
            Action::Recall { at } => http.recall(key, at.conversation, at.message_id).await.map(Some),
            Action::React { at, emoji } => {
                http.react(key, at.conversation, at.message_id, emoji).await.map(Some)
            }
            Action::Delete { at } => http.delete_message(key, at.conversation, at.message_id).await.map(Some),
            Action::Pin { at, pinned } => {
                http.pin(key, at.conversation, at.message_id, *pinned).await.map(Some)
            }
            Action::Star { at, starred } => {
                http.star(key, at.conversation, at.message_id, *starred).await.map(Some)
            }
            Action::Set { conversation, name, value } => {
                http.set(key, *conversation, name, &raw(value)?).await.map(Some)
            }
            Action::SetForAll { name, value } => http.set_for_all(key, name, &raw(value)?).await.map(Some),
            Action::Befriend { uid, wanted } => http.befriend(key, *uid, *wanted).await.map(Some),
            Action::Post { text } => http.post_moment(key, text, &[]).await.map(Some),
            Action::Like { at, liked } => http.like(key, at.message_id, *liked).await.map(Some),
            Action::Comment { at, text } => http.comment(key, at.message_id, text).await.map(Some),
            Action::DeleteMoment { at } => http.delete_moment(key, at.message_id).await.map(Some),
            Action::Read { at } => http.mark_read(at.conversation, at.message_id).await.map(done),
            Action::Seen { at, progress } => tell_seen(http, at, *progress).await.map(done),
            Action::Rename { gid, name } => http.describe_group(*gid, Some(name), None).await.map(done),
            Action::Topic { gid, topic } => http.describe_group(*gid, None, Some(topic)).await.map(done),
            Action::History { gid, history } => http.set_history(*gid, *history).await.map(done),
            Action::Role { gid, uid, role } => http.set_role(*gid, *uid, *role).await.map(done),
            Action::Add { gid, uid } => http.add_member(*gid, *uid).await.map(done),
            Action::Remove { gid, uid } => http.remove_member(*gid, *uid).await.map(done),
            Action::Ban { gid, uid } => http.ban(*gid, *uid).await.map(done),
            Action::Unban { gid, uid } => http.unban(*gid, *uid).await.map(done),
        }
    }

    /// Does it until there is an answer for good.
    pub(super) async fn insist(&self, http: &Http, key: Uuid) -> Result<ActionOutcome> {
        let deadline = Instant::now() + PATIENCE;
        let mut is_first = true;
        loop {
            match self.attempt(http, key).await {
                Ok(sent) => return Ok(ActionOutcome::Done(sent)),
                Err(error) if error.is_retryable() && Instant::now() < deadline => sleep(PAUSE).await,
                Err(error) if error.is_retryable() => {
                    return Err(Failure::new(format!("{self:?} got no answer within {PATIENCE:?}: {error}")));
                }
                Err(error) => {
                    let code = error.code().unwrap_or_default();
                    // The client_id is new, and the server must never answer with the other codes.
                    if matches!(code, "" | "client_id_reused" | "internal" | "rejected" | "not_yours") {
                        return Err(Failure::new(format!("{self:?} was refused: {error}")));
                    }
                    return Ok(if is_first { ActionOutcome::Refused } else { ActionOutcome::Unknown });
                }
            }
            is_first = false;
        }
    }
}

/// A frame that only a refusal answers: what the server says next comes after it was read.
async fn tell_seen(http: &Http, at: &RowPlace, progress: Progress) -> std::result::Result<(), Error> {
    let told = async {
        let token = http.token().unwrap_or_default();
        let mut socket = Socket::connect(&http.socket_url(), token, &SocketOptions::default()).await?;
        let RowPlace { conversation, message_id, .. } = *at;
        socket.send(&ClientFrame::Seen { conversation, message_id, progress }).await?;
        socket.send(&ClientFrame::Heartbeat { seq: FAR_AHEAD }).await?;
        loop {
            match socket.receive().await? {
                ServerFrame::Alive { .. } => return socket.close().await,
                ServerFrame::Error { problem, .. } => return Err(Error::Refused(problem)),
                _ => {}
            }
        }
    };
    timeout(SEEN_PATIENCE, told).await.map_err(|_| Error::Transport("no answer in time".to_owned()))?
}

/// The people, groups and latest rows that a person has to do with.
#[derive(Clone, Debug, Default)]
pub(super) struct Contacts {
    pub(super) uid: u32,
    /// The recipients of messages.
    pub(super) recipients: Vec<Recipient>,
    /// Users whose friend the person becomes and ceases to be.
    pub(super) fickle: Vec<u32>,
    /// The group that the person changes, with its possible members.
    pub(super) changing: Option<Changing>,
    /// The group that the person takes others into.
    pub(super) joined: Option<Joined>,
    /// Whether the person blocks people, and hears friends alone.
    pub(super) is_private: bool,
    pub(super) messages: VecDeque<RowPlace>,
    pub(super) moments: VecDeque<RowPlace>,
    pub(super) comments: VecDeque<RowPlace>,
}

/// A group that is changed.
#[derive(Clone, Debug)]
pub(super) struct Changing {
    pub(super) gid: u64,
    /// They get roles.
    pub(super) lasting: Vec<u32>,
    /// They are removed, banned and added.
    pub(super) passing: Vec<u32>,
}

impl Contacts {
    /// Remembers a row.
    pub(super) fn take(&mut self, row: &Entry) {
        let Some(client_id) = row.client_id else { return };
        let (message_id, conversation, sender) = (row.message_id, row.conversation, row.sender);
        let rows = match row.kind {
            Kind::Message => &mut self.messages,
            Kind::Moment => &mut self.moments,
            Kind::Comment => &mut self.comments,
            _ => return,
        };
        if rows.len() == REMEMBERED {
            rows.pop_front();
        }
        rows.push_back(RowPlace { conversation, message_id, sender, client_id });
    }

    /// A message of this conversation to reply to.
    pub(super) fn quoted(&self, to: Recipient, random: &mut StdRng) -> Option<RowPlace> {
        let conversation = match to {
            Recipient::User(uid) => Conversation::User(uid),
            Recipient::Group(gid) => Conversation::Group(gid),
        };
        one(random, self.messages.iter().filter(|place| place.conversation == conversation)).copied()
    }

    /// Something to do that makes rows of this kind, if there is what it takes. `number`: makes texts differ.
    pub(super) fn action(&self, kind: &Kind, number: u64, random: &mut StdRng) -> Option<Action> {
        let uid = self.uid;
        let text = format!("{uid} meant {number}");
        let own = |place: &&RowPlace| place.sender == uid;
        let message = |random: &mut StdRng| one(random, self.messages.iter()).copied();
        let own_message = |random: &mut StdRng| one(random, self.messages.iter().filter(own)).copied();
        let moment = |random: &mut StdRng| one(random, self.moments.iter()).copied();
        Some(match kind {
            Kind::Edit => Action::Edit { at: own_message(random)?, text },
            Kind::Recall => Action::Recall { at: own_message(random)? },
            Kind::Reaction => {
                let count = random.random_range(0..3);
                let emoji = EMOJI.into_iter().skip(count).take(count).map(str::to_owned).collect();
                Action::React { at: message(random)?, emoji }
            }
            Kind::Delete if random.random_bool(0.5) => Action::Delete { at: message(random)? },
            Kind::Delete => {
                let own = self.moments.iter().chain(&self.comments).filter(own);
                Action::DeleteMoment { at: *one(random, own)? }
            }
            Kind::Pin => Action::Pin { at: message(random)?, pinned: random.random_bool(0.5) },
            Kind::Star => Action::Star { at: message(random)?, starred: random.random_bool(0.6) },
            Kind::Setting => self.setting(text, random)?,
            Kind::Friend => {
                Action::Befriend { uid: *one(random, self.fickle.iter())?, wanted: random.random_bool(0.6) }
            }
            Kind::Moment => Action::Post { text },
            Kind::Like => Action::Like { at: moment(random)?, liked: random.random_bool(0.7) },
            Kind::Comment => Action::Comment { at: moment(random)?, text },
            Kind::ReadMarker => {
                let all = self.messages.iter().chain(&self.moments);
                Action::Read { at: *one(random, all)? }
            }
            Kind::Seen => {
                let theirs = |place: &&RowPlace| {
                    place.sender != uid && place.conversation == Conversation::User(place.sender)
                };
                let at = *one(random, self.messages.iter().filter(theirs))?;
                let progress = if random.random_bool(0.5) { Progress::Delivered } else { Progress::Read };
                Action::Seen { at, progress }
            }
            Kind::Membership => self.change(text, random)?,
            _ => return None,
        })
    }

    fn setting(&self, text: String, random: &mut StdRng) -> Option<Action> {
        let conversation = match *one(random, self.recipients.iter())? {
            Recipient::User(uid) => Conversation::User(uid),
            Recipient::Group(gid) => Conversation::Group(gid),
        };
        let (name, value) = match random.random_range(0..if self.is_private { 7 } else { 5 }) {
            0 => ("draft", json!({ "text": text })),
            1 => ("mute", json!({ "until": random.random_range(1..2_000_000_000_000_u64) })),
            2 => ("pin", json!({ "pinned": true })),
            3 => ("hide", json!({ "up_to": random.random_range(1..1_000) })),
            4 => {
                let value = json!({ "about": text }).to_string();
                return Some(Action::SetForAll { name: "profile", value });
            }
            5 => {
                let who = if random.random_bool(0.3) { "friends" } else { "everybody" };
                return Some(Action::SetForAll {
                    name: "privacy",
                    value: json!({ "write": who }).to_string(),
                });
            }
            _ => ("block", json!({ "blocked": true })),
        };
        // Blocks end soon, so that there is something to say.
        let ends = random.random_bool(if name == "block" { 0.8 } else { 0.3 });
        let value = if ends { "null".to_owned() } else { value.to_string() };
        Some(Action::Set { conversation, name, value })
    }

    fn change(&self, text: String, random: &mut StdRng) -> Option<Action> {
        if let Some(Joined { gid, joining, .. }) = &self.joined {
            // Seldom, so that there is a history.
            let uid = *one(random, joining.iter())?;
            return random.random_bool(0.1).then_some(Action::Add { gid: *gid, uid });
        }
        let Changing { gid, lasting, passing } = self.changing.as_ref()?;
        let (gid, lasting, passing) = (*gid, one(random, lasting.iter()), one(random, passing.iter()));
        Some(match random.random_range(0..9) {
            0 => Action::Rename { gid, name: text },
            1 => Action::Topic { gid, topic: text },
            2 | 3 => {
                let role = if random.random_bool(0.5) { Role::Administrator } else { Role::Member };
                Action::Role { gid, uid: *lasting?, role }
            }
            4 => Action::Remove { gid, uid: *passing? },
            5 => Action::Ban { gid, uid: *passing? },
            6 => Action::Unban { gid, uid: *passing? },
            7 => {
                let history = if random.random_bool(0.5) { History::Visible } else { History::Hidden };
                Action::History { gid, history }
            }
            _ => Action::Add { gid, uid: *passing? },
        })
    }
}

/// Any of them.
fn one<T>(random: &mut StdRng, all: impl Iterator<Item = T> + Clone) -> Option<T> {
    let count = all.clone().count();
    if count == 0 { None } else { all.clone().nth(random.random_range(0..count)) }
}

/// The same, but messages.
pub(super) fn made_by_people() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().filter(|kind| **kind != Kind::Message)
}

/// Locks it, poisoned or not: no holder can leave it half-changed.
pub(super) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Another name for a row.
pub(super) fn name(random: &mut StdRng) -> Uuid {
    let mut bytes = [0; 16];
    random.fill_bytes(&mut bytes);
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}
