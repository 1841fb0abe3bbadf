//! The choice of the rows of an inbox that go because they are old, alike for every database.
//!
//! Rows go in the order of their ids, from the oldest on, up to the first that is not old enough. So one id says how far an inbox has come
//! (`heads.expired_to`), and a device whose cursor lies before it may lack rows that went. A conversation with a time of its own has no such
//! id: devices remove by the same rule. Rows of lasting kinds are passed over. The newest
//! row that stands for its conversation in lists leaves its shell there: a deleted row without a text and a key, until a later one goes.

use std::collections::BTreeMap;

use tracing::warn;

use super::StoreError;
use crate::domain::{Content, Conversation, Entry, MessageId, STARS, Timestamp, Uid, pins};

/// How far a walk has come that removes what is old: over inboxes, or over records by their keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expired<Place = Uid> {
    /// How many rows or records were removed, or left their shells.
    pub removed: u64,
    /// The last one that has nothing more to remove, in the order of (partition key, uid), of records then by `client_id`: the walk goes on
    /// after it.
    pub after: Option<Place>,
    /// Whether the walk has come to its end.
    pub is_done: bool,
}

/// How far a walk has come that looks for conversations with a time of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keeping {
    /// The inboxes that have some.
    pub uids: Vec<Uid>,
    /// The last one that was looked at: the walk goes on after it.
    pub after: Option<Uid>,
    /// Whether the walk has come to its end.
    pub is_done: bool,
}

impl Keeping {
    /// Of the next inboxes after `after`, and whether each has some.
    pub(super) fn of(looked: Vec<(Uid, bool)>, after: Option<Uid>) -> Keeping {
        let (last, is_done) = (looked.last().map(|(uid, _)| *uid), looked.len() < INBOXES_AT_ONCE);
        let uids = looked.into_iter().filter(|(_, has_some)| *has_some).map(|(uid, _)| uid).collect();
        Keeping { uids, after: last.or(after), is_done }
    }
}

/// What was found out about an inbox; nothing, which the log says, where its rows cannot be read: the walk goes on behind it.
///
/// # Errors
/// All but [`StoreError::Corrupt`].
pub(crate) fn unless_corrupt<T>(uid: Uid, found: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match found {
        Err(StoreError::Corrupt(why)) => {
            warn!(%uid, %why, "the old rows of an inbox cannot be read; they stay, and those of other inboxes go");
            Ok(None)
        }
        found => found.map(Some),
    }
}

/// Inboxes that one call looks at, at most.
pub(super) const INBOXES_AT_ONCE: usize = 200;

/// What becomes of some rows of one inbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Expiry {
    /// These go.
    pub(super) gone: Vec<MessageId>,
    /// These leave their shells.
    pub(super) emptied: Vec<(MessageId, Content)>,
    /// The compaction keys of what goes. They go, too, unless a later row has taken them.
    pub(super) keys: Vec<String>,
    /// The compaction keys of pins and stars of what goes or is emptied: their rows go with it.
    pub(super) marks: Vec<String>,
    /// In these conversations a row that is shown goes or leaves its shell: the shells before it go.
    pub(super) shown: BTreeMap<Conversation, MessageId>,
    /// Up to this id the inbox has expired; [`MessageId::ZERO`]: nothing is old enough.
    pub(super) through: MessageId,
    /// Whether the rows end with one that is not old enough.
    pub(super) is_over: bool,
}

impl Expiry {
    /// Of rows of one inbox that follow what has expired, without those of lasting kinds. `newest`: of each of their conversations the
    /// row that stands for it in lists.
    pub(super) fn of<'a>(
        rows: impl IntoIterator<Item = &'a Entry>,
        sent_before: Timestamp,
        newest: impl Fn(Conversation) -> MessageId,
    ) -> Expiry {
        let mut expiry = Expiry::default();
        for row in rows {
            if row.content.sent_at >= sent_before {
                expiry.is_over = true;
                break;
            }
            let conversation = row.conversation();
            expiry.through = row.message_id;
            expiry.marks.extend(Expiry::marks_of(row));
            if row.content.is_shown() {
                expiry.shown.entry(conversation).or_insert(row.message_id);
            }
            if row.content.is_shown() && newest(conversation) == row.message_id {
                expiry.emptied.push((row.message_id, row.content.shell()));
            } else {
                expiry.gone.push(row.message_id);
                expiry.keys.extend(row.content.compaction_key(row.receiver));
            }
        }
        expiry
    }

    /// The compaction keys of the pin and the star of a message.
    pub(super) fn marks_of(row: &Entry) -> impl Iterator<Item = String> {
        let key = row.content.key().filter(|_| row.content.is_shown());
        let conversation = row.conversation();
        key.into_iter().flat_map(move |(sender, client_id)| {
            [pins(conversation), STARS.to_owned()].map(|prefix| format!("{prefix}{sender} {client_id}"))
        })
    }

    /// How many rows go or leave their shells.
    pub(super) fn len(&self) -> usize {
        self.gone.len() + self.emptied.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Kind;
    use crate::store::conformance::{id, text_message};

    const ANN: Uid = Uid(10_001);
    const BOB: Uid = Uid(10_002);

    /// Rows of Ann with these ids, sent in their order.
    fn rows(kinds: &[(u64, Kind)]) -> Vec<Entry> {
        let row = |(n, kind): &(u64, Kind)| {
            let content = text_message(BOB, Conversation::User(ANN), u128::from(*n), "hello");
            let content = Content { kind: *kind, ..Content::clone(&content) };
            Entry { receiver: ANN, message_id: id(*n), content: content.into() }
        };
        kinds.iter().map(row).collect()
    }

    #[test]
    fn rows_go_up_to_the_first_that_is_not_old_enough() {
        let rows = rows(&[(2, Kind::Message), (5, Kind::Message), (7, Kind::Message)]);
        let sent = |at: usize| rows[at].content.sent_at;
        let newest = |_| id(9);
        let expiry = Expiry::of(&rows, sent(2), newest);
        assert_eq!(
            (expiry.gone.as_slice(), expiry.through, expiry.is_over),
            (&[id(2), id(5)][..], id(5), true)
        );
        let shown = BTreeMap::from([(Conversation::User(BOB), id(2))]);
        assert_eq!((expiry.shown.clone(), expiry.len()), (shown, 2));
        assert_eq!(
            expiry.marks[..2],
            ["pin u:10002 10002 ", "star 10002 "]
                .map(|mark| { format!("{mark}00000000-0000-0000-0000-000000000002") })
        );
        let none = Expiry::of(&rows, sent(0), newest);
        assert_eq!(none, Expiry { is_over: true, ..Expiry::default() });
        assert!(!Expiry::of(&rows, Timestamp(i64::MAX), newest).is_over);
    }

    /// A step may end between the two.
    #[test]
    fn what_is_said_about_the_newest_row_leaves_its_shell_alone() {
        let rows = rows(&[(7, Kind::Reaction), (8, Kind::Edit)]);
        let expiry = Expiry::of(&rows, Timestamp(i64::MAX), |_| id(5));
        assert_eq!((expiry.gone, expiry.shown), (vec![id(7), id(8)], BTreeMap::new()));
    }

    #[test]
    fn the_row_that_stands_for_its_conversation_leaves_its_shell() {
        let rows = rows(&[(2, Kind::Message), (5, Kind::Message), (7, Kind::App)]);
        let expiry = Expiry::of(&rows, Timestamp(i64::MAX), |_| id(5));
        assert_eq!((expiry.gone.as_slice(), expiry.through), (&[id(2), id(7)][..], id(7)));
        let [(emptied, shell)] = &expiry.emptied[..] else { panic!("{expiry:?}") };
        assert_eq!(*emptied, id(5));
        assert_eq!(
            (shell.kind, shell.key(), shell.body.as_json()),
            (Kind::Deleted, None, r#"{"deleted":true}"#)
        );
        assert!(shell.is_shown());
    }
}
