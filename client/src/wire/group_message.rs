//! Fields of group rows: a message's mentions, and how many members have read the user's own messages.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Entry, Kind};

impl Entry {
    /// The members that a message in a group mentions.
    pub fn mentions(&self) -> Mentions {
        #[derive(Deserialize)]
        struct Mentioning {
            #[serde(default)]
            mentions: Mentions,
        }
        let read = (self.kind == Kind::Message).then(|| self.body_as::<Mentioning>().ok()).flatten();
        read.map(|body| body.mentions).unwrap_or_default()
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

impl Entry {
    /// How many members of a group have read each of the user's newest messages there, the newest first; of rows of kind `seen`.
    pub fn read_counts(&self) -> Vec<ReadCount> {
        #[derive(Deserialize)]
        struct Counted {
            counts: Vec<ReadCount>,
        }
        let read = (self.kind == Kind::Seen).then(|| self.body_as::<Counted>().ok()).flatten();
        read.map(|body| body.counts).unwrap_or_default()
    }
}

/// How many members of a group have read a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct ReadCount {
    /// The author's name for the message.
    pub client_id: Uuid,
    /// How many.
    pub count: u32,
}
