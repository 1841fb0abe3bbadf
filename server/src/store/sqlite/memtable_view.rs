//! Looking things up in memory: the memtables of a [`MemtableView`] seen as one.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::memtable::{Inbox, Memtable, MemtableView};
use crate::domain::{
    Content, Conversation, Direction, Entry, Group, GroupId, IdempotencyKey, MembershipEpoch, MessageId,
    PageLimit, Uid,
};
use crate::store::changes::Changes;
use crate::store::{Filling, IdempotencyRecord, Page};

impl MemtableView {
    /// Up to this id the rows of `uid` are in the tables, above it in memory; `None`: all are in the tables.
    pub(super) fn base(&self, uid: Uid) -> Option<MessageId> {
        self.memtables.iter().find_map(|memtable| memtable.inbox(uid, |inbox| inbox.base))
    }

    /// The same, and the latest id in memory, as they are at one moment: the memtable that grows is looked at once.
    pub(super) fn span(&self, uid: Uid) -> Option<(MessageId, MessageId)> {
        let of = |inbox: &Inbox| (inbox.base, inbox.rows.last().map_or(inbox.base, |(id, _)| *id));
        let spans = self.memtables.iter().filter_map(|memtable| memtable.inbox(uid, of));
        spans.reduce(|(base, _), (_, last)| (base, last))
    }

    /// The latest id of `uid`, if it is in memory.
    pub(super) fn latest_id(&self, uid: Uid) -> Option<MessageId> {
        let last = |inbox: &Inbox| inbox.rows.last().map(|(id, _)| *id);
        self.memtables.iter().rev().find_map(|memtable| memtable.inbox(uid, last).flatten())
    }

    /// The row `id` of `uid` as it was written, if it is in memory.
    pub(super) fn row(&self, uid: Uid, id: MessageId) -> Option<Entry> {
        self.memtables.iter().rev().find_map(|memtable| {
            let of = |inbox: &Inbox| {
                let at = inbox.rows.binary_search_by_key(&id, |(id, _)| *id).ok()?;
                Some(entry(uid, &inbox.rows[at]))
            };
            memtable.inbox(uid, of).flatten()
        })
    }

    /// Fills a page with rows of `uid` with ids in `low ..= high`, in that direction.
    pub(super) fn fill(
        &self,
        uid: Uid,
        (low, high): (u64, u64),
        direction: Direction,
        filling: &mut Filling,
    ) {
        let mut look = |memtable: &Arc<Memtable>| {
            let fill = |inbox: &Inbox| {
                let from = inbox.rows.partition_point(|(id, _)| id.get() < low);
                let to = inbox.rows.partition_point(|(id, _)| id.get() <= high);
                let rows = inbox.rows.get(from..to).unwrap_or_default();
                match direction {
                    Direction::Forward => rows.iter().all(|row| filling.push(entry(uid, row))),
                    Direction::Backward => rows.iter().rev().all(|row| filling.push(entry(uid, row))),
                }
            };
            memtable.inbox(uid, fill).unwrap_or(true)
        };
        _ = match direction {
            Direction::Forward => self.memtables.iter().all(&mut look),
            Direction::Backward => self.memtables.iter().rev().all(&mut look),
        };
    }

    /// Changes that the rows in memory make to earlier rows of `uid`.
    pub(super) fn changes(&self, uid: Uid) -> Changes {
        let of = |memtable: &Arc<Memtable>| memtable.inbox(uid, |inbox| inbox.changes.clone());
        Changes::of(self.memtables.iter().filter_map(of))
    }

    /// The newest row of `uid` under this compaction key, if it is in memory.
    pub(super) fn newest(&self, uid: Uid, name: &str) -> Option<MessageId> {
        let of = |inbox: &Inbox| inbox.changes.newest_of(name);
        self.memtables.iter().rev().find_map(|memtable| memtable.inbox(uid, of).flatten())
    }

    /// The newest rows of `uid` in memory whose compaction keys pass, by key.
    pub(super) fn newest_that(&self, uid: Uid, passes: impl Fn(&str) -> bool) -> BTreeMap<String, MessageId> {
        let mut found = BTreeMap::new();
        for memtable in &self.memtables {
            memtable.inbox(uid, |inbox| {
                let newest = inbox.changes.newest().filter(|(name, _)| passes(name));
                found.extend(newest.map(|(name, id)| (name.to_owned(), id)));
            });
        }
        found
    }

    /// The id of the row of `uid` under this key, if it is in memory.
    pub(super) fn copy(&self, uid: Uid, key: IdempotencyKey) -> Option<MessageId> {
        // Mostly new rows are asked for.
        let of = |inbox: &Inbox| {
            inbox.rows.iter().rev().find(|(_, content)| content.key() == Some(key)).map(|(id, _)| *id)
        };
        self.memtables.iter().rev().find_map(|memtable| memtable.inbox(uid, of).flatten())
    }

    /// Rows of `uid` with ids in `low ..= high` that pass `filter` as they are now, in that direction, at most `limit`.
    pub(super) fn filtered(
        &self,
        uid: Uid,
        (low, high): (u64, u64),
        direction: Direction,
        limit: usize,
        filter: impl Fn(&Content) -> bool,
    ) -> Vec<Entry> {
        let (mut found, changes) = (Vec::new(), self.changes(uid));
        let mut look = |memtable: &Arc<Memtable>| {
            memtable.inbox(uid, |inbox| {
                let within = |(id, _): &&(MessageId, Arc<Content>)| (low..=high).contains(&id.get());
                let shown = |row| changes.show(entry(uid, row)).filter(|row| filter(&row.content));
                let rows = inbox.rows.iter().filter(within);
                let room = limit - found.len();
                match direction {
                    Direction::Forward => found.extend(rows.filter_map(shown).take(room)),
                    Direction::Backward => found.extend(rows.rev().filter_map(shown).take(room)),
                }
            });
        };
        match direction {
            Direction::Forward => self.memtables.iter().for_each(&mut look),
            Direction::Backward => self.memtables.iter().rev().for_each(&mut look),
        }
        found
    }

    /// Those of these people who have written to `uid`, by rows in memory.
    pub(super) fn heard_from(&self, uid: Uid, others: &HashSet<Uid>) -> HashSet<Uid> {
        let mut heard = HashSet::new();
        for memtable in &self.memtables {
            memtable.inbox(uid, |inbox| {
                let said = inbox.rows.iter().filter(|(_, content)| {
                    let sender = content.sender;
                    content.is_said_by(sender)
                        && others.contains(&sender)
                        && content.conversation(uid) == Conversation::User(sender)
                });
                heard.extend(said.map(|(_, content)| content.sender));
            });
        }
        heard
    }

    /// All rows after `cursor`, if memory holds them all, as far as they fit into a page.
    pub(super) fn tail(&self, uid: Uid, cursor: MessageId, limit: PageLimit) -> Option<Page> {
        let (base, top) = self.span(uid)?;
        if cursor < base {
            return None;
        }
        let mut filling = Filling::showing(limit, self.changes(uid));
        self.fill(uid, (cursor.get() + 1, top.get()), Direction::Forward, &mut filling);
        Some(filling.page())
    }

    /// The largest read marker in memory for this conversation.
    pub(super) fn read_marker(&self, uid: Uid, conversation: Conversation) -> Option<MessageId> {
        let of = |inbox: &Inbox| {
            inbox.read_markers.iter().find(|(known, _)| *known == conversation).map(|(_, read_to)| *read_to)
        };
        self.memtables.iter().filter_map(|memtable| memtable.inbox(uid, of).flatten()).max()
    }

    /// The idempotency record under this key, if it is in memory.
    pub(super) fn record(&self, key: IdempotencyKey) -> Option<IdempotencyRecord> {
        self.memtables.iter().rev().find_map(|memtable| memtable.record(key))
    }

    /// The group's state, if it changed in memory.
    pub(super) fn group(&self, gid: GroupId) -> Option<Arc<Group>> {
        self.memtables.iter().rev().find_map(|memtable| memtable.group(gid)?.group)
    }

    /// The membership epochs in this group that ended in memory, oldest first.
    pub(super) fn closed(&self, gid: GroupId) -> Vec<(Uid, MembershipEpoch)> {
        let changed = self.memtables.iter().filter_map(|memtable| memtable.group(gid));
        changed.flat_map(|changed| changed.closed).collect()
    }
}

fn entry(receiver: Uid, (message_id, content): &(MessageId, Arc<Content>)) -> Entry {
    Entry { receiver, message_id: *message_id, content: content.clone() }
}
