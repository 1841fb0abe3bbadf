//! `latency`: 50,000 single requests a second in an open loop, through raises and a graceful change of the table. Each
//! is timed from the moment when it was due, whatever kept it from being sent.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use seqsvr_client::Client;
use seqsvr_core::Uid;
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::{UIDS, touch};
use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::cluster::{Cluster, Shape};
use crate::{Failure, Result, program};

const A_SECOND: u32 = 50_000;
/// How often requests are sent: 10 at a time.
const TICK: Duration = Duration::from_micros(200);
const LASTING_MS: usize = 60_000;
/// One request in ten is for this uid, so that its section's ceiling is raised every second or so.
const HOT: Uid = Uid::new(7);

pub(in crate::bench::scenario) struct Latency {
    cluster: Cluster,
    _folder: TempDir,
}

/// State that the requests share.
struct Watch {
    times: Mutex<Histogram<u64>>,
    failed: Mutex<Option<String>>,
}

impl Measured for Latency {
    const NAME: &'static str = "latency";
    const ABOUT: &'static str = "cluster: 50,000 requests/s, open loop, through raises and a table change";

    async fn prepare(context: &Context) -> Result<Self> {
        let folder = context.fresh()?;
        let cluster = Cluster::start(&program("seqsvr")?, folder.path(), &Shape::new(2, 1)).await?;
        touch(&cluster).await?;
        Ok(Latency { cluster, _folder: folder })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let lasting = Duration::from_millis(context.scaled(LASTING_MS) as u64);
        let client = self.cluster.client()?;
        client.next(HOT, 1).await?;
        let watch = Arc::new(Watch { times: Mutex::new(Histogram::new(3)?), failed: Mutex::new(None) });
        let tasks = TaskTracker::new();
        let pacing = Pacing { client, watch: Arc::clone(&watch), tasks: tasks.clone(), lasting };
        let runtime = Handle::current();
        let pacing = thread::spawn(move || pacing.run(&runtime));
        let name = self.cluster.allocators[1].name().to_owned();
        tokio::time::sleep(lasting / 3).await;
        self.cluster.operate(&["drain", &name]).await?;
        tokio::time::sleep(lasting / 3).await;
        self.cluster.operate(&["add", &name]).await?;
        let sent = tokio::task::spawn_blocking(move || pacing.join()).await?;
        let sent = sent.map_err(|_| Failure::new("the pacing thread panicked"))?;
        tasks.close();
        tasks.wait().await;
        if let Some(why) = watch.failed.lock().expect("nobody panicked").take() {
            return Err(Failure::new(format!("a request failed: {why}")));
        }
        let times = watch.times.lock().expect("nobody panicked");
        let at = |quantile| times.value_at_quantile(quantile) as f64 / 1e6;
        Ok(vec![
            Sample::new("requests sent", sent as f64 / lasting.as_secs_f64(), "requests/s"),
            Sample::new("50,000/s, open loop, p50", at(0.5), "ms").target(Target::AtMost(1.0)),
            Sample::new("50,000/s, open loop, p99.9", at(0.999), "ms").target(Target::AtMost(3.0)),
            Sample::new("50,000/s, open loop, longest", times.max() as f64 / 1e6, "ms"),
        ])
    }
}

/// The thread that sends: the timers of an async runtime are too coarse for it.
struct Pacing {
    client: Client,
    watch: Arc<Watch>,
    tasks: TaskTracker,
    lasting: Duration,
}

impl Pacing {
    /// Answers how many were sent.
    fn run(self, runtime: &Handle) -> u64 {
        let mut chance = SmallRng::seed_from_u64(1);
        let began = Instant::now();
        let ticks = (self.lasting.as_nanos() / TICK.as_nanos()) as u32;
        let each = A_SECOND / (1_000_000 / TICK.as_micros() as u32);
        for tick in 0..ticks {
            let due = began + TICK * tick;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            for _ in 0..each {
                let hot = chance.random_range(0..10) == 0;
                let uid = if hot { HOT } else { Uid::new(chance.random_range(0..UIDS)) };
                let one = request(self.client.clone(), uid, due, Arc::clone(&self.watch));
                self.tasks.spawn_on(one, runtime);
            }
        }
        u64::from(ticks) * u64::from(each)
    }
}

async fn request(client: Client, uid: Uid, due: Instant, watch: Arc<Watch>) {
    match client.next(uid, 1).await {
        Ok(_) => {
            let took = due.elapsed().as_nanos() as u64;
            watch.times.lock().expect("nobody panicked").record(took).expect("it grows as needed");
        }
        Err(error) => *watch.failed.lock().expect("nobody panicked") = Some(error.to_string()),
    }
}
