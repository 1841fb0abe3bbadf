//! The cluster as a [`Sequencer`], for callers that can also work with an embedded one, such as the chat server.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::Client;
use seqsvr_core::error::{NextError, TryNextError};
use seqsvr_core::ids::{Granted, Uid};
use seqsvr_core::sequencer::Sequencer;

/// Numbers from a cluster. Calls for one number that many tasks make at the same time share frames; one for many uids is a frame
/// to each process.
#[derive(Clone)]
pub struct ClusterSequencer {
    client: Client,
}

impl ClusterSequencer {
    /// Numbers by way of `client`.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// The client underneath.
    pub fn client(&self) -> &Client {
        &self.client
    }
}

#[async_trait]
impl Sequencer for ClusterSequencer {
    /// Numbers are never in this process, so it always would wait.
    fn try_next(&self, _uid: Uid, _count: u32) -> Result<Granted, TryNextError> {
        Err(TryNextError::WouldWait)
    }

    async fn next(&self, uid: Uid, count: u32) -> Result<Granted, NextError> {
        Ok(self.client.next(uid, count).await?)
    }

    async fn next_each(&self, uids: &[Uid], patience: Duration) -> Vec<Result<u64, NextError>> {
        let until = Instant::now() + self.client.patience.min(patience);
        let mut numbers = Vec::with_capacity(uids.len());
        // One after the other, for the sake of a uid that stands in two of them.
        for part in uids.chunks(self.client.inner.uids_per_call) {
            let client = self.client.within(until.saturating_duration_since(Instant::now()));
            match client.next_each(part).await {
                Ok(taken) => numbers.extend(taken.into_iter().map(Ok)),
                Err(error) => {
                    numbers.extend(error.numbers.into_iter().map(|one| one.map_err(NextError::from)))
                }
            }
        }
        numbers
    }

    async fn current(&self, uid: Uid) -> Result<u64, NextError> {
        let bounds = self.client.current(&[uid]).await.map_err(|error| error.first)?;
        Ok(bounds[0])
    }

    async fn advance(&self, uid: Uid, at_least: u64) -> Result<(), NextError> {
        Ok(self.client.advance(uid, at_least).await?)
    }
}
