//! Fields of group rows: a message's mentions, and how many members have read the user's own messages.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Draft, Entry, Kind};

impl Entry {
    /// The members that a message in a group mentions.
    pub fn mentions(&self) -> Mentions {
        let read = (self.kind == Kind::Message).then(|| self.field("mentions"));
        read.flatten().unwrap_or_default()
    }

    /// How many members of a group have read each of the user's newest messages there, the newest first; of rows of kind `seen`.
    pub fn read_counts(&self) -> Vec<ReadCount> {
        let read = (self.kind == Kind::Seen).then(|| self.field("counts"));
        read.flatten().unwrap_or_default()
    }
}

impl Draft {
    /// The same message to a group, which names these people. A body that is no JSON object stays as it is.
    #[must_use]
    pub fn mentioning(mut self, mentions: &Mentions) -> Draft {
        let body: Result<serde_json::Map<_, _>, _> = serde_json::from_str(self.body.get());
        if let Ok(mut body) = body {
            body.insert("mentions".to_owned(), serde_json::json!(mentions));
            self.body = serde_json::value::to_raw_value(&body).expect("a JSON value can always be written");
        }
        self
    }
}

/// The members that a message in a group mentions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mentions {
    /// Members, at most 50. The server drops users that are not in the group.
    #[serde(default)]
    pub users: Vec<u32>,
    /// Everybody in the group.
    #[serde(default)]
    pub all: bool,
}

/// How many members of a group have read a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct ReadCount {
    /// The author's name for the message.
    pub client_id: Uuid,
    /// How many.
    pub count: u32,
}
