//! The view of a device: the rows of one inbox, folded. Two devices of a person agree when their views do, whatever way the rows came:
//! one followed every change, another read the rows that were left.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::Deserialize;
use serde_json::Value;
use tidemark_client::{Conversation, Entry, Kind, MessageKey};
use uuid::Uuid;

/// Where moments lie.
pub(super) const FEED: Conversation = Conversation::User(0);

/// The name that all copies of a row share: its sender, and the sender's name for it.
pub(super) type EntryKey = (u32, Uuid);

/// Everything that a person sees.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct InboxView {
    /// Messages, moments and comments.
    pub(super) lines: BTreeMap<EntryKey, ShownLine>,
    /// The changes of groups, by their ids.
    pub(super) memberships: BTreeMap<u64, Value>,
    /// The settings, by name and conversation.
    pub(super) settings: BTreeMap<(String, Conversation), Value>,
    /// Wishes to be friends, by the other person.
    pub(super) friends: BTreeMap<u32, Friendship>,
    /// Seconds for which messages are kept, by conversation, as each person there has said last.
    pub(super) keeps: BTreeMap<(Conversation, u32), u64>,
    /// How far one has read.
    pub(super) read_to: BTreeMap<Conversation, u64>,
    /// How far the person's own messages have come, by conversation and state.
    pub(super) seen: BTreeMap<(Conversation, String), EntryKey>,
    /// Rows that are there a second time.
    pub(super) twice: Vec<EntryKey>,
}

/// A message, a moment or a comment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ShownLine {
    pub(super) message_id: u64,
    pub(super) conversation: Conversation,
    pub(super) state: ShownState,
    /// The reactions, by user.
    pub(super) reactions: BTreeMap<u32, Vec<String>>,
    /// The users who like it.
    pub(super) likes: BTreeSet<u32>,
    /// Whether it is pinned, and the user who pinned or unpinned it last.
    pub(super) pinned: Option<(u32, bool)>,
    /// Whether the person has starred it, as far as that was ever said.
    pub(super) starred: Option<bool>,
}

/// How much is left of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ShownState {
    /// All.
    Said {
        /// `message`, `moment` or `comment`.
        kind: Kind,
        body: Value,
    },
    Recalled,
    Deleted,
}

/// Which of two people want to be friends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Friendship {
    pub(super) mine: bool,
    pub(super) theirs: bool,
}

#[derive(Deserialize)]
struct Setting {
    name: String,
    value: Value,
}

impl InboxView {
    /// The view of `uid` on these rows, which stand in the order of their ids.
    pub(super) fn of(uid: u32, rows: &[Entry]) -> InboxView {
        let mut view = InboxView::default();
        for row in rows {
            view.take(uid, row);
        }
        // A reaction may come before its message.
        for row in rows {
            if let Some(of) = row.about() {
                view.amend(row, (of.sender, of.client_id));
            }
        }
        for line in view.lines.values_mut().filter(|line| !matches!(line.state, ShownState::Said { .. })) {
            (line.reactions, line.likes, line.pinned, line.starred) = Default::default();
        }
        view.friends.retain(|_, friendship| *friendship != Friendship::default());
        view
    }

    /// Messages of others that `uid` has not read, by conversation.
    pub(super) fn unread(&self, uid: u32) -> BTreeMap<Conversation, u64> {
        let mut unread = BTreeMap::new();
        for ((sender, _), line) in &self.lines {
            let read_to = self.read_to.get(&line.conversation).copied().unwrap_or_default();
            let is_message = matches!(&line.state, ShownState::Said { kind: Kind::Message, .. });
            if is_message && *sender != uid && line.message_id > read_to {
                *unread.entry(line.conversation).or_default() += 1;
            }
        }
        unread
    }

    fn take(&mut self, uid: u32, row: &Entry) {
        let body: Value = row.body_as().unwrap_or_default();
        match &row.kind {
            Kind::Message | Kind::Moment | Kind::Comment => {
                self.line(row, ShownState::Said { kind: row.kind.clone(), body });
            }
            Kind::Recalled => self.line(row, ShownState::Recalled),
            Kind::Deleted => self.line(row, ShownState::Deleted),
            Kind::Membership => drop(self.memberships.insert(row.message_id, body)),
            Kind::ReadMarker => {
                let read_to = self.read_to.entry(row.conversation).or_default();
                *read_to = (*read_to).max(row.read_to().unwrap_or_default());
            }
            Kind::Setting => {
                if let Ok(Setting { name, value }) = row.body_as() {
                    let key = (name, row.conversation);
                    match value {
                        Value::Null => drop(self.settings.remove(&key)),
                        value => drop(self.settings.insert(key, value)),
                    }
                }
            }
            Kind::Friend => {
                if let Conversation::User(other) = row.conversation {
                    let friendship = self.friends.entry(other).or_default();
                    let wanted = body["wanted"] == true;
                    *if row.sender == uid { &mut friendship.mine } else { &mut friendship.theirs } = wanted;
                }
            }
            Kind::Keep => {
                let seconds = body["keep"]["seconds"].as_u64().unwrap_or_default();
                self.keeps.insert((row.conversation, row.sender), seconds);
            }
            Kind::Seen => {
                if let (Some(MessageKey { sender, client_id }), Some(state)) =
                    (row.about(), body["state"].as_str())
                {
                    self.seen.insert((row.conversation, state.to_owned()), (sender, client_id));
                }
            }
            _ => {}
        }
    }

    fn line(&mut self, row: &Entry, state: ShownState) {
        let Some(client_id) = row.client_id else { return };
        let (message_id, conversation) = (row.message_id, row.conversation);
        let line = ShownLine {
            message_id,
            conversation,
            state,
            reactions: BTreeMap::new(),
            likes: BTreeSet::new(),
            pinned: None,
            starred: None,
        };
        if self.lines.insert((row.sender, client_id), line).is_some() {
            self.twice.push((row.sender, client_id));
        }
    }

    fn amend(&mut self, row: &Entry, of: EntryKey) {
        let Some(line) = self.lines.get_mut(&of) else { return };
        let is_message = matches!(line.state, ShownState::Said { kind: Kind::Message, .. });
        match row.kind {
            Kind::Edit if is_message => {
                let body: Value = row.body_as().unwrap_or_default();
                line.state = ShownState::Said { kind: Kind::Message, body: body["body"].clone() };
            }
            Kind::Recall if is_message => line.state = ShownState::Recalled,
            Kind::Delete => line.state = ShownState::Deleted,
            Kind::Reaction => match row.emoji() {
                Some(emoji) if !emoji.is_empty() => drop(line.reactions.insert(row.sender, emoji)),
                _ => drop(line.reactions.remove(&row.sender)),
            },
            Kind::Like => {
                let body: Value = row.body_as().unwrap_or_default();
                if body["liked"] == true {
                    line.likes.insert(row.sender);
                } else {
                    line.likes.remove(&row.sender);
                }
            }
            Kind::Pin => {
                let body: Value = row.body_as().unwrap_or_default();
                line.pinned = Some((row.sender, body["pinned"] == true));
            }
            Kind::Star => line.starred = row.starred(),
            _ => {}
        }
    }
}

/// Rows of `stored` that a device with `rows` lacks, and differences between the two views.
pub(super) fn differences(
    device: &str,
    rows: &[Entry],
    stored: &[Entry],
    (view, expected): (&InboxView, &InboxView),
    broken: &mut Vec<String>,
) {
    let ids: HashSet<u64> = rows.iter().map(|row| row.message_id).collect();
    // The edit of a message that the person has deleted goes at the next flush; a device drops it at once.
    let is_going = |row: &Entry| {
        let line = row.about().and_then(|of| expected.lines.get(&(of.sender, of.client_id)));
        row.kind == Kind::Edit && line.is_some_and(|line| line.state == ShownState::Deleted)
    };
    let stays = stored.iter().filter(|row| !is_going(row)).map(|row| row.message_id);
    let lacks: Vec<u64> = stays.filter(|id| !ids.contains(id)).collect();
    if !lacks.is_empty() {
        broken.push(format!("{device} lacks {lacks:?}"));
    }
    if view == expected {
        return;
    }
    for (key, line) in &expected.lines {
        let theirs = view.lines.get(key);
        if theirs != Some(line) {
            broken.push(format!("{device} shows {key:?} as {theirs:?}, and not as {line:?}"));
        }
    }
    for key in view.lines.keys().filter(|key| !expected.lines.contains_key(key)) {
        broken.push(format!("{device} alone has {key:?}"));
    }
    let rest = |view: &InboxView| {
        let InboxView { memberships, settings, friends, keeps, read_to, seen, twice, .. } = view;
        format!("{memberships:?} {settings:?} {friends:?} {keeps:?} {read_to:?} {seen:?} {twice:?}")
    };
    if rest(view) != rest(expected) {
        broken.push(format!("{device} has {}, and not {}", rest(view), rest(expected)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: u32 = 1;
    const BOB: u32 = 2;

    fn row(message_id: u64, sender: u32, kind: &str, body: &str) -> Entry {
        let text = format!(
            r#"{{"partition_key":"c4ca","receiver":{ANN},"message_id":{message_id},"kind":"{kind}","conversation":"u:{BOB}",
            "sender":{sender},"client_id":"{}","body":{body},"sent_at":""}}"#,
            Uuid::from_u128(message_id.into())
        );
        serde_json::from_str(&text).expect("a row")
    }

    fn of(n: u128) -> String {
        format!(r#""of":{{"sender":{BOB},"client_id":"{}"}}"#, Uuid::from_u128(n))
    }

    #[test]
    fn whoever_followed_and_whoever_came_later_see_the_same() {
        let followed = [
            row(1, BOB, "message", r#"{"text":"a"}"#),
            row(2, ANN, "reaction", &format!(r#"{{{},"emoji":["👍"]}}"#, of(1))),
            row(3, BOB, "edit", &format!(r#"{{{},"body":{{"text":"b","edited":true}}}}"#, of(1))),
            row(4, ANN, "receipt", r#"{"read_to":1}"#),
            row(5, BOB, "message", r#"{"text":"c"}"#),
            row(6, BOB, "recall", &format!("{{{}}}", of(5))),
            row(7, BOB, "message", r#"{"text":"d"}"#),
            row(8, ANN, "setting", r#"{"name":"pin","value":{"pinned":true}}"#),
            row(9, ANN, "setting", r#"{"name":"pin","value":null}"#),
            row(10, BOB, "friend", r#"{"wanted":true}"#),
        ];
        let left = [
            row(1, BOB, "message", r#"{"text":"b","edited":true}"#),
            followed[1].clone(),
            followed[2].clone(),
            followed[3].clone(),
            row(5, BOB, "recalled", r#"{"recalled":true}"#),
            followed[5].clone(),
            followed[6].clone(),
            followed[8].clone(),
            followed[9].clone(),
        ];
        let view = InboxView::of(ANN, &followed);
        assert_eq!(view, InboxView::of(ANN, &left));
        assert_eq!(view.unread(ANN).into_values().collect::<Vec<_>>(), [1]);
        assert_eq!(view.lines[&(BOB, Uuid::from_u128(1))].reactions[&ANN], ["👍"]);
        assert!(view.settings.is_empty() && view.twice.is_empty());
        assert_eq!(view.friends[&BOB], Friendship { mine: false, theirs: true });
        assert_ne!(view, InboxView::of(ANN, &followed[..6]));
    }
}
