//! The two tables that have rows of inboxes, asked as one: a row is in `entries`, or still in `young_entries` (`young`).

use crate::domain::{Conversation, Kind};

/// The tables that have rows of inboxes.
pub(super) const TABLES: [&str; 2] = ["entries", "young_entries"];

/// The same, where rows of one conversation are looked for.
const BY_CONVERSATION: [&str; 2] = ["entries INDEXED BY entries_by_conversation", "young_entries"];

/// `select` over both tables, as one statement. Parameters are numbered, since both halves have them.
pub(super) fn over_both(select: impl Fn(&str) -> String) -> String {
    TABLES.map(select).join(" UNION ALL ")
}

/// The same, for rows of one conversation.
pub(super) fn over_conversations(select: impl Fn(&str) -> String) -> String {
    BY_CONVERSATION.map(select).join(" UNION ALL ")
}

/// The condition on rows that stand for their conversation, if they are the newest.
pub(super) fn is_shown() -> String {
    let kinds: Vec<String> = Kind::codes(Kind::is_shown).iter().map(u8::to_string).collect();
    format!("kind IN ({}) AND conversation <> '{}'", kinds.join(", "), Conversation::MOMENTS)
}
