//! The state that decides about a write (I1, I4, I5, I13): latest ids, keys used, copies owed, groups and ended
//! membership epochs.
//!
//! Pure. The committer, its only owner, first asks what a batch [`Needs`] to know, fetches what is missing, then
//! judges write after write; each accepted one moves the ledger at once, so that the next one sees it. The ledger may
//! therefore be ahead of what is durable; after a failed commit it is thrown away and built anew from the journal.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use quick_cache::unsync::Cache;

use super::journal::record::JournalRecord;
use super::memtable::MemtableUpdate;
use super::pending::SqlitePending;
use super::receivers::{OwedReceivers, SeenReceivers};
use crate::domain::{
    Content, Conversation, Group, GroupChange, GroupId, IdempotencyKey, MembershipEpoch, MessageId, Uid,
};
use crate::store::{
    Accept, AcceptanceId, CopyOutcome, Deliver, IdempotencyRecord, Outcome, Pending, Row, Unused, Write,
};

/// A group as the ledger knows it.
#[derive(Clone, Debug, Default)]
pub(super) struct LedgerGroup {
    /// `None`: there is no such group.
    pub(super) group: Option<Arc<Group>>,
    /// The last membership epochs that ended with a row.
    pub(super) closed: HashMap<Uid, MembershipEpoch>,
}

/// Facts that must be learnt before a batch can be judged.
#[derive(Debug, Default)]
pub(super) struct Needs {
    pub(super) latest_ids: HashSet<Uid>,
    /// Each with the proof that came with the write.
    pub(super) keys: Vec<(IdempotencyKey, Option<Unused>)>,
    pub(super) groups: HashSet<GroupId>,
}

/// The journal says something that cannot follow from what came before it.
#[derive(Debug, thiserror::Error)]
#[error("the journal contradicts itself: {0}")]
pub(super) struct Contradiction(String);

/// Room for a batch that is not kept for the next one.
const ROOMY: usize = 65_536;

/// The ledger.
#[derive(Default)]
pub(super) struct StoreLedger {
    /// Of this batch; between two batches they are among the remembered ones.
    latest_ids: HashMap<Uid, MessageId>,
    used: HashSet<IdempotencyKey>,
    open: BTreeMap<AcceptanceId, SqlitePending>,
    accepted: AcceptanceId,
    /// Of this batch, like `latest_ids`.
    groups: HashMap<GroupId, LedgerGroup>,
    remembered: Option<Remembered>,
}

/// Facts that earlier batches knew, as far as there is room: the least used go first.
struct Remembered {
    latest_ids: Cache<Uid, MessageId>,
    groups: Cache<GroupId, LedgerGroup>,
}

impl StoreLedger {
    /// A ledger that continues after `accepted`, with these acceptances open.
    pub(super) fn new(accepted: AcceptanceId, open: BTreeMap<AcceptanceId, SqlitePending>) -> StoreLedger {
        StoreLedger { accepted, open, ..StoreLedger::default() }
    }

    /// The last acceptance.
    pub(super) fn accepted(&self) -> AcceptanceId {
        self.accepted
    }

    /// The acceptances with copies owed.
    pub(super) fn open(&self) -> &BTreeMap<AcceptanceId, SqlitePending> {
        &self.open
    }

    /// Those after `after`, at most `limit`.
    pub(super) fn pending(&self, after: AcceptanceId, limit: usize) -> Vec<Pending> {
        let later = (std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded);
        let pending = |(&acceptance, open): (&AcceptanceId, &SqlitePending)| Pending {
            acceptance,
            content: open.content.clone(),
            owed: open.owed.clone(),
        };
        self.open.range(later).take(limit).map(pending).collect()
    }

    /// Adds to `needs` the facts that `write` needs and the ledger does not know. Remembered ones are at hand for this batch afterwards.
    pub(super) fn needs(&mut self, write: &Write, needs: &mut Needs) {
        let (target, rows) = match write {
            Write::Accept(accept) => {
                let content = &accept.content;
                needs.keys.extend(content.key().map(|key| (key, accept.unused)));
                (content.target, &accept.rows)
            }
            Write::Deliver(deliver) => match self.open.get(&deliver.acceptance) {
                Some(open) => (open.content.target, &deliver.rows),
                None => return,
            },
        };
        for uid in rows.iter().map(|row| row.receiver) {
            if self.latest_ids.contains_key(&uid) {
                continue;
            }
            match self.remembered.as_ref().and_then(|remembered| remembered.latest_ids.get(&uid)) {
                Some(latest) => _ = self.latest_ids.insert(uid, *latest),
                None => _ = needs.latest_ids.insert(uid),
            }
        }
        if let Conversation::Group(gid) = target
            && !self.groups.contains_key(&gid)
        {
            match self.remembered.as_mut().and_then(|remembered| remembered.groups.remove(&gid)) {
                Some((_, known)) => _ = self.groups.insert(gid, known),
                None => _ = needs.groups.insert(gid),
            }
        }
    }

    /// Learns the latest id of a user.
    pub(super) fn learn_latest_id(&mut self, uid: Uid, latest: MessageId) {
        self.latest_ids.insert(uid, latest);
    }

    /// Learns that a key is used.
    pub(super) fn learn_used(&mut self, key: IdempotencyKey) {
        self.used.insert(key);
    }

    /// Learns a group.
    pub(super) fn learn_group(&mut self, gid: GroupId, known: LedgerGroup) {
        self.groups.insert(gid, known);
    }

    /// The group, if the ledger knows whether there is one.
    pub(super) fn group(&self, gid: GroupId) -> Option<&LedgerGroup> {
        self.groups.get(&gid).or_else(|| self.remembered.as_ref()?.groups.get(&gid))
    }

    /// Ends a batch: keys are in memory now; latest ids and groups are remembered, up to these limits. Forgotten ones are
    /// learnt again when they are needed.
    pub(super) fn settle(&mut self, most_latest_ids: usize, most_groups: usize) {
        self.used.clear();
        let remembered = self.remembered.get_or_insert_with(|| Remembered {
            latest_ids: Cache::new(most_latest_ids.max(1)),
            groups: Cache::new(most_groups.max(1)),
        });
        for (uid, latest) in self.latest_ids.drain() {
            remembered.latest_ids.insert(uid, latest);
        }
        for (gid, known) in self.groups.drain() {
            remembered.groups.insert(gid, known);
        }
        if self.latest_ids.capacity() > ROOMY {
            // A replay has a batch of everybody.
            self.latest_ids = HashMap::new();
        }
    }

    /// The group that must be known before this record can be applied.
    pub(super) fn group_of(&self, record: &JournalRecord) -> Option<GroupId> {
        let content = match record {
            JournalRecord::Accepted { content, .. } => content,
            JournalRecord::Delivered { acceptance, .. } => &self.open.get(acceptance)?.content,
            JournalRecord::Rows(_) => return None,
        };
        match content.target {
            // Asked for in a replay alone, before anything is remembered.
            Conversation::Group(gid) => Some(gid).filter(|gid| !self.groups.contains_key(gid)),
            Conversation::User(_) => None,
        }
    }

    /// The places of writes that bring a proof that their key is unused, though it is used. The ledger must have learnt what they need.
    pub(super) fn stale(&self, writes: &[Write]) -> Vec<usize> {
        let is_stale = |write: &Write| match write {
            Write::Accept(accept) => {
                accept.unused.and(accept.content.key()).is_some_and(|key| self.used.contains(&key))
            }
            Write::Deliver(_) => false,
        };
        writes.iter().enumerate().filter(|(_, write)| is_stale(write)).map(|(at, _)| at).collect()
    }

    /// The latest ids of inboxes that these writes would not come after, each once. The ledger must have learnt what they need.
    pub(super) fn behind(&self, writes: &[Write]) -> Vec<(Uid, MessageId)> {
        let mut behind = BTreeMap::new();
        for write in writes {
            let (earlier, rows) = match write {
                Write::Accept(accept) => (None, &accept.rows),
                Write::Deliver(deliver) if self.open.contains_key(&deliver.acceptance) => {
                    (deliver.earlier_rows().next(), &deliver.rows)
                }
                Write::Deliver(_) => continue,
            };
            for row in earlier.iter().chain(rows) {
                if let Some(&latest) = self.latest_ids.get(&row.receiver)
                    && row.message_id <= latest
                    && !row.is_unnumbered()
                {
                    behind.insert(row.receiver, latest);
                }
            }
        }
        behind.into_iter().collect()
    }

    /// Decides about `write`: what to store and what comes of it then, or the outcome if there is nothing to store. The ledger must have
    /// learnt what the write needs.
    pub(super) fn judge(&self, write: Write) -> Result<(JournalRecord, Outcome), Outcome> {
        match write {
            Write::Accept(accept) => self.judge_accept(accept),
            Write::Deliver(deliver) => self.judge_deliver(deliver),
        }
    }

    fn judge_accept(&self, accept: Accept) -> Result<(JournalRecord, Outcome), Outcome> {
        if !accept.begins_well() {
            return Err(Outcome::Rejected(Accept::FIRST_COPY.to_owned()));
        }
        let Accept { content, digest, mut rows, rest, change, group_version: _, unused: _ } = accept;
        if content.key().is_some_and(|key| self.used.contains(&key)) {
            return Err(Outcome::Rejected("this client_id has been accepted before".to_owned()));
        }
        if change.as_ref().is_some_and(|change| self.next_state(change).is_none()) {
            return Err(Outcome::GroupChanged);
        }
        let mut seen = SeenReceivers::default();
        let copied: Vec<CopyOutcome> =
            rows.iter().map(|row| self.judge_row(&content, row, &mut seen)).collect();
        if copied[0] == CopyOutcome::Void {
            return Err(Outcome::GroupChanged);
        }
        let stored = self.stored(&mut rows, &copied)?;
        let acceptance = AcceptanceId(self.accepted.0 + 1);
        let outcome = Outcome::Accepted(acceptance, rows.into_iter().zip(copied).collect());
        Ok((JournalRecord::Accepted { acceptance, content, digest, rows: stored, rest, change }, outcome))
    }

    fn judge_deliver(&self, deliver: Deliver) -> Result<(JournalRecord, Outcome), Outcome> {
        if !deliver.is_in_order() {
            return Err(Outcome::Rejected(Deliver::EARLIER.to_owned()));
        }
        let Deliver { acceptance, mut rows, earlier, .. } = deliver;
        if acceptance.0 == 0 || acceptance > self.accepted {
            return Err(Outcome::Rejected("there is no such acceptance".to_owned()));
        }
        let Some(open) = self.open.get(&acceptance) else {
            let already = rows.into_iter().map(|row| (row, CopyOutcome::Already));
            return Err(Outcome::Delivered(already.collect()));
        };
        let (mut owed, mut seen) = (OwedReceivers::of(&open.owed), SeenReceivers::default());
        let judge = |row: &Row| match owed.place_of(row.receiver) {
            Some(_) => self.judge_row(&open.content, row, &mut seen),
            None => CopyOutcome::Already,
        };
        let copied: Vec<CopyOutcome> = rows.iter().map(judge).collect();
        if copied.iter().all(|copied| *copied == CopyOutcome::Already) {
            return Err(Outcome::Delivered(rows.into_iter().zip(copied).collect()));
        }
        let void = rows.iter().zip(&copied).filter(|(_, copied)| **copied == CopyOutcome::Void);
        let void = void.map(|(row, _)| row.receiver).collect();
        if let (Some(first), Some(row)) = (earlier.first(), rows.first())
            && first.message_id <= self.latest_ids.get(&row.receiver).copied().unwrap_or_default()
        {
            return Err(Outcome::Rejected(Deliver::EARLIER.to_owned()));
        }
        let stored = self.stored(&mut rows, &copied)?;
        let earlier = match stored.is_empty() {
            true => Vec::new(),
            false => earlier.into_iter().map(|one| (one.content, one.message_id)).collect(),
        };
        let outcome = Outcome::Delivered(rows.into_iter().zip(copied).collect());
        Ok((JournalRecord::Delivered { acceptance, earlier, rows: stored, void }, outcome))
    }

    /// Whether the membership epoch that a copy was meant for still goes on, and it is the write's first for its receiver.
    fn judge_row(&self, content: &Content, row: &Row, seen: &mut SeenReceivers) -> CopyOutcome {
        // A second copy has a larger id, so only later ones can repeat the receiver.
        let is_first = seen.add(row.receiver);
        if let Conversation::Group(gid) = content.target
            && row.epoch.0 != 0
            && let Some(known) = self.groups.get(&gid)
            && known.closed.get(&row.receiver).is_some_and(|last| *last >= row.epoch)
        {
            return CopyOutcome::Void;
        }
        if is_first { CopyOutcome::Stored } else { CopyOutcome::Already }
    }

    /// The rows that are stored; those without an id get it here.
    fn stored(&self, rows: &mut [Row], copied: &[CopyOutcome]) -> Result<Vec<(Uid, MessageId)>, Outcome> {
        let mut stored = Vec::with_capacity(rows.len());
        for (row, _) in rows.iter_mut().zip(copied).filter(|(_, copied)| **copied == CopyOutcome::Stored) {
            let latest = self.latest_ids.get(&row.receiver).copied().unwrap_or_default();
            row.assign_after(latest)?;
            if row.message_id <= latest {
                return Err(Outcome::Rejected(format!(
                    "id {} is not larger than the latest of user {}",
                    row.message_id, row.receiver
                )));
            }
            stored.push((row.receiver, row.message_id));
        }
        Ok(stored)
    }

    fn next_state(&self, change: &GroupChange) -> Option<Group> {
        match self.groups.get(&change.gid).and_then(|known| known.group.as_ref()) {
            Some(group) => group.apply(change),
            None if change.from_version == 0 => Group::create(change),
            None => None,
        }
    }

    /// Moves the ledger by a record, one just judged or one read back from the journal, and says what readers
    /// are to see of it. A receiver whose latest id is not known counts as having none above the first row's. `None`: it is of a table,
    /// of which the ledger knows nothing.
    pub(super) fn apply(&mut self, record: &JournalRecord) -> Result<Option<MemtableUpdate>, Contradiction> {
        let update = match record {
            JournalRecord::Accepted { acceptance, content, digest, rows, rest, change } => {
                if acceptance.0 != self.accepted.0 + 1 {
                    let (found, last) = (acceptance.0, self.accepted.0);
                    return Err(Contradiction(format!("acceptance {found} follows {last}")));
                }
                let first = rows.first();
                let &(_, own) =
                    first.ok_or_else(|| Contradiction(format!("acceptance {} has no copy", acceptance.0)))?;
                let group = change.as_ref().map(|change| self.change_group(change)).transpose()?;
                let ends = change.as_ref().and_then(|change| change.ends);
                let (rows, closed) = self.apply_rows(content, rows, ends)?;
                self.accepted = *acceptance;
                if !rest.is_empty() {
                    let open = SqlitePending { content: content.clone(), ends, owed: rest.clone() };
                    self.open.insert(*acceptance, open);
                }
                let key = content.key();
                self.used.extend(key);
                let record = key.map(|_| IdempotencyRecord {
                    message_id: own,
                    sent_at: content.sent_at,
                    digest: *digest,
                });
                let content = Arc::clone(content);
                MemtableUpdate { earlier: Vec::new(), content, rows, record, group, closed }
            }
            JournalRecord::Delivered { acceptance, earlier, rows, void } => {
                let unknown = || Contradiction(format!("a copy of {}, which owes nothing", acceptance.0));
                let mut open = self.open.remove(acceptance).ok_or_else(unknown)?;
                let mut before = Vec::with_capacity(earlier.len());
                for (content, id) in earlier {
                    let receiver = rows.first().map(|(uid, _)| (*uid, *id)).ok_or_else(unknown)?;
                    let (applied, _) = self.apply_rows(content, &[receiver], None)?;
                    before.extend(applied.into_iter().map(|row| (Arc::clone(content), row)));
                }
                let (rows_applied, closed) = self.apply_rows(&open.content, rows, open.ends)?;
                let done = rows.iter().map(|(uid, _)| *uid).chain(void.iter().copied());
                open.settle(done).ok_or_else(unknown)?;
                let content = open.content.clone();
                if !open.owed.is_empty() {
                    self.open.insert(*acceptance, open);
                }
                let (rows, record, group) = (rows_applied, None, None);
                MemtableUpdate { earlier: before, content, rows, record, group, closed }
            }
            JournalRecord::Rows(_) => return Ok(None),
        };
        Ok(Some(update))
    }

    #[expect(clippy::type_complexity, reason = "two halves of MemtableUpdate")]
    fn apply_rows(
        &mut self,
        content: &Content,
        rows: &[(Uid, MessageId)],
        ends: Option<(Uid, MembershipEpoch)>,
    ) -> Result<(Vec<(Uid, MessageId, MessageId)>, Option<(GroupId, Uid, MembershipEpoch)>), Contradiction>
    {
        let mut applied = Vec::with_capacity(rows.len());
        let mut closed = None;
        for &(uid, id) in rows {
            let before = self.latest_ids.insert(uid, id);
            let base = before.unwrap_or_else(|| MessageId::new(id.get() - 1).unwrap_or_default());
            if base >= id {
                return Err(Contradiction(format!("id {id} follows {base} for user {uid}")));
            }
            applied.push((uid, id, base));
            if let (Conversation::Group(gid), Some((leaver, epoch))) = (content.target, ends)
                && leaver == uid
            {
                let last = self.groups.entry(gid).or_default().closed.entry(uid).or_default();
                *last = epoch.max(*last);
                closed = Some((gid, uid, epoch));
            }
        }
        Ok((applied, closed))
    }

    fn change_group(&mut self, change: &GroupChange) -> Result<(Arc<Group>, Vec<Uid>), Contradiction> {
        let next = self.next_state(change);
        let next = next.ok_or_else(|| Contradiction(format!("a change of group {}", change.gid)))?;
        let next = Arc::new(next);
        self.groups.entry(change.gid).or_default().group = Some(next.clone());
        Ok((next, change.members.iter().map(|member| member.uid).collect()))
    }
}
