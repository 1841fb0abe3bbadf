//! Segments whose counter is in Redis, shared by all processes (S22): a tag increases across processes too. Durable is
//! the row in the repository; Redis itself need not be, and its own persistence may be off.
//!
//! One short script advances the hash, since a script stops everybody else: while another one keeps Redis busy (SCRIPT
//! KILL ends it), or no answer comes, calls are repeated; a repeated step only skips numbers. Where scripts are
//! forbidden, plain commands in a transaction do the same. One process prepares the next segment for all. A restart or
//! a promotion of Redis abandons the hash, and numbers go on at the durable `max` + 1; while Redis is away they come
//! from a durable segment in memory. `turn` says what a step of the hash is (pure), `hash` and `plain` take it in
//! Redis, `worker` is the one task for each tag, with its `stock` of segments.

pub(crate) mod address;
#[cfg(test)]
mod agreement;
mod hash;
mod plain;
mod shared;
mod stock;
mod turn;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};

use super::repository::Repository;
use super::segment::{AskedStep, Journal, SegmentOptions, Source, Taker, TaskHandle};
use super::strategy::{IssueError, Issued, Status, Strategy};
use super::tag::Tag;
use shared::RedisState;
use worker::{IssueRequest, Worker};

/// The largest number that Redis scripts count exactly: 2^53 - 1.
pub const MAX_EXACT: u64 = (1 << 53) - 1;

/// Settings of a [`RedisStrategy`].
#[derive(Clone, Debug, PartialEq)]
pub struct RedisOptions {
    /// Where Redis may be, `redis://[user:password@]host:port[/database]` or `rediss://…` for TLS: primary and replicas.
    /// The one that is the primary is used.
    pub urls: Vec<String>,
    /// The prefix of the key of a tag's hash. Default `issuer:`.
    pub prefix: String,
    /// How long connecting and each command may take before they are tried again, until `segment.wait` is over. Default
    /// 500 ms.
    pub timeout: Duration,
    /// How many calls may wait; beyond it they are refused. Default 10,000.
    pub queue: usize,
    /// The durable segments. The limit may be 2^53 - 1 at most.
    pub segment: SegmentOptions,
}

impl RedisOptions {
    /// The defaults, for Redis at these URLs.
    pub fn new(urls: Vec<String>) -> Self {
        Self {
            urls,
            prefix: "issuer:".to_owned(),
            timeout: Duration::from_millis(500),
            queue: 10_000,
            segment: SegmentOptions { limit: MAX_EXACT, ..SegmentOptions::default() },
        }
    }

    fn check(&self) -> Result<(), String> {
        self.segment.check()?;
        if self.urls.is_empty() {
            return Err("name at least one URL of Redis".to_owned());
        }
        for url in &self.urls {
            address::client(url)?;
        }
        if self.segment.limit > MAX_EXACT {
            return Err(format!(
                "limit = {} is above 2^53 - 1, up to which Redis counts exactly",
                self.segment.limit
            ));
        }
        if self.queue == 0 || self.timeout.is_zero() {
            return Err("the queue and the timeout of Redis must be more than 0".to_owned());
        }
        Ok(())
    }
}

/// A [`Strategy`] of segments that all processes take from together, in Redis.
pub struct RedisStrategy {
    shared: Arc<RedisState>,
    asked: Arc<AskedStep>,
    requests: mpsc::Sender<IssueRequest>,
    worker: TaskHandle<Worker>,
}

impl RedisStrategy {
    /// Numbers for `tag`; nothing is connected before [`init`](Strategy::init).
    ///
    /// # Errors
    ///
    /// [`IssueError::Final`] for an option out of its range, or ranges ahead without a journal.
    pub fn new(
        tag: &Tag,
        repository: Arc<dyn Repository>,
        journal: Option<Arc<Journal>>,
        options: RedisOptions,
    ) -> Result<Self, IssueError> {
        let wrong = |problem| IssueError::Final(format!("{tag}: {problem}"));
        options.check().map_err(wrong)?;
        let taker = Taker::new(repository, tag.clone(), options.segment.clone());
        let asked = taker.asked_step();
        let source = Source::new(taker, journal).map_err(wrong)?;
        let shared = Arc::new(RedisState::new(tag.clone()));
        let (requests, received) = mpsc::channel(options.queue);
        let worker = |stop| Worker::new(Arc::clone(&shared), options, source, received, stop);
        let worker = TaskHandle::new(tag.clone(), worker);
        Ok(Self { shared, asked, requests, worker })
    }
}

#[async_trait]
impl Strategy for RedisStrategy {
    async fn init(&self) -> Result<(), IssueError> {
        self.worker.start().await
    }

    async fn issue(&self, count: u32) -> Result<Issued, IssueError> {
        let (answer, answered) = oneshot::channel();
        let full = |_| {
            IssueError::Retryable(format!("{}: too many calls wait for Redis; try again", self.shared.tag))
        };
        self.requests.try_send(IssueRequest { count, answer }).map_err(full)?;
        let stopped = |_| IssueError::Final(format!("{}: the issuer was shut down", self.shared.tag));
        answered.await.map_err(stopped)?
    }

    fn ask_step(&self, step: u64) -> Result<(), String> {
        self.asked.set(step)
    }

    fn status(&self) -> Status {
        self.shared.status()
    }

    async fn shutdown(&self) {
        self.worker.shutdown().await;
    }
}
