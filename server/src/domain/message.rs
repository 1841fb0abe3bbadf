//! Bodies: the JSON that a row carries, and the digest by which a repeated send is compared (I4). `amendment`, `setting` and `social`
//! make the bodies of their rows.

use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::{Conversation, GroupId, GroupStep, History, MessageId, Mute, Uid};

/// A row's body: one JSON object as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body(Box<str>);

/// Why a text is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Nothing but white space.
    #[error("the text is empty; write something")]
    Empty,
    /// Longer than the limit.
    #[error("the text has {characters} characters; at most {limit} are allowed")]
    TooLong {
        /// Its length in Unicode scalar values.
        characters: usize,
        /// The configured limit.
        limit: usize,
    },
    /// A NUL, which databases and terminals disagree about.
    #[error("the text holds a NUL character; remove it")]
    Nul,
}

/// Why the body of a program's own kind is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppBodyError {
    /// It is not JSON.
    #[error("the body is not JSON")]
    NotJson,
    /// Longer than the limit.
    #[error("the body has {bytes} bytes; at most {limit} are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
}

/// A kind of row that programs define: `app.` and 1 to 60 letters, lower case, digits, dots, hyphens and underscores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppKind(Box<str>);

impl AppKind {
    /// Reads one; `None`: a kind of programs cannot be called so.
    pub fn new(name: &str) -> Option<AppKind> {
        let own = name.strip_prefix("app.")?;
        let good = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'_')
        };
        ((1..=60).contains(&own.len()) && own.bytes().all(good)).then(|| AppKind(name.into()))
    }

    /// As on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Body {
    /// The body of a person's message. `limit` counts Unicode scalar values.
    pub fn text(text: &str, limit: usize) -> Result<Body, TextError> {
        if text.trim().is_empty() {
            return Err(TextError::Empty);
        }
        Body::caption(text, limit)
    }

    /// The same of a message that has more to say than its text, which may be empty.
    pub fn caption(text: &str, limit: usize) -> Result<Body, TextError> {
        if text.contains('\0') {
            return Err(TextError::Nul);
        }
        // Bytes bound characters from above: the common short text is not counted.
        if text.len() > limit {
            let characters = text.chars().count();
            if characters > limit {
                return Err(TextError::TooLong { characters, limit });
            }
        }
        Ok(Body(json!({ "text": text }).to_string().into()))
    }

    /// "I have read up to here."
    pub fn read_marker(read_to: MessageId) -> Body {
        Body(json!({ "read_to": read_to.get() }).to_string().into())
    }

    /// A change of a group, with the names as they were, so that a device can show it without asking. `heir`: who is the owner from now
    /// on, where the one so far goes.
    pub fn membership(
        gid: GroupId,
        name: &str,
        step: &GroupStep,
        who: &Person,
        by: &Person,
        heir: Option<&Person>,
    ) -> Body {
        let mut body = json!({
            "action": step.word(), "group": gid.0, "name": name,
            "uid": who.uid.0, "user_name": who.name, "by": by.uid.0, "by_name": by.name,
        });
        match step {
            GroupStep::Set(setting) => {
                let set = json!(setting).as_object().cloned().unwrap_or_default();
                set.into_iter().for_each(|(field, value)| body[field] = value);
            }
            GroupStep::Role(_, role) => body["role"] = json!(role.as_str()),
            GroupStep::Muted(_, Mute::Until(end)) => body["until"] = json!(end.to_rfc3339()),
            _ => {}
        }
        if let Some(heir) = heir {
            body["owner"] = json!(heir.uid.0);
            body["owner_name"] = json!(heir.name);
        }
        Body(body.to_string().into())
    }

    /// The same, of somebody who joins and gets earlier messages before this row.
    pub fn with_history(&self) -> Body {
        let mut body: serde_json::Value = serde_json::from_str(&self.0).unwrap_or_default();
        body["history"] = json!(History::Visible.as_str());
        Body(body.to_string().into())
    }

    /// The person that joins a group with this row and gets earlier messages before it, if so.
    pub fn joins_with_history(&self) -> Option<Uid> {
        #[derive(Deserialize)]
        struct Joining {
            action: String,
            history: String,
            uid: u32,
        }
        let joining: Joining = serde_json::from_str(&self.0).ok()?;
        let is_joining = matches!(joining.action.as_str(), "added" | "joined");
        (is_joining && joining.history == History::Visible.as_str()).then_some(Uid(joining.uid))
    }

    /// The body of a program's own kind: an object with the kind as its only key. `json` is any JSON; `limit` counts its bytes.
    ///
    /// # Errors
    /// When it is not JSON, or too long.
    pub fn app(kind: &AppKind, json: &str, limit: usize) -> Result<Body, AppBodyError> {
        let json = json.trim();
        if json.len() > limit {
            return Err(AppBodyError::TooLong { bytes: json.len(), limit });
        }
        serde_json::from_str::<serde::de::IgnoredAny>(json).map_err(|_| AppBodyError::NotJson)?;
        Ok(Body(format!("{{\"{}\":{json}}}", kind.0).into()))
    }

    /// The kind and the body of a [`Body::app`].
    pub(super) fn app_parts(&self) -> Option<(&str, &str)> {
        self.0.strip_prefix("{\"")?.strip_suffix('}')?.split_once("\":")
    }

    /// A body read back from where this type was written to.
    pub fn from_stored(json: impl Into<Box<str>>) -> Body {
        Body(json.into())
    }

    /// The JSON object.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// `read_to` of the body of a read marker.
    pub fn read_to(&self) -> Option<MessageId> {
        let value: serde_json::Value = serde_json::from_str(&self.0).ok()?;
        MessageId::new(value.get("read_to")?.as_u64()?)
    }
}

/// A user with the name by which others know them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The user's id.
    pub uid: Uid,
    /// The account's name.
    pub name: String,
}

/// The digest of the request under a `client_id`: the first half of SHA-256 over recipient and text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(pub [u8; 16]);

impl Digest {
    /// The digest of "send `text` to `target`". Taken of the text as it came, so that a repetition is known
    /// again even where the limits have changed in between (I4).
    pub fn of(target: Conversation, text: &str) -> Digest {
        let mut hash = Sha256::new();
        hash.update(target.to_string());
        hash.update([0]);
        hash.update(text);
        let mut half = [0; 16];
        half.copy_from_slice(&hash.finalize()[..16]);
        Digest(half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_counted_in_characters_not_bytes() {
        assert!(Body::text("ééé", 3).is_ok());
        assert_eq!(Body::text("éééé", 3), Err(TextError::TooLong { characters: 4, limit: 3 }));
        assert_eq!(Body::text(" \n", 3), Err(TextError::Empty));
        assert_eq!(Body::text("a\0", 3), Err(TextError::Nul));
    }

    #[test]
    fn the_digest_tells_recipients_and_bodies_apart() {
        let base = Digest::of(Conversation::User(Uid(1)), "a");
        assert_eq!(base, Digest::of(Conversation::User(Uid(1)), "a"));
        assert_ne!(base, Digest::of(Conversation::User(Uid(2)), "a"));
        assert_ne!(base, Digest::of(Conversation::User(Uid(1)), "b"));
    }

    /// They lie in the tables, in journals and in exports, and devices read them as they are.
    #[test]
    fn bodies_and_digests_stay_as_they_are_stored() {
        let (ann, bob) =
            (Person { uid: Uid(1), name: "ann".to_owned() }, Person { uid: Uid(2), name: "bob".to_owned() });
        assert_eq!(
            Body::text("a \"b\"\n\u{e9}", 9).expect("short").as_json(),
            "{\"text\":\"a \\\"b\\\"\\n\u{e9}\"}"
        );
        assert_eq!(Body::read_marker(MessageId::new(41).expect("small")).as_json(), r#"{"read_to":41}"#);
        let epoch = crate::domain::MembershipEpoch(1);
        let steps = [
            GroupStep::Created { name: "walkers".to_owned(), members: vec![Uid(1)] },
            GroupStep::Added(Uid(2), epoch),
            GroupStep::Joined(Uid(2), epoch),
            GroupStep::Removed(Uid(2), epoch),
            GroupStep::Left(Uid(2), epoch),
        ];
        for (step, word) in steps.iter().zip(["created", "added", "joined", "removed", "left"]) {
            let expected = format!(
                r#"{{"action":"{word}","by":1,"by_name":"ann","group":5,"name":"walkers","uid":2,"user_name":"bob"}}"#
            );
            assert_eq!(Body::membership(GroupId(5), "walkers", step, &bob, &ann, None).as_json(), expected);
        }
        let role = GroupStep::Role(Uid(2), crate::domain::Role::Administrator);
        assert_eq!(
            Body::membership(GroupId(5), "walkers", &role, &bob, &ann, None).as_json(),
            r#"{"action":"role","by":1,"by_name":"ann","group":5,"name":"walkers","role":"administrator","uid":2,"user_name":"bob"}"#
        );
        let muted = GroupStep::Muted(Uid(2), Mute::Until(crate::domain::Timestamp(0)));
        assert_eq!(
            Body::membership(GroupId(5), "walkers", &muted, &bob, &ann, None).as_json(),
            r#"{"action":"muted","by":1,"by_name":"ann","group":5,"name":"walkers","uid":2,"until":"1970-01-01T00:00:00Z","user_name":"bob"}"#
        );
        let left = GroupStep::Left(Uid(1), epoch);
        assert_eq!(
            Body::membership(GroupId(5), "walkers", &left, &ann, &ann, Some(&bob)).as_json(),
            r#"{"action":"left","by":1,"by_name":"ann","group":5,"name":"walkers","owner":2,"owner_name":"bob","uid":1,"user_name":"ann"}"#
        );
        // The first half of SHA-256 over `u:10002`, a zero byte and the text.
        let digest = Digest::of(Conversation::User(Uid(10_002)), "in the tables");
        assert_eq!(format!("{:032x}", u128::from_be_bytes(digest.0)), "4a1074b93987442bb7bdb5de060f4d0c");
    }

    #[test]
    fn a_programs_body_keeps_its_kind_and_is_given_back_as_it_came() {
        let kind = AppKind::new("app.order-2").expect("a kind");
        for json in [r#"{"total":"1.50}"}"#, "[1, {}]", "null", r#""a\":b""#] {
            let body = Body::app(&kind, &format!(" {json}\n"), 20).expect(json);
            assert_eq!(body.app_parts(), Some(("app.order-2", json)));
            serde_json::from_str::<serde_json::Value>(body.as_json()).expect("an object");
        }
        for wrong in ["", "{", "1 2", "{\"a\":1}}"] {
            assert_eq!(Body::app(&kind, wrong, 20), Err(AppBodyError::NotJson), "{wrong}");
        }
        assert_eq!(Body::app(&kind, "1000", 3), Err(AppBodyError::TooLong { bytes: 4, limit: 3 }));
        for wrong in
            ["message", "app", "app.", "app.A", "app.\"", "app.é", &format!("app.{}", "a".repeat(61))]
        {
            assert_eq!(AppKind::new(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_read_marker_tells_how_far_it_reads() {
        let id = MessageId::new(41).expect("small");
        assert_eq!(Body::read_marker(id).read_to(), Some(id));
    }
}
