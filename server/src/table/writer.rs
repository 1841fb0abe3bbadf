//! THE loop of tables: takes a batch of jobs and goes through four steps with it: read, decide, commit, answer.
//!
//! One writer lives per lane; it alone writes the rows of its jobs' first key columns in this process, but for new ones with the
//! placeholder ([`assigned`](super::assigned)). It moves on only when the outcome of its commit is known, or the store answers again.
//! It owns nothing that must outlive it: that lies in [`Lane`]. Step 2 is in `plan`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tidemark_table::TableError;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::error::{busy, timeout, unread};
use super::job::Job;
use super::plan::{BatchPlan, Facts, rows_to_read};
use super::{FIRST_PAUSE, LONGEST_PAUSE};
use crate::domain::Clock;
use crate::log_limit::LogLimit;
use crate::store::tables::{TableOutcome, TableStore, TableWrite};
use crate::store::{CommitError, StoreError};
use crate::workers::{ROW, aside_at_once};

/// How often a batch is decided before those of its jobs are refused whose grounds keep changing. Each time another process has stored
/// something, so that one of them goes on; it is many, since the same one may be first again and again.
pub(super) const MOST_TRIES: usize = 64;

/// Rows, and bytes, after which a batch takes no further job.
const BATCH_ROWS: usize = 1_024;
const BATCH_BYTES: usize = 8 << 20;

/// A lane, apart from the writer that works it.
pub(super) struct Lane {
    pub(super) jobs: mpsc::Receiver<Job>,
    /// For the lines that every refused batch would repeat.
    pub(super) log: LogLimit,
}

/// One writer.
#[derive(Clone)]
pub(super) struct LaneWriter {
    pub(super) store: Arc<dyn TableStore>,
    pub(super) clock: Clock,
    pub(super) closing: CancellationToken,
}

impl LaneWriter {
    /// Works until the lane is closed and empty.
    pub(super) async fn run(&self, lane: &mut Lane) {
        while let Some(jobs) = self.take(lane).await {
            self.work(lane, jobs).await;
        }
    }

    /// Waits for jobs and takes those that wait, up to the limits of a batch. `None`: closed and empty.
    async fn take(&self, lane: &mut Lane) -> Option<Vec<Job>> {
        let first = loop {
            tokio::select! {
                biased;
                () = self.closing.cancelled(), if !lane.jobs.is_closed() => lane.jobs.close(),
                job = lane.jobs.recv() => break job?,
            }
        };
        let (mut rows, mut bytes, mut jobs) = (first.rows(), first.bytes, vec![first]);
        while rows < BATCH_ROWS && bytes < BATCH_BYTES {
            let Ok(job) = lane.jobs.try_recv() else { break };
            rows += job.rows();
            bytes += job.bytes;
            jobs.push(job);
        }
        Some(jobs)
    }

    /// One batch, from the jobs to the answers; those are decided again whose rows another process has changed meanwhile.
    async fn work(&self, lane: &mut Lane, mut jobs: Vec<Job>) {
        let asked: usize = jobs.iter().map(|job| job.bytes + job.rows() * ROW).sum();
        for _ in 0..MOST_TRIES {
            let facts = match self.read(&jobs).await {
                Ok(facts) => facts,
                Err(error) => return refuse(jobs, &unread(&error)),
            };
            let bytes = asked + facts.values().flatten().map(|row| row.row.len()).sum::<usize>();
            let decide = || {
                let mut plan = BatchPlan::of(&jobs, facts, self.clock.now());
                let writes = plan.writes();
                (plan, writes)
            };
            let (plan, writes) = aside_at_once(bytes, decide);
            match self.commit(writes).await {
                Ok(outcomes) => jobs = aside_at_once(bytes, || plan.answer(jobs, outcomes)),
                Err(error) => return self.fail(lane, jobs, error).await,
            }
            if jobs.is_empty() {
                return;
            }
        }
        refuse(jobs, &busy());
    }

    /// Step 1: the rows that decisions rest on.
    async fn read(&self, jobs: &[Job]) -> Result<Facts, StoreError> {
        let mut seen = HashSet::new();
        let keys = jobs.iter().flat_map(rows_to_read);
        let keys: Vec<_> = keys.filter(|(table, _, key)| seen.insert((*table, key.clone()))).collect();
        if keys.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = self.store.rows(&keys).await?;
        Ok(keys.into_iter().map(|(table, _, key)| (table, key)).zip(rows).collect())
    }

    /// Step 3: makes the writes durable.
    async fn commit(&self, writes: Vec<TableWrite>) -> Result<Vec<TableOutcome>, CommitError> {
        if writes.is_empty() { Ok(Vec::new()) } else { self.store.commit(writes).await }
    }

    /// Step 4 for a batch that has no outcomes.
    async fn fail(&self, lane: &mut Lane, jobs: Vec<Job>, failure: CommitError) {
        match failure {
            CommitError::Unknown(error) => {
                error!(%error, "the outcome of a commit of tables is unknown");
                refuse(jobs, &timeout());
                self.recover(lane).await;
            }
            failure => {
                if let Some(left_out) = lane.log.pass() {
                    warn!(error = %failure, left_out, "a commit of tables was refused");
                }
                refuse(jobs, &busy());
            }
        }
    }

    /// Waits until the store answers, with growing pauses, and refuses what comes meanwhile.
    async fn recover(&self, lane: &mut Lane) {
        let mut pause = FIRST_PAUSE;
        while let Err(error) = self.store.ping().await {
            if self.closing.is_cancelled() {
                return;
            }
            warn!(%error, "a writer of tables waits for the store");
            self.refuse_for(lane, pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn refuse_for(&self, lane: &mut Lane, pause: Duration) {
        let deadline = Instant::now() + pause;
        loop {
            tokio::select! {
                () = sleep_until(deadline) => return,
                () = self.closing.cancelled() => return,
                Some(job) = lane.jobs.recv() => job.refuse(&busy()),
            }
        }
    }
}

/// Gives all of them the same refusal.
fn refuse(jobs: Vec<Job>, error: &TableError) {
    for job in jobs {
        job.refuse(error);
    }
}
