//! A row of a user's inbox, and the content that all copies of one fan-out share.

use std::sync::Arc;

use super::{Body, ClientId, Conversation, Kind, MessageId, Timestamp, Uid};

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

    /// Whether the newest of such rows stands for the conversation in lists: also what is left of a message.
    pub fn is_shown(&self) -> bool {
        // Of moments and comments, too, something is left when they are deleted.
        self.kind.is_shown() && self.target != Conversation::MOMENTS
    }

    /// Up to where its reader has read, if it is a read marker.
    pub fn read_to(&self) -> Option<MessageId> {
        if self.kind == Kind::ReadMarker { self.body.read_to() } else { None }
    }

    /// Whether it is a message of `who`, also one that was taken back.
    pub fn is_said_by(&self, who: Uid) -> bool {
        self.sender == who && self.kind.is_said()
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
