//! Amendments: rows about an earlier message, and which earlier rows they make superfluous.
//!
//! Each copy of a message has an id of its own, so an amendment names the message by its sender and client_id. An edit and a
//! recall also change the stored message: whoever reads it later finds the new text, or none. A reaction says all that one person
//! reacts with; a later one takes its place.
//!
//! The text of a recalled message stays where nobody reads by the API: in the journal until it is written over, in free
//! pages and dead rows of the databases, in their logs, in backups, and in exports made before. Somebody who had left
//! the group keeps their copy. An acceptance with copies owed is exported as it was made. On PostgreSQL a server that
//! has not heard of the recall yet may hand out the row from its memory, for one heartbeat interval at most; the recall
//! follows it (I15).

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::forward::FORWARDED_FROM;
use super::{Body, ClientId, Content, IdempotencyKey, Kind, MessageId, TextError, Uid, normal_emoji};

/// Pinned messages of one conversation, at most.
pub const MOST_PINS: usize = 50;

/// The body of a message that its sender took back. Stored; must stay stable.
const RECALLED: &str = r#"{"recalled":true}"#;

/// The body of what was deleted. Stored; must stay stable.
const DELETED: &str = r#"{"deleted":true}"#;

/// The change that an amendment makes to its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Amendment {
    /// Another text takes the place of the first.
    Edit(String),
    /// The text is taken back, by its sender or by an administrator of the group.
    Recall,
    /// The message is deleted for the person alone who asks for it.
    Delete,
    /// The person's reactions from now on, in that person's order and in their normal form; empty: none.
    React(Vec<String>),
    /// The message is pinned for everybody in the conversation, or no longer.
    Pin(bool),
    /// The person alone wants to find the message again, or no longer.
    Star {
        /// The person's own copy.
        copy: MessageId,
        /// Whether it is starred from now on.
        starred: bool,
    },
}

impl Amendment {
    /// A reaction with these emoji, however they were typed.
    pub fn reaction(emoji: &[String]) -> Amendment {
        Amendment::React(emoji.iter().map(|emoji| normal_emoji(emoji)).collect())
    }

    /// The kind of its row.
    pub fn kind(&self) -> Kind {
        match self {
            Amendment::Edit(_) => Kind::Edit,
            Amendment::Recall => Kind::Recall,
            Amendment::Delete => Kind::Delete,
            Amendment::React(_) => Kind::Reaction,
            Amendment::Pin(_) => Kind::Pin,
            Amendment::Star { .. } => Kind::Star,
        }
    }

    /// By which a digest tells it from others. Stored; must stay stable.
    pub fn words(&self) -> String {
        match self {
            Amendment::Edit(text) => format!("edit\0{text}"),
            Amendment::Recall => "recall".to_owned(),
            Amendment::Delete => "delete".to_owned(),
            Amendment::React(emoji) => format!("react\0{}", emoji.join(" ")),
            Amendment::Pin(pinned) => format!("pin\0{pinned}"),
            Amendment::Star { starred, .. } => format!("star\0{starred}"),
        }
    }

    /// Whether something is added to the message, and nothing taken away.
    pub fn adds(&self) -> bool {
        match self {
            Amendment::Edit(_) => true,
            Amendment::Recall | Amendment::Delete => false,
            Amendment::React(emoji) => !emoji.is_empty(),
            Amendment::Pin(adds) | Amendment::Star { starred: adds, .. } => *adds,
        }
    }

    /// Whether the person alone gets its row, also where the person may not write any more.
    pub fn is_private(&self) -> bool {
        matches!(self, Amendment::Delete | Amendment::Star { .. })
    }

    /// Whether others must take it from the person: what they get from others, but for a text that is taken back.
    pub fn must_be_taken(&self) -> bool {
        !self.is_private() && *self != Amendment::Recall
    }
}

/// The change that a row makes to the one that it names.
#[derive(Clone, Debug)]
pub struct Change {
    /// The kinds that change.
    pub from: fn(Kind) -> bool,
    /// The kind of the other row from then on.
    pub kind: Kind,
    /// Its body from then on.
    pub body: Box<str>,
}

/// Which message an amendment is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Of {
    sender: u32,
    client_id: uuid::Uuid,
}

#[derive(Deserialize)]
struct Amending<'a> {
    of: Of,
    /// The new body of an edited message.
    #[serde(borrow)]
    body: Option<&'a RawValue>,
}

impl Body {
    /// This body of a person's reply to `quoted`, a message in the same conversation. It names that message and does not carry its
    /// text, which may be edited or taken back.
    pub fn replying(self, quoted: &Content) -> Body {
        let Some((sender, client_id)) = quoted.key() else { return self };
        let of = Of { sender: sender.0, client_id: client_id.0 };
        let mut body: serde_json::Map<_, _> = serde_json::from_str(self.as_json()).unwrap_or_default();
        body.insert("reply_to".to_owned(), json!({ "of": of }));
        Body::from_stored(serde_json::Value::Object(body).to_string())
    }

    /// The body of an amendment of the message `amended`, which has the key `of`. `limit` counts the characters of a new text.
    ///
    /// # Errors
    /// As [`Body::text`].
    pub fn amendment(
        amendment: &Amendment,
        of: IdempotencyKey,
        amended: &Content,
        limit: usize,
    ) -> Result<Body, TextError> {
        let of = Of { sender: of.0.0, client_id: of.1.0 };
        let body = match amendment {
            Amendment::Edit(text) => {
                match amended.body.files().is_empty() {
                    true => Body::text(text, limit)?,
                    false => Body::caption(text, limit)?,
                };
                let mut body: serde_json::Map<_, _> =
                    serde_json::from_str(amended.body.as_json()).unwrap_or_default();
                body.insert("text".to_owned(), json!(text));
                body.insert("edited".to_owned(), json!(true));
                body.remove(FORWARDED_FROM);
                json!({ "of": of, "body": body })
            }
            Amendment::Recall | Amendment::Delete => json!({ "of": of }),
            Amendment::React(emoji) => json!({ "of": of, "emoji": emoji }),
            Amendment::Pin(pinned) => json!({ "of": of, "pinned": pinned }),
            Amendment::Star { copy, starred } => {
                json!({ "of": of, "message_id": copy.get(), "starred": starred })
            }
        };
        Ok(Body::from_stored(body.to_string()))
    }

    /// Whether somebody reacts with anything.
    pub fn has_emoji(&self) -> bool {
        #[derive(Deserialize)]
        struct Reacting {
            emoji: Vec<serde::de::IgnoredAny>,
        }
        serde_json::from_str(self.as_json()).is_ok_and(|Reacting { emoji }| !emoji.is_empty())
    }

    /// Whether the row pins its message.
    pub fn pinned(&self) -> bool {
        #[derive(Deserialize)]
        struct Pinned {
            pinned: bool,
        }
        serde_json::from_str(self.as_json()).is_ok_and(|Pinned { pinned }| pinned)
    }

    /// The copy that the row stars; `None`: it takes a star away.
    pub fn starred(&self) -> Option<MessageId> {
        #[derive(Deserialize)]
        struct Starred {
            message_id: u64,
            starred: bool,
        }
        let Starred { message_id, starred } = serde_json::from_str(self.as_json()).ok()?;
        MessageId::new(message_id).filter(|_| starred)
    }

    /// The text of a message.
    pub fn said(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Said {
            text: String,
        }
        serde_json::from_str::<Said>(self.as_json()).ok().map(|said| said.text)
    }
}

impl Content {
    /// The key of the message that this row is about, if it is an amendment.
    pub fn of(&self) -> Option<IdempotencyKey> {
        if !self.kind.names_another() {
            return None;
        }
        let Amending { of, .. } = serde_json::from_str(self.body.as_json()).ok()?;
        Some((Uid(of.sender), ClientId(of.client_id)))
    }

    /// The key of the message that this row changes, if it is an edit, a recall or a deletion.
    pub fn changes_message(&self) -> Option<IdempotencyKey> {
        if matches!(self.kind, Kind::Edit | Kind::Recall | Kind::Delete) { self.of() } else { None }
    }

    /// Whether this row is an edit of the message that `deletion` deletes: the text goes with its message, whichever of the two rows came
    /// first.
    pub fn is_edit_deleted_by(&self, deletion: &Content) -> bool {
        self.kind == Kind::Edit && deletion.kind == Kind::Delete && self.of() == deletion.of()
    }

    /// The rest of this row when it has expired and still stands for its conversation in lists: as if it were deleted. It has no key any
    /// more, since the record under that key goes, too.
    pub fn shell(&self) -> Content {
        Content { kind: Kind::Deleted, body: Body::from_stored(DELETED), client_id: None, ..self.clone() }
    }

    /// Whether it is such a shell.
    pub fn is_shell(&self) -> bool {
        self.kind == Kind::Deleted && self.client_id.is_none()
    }

    /// The change that this row makes to its message, if it is an edit, a recall or a deletion.
    pub fn change(&self) -> Option<Change> {
        let is_message = |kind| kind == Kind::Message;
        match self.kind {
            Kind::Edit => {
                let Amending { body, .. } = serde_json::from_str(self.body.as_json()).ok()?;
                Some(Change { from: is_message, kind: Kind::Message, body: body?.get().into() })
            }
            Kind::Recall => {
                let (author, _) = self.of()?;
                let body = match author == self.sender {
                    true => RECALLED.into(),
                    // Stored; must stay stable.
                    false => json!({ "recalled": true, "by": self.sender.0 }).to_string().into(),
                };
                Some(Change { from: is_message, kind: Kind::Recalled, body })
            }
            Kind::Delete => {
                Some(Change { from: Kind::is_deletable, kind: Kind::Deleted, body: DELETED.into() })
            }
            _ => None,
        }
    }

    /// This message, moment or comment as the edit, recall or deletion `by` leaves it; `None` when it stays as it is.
    pub fn amended(&self, by: &Content) -> Option<Content> {
        let Change { kind, body, .. } = by.change().filter(|change| (change.from)(self.kind))?;
        Some(Content { kind, body: Body::from_stored(body), ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Conversation, Timestamp};
    use uuid::Uuid;

    fn content(kind: Kind, sender: u32, body: Body) -> Content {
        Content {
            kind,
            sender: Uid(sender),
            target: Conversation::User(Uid(2)),
            client_id: Some(ClientId(Uuid::from_u128(7))),
            body,
            sent_at: Timestamp(0),
        }
    }

    fn said(text: &str) -> Content {
        content(Kind::Message, 1, Body::text(text, 99).expect("short"))
    }

    fn amendment(of: &Content, sender: u32, amendment: &Amendment) -> Content {
        let body = Body::amendment(amendment, of.key().expect("named"), of, 99).expect("short");
        content(amendment.kind(), sender, body)
    }

    /// They lie in the tables, in journals and in exports, and devices read them as they are.
    #[test]
    fn bodies_and_keys_stay_as_they_are_stored() {
        let message = said("hi");
        let edit = amendment(&message, 1, &Amendment::Edit("ho".to_owned()));
        let of = r#"{"client_id":"00000000-0000-0000-0000-000000000007","sender":1}"#;
        assert_eq!(edit.body.as_json(), format!(r#"{{"body":{{"edited":true,"text":"ho"}},"of":{of}}}"#));
        assert_eq!(
            edit.compaction_key(Uid(2)).as_deref(),
            Some("amend 1 00000000-0000-0000-0000-000000000007")
        );
        let recall = amendment(&message, 1, &Amendment::Recall);
        assert_eq!(recall.body.as_json(), format!(r#"{{"of":{of}}}"#));
        assert_eq!(recall.compaction_key(Uid(2)), edit.compaction_key(Uid(2)));
        let reaction = amendment(&message, 2, &Amendment::React(vec!["👍".to_owned()]));
        assert_eq!(reaction.body.as_json(), format!(r#"{{"emoji":["👍"],"of":{of}}}"#));
        assert_eq!(
            reaction.compaction_key(Uid(2)).as_deref(),
            Some("react 2 1 00000000-0000-0000-0000-000000000007")
        );
        let pin = amendment(&message, 2, &Amendment::Pin(true));
        assert_eq!(pin.body.as_json(), format!(r#"{{"of":{of},"pinned":true}}"#));
        assert!(pin.body.pinned());
        let copy = MessageId::new(41).expect("small");
        let star = amendment(&message, 2, &Amendment::Star { copy, starred: true });
        assert_eq!(star.body.as_json(), format!(r#"{{"message_id":41,"of":{of},"starred":true}}"#));
        assert_eq!(star.body.starred(), Some(copy));
        let unstar = amendment(&message, 2, &Amendment::Star { copy, starred: false });
        assert_eq!((unstar.body.starred(), unstar.of()), (None, message.key()));
        let reply = Body::text("ho", 9).expect("short").replying(&message);
        assert_eq!(reply.as_json(), format!(r#"{{"reply_to":{{"of":{of}}},"text":"ho"}}"#));
        let marker = Content { client_id: None, kind: Kind::ReadMarker, ..message.clone() };
        assert_eq!(marker.compaction_key(Uid(1)).as_deref(), Some("read u:2"));
        assert_eq!(message.compaction_key(Uid(1)), None);
    }

    #[test]
    fn an_edit_keeps_what_the_message_replied_to_and_a_recall_is_the_last_word() {
        let quoted = said("first");
        let reply = content(Kind::Message, 1, Body::text("second", 9).expect("short").replying(&quoted));
        let edit = amendment(&reply, 1, &Amendment::Edit("2nd".to_owned()));
        let edited = reply.amended(&edit).expect("changed");
        assert_eq!(edited.body.said().as_deref(), Some("2nd"));
        assert!(edited.body.as_json().contains("reply_to"), "{}", edited.body.as_json());
        let forwarded = content(Kind::Message, 1, Body::text("first", 9).expect("short").forwarding(&quoted));
        let edit = amendment(&forwarded, 1, &Amendment::Edit("other".to_owned()));
        let words = forwarded.amended(&edit).expect("changed").body;
        assert_eq!(words.as_json(), r#"{"edited":true,"text":"other"}"#, "not those of the first author");
        let edit = amendment(&reply, 1, &Amendment::Edit("2nd".to_owned()));
        let recall = amendment(&reply, 1, &Amendment::Recall);
        let recalled = edited.amended(&recall).expect("changed");
        assert_eq!((recalled.kind, recalled.body.as_json()), (Kind::Recalled, r#"{"recalled":true}"#));
        assert_eq!(recalled.amended(&edit), None);
        let removed = edited.amended(&amendment(&reply, 3, &Amendment::Recall)).expect("changed");
        assert_eq!(
            (removed.kind, removed.sender, removed.body.as_json()),
            (Kind::Recalled, Uid(1), r#"{"by":3,"recalled":true}"#)
        );
        let reaction = amendment(&reply, 2, &Amendment::React(Vec::new()));
        assert_eq!((reply.amended(&reaction), reaction.changes_message()), (None, None));
        assert_eq!(reaction.of(), reply.key());
        let deletion = amendment(&reply, 2, &Amendment::Delete);
        let deletion_of_another = amendment(&Content { sender: Uid(9), ..reply }, 2, &Amendment::Delete);
        assert!(edit.is_edit_deleted_by(&deletion) && !recall.is_edit_deleted_by(&deletion));
        assert!(!edit.is_edit_deleted_by(&recall) && !edit.is_edit_deleted_by(&deletion_of_another));
    }
}
