//! The actions of people beside sending messages, one for each kind of row that people make.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;
use serde_json::value::RawValue;
use tidemark_client::{
    ClientFrame, Conversation, Error, History, Http, Kind, Progress, Role, Sent, ServerFrame, Socket,
    SocketOptions,
};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::view::EntryKey;
use crate::{Failure, Result};

/// The kinds of rows that people make. For a new one there is an action in `Contacts::action`.
pub static KINDS: [Kind; 16] = [
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
    Kind::Keep,
];

/// How long one action may take, over all attempts, after the last fault.
const PATIENCE: Duration = Duration::from_secs(240);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(50);
/// How long the answer to a `seen` frame is waited for.
const SEEN_PATIENCE: Duration = Duration::from_secs(10);
/// A heartbeat that is answered by one short frame.
const FAR_AHEAD: u64 = (1 << 53) - 1;

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
    Keep { uid: u32, seconds: u32 },
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
            Action::Keep { .. } => Kind::Keep,
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
            Action::Keep { uid, seconds } => http.keep(key, *uid, *seconds).await.map(Some),
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
