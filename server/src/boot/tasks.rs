//! The tasks that run beside requests until the stop.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

use super::chance::random_uuid;
use super::storage::Bottom;
use crate::app::{Deletions, Due, FileWalk, Follow, Indexer, IndexerOptions, Others, Retention};
use crate::config::Config;
use crate::http::UseCases;
use crate::notify::Local;
use crate::queue::{Queues, Watermarks};
use crate::store::StoreError;

/// How often expired sessions are swept up, and how many in one transaction.
const SWEEP_EVERY: Duration = Duration::from_secs(3_600);
const SWEEP_AT_ONCE: usize = 1_000;
/// How long after an account was marked as deleted a request may still be under way that was decided on before it. Other servers hear
/// of the mark by a hint, or by a look every ten seconds, so among others it is a minute.
const SETTLES: Duration = Duration::from_secs(5);
const SETTLES_AMONG_OTHERS: Duration = Duration::from_secs(60);
/// Names of one transaction, each with some ten rows.
const INDEXED_AT_ONCE: usize = 200;

/// Starts them over these use cases.
pub(super) struct Tasks<'a> {
    pub(super) use_cases: &'a UseCases,
    pub(super) stopping: &'a CancellationToken,
    pub(super) tasks: &'a TaskTracker,
}

impl Tasks<'_> {
    /// Notices of typing and presence; pushes; the sweep.
    pub(super) fn of_every_server(&self) {
        let use_cases = self.use_cases.clone();
        self.tasks.spawn(use_cases.ephemerals.clone().run(self.stopping.clone()));
        self.tasks.spawn(use_cases.push.clone().run(self.stopping.clone()));
        self.tasks.spawn(sweep(use_cases, self.stopping.clone()));
    }

    /// Clears deleted accounts.
    pub(super) fn of_deletions(&self, bottom: &Bottom, queues: &Queues, is_among_others: bool) {
        let UseCases { accounts, people, moments, search, files, .. } = self.use_cases.clone();
        let deletions = Deletions {
            accounts,
            directory: Arc::clone(&bottom.storage.directory),
            store: Arc::clone(&bottom.messages),
            people,
            moments,
            search,
            files,
            queues: queues.clone(),
            clock: bottom.clock.clone(),
            settles: if is_among_others { SETTLES_AMONG_OTHERS } else { SETTLES },
        };
        self.tasks.spawn(deletions.run(self.stopping.clone()));
    }

    /// Removes rows that have expired.
    pub(super) fn of_retention(&self, config: &Config, bottom: &Bottom) {
        let retention = Retention {
            store: Arc::clone(&bottom.messages),
            clock: bottom.clock.clone(),
            kept: config.retention.keep_seconds().map(Duration::from_secs),
        };
        self.tasks.spawn(retention.run(self.stopping.clone()));
    }

    /// Indexes words, unless the configuration says otherwise.
    pub(super) fn of_search(&self, config: &Config, bottom: &Bottom, due: &Arc<Due>) {
        if config.search.index {
            let expires = config.retention.keep_seconds().is_some();
            let indexer = Indexer {
                store: Arc::clone(&bottom.messages),
                index: Arc::clone(&bottom.search_index),
                due: Arc::clone(due),
                new_uuid: Arc::new(random_uuid),
                options: IndexerOptions { expires, ..IndexerOptions::default() },
            };
            self.tasks.spawn(indexer.run(self.stopping.clone()));
        }
    }

    /// Removes files that nobody needs.
    pub(super) fn of_files(&self) {
        let walk = FileWalk(self.use_cases.files.clone());
        self.tasks.spawn(walk.run(self.stopping.clone()));
    }

    /// Follows what other servers do or, where there are none, what an operator's commands do.
    pub(super) fn of_others(
        &self,
        config: &Config,
        watermarks: Watermarks,
        local: Local,
        others: Option<Others>,
    ) {
        let UseCases { accounts, ephemerals, .. } = self.use_cases.clone();
        let stopping = self.stopping.clone();
        match others {
            Some(Others { hints, .. }) => {
                let look_every = config.server.heartbeat();
                let follow = Follow { watermarks, local, accounts, ephemerals, hints, look_every };
                self.tasks.spawn(follow.run(stopping))
            }
            None => self.tasks.spawn(accounts.follow_operator(move |uid| ephemerals.renamed(uid), stopping)),
        };
    }
}

/// Forgets expired sessions and invitations, old reports and old lines of the audit log now and then, and indexes the names that another
/// version stored.
async fn sweep(
    UseCases { accounts, invites, reports, operators, .. }: UseCases,
    stopping: CancellationToken,
) {
    let mut hours = tokio::time::interval(SWEEP_EVERY);
    while stopping.run_until_cancelled(hours.tick()).await.is_some() {
        until_few(&stopping, INDEXED_AT_ONCE, || accounts.index_names(INDEXED_AT_ONCE)).await;
        until_few(&stopping, SWEEP_AT_ONCE, || accounts.forget_expired(SWEEP_AT_ONCE)).await;
        until_few(&stopping, SWEEP_AT_ONCE, || invites.forget_expired(SWEEP_AT_ONCE)).await;
        until_few(&stopping, SWEEP_AT_ONCE, || reports.forget_old(SWEEP_AT_ONCE)).await;
        until_few(&stopping, SWEEP_AT_ONCE, || operators.audit().forget_old(SWEEP_AT_ONCE)).await;
    }
}

/// Repeats a sweep until it finds less than the `most` that it may take at once.
async fn until_few<F>(stopping: &CancellationToken, most: usize, sweep: impl Fn() -> F)
where
    F: Future<Output = Result<u64, StoreError>>,
{
    loop {
        match sweep().await {
            Ok(done) if done == most as u64 && !stopping.is_cancelled() => {}
            Ok(_) => return,
            Err(error) => {
                warn!(%error, "a sweep of the database is tried again in an hour");
                return;
            }
        }
    }
}
