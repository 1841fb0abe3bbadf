//! A writer writes pending copies before its first request, after every outcome that it did not learn (I1, I5, S18), and when sections
//! have numbers again.
//!
//! A recovery reads the unsettled watermarks again and writes, under new and larger ids, the copies that the store says
//! are still owed to this queue's receivers, in the order of their acceptance. Until it has succeeded, requests are
//! refused, unless the store itself keeps the order. Receivers without numbers do not hold it up: they are left behind,
//! and a [`Pass`] between two batches catches them up later.

use std::collections::HashMap;

use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use super::numbering::LeftBehind;
use super::request::refuse;
use super::shard::{Pass, QueueWriter};
use super::slices::Delivery;
use super::{FIRST_PAUSE, LONGEST_PAUSE, SendError};
use crate::store::{CommitError, Pending, Recipient, StoreError};

/// Acceptances read at once.
const PAGE: usize = 256;
/// Pages between two batches: more than a batch may add, so that a pass comes to its end.
const PAGES: usize = 8;

/// Why pending copies are not written yet.
#[derive(Debug, thiserror::Error)]
pub(super) enum Setback {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl QueueWriter<'_> {
    /// Recovers, with growing pauses between tries; while the server stops, there is one try. Pending copies then lie in the store for
    /// the next start. `hand_on`: this process has run before, so copies that this queue's senders owe to other queues may have been lost
    /// on the way there and are handed on again; at a process's start every queue finds its own.
    ///
    /// Where the store itself refuses copies that come too early, they are written between the next batches, and looked for again and
    /// again: so a part of the store that is away holds up nobody else.
    pub(super) async fn recover(&mut self, hand_on: bool) {
        if self.parts.store.refuses_early_copies() {
            self.shard.pass.get_or_insert_default();
            if let Err(setback) = self.settle().await {
                warn!(%setback, queue = self.shard.index, "watermarks cannot be read; trying again later");
            }
            return;
        }
        let mut pause = FIRST_PAUSE;
        while let Err(setback) = self.try_to_recover(hand_on).await {
            if self.closing.is_cancelled() {
                warn!(%setback, queue = self.shard.index, "pending copies are left for the next start");
                self.shard.requests.close();
                self.refuse_waiting();
                return;
            }
            warn!(%setback, queue = self.shard.index, "recovery failed; trying again");
            self.refuse_until(Instant::now() + pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn try_to_recover(&mut self, hand_on: bool) -> Result<(), Setback> {
        self.settle().await?;
        if hand_on {
            // All that they hold is owed, and so is found again.
            self.shard.outbox.clear();
            self.shard.slices.clear();
        }
        self.shard.pass = None;
        self.walk(usize::MAX, hand_on).await
    }

    /// Reads the watermarks again that a commit may have moved.
    async fn settle(&mut self) -> Result<(), Setback> {
        if !self.shard.unsettled.is_empty() {
            self.shard.unsettled.sort_unstable();
            self.shard.unsettled.dedup();
            let latest = self.parts.watermarks.reload(&self.shard.unsettled).await?;
            self.parts.notifier.notify(&latest);
            self.shard.unsettled.clear();
        }
        Ok(())
    }

    /// Whether receivers wait for numbers of sections that may be in service again.
    pub(super) fn may_catch_up(&self) -> bool {
        self.shard.pass.is_some()
            || (!self.shard.behind.is_empty() && self.shard.ended.has_changed().unwrap_or(false))
    }

    /// Writes some of what is owed to receivers who are behind.
    pub(super) async fn catch_up(&mut self) {
        let caught_up = match self.settle().await {
            Ok(()) => self.walk(PAGES, false).await,
            Err(setback) => Err(setback),
        };
        if let Err(setback) = caught_up {
            warn!(%setback, queue = self.shard.index, "pending copies wait");
            // The next look begins anew.
            self.shard.pass = None;
            if !self.parts.store.refuses_early_copies() {
                self.recover(true).await;
            }
        }
    }

    /// Goes on with the pass that is under way, or begins one; `pages` of it at most.
    async fn walk(&mut self, pages: usize, hand_on: bool) -> Result<(), Setback> {
        let mut pass = self.shard.pass.take().unwrap_or_else(|| {
            // Sections that come back from here on are for the next one.
            self.shard.ended.mark_unchanged();
            Pass::default()
        });
        for _ in 0..pages {
            if !self.page(&mut pass, hand_on).await? {
                self.finish(pass);
                return Ok(());
            }
        }
        self.shard.pass = Some(pass);
        Ok(())
    }

    /// One page of what is owed; `false` after the last one.
    async fn page(&mut self, pass: &mut Pass, hand_on: bool) -> Result<bool, Setback> {
        let page = self.parts.store.pending(pass.after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(false) };
        pass.after = last.key();
        let is_last = page.len() < PAGE;
        let mine = self.own_part(page, hand_on);
        let resumed = mine.len();
        let left = self.write_copies(&pass.behind, mine).await?;
        pass.behind.extend(left.receivers);
        pass.owed += left.weight;
        pass.resumed += resumed;
        Ok(!is_last)
    }

    /// The copies that are this queue's to write; `hand_on`: those of its own senders for other queues go to the outbox.
    fn own_part(&mut self, page: Vec<Pending>, hand_on: bool) -> Vec<Delivery> {
        let mut mine = Vec::new();
        for pending in page {
            let hands_on = hand_on && self.is_mine(pending.content.sender);
            let mut by_queue: HashMap<usize, Vec<Recipient>> = HashMap::new();
            for recipient in pending.owed {
                by_queue.entry(self.queue_of(recipient.uid)).or_default().push(recipient);
            }
            for (queue, to) in by_queue {
                let content = pending.content.clone();
                let delivery = Delivery { acceptance: pending.acceptance, content, to };
                if queue == self.shard.index {
                    mine.push(delivery);
                } else if hands_on {
                    self.shard.outbox.push_back((queue, delivery));
                }
            }
        }
        mine
    }

    fn finish(&mut self, pass: Pass) {
        let Pass { behind, owed, resumed, .. } = pass;
        if resumed > 0 {
            info!(queue = self.shard.index, resumed, behind = behind.len(), "resumed deliveries");
        }
        self.shard.behind = behind;
        self.outages.owe(std::mem::replace(&mut self.shard.owed, owed), owed);
    }

    /// Notes what a batch leaves owed.
    pub(super) fn leave_behind(&mut self, left: LeftBehind) {
        let LeftBehind { receivers, weight } = left;
        if let Some(pass) = &mut self.shard.pass {
            // The pass that is under way does not catch up receivers that fall behind now.
            pass.behind.extend(&receivers);
            pass.owed += weight;
        }
        self.shard.behind.extend(receivers);
        self.shard.owed += weight;
        self.outages.owe(0, weight);
    }

    /// Tells all who wait to try again.
    fn refuse_waiting(&mut self) {
        refuse(self.shard.waiting.drain(..).collect(), &SendError::Unavailable);
        while let Ok(request) = self.shard.requests.try_recv() {
            refuse(vec![request], &SendError::Unavailable);
        }
    }

    /// Lets the time pass, unless the server stops, and tells whoever comes meanwhile to try again rather than to wait.
    async fn refuse_until(&mut self, deadline: Instant) {
        self.refuse_waiting();
        loop {
            tokio::select! {
                () = sleep_until(deadline) => return,
                () = self.closing.cancelled() => return,
                Some(request) = self.shard.requests.recv() => refuse(vec![request], &SendError::Unavailable),
            }
        }
    }
}
