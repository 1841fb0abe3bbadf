//! Tidemark's vocabulary: ids, entries, conversations, groups, cursors. Plain values and rules, no I/O.
//!
//! Every type here is valid once constructed. Nothing in this folder knows JSON frames, SQL or sockets;
//! wire and stored forms live at the edges and convert from and to these.

pub mod amendment;
pub mod compaction;
pub mod conversation;
pub mod emoji;
pub mod entry;
pub mod file;
pub mod forward;
pub mod group;
pub mod ids;
pub mod invite;
pub mod keep;
pub mod keep_rows;
pub mod kinds;
pub mod last_seen;
pub mod mention;
pub mod message;
pub mod name;
pub mod password;
pub mod range;
pub mod relation;
pub mod report;
pub mod search;
pub mod segments;
pub mod setting;
pub mod social;
pub mod time;

pub use amendment::{Amendment, Change, MOST_PINS};
pub use compaction::{FRIENDS, SETTINGS, STARS, amendment_key, friend_key, pins, setting_key};
pub use conversation::Conversation;
pub use emoji::{EmojiError, check_emoji, normal_emoji};
pub use entry::{Content, Entry, IdempotencyKey};
pub use file::{
    Attached, BadFileName, FileFacts, LONGEST_FILE_NAME, MOST_FILES, Preview, SaidOfFile, ShownFile,
    file_name,
};
pub use group::{
    Group, GroupChange, GroupSetting, GroupSettings, GroupStep, History, MOST_MUTED, Member, MembershipEpoch,
    Mute, Muted, Role, SLOWEST, Standing,
};
pub use ids::{ClientId, FileId, GroupId, HistoryId, MessageId, PartitionKey, Uid};
pub use invite::{Invite, LONGEST_INVITE_SECONDS, MOST_INVITE_USES};
pub use keep::{Keep, LEAST_KEEP, LONGEST_KEEP};
pub use keep_rows::{KEEPS, keep_key};
pub use kinds::{Kind, WrittenBy};
pub use last_seen::LastSeen;
pub use mention::{MOST_MENTIONS, Mentions};
pub use message::{AppBodyError, AppKind, Body, Digest, TextError};
pub use name::{
    DELETED_ACCOUNT, is_official, is_reserved, is_visible, name_endings, name_key, normal_name, skeletons,
};
pub use password::normal_password;
pub use range::{Bound, Direction, PageLimit, RangeError, RangeQuery};
pub use relation::Relation;
pub use report::{Complaint, LONGEST_REPORT, NewReport, REPORTS_A_DAY, Reason, Report, ReportedMessage};
pub use search::{SearchError, SearchWords};
pub use segments::{MOST_SEGMENTS, Segment, Segments};
pub use setting::{FoundBy, Privacy, PrivacyLevel, Profile, Setting, SettingError};
pub use social::{
    Friendship, MOST_COUNTED, Progress, ReadCount, SocialError, grown, read_counts_key, seen_key,
};
pub use time::{Clock, Timestamp};
