//! The committer: one thread through which everything durable goes.
//!
//! It groups the commits that wait, judges them by the [`StoreLedger`], appends the batch to the [`Journal`], and only
//! then shows it to readers and answers. It owns the journal and the ledger, and says when to flush. After a failed
//! append it takes nothing for granted: the journal is reopened and everything in memory is read back from the files.
//!
//! Room for a batch is looked for before it is judged. So a full disk refuses commits, and a flush goes on meanwhile.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::error;

use super::calls::{Call, Calls, CommitterRequest, Replies};
use super::flush::Frozen;
use super::flusher::Flusher;
use super::journal::Journal;
use super::journal::record::JournalRecord;
use super::ledger::{Needs, StoreLedger};
use super::lookup;
use super::memtable::MemtableUpdate;
use super::own_reads::{FoundFacts, OwnReads};
use super::rows::Counters;
use super::shared::SqliteShared;
use crate::domain::{Group, GroupId};
use crate::store::{Behind, CommitError, Outcome, StoreError, Write};

/// Calls of `commit` that may wait for the committer; more callers wait until there is room.
pub(super) const WAITING_COMMITS: usize = 1_024;

/// Rows, and bytes of their bodies, after which a batch takes no further waiting commit.
const BATCH_ROWS: usize = 4_096;
const BATCH_BYTES: usize = 1 << 20;

/// There must be room for so many before it is said that something can be stored again.
const USUAL_BYTES: usize = 64 << 10;

/// Between two attempts to store after a refusal.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The committer's state.
pub(super) struct Committer {
    pub(super) shared: Arc<SqliteShared>,
    pub(super) requests: mpsc::Receiver<CommitterRequest>,
    pub(super) journal: Journal,
    pub(super) ledger: StoreLedger,
    pub(super) counters: Counters,
    pub(super) flusher: Flusher,
    pub(super) reads: OwnReads,
    /// When to try whether something can be stored again, after a refusal.
    pub(super) retry_at: Option<Instant>,
}

impl Committer {
    /// Over what was read at the start.
    pub(super) fn new(
        shared: Arc<SqliteShared>,
        requests: mpsc::Receiver<CommitterRequest>,
        journal: Journal,
        (ledger, counters): (StoreLedger, Counters),
        flusher: Flusher,
    ) -> Committer {
        let reads = OwnReads::new(shared.db.path().to_owned());
        Committer { shared, requests, journal, ledger, counters, flusher, reads, retry_at: None }
    }

    /// Works until it is closed or nobody can ask any more.
    pub(super) async fn run(&mut self) {
        loop {
            let retry = self.retry_at;
            let look = self.flusher.next_look();
            let flow = tokio::select! {
                biased;
                () = self.flusher.ended(), if self.flusher.is_running() => ControlFlow::Continue(()),
                ask = self.requests.recv() => match ask {
                    Some(ask) => self.answer(ask).await,
                    None => ControlFlow::Break(()),
                },
                () = until(look) => ControlFlow::Continue(()),
                () = until(retry) => self.try_storing().await,
            };
            if flow.is_break() {
                return;
            }
            self.tend();
        }
    }

    /// Between two requests: begins a flush that is due, and lets the journal use the room of what is flushed again.
    fn tend(&mut self) {
        if self.flusher.is_due() {
            self.flush();
        }
        self.journal.free(self.flusher.flushed());
    }

    /// Begins a flush, or leaves the one that runs alone.
    pub(super) fn flush(&mut self) {
        let Committer { shared, journal, ledger, flusher, .. } = self;
        flusher.begin(|| Frozen {
            memtable: shared.memory.freeze(),
            through: journal.last(),
            accepted: ledger.accepted(),
            open: ledger.open().iter().map(|(id, open)| (*id, open.clone())).collect(),
        });
    }

    /// An asker who has gone away is not missed: results of sends are dropped here and below.
    async fn answer(&mut self, ask: CommitterRequest) -> ControlFlow<()> {
        match ask {
            ask @ (CommitterRequest::Commit(..) | CommitterRequest::CommitRows(..)) => {
                return self.commit_with_waiting(ask).await;
            }
            CommitterRequest::CloseTable(table, reply) => {
                self.shared.tables.remove(table);
                _ = reply.send(Ok(self.journal.last()));
            }
            CommitterRequest::Pending(after, limit, reply) => {
                _ = reply.send(Ok(self.ledger.pending(after, limit)))
            }
            CommitterRequest::Group(gid, reply) => {
                let group = self.learn_group(gid).await;
                if let Ok(Some(group)) = &group {
                    // The one who asked did not find it.
                    self.shared.publish_group(group.clone());
                }
                _ = reply.send(group);
            }
            CommitterRequest::Close(reply) => {
                self.close().await;
                self.reads.close();
                _ = reply.send(Ok(()));
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    /// Group commit: takes the calls that wait behind the first one, within bounds.
    async fn commit_with_waiting(&mut self, first: CommitterRequest) -> ControlFlow<()> {
        let mut calls = Calls::default();
        let mut behind = calls.add(first);
        while calls.rows < BATCH_ROWS && calls.bytes < BATCH_BYTES && behind.is_none() {
            match self.requests.try_recv() {
                Ok(ask) => behind = calls.add(ask),
                Err(_) => break,
            }
        }
        let flow = self.commit(calls).await;
        match behind {
            Some(ask) if flow.is_continue() => Box::pin(self.answer(ask)).await,
            _ => flow,
        }
    }

    async fn commit(&mut self, calls: Calls) -> ControlFlow<()> {
        while self.flusher.is_overfull() {
            if !self.flusher.is_running() {
                self.refuse(calls, &StoreError::unavailable(OVERFULL));
                return ControlFlow::Continue(());
            }
            self.flusher.moved().await;
        }
        if let Err(error) = self.journal.make_room(calls.most_bytes()) {
            self.refuse(calls, &error);
            return ControlFlow::Continue(());
        }
        let learnt = match self.learn(&calls).await {
            Ok(()) if !calls.tables.is_empty() => self.learn_counters(&calls).await,
            learnt => learnt,
        };
        if let Err(error) = learnt {
            self.refuse(calls, &error);
            return ControlFlow::Continue(());
        }
        let (writes, messages): (Vec<_>, Vec<_>) = self.in_order(calls.messages).into_iter().unzip();
        let (rows, tables): (Vec<_>, Vec<_>) = calls.tables.into_iter().unzip();
        let replies = Replies { messages, tables };
        let (mut records, mut updates) = (Vec::new(), Vec::new());
        let outcomes = match self.judge(writes, &mut records, &mut updates) {
            Ok(outcomes) => outcomes,
            Err(error) => {
                error!(%error, "reading the ledger back from the journal");
                self.shared.condition.refused(replies.len());
                replies.refuse(&CommitError::Refused(error));
                return self.recover().await;
            }
        };
        let messages = records.len();
        let table_outcomes: Vec<_> =
            rows.into_iter().map(|writes| self.judge_rows(writes, &mut records)).collect();
        if !records.is_empty() {
            let seq = self.journal.last() + 1;
            if let Err(error) = self.journal.append(&records) {
                if let Some(left_out) = self.shared.condition.log.pass() {
                    error!(%error, left_out, "a commit failed; the journal is reopened");
                }
                let mut flow = self.reopen().await;
                // Reopened, the journal tells for certain. Nothing was acknowledged in between.
                let stored = flow.is_break() || self.journal.last() >= seq;
                if flow.is_continue() {
                    self.shared.condition.trouble(&error);
                    flow = self.try_storing().await;
                }
                self.shared.condition.refused(replies.len());
                let refused = if stored { CommitError::Unknown(error) } else { CommitError::Refused(error) };
                replies.refuse(&refused);
                return flow;
            }
            self.show(updates);
            if records.len() > messages {
                self.shared.memory.active().apply_rows(&records[messages..]);
            }
            self.shared.condition.committed();
            self.retry_at = None;
        }
        self.ledger.settle(self.shared.options.known_latest_ids, self.shared.options.known_groups);
        self.counters.settle(self.shared.options.known_counters);
        for (reply, outcomes) in replies.messages.into_iter().zip(outcomes) {
            _ = reply.send(Ok(outcomes));
        }
        for (reply, outcomes) in replies.tables.into_iter().zip(table_outcomes) {
            _ = reply.send(Ok(outcomes));
        }
        ControlFlow::Continue(())
    }

    /// Refuses calls before anything of them was stored; what is in the way is tried again even if no other call comes.
    fn refuse(&mut self, calls: Calls, error: &StoreError) {
        self.shared.condition.refused(calls.len());
        self.shared.condition.trouble(error);
        self.retry_at = Some(Instant::now() + RETRY_PAUSE);
        calls.refuse(error);
    }

    /// Stores a batch in which nothing happens, and looks for room for a usual one, to learn whether something can be stored: a server that nobody sends to for the
    /// time being is ready again by itself. If it fails, it is tried again later.
    pub(super) async fn try_storing(&mut self) -> ControlFlow<()> {
        self.retry_at = Some(Instant::now() + RETRY_PAUSE);
        if self.flusher.is_overfull() && !self.flusher.is_running() {
            self.shared.condition.trouble(OVERFULL);
            return ControlFlow::Continue(());
        }
        if let Err(error) = self.journal.make_room(USUAL_BYTES) {
            self.shared.condition.trouble(error);
            return ControlFlow::Continue(());
        }
        if let Err(error) = self.journal.append(&[]) {
            let flow = self.reopen().await;
            self.shared.condition.trouble(error);
            return flow;
        }
        self.retry_at = None;
        self.shared.condition.well();
        ControlFlow::Continue(())
    }

    /// Those calls whose keys are unused and whose ids come after what is stored; the others are given back to be decided or numbered
    /// again.
    fn in_order(&self, mut calls: Vec<Call<Write, Outcome>>) -> Vec<Call<Write, Outcome>> {
        for (writes, reply) in calls.extract_if(.., |(writes, _)| !self.ledger.stale(writes).is_empty()) {
            _ = reply.send(Err(CommitError::Stale(self.ledger.stale(&writes))));
        }
        let late = calls.extract_if(.., |(writes, _)| !self.ledger.behind(writes).is_empty());
        for (writes, reply) in late {
            let latest = self.ledger.behind(&writes);
            _ = reply.send(Err(CommitError::Behind(Box::new(Behind { writes, latest }))));
        }
        calls
    }

    /// Teaches the ledger what it must know to judge these calls.
    async fn learn(&mut self, calls: &Calls) -> Result<(), StoreError> {
        let mut needs = Needs::default();
        for write in calls.messages.iter().flat_map(|(writes, _)| writes) {
            self.ledger.needs(write, &mut needs);
        }
        let view = self.shared.memory.view();
        let mut uids = Vec::new();
        for uid in needs.latest_ids {
            match view.latest_id(uid) {
                Some(latest) => self.ledger.learn_latest_id(uid, latest),
                None => uids.push(uid),
            }
        }
        let mut keys = Vec::new();
        for (key, unused) in needs.keys {
            if view.record(key).is_some() {
                self.ledger.learn_used(key);
            } else if !unused.is_some_and(|unused| view.reaches_back_to(unused)) {
                keys.push(key);
            }
        }
        let FoundFacts { used, latest_ids } = self.reads.look(&keys, &uids)?;
        used.into_iter().for_each(|key| self.ledger.learn_used(key));
        latest_ids.into_iter().for_each(|(uid, latest)| self.ledger.learn_latest_id(uid, latest));
        for gid in needs.groups {
            self.learn_group(gid).await?;
        }
        Ok(())
    }

    /// The group, from the tables with what is in memory laid over it, if the ledger does not know it.
    async fn learn_group(&mut self, gid: GroupId) -> Result<Option<Arc<Group>>, StoreError> {
        if let Some(known) = self.ledger.group(gid) {
            return Ok(known.group.clone());
        }
        let view = self.shared.memory.view();
        let mut connection = self.shared.db.service().await?;
        let mut known = lookup::group(&mut *connection, gid).await?;
        connection.give_back();
        known.group = view.group(gid).or(known.group);
        for (uid, epoch) in view.closed(gid) {
            let last = known.closed.entry(uid).or_default();
            *last = epoch.max(*last);
        }
        let group = known.group.clone();
        self.ledger.learn_group(gid, known);
        if let Some(group) = &group {
            self.shared.publish_group(group.clone());
        }
        Ok(group)
    }

    /// Decides about the writes of each call. Adds what to append to `records`, and what readers will see of it to `updates`.
    fn judge(
        &mut self,
        calls: Vec<Vec<Write>>,
        records: &mut Vec<JournalRecord>,
        updates: &mut Vec<MemtableUpdate>,
    ) -> Result<Vec<Vec<Outcome>>, StoreError> {
        let mut judge = |write| match self.ledger.judge(write) {
            Ok((record, outcome)) => {
                updates.extend(self.ledger.apply(&record).map_err(StoreError::corrupt)?);
                records.push(record);
                Ok(outcome)
            }
            Err(nothing_to_store) => Ok(nothing_to_store),
        };
        calls.into_iter().map(|writes| writes.into_iter().map(&mut judge).collect()).collect()
    }

    /// Lets readers see what is durable now.
    fn show(&self, updates: Vec<MemtableUpdate>) {
        let active = self.shared.memory.active();
        for update in updates {
            let group = update.group.as_ref().map(|(group, _)| group.clone());
            active.apply(update);
            if let Some(group) = group {
                self.shared.publish_group(group);
            }
        }
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Why commits wait for a flush that fails.
const OVERFULL: &str = "memory is full and cannot be flushed into the tables";
