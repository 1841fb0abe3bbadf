//! Mentions: the people that a message in a group names, so that they are told of it.
//!
//! They are said when the message is sent and stay as they are: an edit changes the text alone. Stored in the body, under
//! `mentions`; stores look into bodies for them, so their form must stay stable.

use serde::Deserialize;
use serde_json::json;

use super::{Body, Content, Conversation, Uid};

/// Mentioned people of one message, at most.
pub const MOST_MENTIONS: usize = 50;

/// How a body that has mentions can be told without reading it as JSON: nowhere else are these quotes without a backslash.
const FIELD: &str = "\"mentions\":";

/// The people that a message mentions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mentions {
    /// These people, each once.
    pub users: Vec<Uid>,
    /// Everybody in the group.
    pub all: bool,
}

impl Mentions {
    /// Whether nobody is named.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty() && !self.all
    }

    /// Whether `uid` is named.
    pub fn name(&self, uid: Uid) -> bool {
        self.all || self.users.contains(&uid)
    }

    /// The mentions of the users that pass, each once, in their order.
    pub fn only(&self, passes: impl Fn(Uid) -> bool) -> Mentions {
        let mut users: Vec<Uid> = Vec::with_capacity(self.users.len());
        for uid in self.users.iter().copied().filter(|uid| passes(*uid)) {
            if !users.contains(&uid) {
                users.push(uid);
            }
        }
        Mentions { users, all: self.all }
    }
}

#[derive(Deserialize)]
struct Mentioning {
    mentions: StoredMentions,
}

#[derive(Deserialize)]
struct StoredMentions {
    #[serde(default)]
    users: Vec<u32>,
    #[serde(default)]
    all: bool,
}

impl Body {
    /// The body of a message that names these people.
    pub fn with_mentions(self, mentions: &Mentions) -> Body {
        if mentions.is_empty() {
            return self;
        }
        let mut body: serde_json::Map<_, _> = serde_json::from_str(self.as_json()).unwrap_or_default();
        let users: Vec<u32> = mentions.users.iter().map(|uid| uid.0).collect();
        let stored =
            if mentions.all { json!({ "users": users, "all": true }) } else { json!({ "users": users }) };
        body.insert("mentions".to_owned(), stored);
        Body::from_stored(serde_json::Value::Object(body).to_string())
    }

    /// The people that the message mentions.
    pub fn mentions(&self) -> Mentions {
        if !self.as_json().contains(FIELD) {
            return Mentions::default();
        }
        let Ok(Mentioning { mentions: StoredMentions { users, all } }) = serde_json::from_str(self.as_json())
        else {
            return Mentions::default();
        };
        Mentions { users: users.into_iter().map(Uid).collect(), all }
    }
}

impl Content {
    /// Whether it names `receiver` and counts as unread until read.
    pub fn counts_as_mention(&self, receiver: Uid) -> bool {
        matches!(self.target, Conversation::Group(_))
            && self.counts_as_unread(receiver)
            && self.body.mentions().name(receiver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: Uid = Uid(1);
    const BOB: Uid = Uid(2);

    /// They lie in the tables and in exports, and the stores look for them there.
    #[test]
    fn mentions_stay_as_they_are_stored() {
        let said = Body::text("hi @bob", 10).expect("short");
        assert_eq!(said.clone().with_mentions(&Mentions::default()), said);
        let named = Mentions { users: vec![BOB, ANN], all: false };
        let body = said.clone().with_mentions(&named);
        assert_eq!(body.as_json(), r#"{"mentions":{"users":[2,1]},"text":"hi @bob"}"#);
        assert_eq!(body.mentions(), named);
        let all = Mentions { users: vec![], all: true };
        let body = said.with_mentions(&all);
        assert_eq!(body.as_json(), r#"{"mentions":{"all":true,"users":[]},"text":"hi @bob"}"#);
        assert!(body.mentions().name(ANN));
    }

    #[test]
    fn a_text_that_looks_like_mentions_names_nobody() {
        let body = Body::text(r#"{"mentions":{"all":true}}"#, 100).expect("short");
        assert!(!body.as_json().contains(FIELD));
        for body in [body, Body::from_stored(r#"{"mentions":[1],"text":""}"#)] {
            assert_eq!(body.mentions(), Mentions::default());
        }
    }

    #[test]
    fn each_of_them_is_named_once_and_others_are_left_out() {
        let mentions = Mentions { users: vec![ANN, BOB, ANN, Uid(3)], all: true };
        let only = mentions.only(|uid| uid != BOB);
        assert_eq!(only, Mentions { users: vec![ANN, Uid(3)], all: true });
    }
}
