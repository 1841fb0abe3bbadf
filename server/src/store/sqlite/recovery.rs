//! When the journal failed, and when the store closes: the committer's way back, and its way out.

use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, error, warn};

use super::calls::Calls;
use super::committer::{Committer, CommitterRequest};
use super::meta;
use super::replay::{counters, replay};
use crate::store::StoreError;

pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

impl Committer {
    /// Works until it is closed or nobody can ask any more. When the work panics, everything in memory is read back from the files
    /// and it goes on: what was in hand is unknown to its callers, what waits is done.
    pub(super) async fn live(mut self) {
        let mut pause = FIRST_PAUSE;
        for life in 0_u64.. {
            let began = Instant::now();
            let work = async {
                if life == 0 || self.recover().await.is_continue() {
                    self.run().await;
                }
            };
            let Err(_) = AssertUnwindSafe(work).catch_unwind().await else { return };
            self.shared.condition.trouble("the committer panicked and is starting again");
            if began.elapsed() > LONGEST_PAUSE {
                pause = FIRST_PAUSE;
            }
            error!(again_in = ?pause, "the committer panicked; everything is read back from the files");
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Reopens the journal and tries to store something.
    pub(super) async fn recover(&mut self) -> ControlFlow<()> {
        self.reopen().await?;
        self.try_storing().await
    }

    /// Reopens the journal and reads everything in memory back from the files, however long that takes. Meanwhile what
    /// is asked is refused; nothing is acknowledged. Breaks off only when the store is closed.
    pub(super) async fn reopen(&mut self) -> ControlFlow<()> {
        self.shared.condition.trouble("the journal is being reopened");
        self.flusher.abandon().await;
        let mut pause = FIRST_PAUSE;
        loop {
            match self.read_back().await {
                Ok(()) => {
                    debug!(last = self.journal.last(), "the journal is open again");
                    return ControlFlow::Continue(());
                }
                Err(error) => {
                    self.shared.condition.trouble(&error);
                    warn!(%error, again_in = ?pause, "the journal cannot be reopened");
                    self.refuse_until(Instant::now() + pause, &error).await?;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    async fn read_back(&mut self) -> Result<(), StoreError> {
        let mut connection = self.shared.db.service().await?;
        let flushed = meta::number(&mut *connection, meta::FLUSHED).await?;
        connection.give_back();
        self.journal.reopen(flushed)?;
        let (ledger, memtable) = replay(&self.shared.db, &self.journal, flushed).await?;
        self.ledger = ledger;
        self.counters = counters(&self.shared.db).await?;
        self.ledger.settle(self.shared.options.known_latest_ids, self.shared.options.known_groups);
        self.flusher.resume(flushed);
        self.shared.memory.replace(memtable);
        self.shared.forget_groups();
        Ok(())
    }

    async fn refuse_until(&mut self, until: Instant, error: &StoreError) -> ControlFlow<()> {
        loop {
            let ask = tokio::select! {
                ask = self.requests.recv() => ask,
                () = sleep_until(until) => return ControlFlow::Continue(()),
            };
            match ask {
                None => return ControlFlow::Break(()),
                Some(CommitterRequest::Commit(call)) => {
                    self.shared.condition.refused(1);
                    Calls { messages: vec![call], tables: Vec::new() }.refuse(error);
                }
                Some(CommitterRequest::CommitRows(call)) => {
                    self.shared.condition.refused(1);
                    Calls { messages: Vec::new(), tables: vec![call] }.refuse(error);
                }
                Some(CommitterRequest::CloseTable(_, reply)) => _ = reply.send(Err(error.clone())),
                Some(CommitterRequest::Pending(_, _, reply)) => _ = reply.send(Err(error.clone())),
                Some(CommitterRequest::Group(_, reply)) => _ = reply.send(Err(error.clone())),
                Some(CommitterRequest::Close(reply)) => {
                    _ = reply.send(Err(error.clone()));
                    return ControlFlow::Break(());
                }
            }
        }
    }

    /// Flushes everything. Rows that cannot be flushed stay in the journal for the next start.
    pub(super) async fn close(&mut self) {
        // A flush that runs or failed first, then what came after it.
        for _ in 0..2 {
            if self.flusher.is_running()
                || self.shared.memory.active().rows() > 0
                || self.flusher.has_failed()
            {
                self.flush();
                self.flusher.ended().await;
            }
        }
    }
}
