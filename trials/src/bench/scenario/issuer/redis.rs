//! `redis-segment`: 50 callers that each ask for one number at a time, from segments whose counter is in Redis, against
//! `redis-benchmark`'s INCR of one key over 50 connections to the same server.
//!
//! The server keeps nothing on disk, as the issuer allows: that is INCR at its fastest. The callers are tasks of one
//! process, which share steps of the counter; that is what the issuer has over a connection for each caller.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::try_join_all;
use seqsvr_issuer::repository::{Repository, SqliteRepository};
use seqsvr_issuer::{Counter, Issuer, RedisOptions};
use tempfile::TempDir;

use super::TAG;
use crate::bench::Context;
use crate::bench::baseline::redis::Redis;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::{Failure, Result};

const CLIENTS: usize = 50;
/// INCRs in a run of the baseline, and numbers in a run of ours.
const NUMBERS: usize = 300_000;

pub(in crate::bench::scenario) struct RedisSegment {
    redis: Redis,
    issuer: Issuer,
    _folder: TempDir,
}

impl Measured for RedisSegment {
    const NAME: &'static str = "redis-segment";
    const ABOUT: &'static str = "issuer: 50 callers, the counter in Redis, against INCR on the same server";

    async fn prepare(context: &Context) -> Result<Self> {
        let folder = context.fresh()?;
        let redis = Redis::start(folder.path()).await?;
        let durable: Arc<dyn Repository> = Arc::new(SqliteRepository::new(folder.path().join("issuer.db")));
        let options = RedisOptions::new(vec![redis.url()]);
        let issuer = Issuer::builder().repository(durable).redis(TAG, options)?.open().await?;
        Ok(RedisSegment { redis, issuer, _folder: folder })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let numbers = context.scaled(NUMBERS);
        let incr = self.redis.increments(numbers).await?;
        let ours = rate(vec![self.issuer.counter(TAG)?; CLIENTS], numbers).await?;
        Ok(vec![
            Sample::new("50 callers of one issuer", ours, "numbers/s")
                .against("Redis INCR, no persistence, -c 50 -P 1", incr)
                .target(Target::RatioAtLeast(0.8)),
        ])
    }
}

/// Numbers a second when each of these callers takes one at a time, `numbers` in all.
async fn rate(callers: Vec<Counter>, numbers: usize) -> Result<f64> {
    let each = numbers / callers.len();
    let taken = (each * callers.len()) as f64;
    let began = Instant::now();
    let task = |counter: Counter| {
        tokio::spawn(async move {
            let mut last = 0;
            for _ in 0..each {
                let number = counter.next(1).await?.first();
                if number <= last {
                    return Err(Failure::new(format!("{number} came after {last}")));
                }
                last = number;
            }
            Ok(())
        })
    };
    for done in try_join_all(callers.into_iter().map(task)).await? {
        done?;
    }
    Ok(taken / began.elapsed().as_secs_f64())
}
