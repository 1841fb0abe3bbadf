//! `tasks`: a thousand tasks that each ask the client library for one number at a time, against the same tasks on the
//! messages of a bare stream.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use seqsvr_client::Client;
use seqsvr_core::Uid;

use super::{Compared, UIDS, lasting};
use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::grpc::Pipeline;
use crate::{Failure, Result};

const TASKS: u64 = 1_000;

pub(in crate::bench::scenario) struct Tasks(Compared);

impl Measured for Tasks {
    const NAME: &'static str = "tasks";
    const ABOUT: &'static str = "cluster: 1,000 tasks, one number at a time each, through the client library";

    async fn prepare(context: &Context) -> Result<Self> {
        Ok(Tasks(Compared::start(context).await?))
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let lasting = lasting(context);
        let pipeline = Arc::new(Pipeline::open(&self.0.bare.url()).await?);
        let bare = rate(lasting, move |uid| {
            let pipeline = Arc::clone(&pipeline);
            async move { pipeline.next(uid.get()).await }
        })
        .await?;
        let client = self.0.cluster.client()?;
        client.next(Uid::new(0), 1).await?;
        let ours = rate(lasting, move |uid| one(client.clone(), uid)).await?;
        Ok(vec![
            Sample::new("1,000 tasks, one number at a time each", ours, "numbers/s")
                .against("the same tasks on a bare tonic stream", bare)
                .target(Target::RatioAtLeast(0.7)),
        ])
    }
}

async fn one(client: Client, uid: Uid) -> Result<()> {
    client.next(uid, 1).await?;
    Ok(())
}

/// Answers a second over all tasks.
async fn rate<F, Fut>(lasting: Duration, call: F) -> Result<f64>
where
    F: Fn(Uid) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<()>> + Send,
{
    let began = Instant::now();
    let until = began + lasting;
    let task = |seed| {
        let call = call.clone();
        tokio::spawn(async move {
            let mut chance = SmallRng::seed_from_u64(seed);
            let mut answered = 0u64;
            while Instant::now() < until {
                call(Uid::new(chance.random_range(0..UIDS))).await?;
                answered += 1;
            }
            Ok::<_, Failure>(answered)
        })
    };
    let mut answers = 0;
    for done in try_join_all((0..TASKS).map(task)).await? {
        answers += done?;
    }
    Ok(answers as f64 / began.elapsed().as_secs_f64())
}
