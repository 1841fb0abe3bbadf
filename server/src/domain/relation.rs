//! What one person lets another do, and be shown: a block, the privacy setting, and whether the two are friends. All of
//! it is in rows of the person's own inbox.

use super::{
    Content, Conversation, Friendship, Privacy, PrivacyLevel, Setting, Uid, friend_key, setting_key,
};

/// How one person stands to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relation {
    /// Whether the person has blocked the other one.
    pub is_blocked: bool,
    /// What the person has set for all.
    pub privacy: Privacy,
    /// Who of the two wants to be the other's friend.
    pub friendship: Friendship,
}

impl Relation {
    /// How many rows it rests on.
    pub const ROWS: usize = 4;

    /// Where those rows are looked up, in order.
    pub fn keys(owner: Uid, other: Uid) -> [(Uid, String); Relation::ROWS] {
        let (with, own) = (Conversation::User(other), Conversation::User(owner));
        [
            (owner, setting_key(Setting::Block, with)),
            (owner, setting_key(Setting::Privacy, own)),
            (owner, friend_key(with, owner)),
            (owner, friend_key(with, other)),
        ]
    }

    /// How `owner` stands to somebody, by the newest rows under those keys.
    pub fn read<'a>(owner: Uid, rows: impl IntoIterator<Item = Option<&'a Content>>) -> Relation {
        let mut rows = rows.into_iter();
        let mut next = || rows.next().flatten();
        let is_blocked = next().is_some_and(|row| row.body.setting_value().is_some());
        let privacy = Privacy::read(next());
        let mut friendship = Friendship::default();
        rows.flatten().for_each(|row| friendship.take(owner, row));
        Relation { is_blocked, privacy, friendship }
    }

    /// Whether the other one may write to the person.
    pub fn may_write(&self) -> bool {
        let is_open = self.privacy.write == PrivacyLevel::Everybody || self.friendship.is_mutual();
        !self.is_blocked && is_open
    }
}
