//! `failover`: SIGKILL of an AllocSvr, and the time until one of its uids gets a number again.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use seqsvr_client::Client;
use seqsvr_core::Uid;
use seqsvr_core::routing::Table;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::cluster::{Cluster, Shape, Timing};
use crate::{Failure, Result, program};

/// Kills in a run; the five runs of `bench` make 50.
const KILLS: usize = 10;
const PATIENCE: Duration = Duration::from_secs(60);

pub(in crate::bench::scenario) struct Failover {
    cluster: Cluster,
    _folder: TempDir,
}

impl Measured for Failover {
    const NAME: &'static str = "failover";
    const ABOUT: &'static str = "cluster: SIGKILL of an AllocSvr until its uids are served again";

    async fn prepare(context: &Context) -> Result<Self> {
        let folder = context.fresh()?;
        let cluster = Cluster::start(&program("seqsvr")?, folder.path(), &Shape::new(3, 2)).await?;
        Ok(Failover { cluster, _folder: folder })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let client = self.cluster.client()?.within(PATIENCE);
        let mut times = Histogram::<u64>::new(3)?;
        for kill in 0..context.scaled(KILLS) {
            let victim = kill % self.cluster.allocators.len();
            let name = self.cluster.allocators[victim].name().to_owned();
            let uid = held(&client, &name).await?;
            client.next(uid, 1).await?;
            self.cluster.allocators[victim].kill().await?;
            let killed = Instant::now();
            client.next(uid, 1).await?;
            times.record(killed.elapsed().as_micros() as u64)?;
            self.cluster.allocators[victim].start().await?;
        }
        let expected = Timing::default().takeover().as_secs_f64() * 1e3;
        let at = |quantile| times.value_at_quantile(quantile) as f64 / 1e3;
        Ok(vec![
            Sample::new("without service, p50", at(0.5), "ms")
                .against("detection + 1.1 × lease", expected)
                .target(Target::RatioAtMost(1.0)),
            Sample::new("without service, p90", at(0.9), "ms"),
            Sample::new("without service, longest", times.max() as f64 / 1e3, "ms")
                .against("detection + 1.1 × lease", expected)
                .target(Target::RatioAtMost(1.5))
                .at_worst(),
        ])
    }
}

/// A uid that the process called `name` serves, as soon as the table gives it any.
async fn held(client: &Client, name: &str) -> Result<Uid> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        // Any answer brings the newest table with it.
        client.next(Uid::new(0), 1).await?;
        if let Some(uid) = client.tables().iter().flatten().find_map(|table| first_of(table, name)) {
            return Ok(uid);
        }
        sleep(Duration::from_millis(100)).await;
    }
    Err(Failure::new(format!("{name} was given nothing within {PATIENCE:?}")))
}

fn first_of(table: &Table, name: &str) -> Option<Uid> {
    table.of(name).next().map(|one| Uid::new(one.sections.start().get() * table.section_size))
}
