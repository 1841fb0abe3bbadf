//! `redis-segment`: 50 callers that each ask for one number at a time, from segments whose counter is in Redis, against
//! `redis-benchmark`'s INCR of one key over 50 connections to the same server.
//!
//! The server keeps nothing on disk, as the issuer allows: that is INCR at its fastest. The callers are tasks of one
//! process, which share steps of the counter; that is what the issuer has over a connection for each caller.

use std::sync::Arc;

use seqsvr_issuer::repository::{Repository, SqliteRepository};
use seqsvr_issuer::{Counter, Issuer, RedisOptions};
use tempfile::TempDir;
use tidemark_test_support::servers::redis::RedisServer;

use super::TAG;
use crate::bench::baseline::redis::increments;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::bench::{Context, rate};
use crate::cluster::is_installed;
use crate::{Failure, Result};

const CLIENTS: usize = 50;
/// INCRs in a run of the baseline, and numbers in a run of ours.
const NUMBERS: usize = 300_000;

pub(in crate::bench::scenario) struct RedisSegment {
    redis: RedisServer,
    issuer: Issuer,
    _folder: TempDir,
}

impl Measured for RedisSegment {
    const NAME: &'static str = "redis-segment";
    const ABOUT: &'static str = "issuer: 50 callers, the counter in Redis, against INCR on the same server";

    async fn prepare(context: &Context) -> Result<Self> {
        let folder = context.fresh()?;
        if !is_installed("redis-server") {
            return Err(Failure::new("Redis is missing; apt-get install redis-server"));
        }
        let redis = tokio::task::spawn_blocking(RedisServer::start).await?;
        let durable: Arc<dyn Repository> = Arc::new(SqliteRepository::new(folder.path().join("issuer.db")));
        let options = RedisOptions::new(vec![redis.url()]);
        let issuer = Issuer::builder().repository(durable).redis(TAG, options)?.open().await?;
        Ok(RedisSegment { redis, issuer, _folder: folder })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let numbers = context.scaled(NUMBERS);
        let incr = increments(&self.redis, numbers).await?;
        let each = numbers / CLIENTS;
        let callers = vec![self.issuer.counter(TAG)?; CLIENTS];
        let ours = rate(each * CLIENTS, callers.into_iter().map(|caller| take(caller, each))).await?;
        Ok(vec![
            Sample::new("50 callers of one issuer", ours, "numbers/s")
                .against("Redis INCR, no persistence, -c 50 -P 1", incr)
                .target(Target::RatioAtLeast(0.8)),
        ])
    }
}

/// Takes one number after the other.
async fn take(counter: Counter, count: usize) -> Result<()> {
    let mut last = 0;
    for _ in 0..count {
        let number = counter.next(1).await?.first();
        if number <= last {
            return Err(Failure::new(format!("{number} came after {last}")));
        }
        last = number;
    }
    Ok(())
}
