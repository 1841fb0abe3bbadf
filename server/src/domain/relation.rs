//! A person's permissions for another one: a block, the privacy setting, and whether the two are friends. All of it is
//! in rows of the person's own inbox, but for the other one's block.

use super::{
    Content, Conversation, Friendship, Privacy, PrivacyLevel, Setting, Uid, friend_key, setting_key,
};

/// How one person stands to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relation {
    /// Whether the person has blocked the other one.
    pub is_blocked: bool,
    /// Whether the other one has blocked the person.
    pub has_blocked: bool,
    /// The person's privacy for all.
    pub privacy: Privacy,
    /// Which of the two wants to be the other's friend.
    pub friendship: Friendship,
}

impl Relation {
    /// How many rows it rests on.
    pub const ROWS: usize = 5;

    /// Where those rows are looked up, in order.
    pub fn keys(owner: Uid, other: Uid) -> [(Uid, String); Relation::ROWS] {
        let (with, own) = (Conversation::User(other), Conversation::User(owner));
        [
            (owner, setting_key(Setting::Block, with)),
            (owner, setting_key(Setting::Privacy, own)),
            (owner, friend_key(with, owner)),
            (owner, friend_key(with, other)),
            (other, setting_key(Setting::Block, own)),
        ]
    }

    /// How `owner` stands to somebody, by the newest rows under those keys.
    pub fn read<'a>(owner: Uid, rows: impl IntoIterator<Item = Option<&'a Content>>) -> Relation {
        let mut rows = rows.into_iter();
        let mut next = || rows.next().flatten();
        let is_block = |row: Option<&Content>| row.is_some_and(|row| row.body.setting_value().is_some());
        let is_blocked = is_block(next());
        let privacy = Privacy::read(next());
        let mut friendship = Friendship::default();
        for row in [next(), next()].into_iter().flatten() {
            friendship.take(owner, row);
        }
        Relation { is_blocked, has_blocked: is_block(next()), privacy, friendship }
    }

    /// Whether the other one may write to the person. After a block neither of the two does.
    pub fn may_write(&self) -> bool {
        let is_open = self.privacy.write == PrivacyLevel::Everybody || self.friendship.is_mutual();
        !self.is_blocked && !self.has_blocked && is_open
    }
}
