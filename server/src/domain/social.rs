//! Friendships, moments with likes and comments, and how far messages have come.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Body, ClientId, Content, Conversation, GroupId, IdempotencyKey, TextError, Uid};

/// Characters of the greeting in a friend request, at most.
pub const MOST_GREETING: usize = 200;

/// How far a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

/// The state of a row that says how many members of a group have read messages. Stored; must stay stable.
const READ_BY: &str = "read_by";

/// Messages of which one row says how many have read them, at most.
pub const MOST_COUNTED: usize = 20;

/// How many members of a group have read a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadCount {
    /// The message's `client_id`.
    pub client_id: ClientId,
    /// How many.
    pub count: u32,
}

/// The key of the newest row that tells an author how many have read, in a group.
pub fn read_counts_key(gid: GroupId) -> String {
    format!("seen {READ_BY} {}", Conversation::Group(gid))
}

/// The key of the newest row that says how far messages to `other` have come.
pub fn seen_key(progress: Progress, other: Uid) -> String {
    format!("seen {} {}", progress.as_str(), Conversation::User(other))
}

/// Which of two people wants to be the other's friend. They are friends when both do.
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
struct FriendBody {
    wanted: bool,
}

#[derive(Deserialize)]
struct Liked {
    liked: bool,
}

#[derive(Deserialize)]
struct SeenBody {
    state: Progress,
}

#[derive(Deserialize)]
struct Counted {
    counts: Vec<Count>,
}

#[derive(Deserialize)]
struct Count {
    client_id: uuid::Uuid,
    count: u32,
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

    /// That a person's account is deleted, and with it all that the person wanted of others.
    pub fn friend_deleted() -> Body {
        Body::from_stored(json!({ "wanted": false, "deleted": true }).to_string())
    }

    /// `wanted` of the body of a friend row.
    pub fn wanted(&self) -> bool {
        serde_json::from_str(self.as_json()).is_ok_and(|FriendBody { wanted }| wanted)
    }

    /// The body of a like: whether somebody likes the moment `of`.
    pub fn like(of: IdempotencyKey, liked: bool) -> Body {
        Body::from_stored(json!({ "of": named(of), "liked": liked }).to_string())
    }

    /// `liked` of the body of a like.
    pub fn liked(&self) -> bool {
        serde_json::from_str(self.as_json()).is_ok_and(|Liked { liked }| liked)
    }

    /// A comment on the moment `of`. `limit` counts the characters of the text.
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

    /// How far a seen row says that messages have come; none where it says how many have read them.
    pub fn progress(&self) -> Option<Progress> {
        serde_json::from_str(self.as_json()).ok().map(|SeenBody { state }| state)
    }

    /// How many have read each of these messages of `author` in a group, newest first; there is at least one.
    pub fn read_counts(author: Uid, counts: &[ReadCount]) -> Option<Body> {
        let newest = counts.first()?;
        let counted: Vec<_> =
            counts.iter().map(|one| json!({ "client_id": one.client_id.0, "count": one.count })).collect();
        let of = named((author, newest.client_id));
        Some(Body::from_stored(json!({ "of": of, "state": READ_BY, "counts": counted }).to_string()))
    }

    /// The counts of such a body.
    pub fn counts(&self) -> Vec<ReadCount> {
        let Ok(Counted { counts }) = serde_json::from_str(self.as_json()) else { return Vec::new() };
        counts
            .into_iter()
            .map(|Count { client_id, count }| ReadCount { client_id: ClientId(client_id), count })
            .collect()
    }

    /// The word by which the seen rows of one conversation are told apart in compaction keys.
    pub(super) fn seen_word(&self) -> Option<&'static str> {
        #[derive(Deserialize)]
        struct StateWord<'a> {
            #[serde(borrow)]
            state: &'a str,
        }
        let StateWord { state } = serde_json::from_str(self.as_json()).ok()?;
        [Progress::Delivered.as_str(), Progress::Read.as_str(), READ_BY]
            .into_iter()
            .find(|word| *word == state)
    }
}

/// `counts` with what `known` says besides: no count goes back, and of the oldest nothing is said any more. `None`: it is all known.
pub fn grown(known: &[ReadCount], counts: &[ReadCount]) -> Option<Vec<ReadCount>> {
    let count = |all: &[ReadCount], id| all.iter().find(|one| one.client_id == id).map_or(0, |one| one.count);
    if counts.iter().all(|one| one.count <= count(known, one.client_id)) {
        return None;
    }
    let is_new = |one: &&ReadCount| counts.iter().all(|other| other.client_id != one.client_id);
    let older = known.iter().filter(is_new);
    let all = counts.iter().chain(older).take(MOST_COUNTED);
    Some(all.map(|one| ReadCount { count: one.count.max(count(known, one.client_id)), ..*one }).collect())
}

fn named((sender, client_id): IdempotencyKey) -> serde_json::Value {
    json!({ "sender": sender.0, "client_id": client_id.0 })
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
        let deleted = Body::friend_deleted();
        assert_eq!((deleted.as_json(), deleted.wanted()), (r#"{"deleted":true,"wanted":false}"#, false));
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
        let counts = [ReadCount { client_id: of.1, count: 3 }];
        let read_by = Body::read_counts(Uid(1), &counts).expect("one");
        let counted = r#""counts":[{"client_id":"00000000-0000-0000-0000-000000000007","count":3}]"#;
        assert_eq!(read_by.as_json(), format!(r#"{{{counted},{named},"state":"read_by"}}"#));
        assert_eq!((read_by.counts(), read_by.progress()), (counts.to_vec(), None));
        assert_eq!((read_by.seen_word(), seen.seen_word()), (Some("read_by"), Some("read")));
        assert_eq!(read_counts_key(GroupId(5)), "seen read_by g:5");
        assert_eq!(seen_key(Progress::Read, Uid(2)), "seen read u:2");
    }

    #[test]
    fn counts_grow_and_the_oldest_go() {
        let counts = |all: &[(u128, u32)]| -> Vec<ReadCount> {
            let one =
                |&(n, count): &(u128, u32)| ReadCount { client_id: ClientId(Uuid::from_u128(n)), count };
            all.iter().map(one).collect()
        };
        let known = counts(&[(2, 3), (1, 5)]);
        assert_eq!(grown(&[], &counts(&[(1, 0)])), None);
        assert_eq!(grown(&known, &counts(&[(2, 2), (1, 5)])), None);
        assert_eq!(grown(&known, &counts(&[(3, 1), (2, 2)])), Some(counts(&[(3, 1), (2, 3), (1, 5)])));
        let many: Vec<(u128, u32)> = (0..30).map(|n| (100 + n, 1)).collect();
        let grown = grown(&known, &counts(&many)).expect("news");
        assert_eq!(grown.len(), MOST_COUNTED);
    }
}
