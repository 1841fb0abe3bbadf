//! The rows that say for how long messages of a conversation are kept. They come to everybody in it: of the kind `keep` between two people, a
//! change of the group otherwise, and the row of a joining.
//!
//! Rows of two people may cross. Each person has a key of their own, and the row that was sent last stands.

use serde::Deserialize;
use serde_json::json;

use super::{Body, Content, Conversation, Keep, Kind, Uid};

/// The prefix of the keys of such rows, before the conversation.
pub const KEEPS: &str = "keep ";

#[derive(Deserialize)]
struct Kept {
    keep: Keep,
    /// Of a change of a group.
    action: Option<String>,
    uid: Option<u32>,
}

/// The key of what `by` says about the conversation, in the inbox of somebody who is in it.
pub fn keep_key(of: Conversation, by: Uid) -> String {
    format!("{KEEPS}{of} {by}")
}

impl Keep {
    /// What holds, of the newest rows of all who have said something of one conversation.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Content>) -> Keep {
        let said = |row: &'a Content| Some((row.sent_at, row.sender, row.body.keep()?));
        let said: Vec<_> = rows.into_iter().filter_map(said).collect();
        let gone_before = said.iter().map(|(.., keep)| keep.gone_before).max().unwrap_or_default();
        let last = said.iter().max_by_key(|(sent_at, sender, _)| (*sent_at, *sender));
        Keep { seconds: last.map_or(0, |(.., keep)| keep.seconds), gone_before }
    }
}

impl Body {
    /// The body of a row about a conversation of two people.
    pub fn of_keep(keep: Keep) -> Body {
        Body::from_stored(json!({ "keep": keep }).to_string())
    }

    /// The same change of a group, which also says for how long the group keeps messages: for somebody who joins.
    #[must_use]
    pub fn with_keep(&self, keep: Keep) -> Body {
        let mut body: serde_json::Value = serde_json::from_str(self.as_json()).unwrap_or_default();
        body["keep"] = json!(keep);
        Body::from_stored(body.to_string())
    }

    /// For how long messages of the conversation are kept, if the row says that.
    pub fn keep(&self) -> Option<Keep> {
        serde_json::from_str(self.as_json()).ok().map(|Kept { keep, .. }| keep)
    }
}

impl Content {
    /// What its compaction key ends with, in the inbox of `receiver`: who has chosen the time, or that the receiver has joined. A later choice
    /// must not take the place of the row of a joining, by which devices know that they are in the group. `None`: nothing is said to the receiver.
    pub(super) fn keep_word(&self, receiver: Uid) -> Option<String> {
        match self.kind {
            Kind::Membership => {
                // Most changes of groups are about something else.
                let json = Some(self.body.as_json()).filter(|json| json.contains("\"keep\""))?;
                let Kept { action, uid, .. } = serde_json::from_str(json).ok()?;
                match action.as_deref()? {
                    "keep" => Some(self.sender.to_string()),
                    _ => (uid == Some(receiver.0)).then(|| "joined".to_owned()),
                }
            }
            _ => Some(self.sender.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ClientId, GroupId, Timestamp};

    const ANN: Uid = Uid(1);
    const BOB: Uid = Uid(2);

    fn row(kind: Kind, sender: Uid, target: Conversation, body: Body, sent_at: i64) -> Content {
        let client_id = Some(ClientId(uuid::Uuid::from_u128(7)));
        Content { kind, sender, target, client_id, body, sent_at: Timestamp(sent_at) }
    }

    /// Each of the two inboxes has them in another order.
    #[test]
    fn of_two_that_cross_the_one_that_was_sent_last_stands() {
        let keep = |seconds, gone_before| Body::of_keep(Keep { seconds, gone_before });
        let by_ann = row(Kind::Keep, ANN, Conversation::User(BOB), keep(60, 5), 10);
        let by_bob = row(Kind::Keep, BOB, Conversation::User(ANN), keep(90, 0), 11);
        let stands = Keep { seconds: 90, gone_before: 5 };
        assert_eq!((Keep::of([&by_ann, &by_bob]), Keep::of([&by_bob, &by_ann])), (stands, stands));
        let same = Content { sent_at: Timestamp(10), ..by_bob };
        assert_eq!(Keep::of([&same, &by_ann]), stands);
        assert_eq!(Keep::of([]), Keep::default());
    }

    /// They lie in the databases, in journals and in exports.
    #[test]
    fn bodies_and_keys_stay_as_they_are_stored() {
        let keep = Keep { seconds: 60, gone_before: 5 };
        assert_eq!(Body::of_keep(keep).as_json(), r#"{"keep":{"gone_before":5,"seconds":60}}"#);
        assert_eq!(Body::of_keep(Keep::default()).as_json(), r#"{"keep":{"seconds":0}}"#);
        assert_eq!(Body::of_keep(keep).keep(), Some(keep));
        let key = |kind, target, body: &Body, receiver| {
            row(kind, ANN, target, body.clone(), 0).compaction_key(receiver)
        };
        let own = key(Kind::Keep, Conversation::User(BOB), &Body::of_keep(keep), BOB);
        assert_eq!(own, Some(keep_key(Conversation::User(ANN), ANN)));
        let group = Conversation::Group(GroupId(5));
        let action =
            |action: &str| Body::from_stored(format!(r#"{{"action":"{action}","uid":2}}"#)).with_keep(keep);
        assert_eq!(
            action("added").as_json(),
            r#"{"action":"added","keep":{"gone_before":5,"seconds":60},"uid":2}"#
        );
        assert_eq!(key(Kind::Membership, group, &action("keep"), BOB).as_deref(), Some("keep g:5 1"));
        assert_eq!(key(Kind::Membership, group, &action("added"), BOB).as_deref(), Some("keep g:5 joined"));
        assert_eq!(key(Kind::Membership, group, &action("added"), ANN), None);
        assert_eq!(key(Kind::Membership, group, &Body::from_stored(r#"{"action":"slow"}"#), ANN), None);
    }
}
