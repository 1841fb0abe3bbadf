//! The cluster as a [`Sequencer`], for callers that can also work with an embedded one, such as the chat server.

use async_trait::async_trait;

use super::Client;
use crate::error::{NextError, TryNextError};
use crate::ids::{Granted, Uid};
use crate::sequencer::Sequencer;

/// Numbers from a cluster, one call at a time; calls of many tasks share frames.
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

    async fn current(&self, uid: Uid) -> Result<u64, NextError> {
        let bounds = self.client.current(&[uid]).await.map_err(|error| error.first)?;
        Ok(bounds[0])
    }

    async fn advance(&self, uid: Uid, at_least: u64) -> Result<(), NextError> {
        Ok(self.client.advance(uid, at_least).await?)
    }
}
