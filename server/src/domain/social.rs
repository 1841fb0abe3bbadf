//! What friends share: who is one, moments with likes and comments, and how far messages have come.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Body, Content, IdempotencyKey, Kind, TextError, Uid};

/// Characters of the greeting in a friend request, at most.
pub const MOST_GREETING: usize = 200;

/// How far a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Progress {
    /// A device of the other person has it.
    Delivered,
    /// The other person has read it.
    Read,
}

impl Progress {
    /// The word in bodies and keys.
    pub fn as_str(self) -> &'static str {
        match self {
            Progress::Delivered => "delivered",
            Progress::Read => "read",
        }
    }
}

/// Who of two people wants to be the other's friend. They are friends when both do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Friendship {
    /// Whether the owner of the inbox does.
    pub mine: bool,
    /// Whether the other one does.
    pub theirs: bool,
}

impl Friendship {
    /// Whether they are friends.
    pub fn is_mutual(self) -> bool {
        self.mine && self.theirs
    }

    /// Takes in the newest row of one of the two, in the inbox of `owner`.
    pub fn take(&mut self, owner: Uid, content: &Content) {
        let wanted = content.body.wanted();
        if content.sender == owner { self.mine = wanted } else { self.theirs = wanted }
    }
}

/// Why something that friends would share is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SocialError {
    /// The greeting is too long.
    #[error("a greeting has at most {MOST_GREETING} characters")]
    Greeting,
}

#[derive(Deserialize)]
struct Wanted {
    wanted: bool,
}

#[derive(Deserialize)]
struct Liked {
    liked: bool,
}

#[derive(Deserialize)]
struct Seen {
    state: Progress,
}

impl Body {
    /// Whether somebody wants to be a friend, with a greeting for the other one.
    ///
    /// # Errors
    /// When the greeting is too long.
    pub fn friend(wanted: bool, greeting: Option<&str>) -> Result<Body, SocialError> {
        let greeting = greeting.map(str::trim).filter(|text| !text.is_empty());
        if greeting.is_some_and(|text| text.chars().count() > MOST_GREETING || text.contains('\0')) {
            return Err(SocialError::Greeting);
        }
        let body = match greeting {
            Some(text) => json!({ "wanted": wanted, "text": text }),
            None => json!({ "wanted": wanted }),
        };
        Ok(Body::from_stored(body.to_string()))
    }

    /// `wanted` of the body of a friend row.
    pub fn wanted(&self) -> bool {
        serde_json::from_str(self.as_json()).is_ok_and(|Wanted { wanted }| wanted)
    }

    /// Whether somebody likes the moment `of`.
    pub fn like(of: IdempotencyKey, liked: bool) -> Body {
        Body::from_stored(json!({ "of": named(of), "liked": liked }).to_string())
    }

    /// `liked` of the body of a like.
    pub fn liked(&self) -> bool {
        serde_json::from_str(self.as_json()).is_ok_and(|Liked { liked }| liked)
    }

    /// What somebody says about the moment `of`. `limit` counts the characters of the text.
    ///
    /// # Errors
    /// As [`Body::text`].
    pub fn comment(of: IdempotencyKey, text: &str, limit: usize) -> Result<Body, TextError> {
        Body::text(text, limit)?;
        Ok(Body::from_stored(json!({ "of": named(of), "text": text }).to_string()))
    }

    /// That the row with this key is deleted.
    pub fn deletion(of: IdempotencyKey) -> Body {
        Body::from_stored(json!({ "of": named(of) }).to_string())
    }

    /// That all messages of a conversation up to `of` have come so far.
    pub fn seen(progress: Progress, of: IdempotencyKey) -> Body {
        Body::from_stored(json!({ "of": named(of), "state": progress }).to_string())
    }

    /// How far a seen row says that messages have come.
    pub fn progress(&self) -> Option<Progress> {
        serde_json::from_str(self.as_json()).ok().map(|Seen { state }| state)
    }
}

fn named((sender, client_id): IdempotencyKey) -> serde_json::Value {
    json!({ "sender": sender.0, "client_id": client_id.0 })
}

impl Kind {
    /// Whether friends share it: it lies among the moments.
    pub fn is_of_moments(self) -> bool {
        matches!(self, Kind::Moment | Kind::Like | Kind::Comment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ClientId;
    use uuid::Uuid;

    /// They lie in the tables and in exports, and devices read them as they are.
    #[test]
    fn bodies_stay_as_they_are_stored() {
        let of = (Uid(1), ClientId(Uuid::from_u128(7)));
        let named = r#""of":{"client_id":"00000000-0000-0000-0000-000000000007","sender":1}"#;
        let friend = Body::friend(true, Some(" hello ")).expect("short");
        assert_eq!(friend.as_json(), r#"{"text":"hello","wanted":true}"#);
        assert!(friend.wanted());
        let gone = Body::friend(false, Some(" ")).expect("short");
        assert_eq!((gone.as_json(), gone.wanted()), (r#"{"wanted":false}"#, false));
        assert_eq!(Body::friend(true, Some(&"a".repeat(201))), Err(SocialError::Greeting));
        let like = Body::like(of, true);
        assert_eq!(like.as_json(), format!(r#"{{"liked":true,{named}}}"#));
        assert!(like.liked());
        let comment = Body::comment(of, "nice", 4).expect("short");
        assert_eq!(comment.as_json(), format!(r#"{{{named},"text":"nice"}}"#));
        assert!(Body::comment(of, "nicer", 4).is_err());
        assert_eq!(Body::deletion(of).as_json(), format!("{{{named}}}"));
        let seen = Body::seen(Progress::Read, of);
        assert_eq!(seen.as_json(), format!(r#"{{{named},"state":"read"}}"#));
        assert_eq!(seen.progress(), Some(Progress::Read));
    }
}
