//! A conversation as one person sees it: with another person, or in a group.

use std::fmt;
use std::str::FromStr;

use super::{GroupId, Uid};

/// `u:UID` (the other person, from the receiver's side) or `g:GID`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Conversation {
    /// With this person; with oneself when it is one's own uid.
    User(Uid),
    /// In this group.
    Group(GroupId),
}

impl Conversation {
    /// Where moments lie, and what is said of them: `u:0`, since nobody has the uid 0.
    pub const MOMENTS: Conversation = Conversation::User(Uid(0));
}

impl fmt::Display for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Conversation::User(uid) => write!(f, "u:{uid}"),
            Conversation::Group(gid) => write!(f, "g:{gid}"),
        }
    }
}

/// The text is neither `u:UID` nor `g:GID`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a conversation is written u:UID or g:GID, for example u:10001 or g:7")]
pub struct ConversationError;

impl FromStr for Conversation {
    type Err = ConversationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (side, number) = text.split_once(':').ok_or(ConversationError)?;
        // "+7" parses as a number, and would be a second name for the same conversation.
        if !number.bytes().all(|b| b.is_ascii_digit()) || (number.len() > 1 && number.starts_with('0')) {
            return Err(ConversationError);
        }
        match side {
            "u" => number.parse().map(|n| Conversation::User(Uid(n))).map_err(|_| ConversationError),
            "g" => number.parse().map(|n| Conversation::Group(GroupId(n))).map_err(|_| ConversationError),
            _ => Err(ConversationError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_has_exactly_one_name() {
        for good in ["u:10001", "g:7", "u:0"] {
            assert_eq!(good.parse::<Conversation>().map(|c| c.to_string()).as_deref(), Ok(good));
        }
        for bad in ["", "u", "u:", "x:1", "u:+1", "u:01", "u:4294967296", "g:1 "] {
            assert_eq!(bad.parse::<Conversation>(), Err(ConversationError), "{bad}");
        }
    }
}
