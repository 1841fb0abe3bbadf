//! A row of a user's inbox, and the content that all copies of one fan-out share.

use std::sync::Arc;

use super::{Body, ClientId, Conversation, MessageId, Timestamp, Uid};

/// The kind of a row. Clients skip kinds that they do not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Something a person said.
    Message,
    /// The user's own read marker moved; only in the user's own inbox.
    ReadMarker,
    /// A group was made, or somebody joined or left it.
    Membership,
    /// A row that a program put there, of a kind of its own ([`AppKind`](super::AppKind)). It is no message of a person.
    App,
    /// The sender of a message changed its text.
    Edit,
    /// The sender of a message took it back.
    Recall,
    /// A person's reactions to a message.
    Reaction,
    /// A message that was taken back: its sender and time, without its text.
    Recalled,
    /// A setting of the user, for one conversation or for all; only in the user's own inbox.
    Setting,
    /// One of two people wants to be the other's friend, or no longer.
    Friend,
    /// A person's post to all friends.
    Moment,
    /// A person likes a moment, or no longer.
    Like,
    /// A person's comment on a moment.
    Comment,
    /// A moment or a comment is deleted for everybody, or a message for the user alone.
    Delete,
    /// A message, a moment or a comment that was deleted: without its text.
    Deleted,
    /// How far the other person has got and read the user's messages, or how many members of a group have read them.
    Seen,
    /// A message is pinned for everybody in the conversation, or no longer.
    Pin,
    /// The user wants to find a message again, or no longer; only in the user's own inbox.
    Star,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 18] = [
        Kind::Message,
        Kind::ReadMarker,
        Kind::Membership,
        Kind::App,
        Kind::Edit,
        Kind::Recall,
        Kind::Reaction,
        Kind::Recalled,
        Kind::Setting,
        Kind::Friend,
        Kind::Moment,
        Kind::Like,
        Kind::Comment,
        Kind::Delete,
        Kind::Deleted,
        Kind::Seen,
        Kind::Pin,
        Kind::Star,
    ];

    /// Messages, also those that were taken back.
    pub const SAID: [Kind; 2] = [Kind::Message, Kind::Recalled];

    /// State rows: those that only say what holds now.
    pub const STATE: [Kind; 6] =
        [Kind::ReadMarker, Kind::Setting, Kind::Friend, Kind::Seen, Kind::Pin, Kind::Star];

    /// The word in exports; on the wire it is that of [`Content::kind_name`].
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Message => "message",
            Kind::ReadMarker => "receipt",
            Kind::Membership => "membership",
            Kind::App => "app",
            Kind::Edit => "edit",
            Kind::Recall => "recall",
            Kind::Reaction => "reaction",
            Kind::Recalled => "recalled",
            Kind::Setting => "setting",
            Kind::Friend => "friend",
            Kind::Moment => "moment",
            Kind::Like => "like",
            Kind::Comment => "comment",
            Kind::Delete => "delete",
            Kind::Deleted => "deleted",
            Kind::Seen => "seen",
            Kind::Pin => "pin",
            Kind::Star => "star",
        }
    }

    /// The number in the database; stored, must stay stable.
    pub fn code(self) -> u8 {
        match self {
            Kind::Message => 1,
            Kind::ReadMarker => 2,
            Kind::Membership => 3,
            Kind::App => 4,
            Kind::Edit => 5,
            Kind::Recall => 6,
            Kind::Reaction => 7,
            Kind::Recalled => 8,
            Kind::Setting => 9,
            Kind::Friend => 10,
            Kind::Moment => 11,
            Kind::Like => 12,
            Kind::Comment => 13,
            Kind::Delete => 14,
            Kind::Deleted => 15,
            Kind::Seen => 16,
            Kind::Pin => 17,
            Kind::Star => 18,
        }
    }

    /// The kind stored as `code`.
    pub fn from_code(code: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// Whether it only says what holds now: such rows are no part of a conversation's history.
    pub fn is_state(self) -> bool {
        Kind::STATE.contains(&self)
    }
}

/// The part that is the same in every copy of a fan-out; copies share it by `Arc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The row's kind.
    pub kind: Kind,
    /// The person that said or did it.
    pub sender: Uid,
    /// To whom, from the *sender's* side.
    pub target: Conversation,
    /// By which a repetition is known; made by the server for `membership`, absent for read markers.
    pub client_id: Option<ClientId>,
    /// The body, as JSON.
    pub body: Body,
    /// When it was accepted.
    pub sent_at: Timestamp,
}

/// The key under which a message is accepted once: its sender and its `client_id` (I4).
pub type IdempotencyKey = (Uid, ClientId);

impl Content {
    /// The key of its idempotency record, if it has one.
    pub fn key(&self) -> Option<IdempotencyKey> {
        self.client_id.map(|client_id| (self.sender, client_id))
    }

    /// The kind on the wire: for [`Kind::App`] the program's own.
    pub fn kind_name(&self) -> &str {
        self.app().map_or(self.kind.as_str(), |(kind, _)| kind)
    }

    /// The body on the wire, JSON: for [`Kind::App`] the program's own.
    pub fn body_json(&self) -> &str {
        self.app().map_or(self.body.as_json(), |(_, body)| body)
    }

    fn app(&self) -> Option<(&str, &str)> {
        if self.kind == Kind::App { self.body.app_parts() } else { None }
    }

    /// The conversation in which `receiver` sees it: a one-to-one message is filed under the *other* person.
    pub fn conversation(&self, receiver: Uid) -> Conversation {
        match self.target {
            Conversation::MOMENTS => Conversation::MOMENTS,
            Conversation::User(_) if receiver != self.sender => Conversation::User(self.sender),
            own_side_or_group => own_side_or_group,
        }
    }

    /// Turns the stored per-receiver conversation back into the sender's side, the inverse of [`Content::conversation`].
    pub fn target_of(receiver: Uid, sender: Uid, conversation: Conversation) -> Conversation {
        match conversation {
            Conversation::MOMENTS => Conversation::MOMENTS,
            Conversation::User(_) if receiver != sender => Conversation::User(receiver),
            own_side_or_group => own_side_or_group,
        }
    }

    /// Whether people see it as a line of the conversation, so that the newest one stands for it in lists: also what is left of a message.
    pub fn is_shown(&self) -> bool {
        match self.kind {
            Kind::Message | Kind::Membership | Kind::Recalled => true,
            // Of moments and comments, too, that much is left.
            Kind::Deleted => self.target != Conversation::MOMENTS,
            _ => false,
        }
    }

    /// Whether it is a message of `who`, also one that was taken back.
    pub fn is_said_by(&self, who: Uid) -> bool {
        self.sender == who && Kind::SAID.contains(&self.kind)
    }

    /// Whether `receiver` counts it as unread until read: only others' messages do.
    pub fn counts_as_unread(&self, receiver: Uid) -> bool {
        self.kind == Kind::Message && self.sender != receiver
    }
}

/// One row of one user's inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The owner of the inbox.
    pub receiver: Uid,
    /// The id from the receiver's sequence.
    pub message_id: MessageId,
    /// The part that all copies share.
    pub content: Arc<Content>,
}

impl Entry {
    /// The conversation in which its receiver sees it.
    pub fn conversation(&self) -> Conversation {
        self.content.conversation(self.receiver)
    }

    /// Bytes that it weighs in a page or a frame, roughly: its body and a fixed share for the rest.
    pub fn weight(&self) -> usize {
        self.content.body.as_json().len() + 256
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::GroupId;

    #[test]
    fn each_side_files_a_message_under_the_other_person() {
        let (ann, bob) = (Uid(1), Uid(2));
        let content_to = |target| Content {
            kind: Kind::Message,
            sender: ann,
            target,
            client_id: None,
            body: Body::text("hi", 10).expect("short"),
            sent_at: Timestamp(0),
        };
        let to_bob = content_to(Conversation::User(bob));
        assert_eq!(to_bob.conversation(ann), Conversation::User(bob));
        assert_eq!(to_bob.conversation(bob), Conversation::User(ann));
        let to_all = content_to(Conversation::Group(GroupId(5)));
        for content in [to_bob, to_all, content_to(Conversation::User(ann))] {
            for receiver in [ann, bob] {
                let seen = content.conversation(receiver);
                if content.target == Conversation::User(ann) && receiver == bob {
                    continue; // a note to oneself has no other receiver
                }
                assert_eq!(Content::target_of(receiver, ann, seen), content.target);
            }
        }
    }
}
