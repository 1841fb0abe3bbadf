//! A request to write something, and the answer: the first and the last stage of the way of a message.
//!
//! `app` makes requests and gets acknowledgements; `plan` decides about them. [`Queued`] is a request in its queue.

use std::borrow::Cow;
use std::time::Duration;

use tokio::sync::oneshot;

use super::SendError;
use super::pipeline::PipelinePlace;
use crate::domain::{
    Amendment, Attached, Body, ClientId, Conversation, Digest, GroupId, GroupSetting, Kind, Mentions,
    MessageId, Progress, ReadCount, Role, Timestamp, Uid,
};

/// A request to write something.
#[derive(Clone, Debug)]
pub enum Request {
    /// Say something to a person or group.
    Message(OutgoingMessage),
    /// Put a row into one inbox, without a copy for the sender.
    Post(Post),
    /// Edit or take back a message of the caller, react to any, pin any, or star or delete the caller's copy of any.
    Amend(Amend),
    /// Put a row into the caller's inbox and into the inboxes of others that the caller has found out.
    Publish(Publish),
    /// Move the caller's read marker.
    Read {
        /// Where.
        conversation: Conversation,
        /// Up to which row of the caller's inbox.
        message_id: MessageId,
    },
    /// Tell another person how far that person's messages have come.
    Seen {
        /// The sender of the messages.
        of: Uid,
        /// The last of them: a row of the caller's inbox.
        message_id: MessageId,
        /// How far.
        progress: Progress,
    },
    /// Tell an author how many have read the own messages in a group; made by the server.
    ReadCounts {
        /// Which group.
        gid: GroupId,
        /// How many have read each of them, the newest first.
        counts: Vec<ReadCount>,
    },
    /// Make or change a group.
    Group {
        /// By which a repetition is known, and the row that it makes (I5).
        client_id: ClientId,
        /// Which group; for a making, a number never used before.
        gid: GroupId,
        /// The change.
        action: GroupAction,
    },
}

impl Request {
    /// Whether it is a message of a person.
    pub(super) fn is_message(&self) -> bool {
        matches!(self, Request::Message(_))
    }

    /// Whether `who` only takes back what was said before, or leaves: all that is still done for an account that is deleted.
    pub(super) fn takes_back(&self, who: Uid) -> bool {
        match self {
            Request::Publish(Publish { kind, body, .. }) => match kind {
                Kind::Friend => !body.wanted(),
                Kind::Like => !body.liked(),
                kind => *kind == Kind::Delete,
            },
            Request::Group { action: GroupAction::Remove(uid), .. } => *uid == who,
            _ => false,
        }
    }

    /// Whether it is refused to an account that has had as much stored as it may: neither word of how far somebody has read, nor what takes
    /// something back, nor what keeps others away, nor what lets a guest in.
    pub(super) fn needs_room(&self, who: Uid) -> bool {
        match self {
            Request::Read { .. } | Request::Seen { .. } | Request::ReadCounts { .. } => false,
            Request::Amend(Amend { amendment, .. }) => amendment.adds(),
            Request::Publish(Publish { kind: Kind::Setting, .. }) => false,
            Request::Group { action, .. } => !matches!(
                action,
                GroupAction::Admit { .. }
                    | GroupAction::Remove(_)
                    | GroupAction::Role(..)
                    | GroupAction::Ban(_)
                    | GroupAction::Unban(_)
                    | GroupAction::Mute(..)
                    | GroupAction::Unmute(_)
            ),
            _ => !self.takes_back(who),
        }
    }

    /// By which a repetition is known, if its client said that.
    pub fn client_id(&self) -> Option<ClientId> {
        match self {
            Request::Message(message) => Some(message.client_id),
            Request::Amend(amend) => Some(amend.client_id),
            Request::Publish(publish) => Some(publish.client_id),
            Request::Post(post) => post.client_id,
            Request::Group { client_id, .. } => Some(*client_id),
            Request::Read { .. } | Request::Seen { .. } | Request::ReadCounts { .. } => None,
        }
    }
}

/// A message to be sent.
#[derive(Clone, Debug)]
pub struct OutgoingMessage {
    /// By which a repetition is known: it gets the first answer (I4).
    pub client_id: ClientId,
    /// The receiver.
    pub to: Conversation,
    /// The text.
    pub text: String,
    /// The row of the sender's own inbox that it replies to: a message of the same conversation.
    pub reply_to: Option<MessageId>,
    /// The row of the sender's own inbox that it forwards: a message with this text.
    pub forward: Option<MessageId>,
    /// The files that it names; of a forwarded message those of that row.
    pub files: Vec<Attached>,
    /// Mentioned users. Those that are not members are dropped.
    pub mentions: Mentions,
}

impl OutgoingMessage {
    /// Taken of the text as it came, so that a repetition is known again even where the limits have changed in between (I4).
    pub(super) fn digest(&self) -> Digest {
        // No text of a person begins with a zero byte.
        let mut text = Cow::Borrowed(&*self.text);
        if let Some(row) = self.reply_to {
            text = Cow::Owned(format!("\0reply\0{row}\0{text}"));
        }
        match self.forward {
            Some(row) => text = Cow::Owned(format!("\0forward\0{row}\0{text}")),
            None if !self.files.is_empty() => {
                let files: Vec<String> = self.files.iter().map(Attached::words).collect();
                text = Cow::Owned(format!("\0files\0{}\0{text}", files.join("\n")));
            }
            None => {}
        }
        if !self.mentions.is_empty() {
            let Mentions { users, all } = &self.mentions;
            let users: Vec<String> = users.iter().map(Uid::to_string).collect();
            text = Cow::Owned(format!("\0mentions\0{all}\0{}\0{text}", users.join(" ")));
        }
        Digest::of(self.to, &text)
    }
}

/// Something to be done to a message that was sent.
#[derive(Clone, Debug)]
pub struct Amend {
    /// By which a repetition is known: it gets the first answer (I4).
    pub client_id: ClientId,
    /// Where the message is, as the caller sees it.
    pub conversation: Conversation,
    /// The caller's own copy.
    pub message_id: MessageId,
    /// The amendment.
    pub amendment: Amendment,
}

impl Amend {
    pub(super) fn digest(&self) -> Digest {
        let what = self.amendment.words();
        Digest::of(self.conversation, &format!("\0amend\0{}\0{what}", self.message_id))
    }
}

/// Something that is told to a circle of people: a setting to oneself, a friend request to two, a moment to all friends.
#[derive(Clone, Debug)]
pub struct Publish {
    /// By which a repetition is known: it gets the first answer (I4).
    pub client_id: ClientId,
    /// The kind of the row.
    pub kind: Kind,
    /// In which conversation, from the sender's side.
    pub target: Conversation,
    /// The body of the row, without its files.
    pub body: Body,
    /// The files that it names.
    pub files: Vec<Attached>,
    /// The receivers beside the sender; each of them exists.
    pub others: Vec<Uid>,
}

impl Publish {
    /// Leaves out the receivers, and what the server knows of the files: they may have changed before a repetition.
    pub(super) fn digest(&self) -> Digest {
        let Publish { kind, body, files, .. } = self;
        let files: Vec<String> = files.iter().map(|file| format!("\0{}", file.words())).collect();
        // No text of a person begins with a zero byte.
        Digest::of(self.target, &format!("\0publish\0{}\0{}{}", kind.code(), body.as_json(), files.concat()))
    }
}

/// A row that a program puts into one inbox through the table `inbox` (S19).
#[derive(Clone, Debug)]
pub struct Post {
    /// By which a repetition is known; without it each one is new.
    pub client_id: Option<ClientId>,
    /// The owner of the inbox.
    pub receiver: Uid,
    /// In which conversation, as the sender sees it: with the receiver, or in a group that both are in.
    pub target: Conversation,
    /// [`Kind::Message`] or [`Kind::App`].
    pub kind: Kind,
    /// The body of the row.
    pub body: Body,
}

impl Post {
    pub(super) fn digest(&self) -> Digest {
        let Post { receiver, kind, body, .. } = self;
        // No text of a person begins with a zero byte.
        Digest::of(self.target, &format!("\0post\0{receiver}\0{}\0{}", kind.code(), body.as_json()))
    }
}

/// A change of a group.
#[derive(Clone, Debug)]
pub enum GroupAction {
    /// Make it; the maker is in it without being named.
    Create {
        /// Its name.
        name: String,
        /// Its first members.
        members: Vec<Uid>,
    },
    /// Take somebody in.
    Add(Uid),
    /// Take somebody in who follows an invitation.
    Admit {
        /// The guest.
        guest: Uid,
        /// When the invitation was made: a guest that was removed since then stays out.
        made_at: Timestamp,
    },
    /// Put somebody out; oneself: leave.
    Remove(Uid),
    /// Give it another name, topic or such.
    Set(GroupSetting),
    /// Give a member another role.
    Role(Uid, Role),
    /// Keep somebody out; a member is put out.
    Ban(Uid),
    /// Lift a ban.
    Unban(Uid),
    /// Refuse somebody's messages to the group, for so long; `None`: for good.
    Mute(Uid, Option<Duration>),
    /// Take them again.
    Unmute(Uid),
}

impl GroupAction {
    /// The user that it names; none for a making.
    pub(super) fn concerns(&self) -> Option<Uid> {
        match *self {
            GroupAction::Create { .. } | GroupAction::Set(_) => None,
            GroupAction::Add(uid)
            | GroupAction::Admit { guest: uid, .. }
            | GroupAction::Remove(uid)
            | GroupAction::Role(uid, _)
            | GroupAction::Ban(uid)
            | GroupAction::Unban(uid)
            | GroupAction::Mute(uid, _)
            | GroupAction::Unmute(uid) => Some(uid),
        }
    }

    /// Tells a repetition from another request. The gid of a new group is no part of it: each request brings its own.
    pub(super) fn digest(&self, gid: GroupId) -> Digest {
        let (gid, what) = match self {
            GroupAction::Create { name, members } => {
                let members: Vec<String> = members.iter().map(Uid::to_string).collect();
                (GroupId(0), format!("create\0{name}\0{}", members.join(" ")))
            }
            GroupAction::Add(uid) | GroupAction::Admit { guest: uid, .. } => (gid, format!("add\0{uid}")),
            GroupAction::Remove(uid) => (gid, format!("remove\0{uid}")),
            GroupAction::Set(setting) => (gid, setting.words()),
            GroupAction::Role(uid, role) => (gid, format!("role\0{uid}\0{}", role.as_str())),
            GroupAction::Ban(uid) => (gid, format!("ban\0{uid}")),
            GroupAction::Unban(uid) => (gid, format!("unban\0{uid}")),
            GroupAction::Mute(uid, time) => {
                let seconds = time.map(|time| time.as_secs().to_string());
                (gid, format!("mute\0{uid}\0{}", seconds.unwrap_or_default()))
            }
            GroupAction::Unmute(uid) => (gid, format!("unmute\0{uid}")),
        };
        // No text of a person begins with a zero byte.
        Digest::of(Conversation::Group(gid), &format!("\0group\0{what}"))
    }
}

/// The acknowledgement of a request: it survives a power cut (I3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendAck {
    /// The id of the sender's own copy, or of a post's row.
    pub message_id: MessageId,
    /// When it was accepted.
    pub sent_at: Timestamp,
    /// Whether it had been accepted before and nothing was written now.
    pub repeated: bool,
}

/// The answer to a request.
pub(super) type RequestAnswer = Result<SendAck, SendError>;

/// A request in its queue, with the way back.
pub(super) struct Queued {
    pub(super) who: Uid,
    pub(super) request: Request,
    /// Its place in a pipeline, which keeps its order.
    pub(super) place: Option<PipelinePlace>,
    /// Absent once it is answered.
    pub(super) reply: Option<oneshot::Sender<RequestAnswer>>,
}

impl Queued {
    /// The user whose queue it goes through: the owner of the row that answers it.
    pub(super) fn goes_through(who: Uid, request: &Request) -> Uid {
        match request {
            Request::Post(post) => post.receiver,
            Request::Seen { of, .. } => *of,
            _ => who,
        }
    }

    /// Whether nothing that it must not overtake was refused.
    pub(super) fn is_in_order(&self) -> bool {
        self.place.as_ref().is_none_or(PipelinePlace::is_in_order)
    }

    pub(super) fn answer(mut self, answer: RequestAnswer) {
        if let Some(place) = &self.place
            && answer.as_ref().is_err_and(SendError::is_retryable)
        {
            // Before the answer: a client that gets it can send nothing but this one through the pipeline.
            place.refused();
        }
        if let Some(reply) = self.reply.take() {
            // The caller may have given up; ignore the error.
            let _ = reply.send(answer);
        }
    }
}

/// A request that nobody answered was lost with its writer, or found no room.
impl Drop for Queued {
    fn drop(&mut self) {
        if let (Some(_), Some(place)) = (&self.reply, &self.place) {
            place.refused();
        }
    }
}

/// Gives all of them the same refusal.
pub(super) fn refuse(requests: Vec<Queued>, refusal: &SendError) {
    for request in requests {
        request.answer(Err(refusal.clone()));
    }
}
