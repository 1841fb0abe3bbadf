//! Why something was not accepted: one enum for everything that goes through a queue.

use std::time::Duration;

use crate::domain::{EmojiError, SettingError, SocialError, TextError, Timestamp};

/// Nothing was stored under this request, except where a variant says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The sender's queue is full (I9).
    #[error("too many writes are waiting to be stored; try again in a moment with the same client_id")]
    Busy,
    /// Storage or the sequence service does not answer now. A send may nevertheless have been stored: the same
    /// `client_id` finds out.
    #[error("nothing can be stored right now; try again in a moment with the same client_id")]
    Unavailable,
    /// An earlier one of the same connection or batch was refused for the moment and has not been sent again (I12).
    #[error("an earlier message was refused temporarily; send that one again first, then this one")]
    OutOfOrder,
    /// The server is going down.
    #[error("the server is stopping; try again in a moment with the same client_id")]
    Stopping,
    /// The `client_id` was used for another recipient or text (I4).
    #[error("this client_id was already used for another message; make a new one for each message")]
    ClientIdReused,
    /// No account has this uid.
    #[error("user {0} does not exist")]
    UnknownUser(u32),
    /// The account is deleted.
    #[error("the account of user {0} is deleted; what it sent can still be read")]
    AccountDeleted(u32),
    /// No group has this number, or not for this user: strangers cannot tell the two apart.
    #[error("this group does not exist, or you are not in it")]
    UnknownGroup,
    /// The text breaks a rule.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A read marker named a row that is not in that conversation of the caller's inbox.
    #[error("message_id must be a row of that conversation in your own inbox")]
    NotInConversation,
    /// The row is there, and it is no message that others could be told of.
    #[error("this row is not a message that can be edited, recalled, answered or reacted to")]
    NoMessage,
    /// The caller has no messages with this person.
    #[error("you have no messages with user {0}; write something first")]
    NoConversation(u32),
    /// The message to forward has another text.
    #[error("the message that is forwarded has another text by now; forward it as it is")]
    OtherText,
    /// A file is not there, or not whole, or not one that the sender may name.
    #[error(
        "one of the files does not exist any more, is not uploaded to its end, or is not yours; upload it again"
    )]
    UnknownFile,
    /// The message was taken back.
    #[error("this message was recalled")]
    Recalled,
    /// Somebody else sent the message.
    #[error(
        "only the sender can edit a message, and only the sender or an administrator of the group can recall it"
    )]
    NotYours,
    /// The message is too old for it.
    #[error("this change is possible only for {} after the message was sent", spoken(*.0))]
    TooLate(Duration),
    /// The emoji of a reaction break a rule.
    #[error(transparent)]
    Emoji(#[from] EmojiError),
    /// The receiver takes nothing from the sender.
    #[error("this person accepts no messages from you")]
    Blocked,
    /// The sender has blocked the receiver.
    #[error("you have blocked this person; end the block first")]
    Blocks,
    /// The receiver takes messages from friends alone.
    #[error("this person accepts messages only from friends; send a friend request first")]
    FriendsOnly,
    /// A setting's value breaks a rule.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A greeting breaks a rule.
    #[error(transparent)]
    Social(#[from] SocialError),
    /// The person has so many friends already, or has asked so many.
    #[error("one account has at most {0} friends and friend requests; remove one first")]
    TooManyFriends(usize),
    /// There is nothing of that kind among the moments that the person can see.
    #[error("there is no such moment or comment among those that you can see")]
    UnknownMoment,
    /// Somebody else posted it.
    #[error("only its author can delete a post")]
    NotYourMoment,
    /// A group's name breaks a rule.
    #[error("a group's name has 1 to 80 characters, all of them visible, and single spaces between them")]
    GroupName,
    /// A group's topic breaks a rule.
    #[error(
        "a group's topic has up to 300 characters, all of them visible, in one line, and single spaces between them"
    )]
    GroupTopic,
    /// Only the owner and administrators of the group may do it.
    #[error("only the owner and the administrators of the group can do this")]
    AdministratorsOnly,
    /// Only the owner of the group may do it.
    #[error("only the owner of the group can do this")]
    OwnerOnly,
    /// The owner is neither removed, banned nor muted, and has no other role before somebody else is the owner.
    #[error("this user owns the group; the owner must hand it over to another member first, or leave")]
    OwnerStays,
    /// The person is banned from the group.
    #[error("this user is banned from the group; its owner or an administrator can lift the ban")]
    Banned,
    /// The person was removed from the group after the invitation was made.
    #[error("you were removed from this group after the invitation was made; ask a member to add you")]
    RemovedSince,
    /// The account has had too much stored with groups and friends.
    #[error("too much was sent to many people; try again in {} s", .0.as_secs() + 1)]
    TooMuchStored(Duration),
    /// The person lets friends alone put them into groups.
    #[error("only friends can add this user to groups; send an invitation instead")]
    FriendsAddOnly,
    /// The caller has put as many strangers into groups as one account may in a day.
    #[error(
        "you can add at most {most} people a day to groups who are not your friends and never wrote to you; send an invitation instead, or try again tomorrow"
    )]
    TooManyStrangers {
        /// In a day.
        most: u32,
        /// How long it takes until the next day.
        wait: Duration,
    },
    /// The sender has written to as many strangers for the first time as one account may in a day.
    #[error(
        "you can write to at most {most} new people a day who are not your friends; try again tomorrow, or send a friend request"
    )]
    TooManyFirstMessages {
        /// In a day.
        most: u32,
    },
    /// The account has had as much stored as it may in a day.
    #[error("this account has stored {kib} KiB today, the limit for one account; try again tomorrow")]
    QuotaReached {
        /// In a day.
        kib: u32,
    },
    /// The group's list of bans is full.
    #[error("at most {0} people can be banned from a group; lift another ban first")]
    TooManyBans(usize),
    /// The sender is muted in the group, until then.
    #[error("you are muted in this group until {}", .end.to_rfc3339())]
    Muted {
        /// When the mute ends.
        end: Timestamp,
        /// How long that is from now.
        wait: Duration,
    },
    /// The sender is muted in the group until that is lifted.
    #[error("you are muted in this group until one of its administrators lifts that")]
    MutedForGood,
    /// The sender has just said something in a group that is in slow mode.
    #[error("this group takes a message of each member every {}; try again in {} s", spoken(*.slow), seconds(*.wait))]
    SlowMode {
        /// The time between two messages.
        slow: Duration,
        /// How long to wait from now.
        wait: Duration,
    },
    /// Too many people are muted in the group.
    #[error("at most {0} people can be muted in a group; lift another mute first")]
    TooManyMutes(usize),
    /// Too many messages are pinned there.
    #[error("at most {0} messages can be pinned in a conversation; unpin another one first")]
    TooManyPins(usize),
    /// The person has starred as many messages as one account may.
    #[error("at most {0} messages can be starred; unstar another one first")]
    TooManyStars(usize),
    /// The group would be too large.
    #[error("a group has at most {0} members")]
    GroupFull(usize),
    /// The person is in the group already.
    #[error("this user is already in the group")]
    AlreadyMember,
    /// The person is not in the group.
    #[error("this user is not in the group")]
    NotMember,
    /// Others kept changing the group at the same moment.
    #[error("the group was changed by others at the same moment; try again")]
    GroupChanged,
    /// The sender's sequence has come to its end.
    #[error("this account's sequence has reached its end")]
    Exhausted,
    /// The database refused the row for good.
    #[error("this message cannot be stored; the server's log says why")]
    Rejected,
}

impl SendError {
    /// A stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            SendError::Busy => "busy",
            SendError::Unavailable => "unavailable",
            SendError::OutOfOrder => "out_of_order",
            SendError::Stopping => "stopping",
            SendError::ClientIdReused => "client_id_reused",
            SendError::UnknownUser(_) => "unknown_user",
            SendError::AccountDeleted(_) => "account_deleted",
            SendError::UnknownGroup => "unknown_group",
            SendError::UnknownFile => "unknown_file",
            SendError::Text(TextError::Empty) => "text_empty",
            SendError::Text(TextError::TooLong { .. }) => "text_too_long",
            SendError::Text(TextError::Nul) => "text_nul",
            SendError::NotInConversation => "not_in_conversation",
            SendError::NoMessage => "no_message",
            SendError::NoConversation(_) => "no_conversation",
            SendError::OtherText => "other_text",
            SendError::Recalled => "recalled",
            SendError::NotYours => "not_yours",
            SendError::TooLate(_) => "too_late",
            SendError::Emoji(_) => "emoji",
            SendError::Blocked => "blocked",
            SendError::Blocks => "blocks",
            SendError::FriendsOnly => "friends_only",
            SendError::Setting(_) => "bad_setting",
            SendError::Social(SocialError::Greeting) => "greeting_too_long",
            SendError::TooManyFriends(_) => "too_many_friends",
            SendError::UnknownMoment => "unknown_moment",
            SendError::NotYourMoment => "not_yours",
            SendError::GroupName => "group_name",
            SendError::GroupTopic => "group_topic",
            SendError::AdministratorsOnly => "administrators_only",
            SendError::OwnerOnly => "owner_only",
            SendError::OwnerStays => "owner_stays",
            SendError::Banned => "banned",
            SendError::RemovedSince => "removed_since",
            SendError::TooMuchStored(_) => "rate_limited",
            SendError::FriendsAddOnly => "friends_add_only",
            SendError::TooManyStrangers { .. } => "too_many_strangers",
            SendError::TooManyFirstMessages { .. } => "too_many_first_messages",
            SendError::QuotaReached { .. } => "quota_reached",
            SendError::Muted { .. } | SendError::MutedForGood => "muted",
            SendError::SlowMode { .. } => "slow_mode",
            SendError::TooManyMutes(_) => "too_many_mutes",
            SendError::TooManyPins(_) => "too_many_pins",
            SendError::TooManyStars(_) => "too_many_stars",
            SendError::TooManyBans(_) => "too_many_bans",
            SendError::GroupFull(_) => "group_full",
            SendError::AlreadyMember => "already_member",
            SendError::NotMember => "not_member",
            SendError::GroupChanged => "group_changed",
            SendError::Exhausted => "exhausted",
            SendError::Rejected => "rejected",
        }
    }

    /// How long to wait before the same request may succeed, where that is known.
    pub fn wait(&self) -> Option<Duration> {
        match self {
            SendError::TooMuchStored(wait)
            | SendError::TooManyStrangers { wait, .. }
            | SendError::Muted { wait, .. }
            | SendError::SlowMode { wait, .. } => Some(*wait),
            _ => None,
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            SendError::Busy
                | SendError::Unavailable
                | SendError::OutOfOrder
                | SendError::Stopping
                | SendError::TooMuchStored(_)
                | SendError::GroupChanged
        )
    }
}

/// A time in whole seconds, rounded up.
fn seconds(time: Duration) -> u64 {
    time.as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX)
}

/// A time in the largest unit that says it in whole numbers.
fn spoken(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [(86_400, "day"), (3_600, "hour"), (60, "minute")];
    let whole = units.into_iter().find(|(unit, _)| seconds > 0 && seconds.is_multiple_of(*unit));
    let (number, unit) = whole.map_or((seconds, "second"), |(unit, name)| (seconds / unit, name));
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}
