//! Rows that are durable in the journal and not yet, or only just, in the keyed tables.
//!
//! A [`Memtable`] collects what was committed since the last flush. [`MemtableSet`] holds up to three of them, oldest
//! first: one that was flushed and is kept to answer from, one that is being flushed, one that still grows. For each
//! user they hold an unbroken end of the inbox: everything with an id above `base` is here, everything up to it
//! is in the tables. Readers take a [`MemtableView`] first and ask the tables afterwards, for ids up to `base` only, and
//! memory for those above it; so a flush in between shows them nothing twice and nothing too late.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, RwLock};

use super::journal::record::JournalRecord;
use super::rows::TableRows;
use crate::domain::{
    Content, Conversation, Group, GroupId, IdempotencyKey, MembershipEpoch, MessageId, Timestamp, Uid,
};
use crate::store::IdempotencyRecord;
use crate::store::changes::InboxChanges;

/// More than the threads that ever meet here.
const SHARDS: usize = 64;

/// The additions of one durable write.
#[derive(Debug)]
pub(super) struct MemtableUpdate {
    /// Rows that a receiver gets before the copy, as `rows`.
    pub(super) earlier: Vec<(Arc<Content>, (Uid, MessageId, MessageId))>,
    /// The content that all its copies share.
    pub(super) content: Arc<Content>,
    /// Receiver, the new id, the latest one before it.
    pub(super) rows: Vec<(Uid, MessageId, MessageId)>,
    /// The idempotency record, for an acceptance under a key.
    pub(super) record: Option<IdempotencyRecord>,
    /// The group's new state, and the users whose membership changed.
    pub(super) group: Option<(Arc<Group>, Vec<Uid>)>,
    /// A membership epoch that ended with one of the rows.
    pub(super) closed: Option<(GroupId, Uid, MembershipEpoch)>,
}

/// The rows of one user in one memtable.
#[derive(Debug)]
pub(super) struct Inbox {
    /// The latest id before the first row.
    pub(super) base: MessageId,
    /// By id.
    pub(super) rows: Vec<(MessageId, Arc<Content>)>,
    /// The largest read markers among the rows, by conversation.
    pub(super) read_markers: Vec<(Conversation, MessageId)>,
    /// Changes that the rows make to earlier ones.
    pub(super) changes: Arc<InboxChanges>,
}

/// What most inboxes have.
static NO_CHANGES: LazyLock<Arc<InboxChanges>> = LazyLock::new(Arc::default);

#[derive(Default)]
struct Shard {
    inboxes: HashMap<Uid, Inbox>,
    records: HashMap<IdempotencyKey, IdempotencyRecord>,
}

/// The changes of a group.
#[derive(Clone, Debug)]
pub(super) struct ChangedGroup {
    /// The group as last accepted; absent where only a membership epoch ended.
    pub(super) group: Option<Arc<Group>>,
    /// The users whose membership changed.
    pub(super) changed: Vec<Uid>,
    /// Membership epochs that ended with a row.
    pub(super) closed: HashMap<Uid, MembershipEpoch>,
}

/// Everything committed between two flushes.
pub(super) struct Memtable {
    shards: Vec<Mutex<Shard>>,
    groups: Mutex<HashMap<GroupId, ChangedGroup>>,
    /// Those of other programs.
    pub(super) tables: TableRows,
    rows: AtomicUsize,
    bytes: AtomicUsize,
    /// When the oldest row was sent, in milliseconds since 1970.
    oldest: AtomicI64,
}

impl Default for Memtable {
    fn default() -> Memtable {
        Memtable {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            groups: Mutex::default(),
            tables: TableRows::default(),
            rows: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            oldest: AtomicI64::new(i64::MAX),
        }
    }
}

impl Memtable {
    /// Takes in one durable write.
    pub(super) fn apply(&self, update: MemtableUpdate) {
        let MemtableUpdate { earlier, content, rows, record, group, closed } = update;
        for (content, row) in earlier {
            self.bytes.fetch_add(content.body.as_json().len() + 200, Ordering::Relaxed);
            self.put(&content, vec![row]);
        }
        if let (Some(record), Some(client_id)) = (record, content.client_id) {
            self.bytes.fetch_add(content.body.as_json().len() + 200, Ordering::Relaxed);
            self.shard(content.sender).records.insert((content.sender, client_id), record);
        }
        if group.is_some() || closed.is_some() {
            self.change_group(group, closed);
        }
        self.put(&content, rows);
    }

    fn put(&self, content: &Arc<Content>, rows: Vec<(Uid, MessageId, MessageId)>) {
        self.rows.fetch_add(rows.len(), Ordering::Relaxed);
        self.bytes.fetch_add(16 * rows.len(), Ordering::Relaxed);
        self.oldest.fetch_min(content.sent_at.0, Ordering::Relaxed);
        let marker = content.read_to();
        for (receiver, message_id, base) in rows {
            let mut shard = self.shard(receiver);
            // Of a million inboxes most get one row.
            let inbox = shard.inboxes.entry(receiver).or_insert_with(|| Inbox {
                base,
                rows: Vec::with_capacity(1),
                read_markers: Vec::new(),
                changes: Arc::clone(&NO_CHANGES),
            });
            inbox.rows.push((message_id, content.clone()));
            if let Some(marker) = marker {
                inbox.note_read_marker(content.conversation(receiver), marker);
            }
            InboxChanges::add(&mut inbox.changes, receiver, message_id, content);
        }
    }

    /// Takes in what durable records have of tables; others are passed over.
    pub(super) fn apply_rows<'a>(&self, records: &'a [JournalRecord]) {
        let of_tables = |record: &'a JournalRecord| match record {
            JournalRecord::Rows(rows) => Some(rows),
            JournalRecord::Accepted { .. } | JournalRecord::Delivered { .. } => None,
        };
        let (rows, bytes) = self.tables.apply(records.iter().filter_map(of_tables));
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Takes in an idempotency record alone.
    pub(super) fn apply_record(&self, key: IdempotencyKey, record: IdempotencyRecord) {
        self.shard(key.0).records.insert(key, record);
    }

    fn change_group(
        &self,
        group: Option<(Arc<Group>, Vec<Uid>)>,
        closed: Option<(GroupId, Uid, MembershipEpoch)>,
    ) {
        let mut groups = lock(&self.groups);
        let gid = group.as_ref().map(|(group, _)| group.gid).or(closed.map(|(gid, ..)| gid));
        let Some(gid) = gid else { return };
        let known = groups.entry(gid).or_insert_with(|| ChangedGroup {
            group: None,
            changed: Vec::new(),
            closed: HashMap::new(),
        });
        if let Some((group, changed)) = group {
            known.group = Some(group);
            known.changed.extend(changed);
        }
        if let Some((_, uid, epoch)) = closed {
            let last = known.closed.entry(uid).or_default();
            *last = epoch.max(*last);
        }
    }

    fn shard(&self, uid: Uid) -> MutexGuard<'_, Shard> {
        lock(&self.shards[uid.0 as usize % SHARDS])
    }

    /// Shows the inbox of `uid`, if it has rows here.
    pub(super) fn inbox<T>(&self, uid: Uid, look: impl FnOnce(&Inbox) -> T) -> Option<T> {
        self.shard(uid).inboxes.get(&uid).map(look)
    }

    /// The idempotency record under this key, if it was made here.
    pub(super) fn record(&self, key: IdempotencyKey) -> Option<IdempotencyRecord> {
        self.shard(key.0).records.get(&key).copied()
    }

    /// The changes of this group that are here.
    pub(super) fn group(&self, gid: GroupId) -> Option<ChangedGroup> {
        lock(&self.groups).get(&gid).cloned()
    }

    /// The users that have rows here.
    pub(super) fn receivers(&self) -> Vec<Uid> {
        self.shards.iter().flat_map(|shard| lock(shard).inboxes.keys().copied().collect::<Vec<_>>()).collect()
    }

    /// The idempotency records made here.
    pub(super) fn all_records(&self) -> Vec<(IdempotencyKey, IdempotencyRecord)> {
        let of = |shard: &Mutex<Shard>| lock(shard).records.iter().map(|(k, v)| (*k, *v)).collect::<Vec<_>>();
        self.shards.iter().flat_map(of).collect()
    }

    /// Drops what is here of `uid`: rows and idempotency records.
    fn forget(&self, uid: Uid) {
        let mut shard = self.shard(uid);
        shard.inboxes.remove(&uid);
        shard.records.retain(|(sender, _), _| *sender != uid);
    }

    /// The groups that changed here.
    pub(super) fn all_groups(&self) -> Vec<(GroupId, ChangedGroup)> {
        lock(&self.groups).iter().map(|(gid, changed)| (*gid, changed.clone())).collect()
    }

    /// How many rows it has.
    pub(super) fn rows(&self) -> usize {
        self.rows.load(Ordering::Relaxed)
    }

    /// Its weight in memory, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Inbox {
    fn note_read_marker(&mut self, conversation: Conversation, read_to: MessageId) {
        match self.read_markers.iter_mut().find(|(known, _)| *known == conversation) {
            Some((_, last)) => *last = read_to.max(*last),
            None => self.read_markers.push((conversation, read_to)),
        }
    }
}

/// The memtables as they stood at one moment, oldest first.
#[derive(Clone)]
pub(super) struct MemtableView {
    pub(super) memtables: Vec<Arc<Memtable>>,
    /// Counts the freezes, and how often a memtable was let go of early; two views that differ by less than two share a memtable.
    pub(super) number: u64,
}

struct Memtables {
    flushed: Option<Arc<Memtable>>,
    frozen: Option<Arc<Memtable>>,
    active: Arc<Memtable>,
    number: u64,
}

/// The memtables.
pub(super) struct MemtableSet {
    memtables: RwLock<Memtables>,
}

impl MemtableSet {
    /// Begins with one memtable, read back from the journal or empty.
    pub(super) fn new(active: Memtable) -> MemtableSet {
        let memtables = Memtables { flushed: None, frozen: None, active: Arc::new(active), number: 0 };
        MemtableSet { memtables: RwLock::new(memtables) }
    }

    /// The memtables as they are now.
    pub(super) fn view(&self) -> MemtableView {
        let now = self.memtables.read().unwrap_or_else(PoisonError::into_inner);
        let older = [&now.flushed, &now.frozen].into_iter().flatten().cloned();
        MemtableView { memtables: older.chain([now.active.clone()]).collect(), number: now.number }
    }

    /// As [`MemtableView::number`] of a view taken now.
    pub(super) fn number(&self) -> u64 {
        self.memtables.read().unwrap_or_else(PoisonError::into_inner).number
    }

    /// The memtable that grows.
    pub(super) fn active(&self) -> Arc<Memtable> {
        self.memtables.read().unwrap_or_else(PoisonError::into_inner).active.clone()
    }

    /// Begins a new memtable and gives the old one to be flushed. There is one such at a time.
    pub(super) fn freeze(&self) -> Arc<Memtable> {
        let mut now = self.memtables.write().unwrap_or_else(PoisonError::into_inner);
        assert!(now.frozen.is_none(), "one flush at a time");
        let frozen = std::mem::take(&mut now.active);
        now.frozen = Some(frozen.clone());
        now.number += 1;
        frozen
    }

    /// The frozen memtable is in the tables now; it stays to be read until the next one is.
    pub(super) fn flushed(&self) {
        let mut now = self.memtables.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(frozen) = now.frozen.take() {
            now.flushed = Some(frozen);
        }
    }

    /// Lets go of what is kept although it is in the tables, if a row of it was sent before `sent_before`. Views that were taken earlier keep it.
    pub(super) fn let_go(&self, sent_before: Timestamp) {
        let mut now = self.memtables.write().unwrap_or_else(PoisonError::into_inner);
        let is_old = |memtable: &Arc<Memtable>| memtable.oldest.load(Ordering::Relaxed) < sent_before.0;
        if now.flushed.take_if(|flushed| is_old(flushed)).is_some() {
            // Its keys are in memory no more, so what was not found there before is looked up again.
            now.number += 1;
        }
    }

    /// Drops what is kept of `uid` although it is in the tables. Says whether something of it is in memory alone.
    pub(super) fn forget_flushed(&self, uid: Uid) -> bool {
        let now = self.memtables.read().unwrap_or_else(PoisonError::into_inner);
        now.flushed.iter().for_each(|flushed| flushed.forget(uid));
        let has_some = |memtable: &Arc<Memtable>| memtable.inbox(uid, |_| ()).is_some();
        now.frozen.as_ref().is_some_and(has_some) || has_some(&now.active)
    }

    /// Forgets everything for what was read back from the journal.
    pub(super) fn replace(&self, active: Memtable) {
        let mut now = self.memtables.write().unwrap_or_else(PoisonError::into_inner);
        // Two steps, so that nothing read before is taken for something read after.
        let number = now.number + 2;
        *now = Memtables { flushed: None, frozen: None, active: Arc::new(active), number };
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
