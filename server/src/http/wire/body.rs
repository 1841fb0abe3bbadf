//! The bodies of rows, as the description of the API has them. They are stored as JSON and go out as they are.

use utoipa::ToSchema;
use uuid::Uuid;

use super::file::FileForm;
use super::{History, Role};

/// The body of a row, by its kind.
#[derive(ToSchema)]
#[schema(as = EntryBody)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes what is stored as JSON")]
pub(super) enum BodyForm {
    /// Of a `message` and of a `moment`.
    Message {
        /// The text.
        text: String,
        /// Whether it was edited.
        #[schema(nullable = false)]
        edited: Option<bool>,
        /// The message that it replies to.
        #[schema(nullable = false)]
        reply_to: Option<QuoteForm>,
        /// The user that wrote the text first, where the message forwards it.
        #[schema(nullable = false)]
        forwarded_from: Option<u32>,
        /// Mentions, in a group.
        #[schema(nullable = false)]
        mentions: Option<MentionsForm>,
        /// Its files; absent: none.
        #[schema(nullable = false, min_items = 1, max_items = 9)]
        files: Option<Vec<FileForm>>,
    },
    /// Of an `edit`.
    Edit {
        /// Which message.
        of: OfForm,
        /// The body that it has from now on, as in a `message`.
        body: serde_json::Map<String, serde_json::Value>,
    },
    /// Of a `reaction`.
    Reaction {
        /// To which message.
        of: OfForm,
        /// All that `sender` reacts with from now on.
        #[schema(max_items = 6)]
        emoji: Vec<String>,
    },
    /// Of a `recall` and of a `delete`.
    Recall {
        /// Which message, moment or comment.
        of: OfForm,
    },
    /// Of a `pin` row.
    Pin {
        /// Which message.
        of: OfForm,
        /// Whether it is pinned for everybody in the conversation from now on.
        pinned: bool,
    },
    /// Of a `star` row, in the user's own inbox alone.
    Star {
        /// Which message.
        of: OfForm,
        /// The user's copy of it.
        message_id: u64,
        /// Whether the user wants to find it again, from now on.
        starred: bool,
    },
    /// Of what was deleted (`deleted`).
    Deleted {
        /// Always `true`.
        deleted: bool,
    },
    /// Of a `keep` row.
    Keep {
        /// For how long messages of the conversation are kept from now on.
        keep: KeepForm,
    },
    /// Of a `setting`.
    Setting {
        /// `draft`, `mute`, `pin`, `archive`, `hide`, `unread`, `block`, `privacy`, `profile`, `picture` or `language`.
        name: String,
        /// The value; `null`: none.
        #[schema(nullable = true)]
        value: Option<serde_json::Map<String, serde_json::Value>>,
    },
    /// Of a `friend` row.
    Friend {
        /// Whether `sender` wants to be the other one's friend.
        wanted: bool,
        /// A greeting.
        #[schema(nullable = false)]
        text: Option<String>,
        /// The account of `sender` is deleted; absent otherwise.
        #[schema(nullable = false)]
        deleted: Option<bool>,
    },
    /// Of a `like`.
    Like {
        /// Which moment.
        of: OfForm,
        /// Whether `sender` likes it.
        liked: bool,
    },
    /// Of a `comment`.
    Comment {
        /// Which moment.
        of: OfForm,
        /// The text of the comment.
        text: String,
    },
    /// Of a `seen` row.
    Seen {
        /// The last of the receiver's messages that has come so far.
        of: OfForm,
        /// How far.
        state: ProgressForm,
        /// Of `read_by`: how many members of the group have read each of the receiver's newest messages, the newest first.
        #[schema(nullable = false, max_items = 20)]
        counts: Option<Vec<ReadCountForm>>,
    },
    /// Of a message that was taken back (`recalled`).
    Recalled {
        /// Always `true`.
        recalled: bool,
        /// The uid of the administrator that took it back; absent where its sender did.
        #[schema(nullable = false)]
        by: Option<u32>,
    },
    /// Of a `receipt`.
    ReadMarker {
        /// The row up to which the user has read the conversation.
        read_to: u64,
    },
    /// Of a `membership`.
    Membership {
        /// The kind of change.
        action: ActionForm,
        /// Which group.
        group: u64,
        /// The group's name.
        name: String,
        /// The uid of the user that the change concerns.
        uid: u32,
        /// The name of that user.
        user_name: String,
        /// The uid of the user that acted.
        by: u32,
        /// The name of that user.
        by_name: String,
        /// Of `topic`: the group's topic from now on.
        #[schema(nullable = false)]
        topic: Option<String>,
        /// Of `history`: whether members that join from now on see earlier messages. Of `added` and `joined`: `visible`, where the new
        /// member got earlier messages before this row.
        #[schema(nullable = false)]
        history: Option<History>,
        /// Of `slow`: seconds between two messages of one member from now on; 0: no slow mode.
        #[schema(nullable = false)]
        slow_seconds: Option<u16>,
        /// Of `keep`, and of `added` and `joined` where it was ever set: for how long messages of the group are kept from now on.
        #[schema(nullable = false)]
        keep: Option<KeepForm>,
        /// Of `picture`: the group's picture from now on; `null`: none.
        #[schema(nullable = true)]
        picture: Option<Uuid>,
        /// Of `muted`: when that ends; absent: it is for good.
        #[schema(nullable = false, format = DateTime)]
        until: Option<String>,
        /// Of `role`: the user's role from now on.
        #[schema(nullable = false)]
        role: Option<Role>,
        /// Of `left`: the owner of the group from now on, where the owner left.
        #[schema(nullable = false)]
        owner: Option<u32>,
        /// The name of that user.
        #[schema(nullable = false)]
        owner_name: Option<String>,
    },
}

/// A message, by what is the same in all its copies.
#[derive(ToSchema)]
#[schema(as = MessageKey)]
#[expect(dead_code, reason = "describes what is stored as JSON")]
pub(super) struct OfForm {
    /// The uid of the sender.
    sender: u32,
    /// Its idempotency key.
    client_id: Uuid,
}

/// How far messages have come.
#[derive(ToSchema)]
#[schema(as = Progress, rename_all = "snake_case")]
#[expect(dead_code, reason = "describes what is stored as JSON")]
pub(super) enum ProgressForm {
    Delivered,
    Read,
    ReadBy,
}

/// How many members of a group have read a message of the receiver.
#[derive(ToSchema)]
#[schema(as = ReadCount)]
#[expect(dead_code, reason = "describes what is stored as JSON")]
pub(super) struct ReadCountForm {
    /// The message's idempotency key.
    client_id: Uuid,
    /// How many.
    count: u32,
}

/// For how long messages of a conversation are kept.
#[derive(ToSchema)]
#[schema(as = Keep)]
#[expect(dead_code, reason = "describes what is stored as JSON")]
pub(super) struct KeepForm {
    /// Seconds; 0: for good.
    #[schema(maximum = 31_536_000)]
    seconds: u32,
    /// What was sent before this time is gone, whatever holds now: milliseconds since 1970 UTC; absent: nothing is.
    #[schema(nullable = false)]
    gone_before: Option<u64>,
}

/// A message that is replied to.
#[derive(ToSchema)]
#[schema(as = Quote)]
#[expect(dead_code, reason = "describes what is stored as JSON")]
pub(super) struct QuoteForm {
    /// Which message.
    of: OfForm,
}

/// Mentions of a message in a group.
#[derive(ToSchema)]
#[schema(as = Mentions)]
#[expect(dead_code, reason = "describes what is stored as JSON")]
pub(in crate::http) struct MentionsForm {
    /// Mentioned members, by uid, each once. Users that are not members are dropped when the message is accepted.
    #[schema(nullable = false, max_items = 50)]
    users: Option<Vec<u32>>,
    /// Everybody in the group.
    #[schema(nullable = false)]
    all: Option<bool>,
}

/// A change of a group.
#[derive(ToSchema)]
#[schema(as = GroupAction, rename_all = "lowercase")]
#[expect(dead_code, reason = "describes what is stored as JSON")]
pub(super) enum ActionForm {
    Created,
    Added,
    Joined,
    Removed,
    Left,
    Renamed,
    Topic,
    History,
    Role,
    Banned,
    Unbanned,
    Slow,
    Keep,
    Picture,
    Muted,
    Unmuted,
}
