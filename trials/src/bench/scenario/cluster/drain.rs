//! `drain`: every AllocSvr drained and taken in again, and then every process of the cluster restarted in turn, under
//! load: how long the slowest request waited.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use hdrhistogram::Histogram;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use seqsvr_client::Client;
use seqsvr_core::Uid;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::cluster::{Cluster, Shape};
use crate::{Failure, Result, program};

const SECTIONS: u32 = 42_949;
const SECTION: u32 = 100_000;
/// Tasks that ask for one number at a time.
const TASKS: u64 = 32;
/// Between two requests of a task, so that the load does not hide the waits.
const PAUSE: Duration = Duration::from_millis(2);
/// Sections that are asked for, spread over all: each is loaded anew, and its ceiling raised once, after every move.
const PLACES: u32 = 96;
/// Between two operations.
const REST: Duration = Duration::from_millis(700);

pub(in crate::bench::scenario) struct Drain {
    cluster: Cluster,
    _folder: TempDir,
}

impl Measured for Drain {
    const NAME: &'static str = "drain";
    const ABOUT: &'static str = "cluster: drains and a rolling restart of everything, under load";

    async fn prepare(context: &Context) -> Result<Self> {
        let folder = context.fresh()?;
        let cluster = Cluster::start(&program("seqsvr")?, folder.path(), &Shape::new(3, 2)).await?;
        Ok(Drain { cluster, _folder: folder })
    }

    async fn measure(&mut self, _: &Context) -> Result<Vec<Sample>> {
        let drains = Callers::start(&self.cluster)?;
        for index in 0..self.cluster.allocators.len() {
            let name = self.cluster.allocators[index].name().to_owned();
            self.cluster.operate(&["drain", &name]).await?;
            sleep(REST).await;
            self.cluster.operate(&["add", &name]).await?;
            sleep(REST).await;
        }
        let drains = drains.end().await?;

        let restarts = Callers::start(&self.cluster)?;
        for index in 0..self.cluster.allocators.len() {
            let name = self.cluster.allocators[index].name().to_owned();
            self.cluster.operate(&["drain", &name]).await?;
            sleep(REST).await;
            self.cluster.allocators[index].stop().await?;
            self.cluster.allocators[index].start().await?;
            self.cluster.operate(&["add", &name]).await?;
            sleep(REST).await;
        }
        for member in self.cluster.stores.iter_mut().chain(&mut self.cluster.arbiters) {
            member.stop().await?;
            member.start().await?;
            sleep(REST).await;
        }
        let restarts = restarts.end().await?;
        let reported = |what: &str, times: &Histogram<u64>| {
            let longest = times.max() as f64 / 1e3;
            let longest = Sample::new(format!("{what}: the longest wait"), longest, "ms");
            longest.target(Target::AtMost(50.0)).at_worst()
        };
        let usual = restarts.value_at_quantile(0.5) as f64 / 1e3;
        Ok(vec![
            reported("drains", &drains),
            reported("rolling restart", &restarts),
            Sample::new("rolling restart: p50", usual, "ms"),
        ])
    }
}

/// Tasks that ask until they are told to end; a failed request fails the measurement.
struct Callers {
    over: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<Result<Histogram<u64>>>>,
}

impl Callers {
    fn start(cluster: &Cluster) -> Result<Callers> {
        let over = Arc::new(AtomicBool::new(false));
        let client = cluster.client()?;
        let tasks =
            (0..TASKS).map(|seed| tokio::spawn(ask(client.clone(), seed, Arc::clone(&over)))).collect();
        Ok(Callers { over, tasks })
    }

    async fn end(self) -> Result<Histogram<u64>> {
        self.over.store(true, Ordering::Relaxed);
        let mut all = Histogram::<u64>::new(3)?;
        for times in try_join_all(self.tasks).await? {
            all.add(times?).map_err(|e| Failure::new(e.to_string()))?;
        }
        Ok(all)
    }
}

async fn ask(client: Client, seed: u64, over: Arc<AtomicBool>) -> Result<Histogram<u64>> {
    let mut chance = SmallRng::seed_from_u64(seed);
    let mut times = Histogram::<u64>::new(3)?;
    client.next(Uid::new(0), 1).await?;
    while !over.load(Ordering::Relaxed) {
        let began = Instant::now();
        let section = chance.random_range(0..PLACES) * (SECTIONS / PLACES);
        client.next(Uid::new(section * SECTION + chance.random_range(0..SECTION)), 1).await?;
        times.record(began.elapsed().as_micros() as u64)?;
        sleep(PAUSE).await;
    }
    Ok(times)
}
