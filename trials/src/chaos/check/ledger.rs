//! The acknowledged actions, as they must stand in the end. An action without an answer may have happened or not, so a thing may stand
//! in several ways.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use serde_json::{Value, json};
use tidemark_client::{Conversation, History, Kind, Role};

use super::super::action::{Action, ActionOutcome};
use super::super::record::PersonRecord;
use super::super::stage::{FIRST_NAME, Stage};
use super::super::view::{EntryKey, ShownState};

/// How things of one sort may stand; one that nobody touched stands as the default does.
#[derive(Debug)]
pub(super) struct Latest<K, V>(HashMap<K, Vec<V>>);

impl<K, V> Default for Latest<K, V> {
    fn default() -> Self {
        Latest(HashMap::new())
    }
}

impl<K: Eq + Hash, V: Default + PartialEq> Latest<K, V> {
    fn put(&mut self, key: K, value: V, is_sure: bool) {
        let may_be = self.0.entry(key).or_insert_with(|| vec![V::default()]);
        if is_sure {
            may_be.clear();
        }
        may_be.push(value);
    }

    pub(super) fn allows(&self, key: &K, value: &V) -> bool {
        match self.0.get(key) {
            Some(may_be) => may_be.contains(value),
            None => *value == V::default(),
        }
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.keys()
    }
}

/// A moment or a comment.
#[derive(Debug)]
pub(super) struct Post {
    pub(super) kind: Kind,
    pub(super) body: Value,
    /// The moment that a comment is about.
    pub(super) of: Option<EntryKey>,
    /// The id of its row in the author's inbox; `None`: nobody knows whether there is one.
    pub(super) message_id: Option<u64>,
}

/// A change that its sender makes to a message.
#[derive(Debug)]
enum MessageChange {
    Edit(String),
    Recall,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct ActionLedger {
    changes: HashMap<EntryKey, Vec<(MessageChange, bool)>>,
    /// Users that deleted a message for themselves, and whether that is sure.
    deleted: HashMap<(u32, EntryKey), bool>,
    /// Moments and comments that their author deleted.
    gone: HashMap<EntryKey, bool>,
    pub(super) posts: HashMap<EntryKey, Post>,
    pub(super) reactions: Latest<(EntryKey, u32), Vec<String>>,
    pub(super) likes: Latest<(EntryKey, u32), bool>,
    /// Whether each person's last change pinned or unpinned a message.
    pub(super) pins: Latest<(EntryKey, u32), Option<bool>>,
    /// Whether each person has starred a message.
    pub(super) stars: Latest<(EntryKey, u32), Option<bool>>,
    pub(super) settings: Latest<(u32, String, Conversation), Option<Value>>,
    /// Whether one user wants to be a friend of another.
    pub(super) wishes: Latest<(u32, u32), bool>,
    /// Seconds for which messages of two are kept, as the first has said; `None`: nothing.
    pub(super) keeps: Latest<(u32, u32), Option<u64>>,
    /// How far somebody has read, at least and at most.
    pub(super) reads: HashMap<(u32, Conversation), (u64, u64)>,
    pub(super) names: Latest<u64, String>,
    pub(super) topics: Latest<u64, String>,
    pub(super) histories: Latest<u64, History>,
    pub(super) roles: Latest<(u64, u32), Role>,
    /// Whether a user that comes and goes is in a group.
    pub(super) members: Latest<(u64, u32), bool>,
    /// Names that a group was given, and whether that is sure.
    pub(super) renamed: Vec<(u64, String, bool)>,
}

impl ActionLedger {
    /// Writes down what everybody did.
    pub(super) fn of(records: &[PersonRecord], stage: &Stage) -> ActionLedger {
        let mut ledger = ActionLedger::default();
        for (who, other) in
            stage.friends.iter().flat_map(|who| stage.friends.iter().map(move |other| (who, other)))
        {
            ledger.wishes.put((*who, *other), true, true);
        }
        for changing in stage.changing.values() {
            ledger.names.put(changing.gid, FIRST_NAME.to_owned(), true);
            for uid in &changing.passing {
                ledger.members.put((changing.gid, *uid), true, true);
            }
        }
        for record in records {
            for done in &record.settled.done {
                let (message_id, is_sure) = match &done.outcome {
                    ActionOutcome::Done(sent) => (sent.as_ref().map(|sent| sent.message_id), true),
                    ActionOutcome::Unknown => (None, false),
                    ActionOutcome::Refused => continue,
                };
                ledger.put(record.uid, &done.action, (record.uid, done.key), message_id, is_sure);
            }
        }
        ledger
    }

    fn put(&mut self, uid: u32, action: &Action, key: EntryKey, message_id: Option<u64>, is_sure: bool) {
        let sure_at_last = |known: &mut bool| *known |= is_sure;
        match action {
            Action::Edit { at, text } => {
                self.changes.entry(at.key()).or_default().push((MessageChange::Edit(text.clone()), is_sure));
            }
            Action::Recall { at } => {
                self.changes.entry(at.key()).or_default().push((MessageChange::Recall, is_sure));
            }
            Action::React { at, emoji } => self.reactions.put((at.key(), uid), emoji.clone(), is_sure),
            Action::Pin { at, pinned } => self.pins.put((at.key(), uid), Some(*pinned), is_sure),
            Action::Star { at, starred } => self.stars.put((at.key(), uid), Some(*starred), is_sure),
            Action::Delete { at } => {
                self.deleted.entry((uid, at.key())).and_modify(sure_at_last).or_insert(is_sure);
            }
            Action::DeleteMoment { at } => {
                self.gone.entry(at.key()).and_modify(sure_at_last).or_insert(is_sure);
            }
            Action::Set { conversation, name, value } => self.set(uid, name, *conversation, value, is_sure),
            Action::SetForAll { name, value } => {
                self.set(uid, name, Conversation::User(uid), value, is_sure);
            }
            Action::Befriend { uid: other, wanted } => self.wishes.put((uid, *other), *wanted, is_sure),
            Action::Keep { uid: other, seconds } => {
                self.keeps.put((uid, *other), Some((*seconds).into()), is_sure);
            }
            Action::Post { text } => {
                let body = json!({ "text": text });
                self.posts.insert(key, Post { kind: Kind::Moment, body, of: None, message_id });
            }
            Action::Comment { at, text } => {
                let of = json!({ "sender": at.sender, "client_id": at.client_id });
                let body = json!({ "of": of, "text": text });
                let of = Some(at.key());
                self.posts.insert(key, Post { kind: Kind::Comment, body, of, message_id });
            }
            Action::Like { at, liked } => self.likes.put((at.key(), uid), *liked, is_sure),
            Action::Read { at } => {
                let (least, most) = self.reads.entry((uid, at.conversation)).or_default();
                *most = (*most).max(at.message_id);
                if is_sure {
                    *least = (*least).max(at.message_id);
                }
            }
            // Nothing answers it, so that nothing is promised.
            Action::Seen { .. } => {}
            Action::Rename { gid, name } => {
                self.names.put(*gid, name.clone(), is_sure);
                self.renamed.push((*gid, name.clone(), is_sure));
            }
            Action::Topic { gid, topic } => self.topics.put(*gid, topic.clone(), is_sure),
            Action::History { gid, history } => self.histories.put(*gid, *history, is_sure),
            Action::Role { gid, uid, role } => self.roles.put((*gid, *uid), *role, is_sure),
            Action::Add { gid, uid } => self.members.put((*gid, *uid), true, is_sure),
            Action::Remove { gid, uid } | Action::Ban { gid, uid } => {
                self.members.put((*gid, *uid), false, is_sure);
            }
            Action::Unban { .. } => {}
        }
    }

    fn set(&mut self, uid: u32, name: &str, conversation: Conversation, value: &str, is_sure: bool) {
        let value: Option<Value> = serde_json::from_str(value).unwrap_or_default();
        self.settings.put((uid, name.to_owned(), conversation), value, is_sure);
    }

    /// How a message may stand in the inbox of `uid`; `body`: as it was sent.
    pub(super) fn message(&self, uid: u32, key: EntryKey, body: &Value) -> Vec<ShownState> {
        let said = |body: Value| ShownState::Said { kind: Kind::Message, body };
        let mut may_be = vec![said(body.clone())];
        for (change, is_sure) in self.changes.get(&key).into_iter().flatten() {
            let state = match change {
                MessageChange::Edit(text) => {
                    let mut body = body.clone();
                    (body["text"], body["edited"]) = (json!(text), json!(true));
                    said(body)
                }
                MessageChange::Recall => ShownState::Recalled,
            };
            if *is_sure {
                may_be.clear();
            }
            may_be.push(state);
        }
        self.with_deletion(self.deleted.get(&(uid, key)), may_be)
    }

    /// How a moment or a comment may stand.
    pub(super) fn post(&self, key: EntryKey, post: &Post) -> Vec<ShownState> {
        let said = ShownState::Said { kind: post.kind.clone(), body: post.body.clone() };
        self.with_deletion(self.gone.get(&key), vec![said])
    }

    fn with_deletion(&self, deleted: Option<&bool>, mut may_be: Vec<ShownState>) -> Vec<ShownState> {
        if let Some(is_sure) = deleted {
            if *is_sure {
                may_be.clear();
            }
            may_be.push(ShownState::Deleted);
        }
        may_be
    }

    /// Texts that must be in no row of the inbox of `uid`. `texts`: of all messages, by their names.
    pub(super) fn forgotten<'a>(&'a self, uid: u32, texts: &HashMap<EntryKey, &'a str>) -> HashSet<&'a str> {
        let mut forgotten = HashSet::new();
        for (key, text) in texts {
            let changes = self.changes.get(key).map(Vec::as_slice).unwrap_or_default();
            let is_recalled =
                changes.iter().any(|(change, is_sure)| matches!(change, MessageChange::Recall) && *is_sure);
            if is_recalled || self.deleted.get(&(uid, *key)) == Some(&true) {
                forgotten.insert(*text);
                forgotten.extend(changes.iter().filter_map(|(change, _)| match change {
                    MessageChange::Edit(text) => Some(text.as_str()),
                    MessageChange::Recall => None,
                }));
            }
        }
        let gone =
            self.gone.iter().filter(|(_, is_sure)| **is_sure).filter_map(|(key, _)| self.posts.get(key));
        forgotten.extend(gone.filter_map(|post| post.body["text"].as_str()));
        forgotten
    }
}
