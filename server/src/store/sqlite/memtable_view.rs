//! Looking things up in memory: the memtables of a [`MemtableView`] seen as one.

use std::sync::Arc;

use super::memtable::MemtableView;
use crate::domain::{
    ClientId, Content, Conversation, Direction, Entry, Group, GroupId, MembershipEpoch, MessageId, Uid,
};
use crate::store::{Page, Sent};

impl MemtableView {
    /// Up to this id the rows of `uid` are in the tables, above it in memory; `None`: all are in the tables.
    pub(super) fn base(&self, uid: Uid) -> Option<MessageId> {
        self.memtables.iter().find_map(|memtable| memtable.inbox(uid, |inbox| inbox.base))
    }

    /// The newest id of `uid`, if it is in memory.
    pub(super) fn newest(&self, uid: Uid) -> Option<MessageId> {
        let last = |inbox: &super::memtable::Inbox| inbox.rows.last().map(|(id, _)| *id);
        self.memtables.iter().rev().find_map(|memtable| memtable.inbox(uid, last).flatten())
    }

    /// At most `limit` rows of `uid` with ids in `low ..= high`, in that direction.
    pub(super) fn rows(
        &self,
        uid: Uid,
        low: u64,
        high: u64,
        direction: Direction,
        limit: usize,
    ) -> Vec<Entry> {
        let mut found = Vec::new();
        let mut look = |memtable: &Arc<super::memtable::Memtable>| {
            memtable.inbox(uid, |inbox| {
                let from = inbox.rows.partition_point(|(id, _)| id.get() < low);
                let to = inbox.rows.partition_point(|(id, _)| id.get() <= high);
                let rows = inbox.rows.get(from..to).unwrap_or_default();
                let room = limit - found.len();
                match direction {
                    Direction::Forward => found.extend(rows.iter().take(room).map(|row| entry(uid, row))),
                    Direction::Backward => {
                        found.extend(rows.iter().rev().take(room).map(|row| entry(uid, row)));
                    }
                }
            });
        };
        match direction {
            Direction::Forward => self.memtables.iter().for_each(&mut look),
            Direction::Backward => self.memtables.iter().rev().for_each(&mut look),
        }
        found
    }

    /// Rows of `uid` with ids in `low ..= high` that pass `filter`, newest first, at most `limit`.
    pub(super) fn filtered(
        &self,
        uid: Uid,
        low: u64,
        high: u64,
        limit: usize,
        filter: impl Fn(&Content) -> bool,
    ) -> Vec<Entry> {
        let mut found = Vec::new();
        for memtable in self.memtables.iter().rev() {
            memtable.inbox(uid, |inbox| {
                let wanted = |(id, content): &&(MessageId, Arc<Content>)| {
                    (low..=high).contains(&id.get()) && filter(content)
                };
                let rows = inbox.rows.iter().rev().filter(wanted).take(limit - found.len());
                found.extend(rows.map(|row| entry(uid, row)));
            });
        }
        found
    }

    /// All rows after `cursor`, if memory holds them all.
    pub(super) fn tail(&self, uid: Uid, cursor: MessageId, limit: usize) -> Option<Page> {
        if cursor < self.base(uid)? {
            return None;
        }
        let rows = self.rows(uid, cursor.get() + 1, MessageId::MAX.get(), Direction::Forward, limit + 1);
        Some(Page::filled(rows, limit))
    }

    /// The largest read marker in memory for this conversation.
    pub(super) fn read_marker(&self, uid: Uid, conversation: Conversation) -> Option<MessageId> {
        let of = |inbox: &super::memtable::Inbox| {
            inbox.read_markers.iter().find(|(known, _)| *known == conversation).map(|(_, read_to)| *read_to)
        };
        self.memtables.iter().filter_map(|memtable| memtable.inbox(uid, of).flatten()).max()
    }

    /// The idempotency record under this name, if it is in memory.
    pub(super) fn sent(&self, name: (Uid, ClientId)) -> Option<Sent> {
        self.memtables.iter().rev().find_map(|memtable| memtable.sent(name))
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
