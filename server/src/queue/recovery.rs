//! What a writer does before its first order, and after every outcome that it did not learn (I1, I5, S18).
//!
//! It reads the unsettled watermarks again and writes, under new and larger ids, the copies that the store says are
//! still owed to this queue's receivers, in the order of their acceptance. Until that has succeeded, orders are refused.

use std::collections::HashMap;

use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use super::SendError;
use super::shard::Delivery;
use super::writer::{Writer, refuse};
use crate::seq::NumberError;
use crate::store::{AcceptanceId, CommitError, Recipient, StoreError};

/// Acceptances read at once.
const PAGE: usize = 256;

#[derive(Debug, thiserror::Error)]
enum Setback {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Commit(#[from] CommitError),
    #[error(transparent)]
    Numbers(#[from] NumberError),
}

impl Writer<'_> {
    /// Recovers, with growing pauses between tries. `hand_on`: this process has run before, so copies that this
    /// queue's senders owe to other queues may have been lost on the way there and are handed on again; at a
    /// process's start every queue finds its own.
    pub(super) async fn recover(&mut self, hand_on: bool) {
        let mut pause = self.options.first_pause;
        while let Err(setback) = self.try_to_recover(hand_on).await {
            warn!(%setback, queue = self.shard.index, "recovery waits");
            self.refuse_until(Instant::now() + pause).await;
            pause = (pause * 2).min(self.options.longest_pause);
        }
    }

    async fn try_to_recover(&mut self, hand_on: bool) -> Result<(), Setback> {
        let unsettled: Vec<_> = self.shard.unsettled.iter().copied().collect();
        for uid in unsettled {
            self.parts.watermarks.reload(uid).await?;
            self.parts.notifier.notify(&[uid]);
            self.shard.unsettled.remove(&uid);
        }
        let mut after = AcceptanceId::default();
        let mut resumed = 0;
        loop {
            let page = self.parts.store.pending(after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.acceptance;
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
            resumed += mine.len();
            let copies = self.number(mine, Vec::new()).await.copies?;
            self.deliver(copies).await?;
        }
        if resumed > 0 {
            info!(queue = self.shard.index, resumed, "resumed deliveries");
        }
        Ok(())
    }

    /// Lets the time pass, and tells whoever comes meanwhile to try again rather than to wait.
    async fn refuse_until(&mut self, deadline: Instant) {
        refuse(self.shard.waiting.drain(..).collect(), &SendError::Unavailable);
        loop {
            tokio::select! {
                () = sleep_until(deadline) => return,
                Some(ask) = self.shard.asks.recv() => refuse(vec![ask], &SendError::Unavailable),
            }
        }
    }
}
