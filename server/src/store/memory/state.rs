//! The state of the in-memory store, and the rules of a write (I4, I5, I13) in their plainest form.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::domain::{
    Content, Conversation, Direction, Entry, Group, GroupId, IdempotencyKey, Kind, MembershipEpoch,
    MessageId, Uid,
};
use crate::store::{
    Accept, AcceptanceId, CopyOutcome, Deliver, Forgotten, IdempotencyRecord, Outcome, Pending, Recipient,
    Row, Summary, Write,
};

mod expiry;

/// An acceptance with copies owed.
struct MemoryPending {
    content: Arc<Content>,
    owed: Vec<Recipient>,
    ends: Option<(Uid, MembershipEpoch)>,
}

/// Everything.
#[derive(Default)]
pub(super) struct MemoryState {
    rows: BTreeMap<(Uid, MessageId), Arc<Content>>,
    /// Also of inboxes whose newest row is gone.
    latest_ids: HashMap<Uid, MessageId>,
    /// Up to which id inboxes have expired.
    expired_to: HashMap<Uid, MessageId>,
    read_to: HashMap<(Uid, Conversation), MessageId>,
    pub(super) records: HashMap<IdempotencyKey, IdempotencyRecord>,
    open: BTreeMap<AcceptanceId, MemoryPending>,
    accepted: u64,
    pub(super) groups: HashMap<GroupId, Arc<Group>>,
    /// The last membership epoch in each group that ended with a row in the member's inbox.
    closed: HashMap<(GroupId, Uid), MembershipEpoch>,
}

impl MemoryState {
    /// The latest ids of inboxes that these writes would not come after.
    pub(super) fn behind(&self, writes: &[Write]) -> Vec<(Uid, MessageId)> {
        let mut behind = BTreeMap::new();
        for write in writes {
            let rows: Vec<Row> = match write {
                Write::Accept(accept) => accept.rows.clone(),
                Write::Deliver(deliver) if self.open.contains_key(&deliver.acceptance) => {
                    deliver.earlier_rows().chain(deliver.rows.iter().copied()).collect()
                }
                Write::Deliver(_) => continue,
            };
            let latest = rows.iter().map(|row| (row, self.latest_id(row.receiver)));
            let late = latest.filter(|(row, latest)| row.message_id <= *latest && !row.is_unnumbered());
            behind.extend(late.map(|(row, latest)| (row.receiver, latest)));
        }
        behind.into_iter().collect()
    }

    /// The places of writes that bring a proof that their key has no record, though it has one.
    pub(super) fn stale(&self, writes: &[Write]) -> Vec<usize> {
        let proven = |write: &Write| match write {
            Write::Accept(accept) => accept.unused.and(accept.content.key()),
            Write::Deliver(_) => None,
        };
        let proven = writes.iter().enumerate().filter_map(|(at, write)| Some((at, proven(write)?)));
        proven.filter(|(_, key)| self.records.contains_key(key)).map(|(at, _)| at).collect()
    }

    /// Does `write` whole or not at all.
    pub(super) fn write(&mut self, write: Write) -> Outcome {
        match write {
            Write::Accept(accept) => self.accept(accept),
            Write::Deliver(deliver) => self.deliver(deliver),
        }
    }

    fn accept(&mut self, accept: Accept) -> Outcome {
        if !accept.begins_well() {
            return Outcome::Rejected(Accept::FIRST_COPY.to_owned());
        }
        let Accept { content, digest, mut rows, rest, change, group_version: _, unused: _ } = accept;
        let key = content.client_id.map(|client_id| (content.sender, client_id));
        if key.is_some_and(|key| self.records.contains_key(&key)) {
            return Outcome::Rejected("this client_id has been accepted before".to_owned());
        }
        let changed = match &change {
            None => None,
            Some(change) => {
                let next = match self.groups.get(&change.gid) {
                    Some(group) => group.apply(change),
                    None if change.from_version == 0 => Group::create(change),
                    None => None,
                };
                let Some(next) = next else { return Outcome::GroupChanged };
                Some(next)
            }
        };
        let mut copied = Vec::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            let twice = rows[..at].iter().any(|earlier| earlier.receiver == row.receiver);
            copied.push(if twice { CopyOutcome::Already } else { self.judge(&content, row) });
        }
        if copied[0] == CopyOutcome::Void {
            return Outcome::GroupChanged;
        }
        if let Err(refusal) = self.number(&mut rows, &copied) {
            return refusal;
        }

        self.accepted += 1;
        let id = AcceptanceId(self.accepted);
        if let Some(key) = key {
            let message_id = rows[0].message_id;
            self.records.insert(key, IdempotencyRecord { message_id, sent_at: content.sent_at, digest });
        }
        let ends = change.and_then(|change| change.ends);
        if let Some(group) = changed {
            self.groups.insert(group.gid, Arc::new(group));
        }
        self.store(&content, &rows, &copied, ends);
        if !rest.is_empty() {
            self.open.insert(id, MemoryPending { content, owed: rest, ends });
        }
        Outcome::Accepted(id, rows.into_iter().zip(copied).collect())
    }

    fn deliver(&mut self, deliver: Deliver) -> Outcome {
        if !deliver.is_in_order() {
            return Outcome::Rejected(Deliver::EARLIER.to_owned());
        }
        let before: Vec<(Row, Arc<Content>)> =
            deliver.earlier_rows().zip(deliver.earlier.iter().map(|one| Arc::clone(&one.content))).collect();
        let Deliver { acceptance, mut rows, .. } = deliver;
        if acceptance.0 == 0 || acceptance.0 > self.accepted {
            return Outcome::Rejected("there is no such acceptance".to_owned());
        }
        let Some(mut open) = self.open.remove(&acceptance) else {
            let already = rows.into_iter().map(|row| (row, CopyOutcome::Already));
            return Outcome::Delivered(already.collect());
        };
        let mut copied = Vec::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            let owed = open.owed.iter().any(|to| to.uid == row.receiver);
            let twice = rows[..at].iter().any(|earlier| earlier.receiver == row.receiver);
            copied.push(if owed && !twice { self.judge(&open.content, row) } else { CopyOutcome::Already });
        }
        if before.first().is_some_and(|(row, _)| row.message_id <= self.latest_id(row.receiver)) {
            self.open.insert(acceptance, open);
            return Outcome::Rejected(Deliver::EARLIER.to_owned());
        }
        if let Err(refusal) = self.number(&mut rows, &copied) {
            self.open.insert(acceptance, open);
            return refusal;
        }
        if copied[..] == [CopyOutcome::Stored] {
            for (row, content) in before {
                self.store(&content, &[row], &copied, None);
            }
        }
        self.store(&open.content, &rows, &copied, open.ends);
        open.owed.retain(|to| rows.iter().all(|row| row.receiver != to.uid));
        if !open.owed.is_empty() {
            self.open.insert(acceptance, open);
        }
        Outcome::Delivered(rows.into_iter().zip(copied).collect())
    }

    /// Whether the membership epoch that the row was meant for still goes on (I13).
    fn judge(&self, content: &Content, row: &Row) -> CopyOutcome {
        match content.target {
            Conversation::Group(gid)
                if row.epoch.0 != 0
                    && self.closed.get(&(gid, row.receiver)).is_some_and(|last| *last >= row.epoch) =>
            {
                CopyOutcome::Void
            }
            _ => CopyOutcome::Stored,
        }
    }

    /// Gives ids to the rows that are stored and have none; refuses those that have an old one.
    fn number(&self, rows: &mut [Row], copied: &[CopyOutcome]) -> Result<(), Outcome> {
        for (row, _) in rows.iter_mut().zip(copied).filter(|(_, copied)| **copied == CopyOutcome::Stored) {
            let latest = self.latest_id(row.receiver);
            row.assign_after(latest)?;
            if row.message_id <= latest {
                return Err(Outcome::Rejected(format!(
                    "id {} is not larger than the latest of user {}",
                    row.message_id, row.receiver
                )));
            }
        }
        Ok(())
    }

    fn store(
        &mut self,
        content: &Arc<Content>,
        rows: &[Row],
        copied: &[CopyOutcome],
        ends: Option<(Uid, MembershipEpoch)>,
    ) {
        for (row, _) in rows.iter().zip(copied).filter(|(_, copied)| **copied == CopyOutcome::Stored) {
            self.supersede(row.receiver, content);
            self.rows.insert((row.receiver, row.message_id), content.clone());
            self.latest_ids.insert(row.receiver, row.message_id);
            self.forget_edits(row.receiver, content);
            if let Some(read_to) = content.read_to() {
                let last =
                    self.read_to.entry((row.receiver, content.conversation(row.receiver))).or_default();
                *last = read_to.max(*last);
            }
            if let (Conversation::Group(gid), Some((uid, epoch))) = (content.target, ends)
                && uid == row.receiver
            {
                let last = self.closed.entry((gid, uid)).or_default();
                *last = epoch.max(*last);
            }
        }
    }

    /// Changes the message that `content` amends, and removes the rows whose place it takes.
    fn supersede(&mut self, receiver: Uid, content: &Content) {
        let Some(name) = content.compaction_key(receiver) else { return };
        let of = (receiver, MessageId::ZERO)..=(receiver, MessageId::MAX);
        for row in self.rows.range_mut(of).map(|(_, row)| row) {
            if content.changes_message().is_some_and(|key| row.key() == Some(key))
                && let Some(amended) = row.amended(content)
            {
                *row = Arc::new(amended);
            }
        }
        self.rows
            .retain(|(uid, _), row| *uid != receiver || row.compaction_key(receiver).as_ref() != Some(&name));
    }

    /// The text of an edit goes with its message, whichever of the two came first.
    fn forget_edits(&mut self, receiver: Uid, content: &Content) {
        let Some(of) = content.changes_message() else { return };
        let inbox = (receiver, MessageId::ZERO)..=(receiver, MessageId::MAX);
        let is_deleted = |row: &Arc<Content>| row.kind == Kind::Deleted && row.key() == Some(of);
        if self.rows.range(inbox).any(|(_, row)| is_deleted(row)) {
            let is_edit = |row: &Content| row.kind == Kind::Edit && row.of() == Some(of);
            self.rows.retain(|(uid, _), row| *uid != receiver || !is_edit(row));
        }
    }

    /// Removes rows of `uid` and what is kept beside them.
    pub(super) fn forget_rows(&mut self, uid: Uid, limit: usize) -> Forgotten {
        let rows = self.rows.range((uid, MessageId::ZERO)..=(uid, MessageId::MAX));
        let rows: Vec<_> = rows.map(|(at, _)| *at).take(limit).collect();
        rows.iter().for_each(|at| _ = self.rows.remove(at));
        let keys: Vec<_> =
            self.records.keys().filter(|(sender, _)| *sender == uid).copied().take(limit).collect();
        keys.iter().for_each(|key| _ = self.records.remove(key));
        self.read_to.retain(|(owner, _), _| *owner != uid);
        Forgotten { removed: (rows.len() + keys.len()) as u64, more: rows.len().max(keys.len()) == limit }
    }

    /// Acceptances with copies owed.
    pub(super) fn pending(&self, after: AcceptanceId, limit: usize) -> Vec<Pending> {
        let later = (std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded);
        let pending = |(&acceptance, open): (&AcceptanceId, &MemoryPending)| Pending {
            acceptance,
            content: open.content.clone(),
            owed: open.owed.clone(),
        };
        self.open.range(later).take(limit).map(pending).collect()
    }

    /// The latest id of `uid`.
    pub(super) fn latest_id(&self, uid: Uid) -> MessageId {
        self.latest_ids.get(&uid).copied().unwrap_or_default()
    }

    /// The rows of `uid` with ids in `low ..= high`.
    pub(super) fn inboxes(&self, from: (&str, i64), direction: Direction, limit: usize) -> Vec<Uid> {
        let mut places: Vec<_> = self.rows.keys().map(|(uid, _)| (uid.partition_key(), *uid)).collect();
        places.sort_unstable();
        places.dedup();
        if direction == Direction::Backward {
            places.reverse();
        }
        let is_in = |place: (&str, i64)| match direction {
            Direction::Forward => place >= from,
            Direction::Backward => place <= from,
        };
        let inside = places.iter().filter(|(key, uid)| is_in((key.as_str(), i64::from(uid.0))));
        inside.take(limit).map(|(_, uid)| *uid).collect()
    }

    pub(super) fn rows(
        &self,
        uid: Uid,
        (low, high): (u64, u64),
        direction: Direction,
    ) -> Box<dyn Iterator<Item = Entry> + '_> {
        let id = |n| MessageId::new(n).unwrap_or(MessageId::MAX);
        if low > high {
            return Box::new(std::iter::empty());
        }
        let rows =
            self.rows.range((uid, id(low))..=(uid, id(high))).map(|(&(receiver, message_id), content)| {
                Entry { receiver, message_id, content: content.clone() }
            });
        match direction {
            Direction::Forward => Box::new(rows),
            Direction::Backward => Box::new(rows.rev()),
        }
    }

    /// The rows of `uid` that have a compaction key, by it.
    pub(super) fn keyed(&self, uid: Uid) -> BTreeMap<String, Entry> {
        let rows = self.rows(uid, (0, MessageId::MAX.get()), Direction::Forward);
        rows.filter_map(|entry| Some((entry.content.compaction_key(uid)?, entry))).collect()
    }

    /// How far `uid` has read.
    pub(super) fn read_to(&self, uid: Uid, conversation: Conversation) -> MessageId {
        self.read_to.get(&(uid, conversation)).copied().unwrap_or_default()
    }

    /// The conversation list of `uid`.
    pub(super) fn conversations(&self, uid: Uid, before: Option<MessageId>, limit: usize) -> Vec<Summary> {
        let mut latest: HashMap<Conversation, Entry> = HashMap::new();
        for entry in self.rows(uid, (0, MessageId::MAX.get()), Direction::Forward) {
            if entry.content.is_shown() {
                latest.insert(entry.conversation(), entry);
            }
        }
        let mut last: Vec<Entry> = latest.into_values().collect();
        last.retain(|entry| before.is_none_or(|before| entry.message_id < before));
        last.sort_by_key(|entry| std::cmp::Reverse(entry.message_id));
        last.truncate(limit);
        last.into_iter().map(|last| self.summary(uid, last)).collect()
    }

    fn summary(&self, uid: Uid, last: Entry) -> Summary {
        let conversation = last.conversation();
        let read_to = self.read_to(uid, conversation);
        let unread = self
            .rows(uid, (read_to.get() + 1, MessageId::MAX.get()), Direction::Forward)
            .filter(|entry| entry.content.counts_as_unread(uid) && entry.conversation() == conversation)
            .take(Summary::MOST_UNREAD as usize)
            .count();
        let newest_first = self.rows(uid, (read_to.get() + 1, MessageId::MAX.get()), Direction::Backward);
        let mentions = newest_first
            .filter(|entry| entry.content.counts_as_unread(uid) && entry.conversation() == conversation)
            .take(Summary::MOST_UNREAD as usize)
            .filter(|entry| entry.content.counts_as_mention(uid))
            .count();
        Summary { conversation, last, unread: unread as u32, mentions: mentions as u32, read_to }
    }
}
