//! `batch`: many calls in flight, each for one number of 64 different uids drawn at random, as the fan-out of a group
//! makes them, against Redis INCR that is durable before the reply.

use std::time::Instant;

use futures_util::future::try_join_all;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use seqsvr_core::Uid;
use tempfile::TempDir;

use super::{UIDS, lasting, touch};
use crate::bench::Context;
use crate::bench::baseline::redis::{Keeps, Redis};
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::cluster::{Cluster, Shape};
use crate::{Failure, Result};

/// Uids in a call.
const EACH: usize = 64;
/// Calls in flight.
const CALLS: u64 = 256;
/// INCRs in a run of the baseline.
const INCREMENTS: usize = 1_500_000;

pub(in crate::bench::scenario) struct Batch {
    cluster: Cluster,
    redis: Redis,
    _folder: TempDir,
}

impl Measured for Batch {
    const NAME: &'static str = "batch";
    const ABOUT: &'static str = "cluster: calls for 64 random uids each, 256 in flight, against Redis INCR";

    async fn prepare(context: &Context) -> Result<Self> {
        let folder = context.fresh()?;
        let cluster = Cluster::start(&context.sequence_binary()?, folder.path(), &Shape::new(1, 1)).await?;
        touch(&cluster).await?;
        let redis = Redis::start(folder.path(), Keeps::Everything).await?;
        Ok(Batch { cluster, redis, _folder: folder })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let redis = self.redis.increments(context.scaled(INCREMENTS), EACH, "key:__rand_int__").await?;
        let ours = self.numbers(context).await?;
        Ok(vec![
            Sample::new("calls for 64 random uids of 100,000", ours, "numbers/s")
                .against("Redis INCR, appendfsync always, -P 64", redis)
                .target(Target::RatioAtLeast(5.0)),
        ])
    }
}

impl Batch {
    async fn numbers(&self, context: &Context) -> Result<f64> {
        let client = self.cluster.client()?;
        client.next(Uid::new(0), 1).await?;
        let began = Instant::now();
        let until = began + lasting(context);
        let task = |seed| {
            let client = client.clone();
            tokio::spawn(async move {
                let mut chance = SmallRng::seed_from_u64(seed);
                let mut uids = [Uid::new(0); EACH];
                let mut numbers = 0;
                while Instant::now() < until {
                    uids.fill_with(|| Uid::new(chance.random_range(0..UIDS)));
                    numbers += client.next_each(&uids).await?.len() as u64;
                }
                Ok::<_, Failure>(numbers)
            })
        };
        let mut numbers = 0;
        for done in try_join_all((0..CALLS).map(task)).await? {
            numbers += done?;
        }
        Ok(numbers as f64 / began.elapsed().as_secs_f64())
    }
}
