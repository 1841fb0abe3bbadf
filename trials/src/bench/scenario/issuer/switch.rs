//! `segment-switch`: how long calls take through a thousand switches from one segment to the next, with storage that
//! takes 50 ms for each segment, against storage that answers at once.
//!
//! Many tags at a steady pace: a segment lasts twice as long as the storage takes. One call in a hundred is a switch,
//! so a p99.9 without a spike means that nine switches in ten waited for nothing; the longest call tells about the
//! rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::future::try_join_all;
use hdrhistogram::Histogram;
use seqsvr_issuer::repository::{Extension, MemoryRepository, Repository, RepositoryError, TagRow, Values};
use seqsvr_issuer::{Counter, Issuer, SegmentOptions, Tag};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::{Failure, Result};

/// The time that storage takes.
const SLOW: Duration = Duration::from_millis(50);
/// Numbers of a segment, and the time between two of them: 100 ms a segment.
const STEP: u64 = 100;
const PACE: Duration = Duration::from_millis(1);
/// Tags that are asked at the same time, and switches of each.
const TAGS: usize = 20;
const SWITCHES: usize = 50;
/// The limit of noise: two thousandths of the time of a call that waited for storage.
const NOISE_US: f64 = 100.0;

pub(in crate::bench::scenario) struct SegmentSwitch;

impl Measured for SegmentSwitch {
    const NAME: &'static str = "segment-switch";
    const ABOUT: &'static str = "issuer: calls through 1,000 switches, storage taking 50 ms";

    async fn prepare(_: &Context) -> Result<Self> {
        Ok(SegmentSwitch)
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let switches = context.scaled(SWITCHES);
        let instant = calls(Duration::ZERO, switches).await?;
        let slow = calls(SLOW, switches).await?;
        let reported = |what: &str, of: fn(&Histogram<u64>) -> u64| {
            let [instant, slow] = [&instant, &slow].map(|times| of(times) as f64 / 1e3);
            Sample::new(format!("storage takes 50 ms, {what}"), slow, "µs")
                .against("storage takes no time", instant)
        };
        Ok(vec![
            reported("p50", |times| times.value_at_quantile(0.5)),
            reported("p99.9", |times| times.value_at_quantile(0.999)).target(Target::MoreByAtMost(NOISE_US)),
            reported("longest", Histogram::max),
        ])
    }
}

/// How long each call took, in nanoseconds.
async fn calls(pause: Duration, switches: usize) -> Result<Histogram<u64>> {
    let storage = Arc::new(Slowed { inner: MemoryRepository::new(), pause, takes: AtomicUsize::new(0) });
    let mut builder = Issuer::builder().repository(Arc::<Slowed>::clone(&storage));
    let tags: Vec<String> = (0..TAGS).map(|tag| format!("tag-{tag}")).collect();
    for tag in &tags {
        let steady =
            SegmentOptions { step: STEP, step_min: STEP, step_max: STEP, ..SegmentOptions::default() };
        builder = builder.segment(tag, steady)?;
    }
    let issuer = builder.open().await?;
    let callers = tags.iter().map(|tag| Ok(tokio::spawn(caller(issuer.counter(tag)?, switches))));
    let mut times = Histogram::new(3)?;
    for done in try_join_all(callers.collect::<Result<Vec<_>>>()?).await? {
        times.add(done?)?;
    }
    issuer.shutdown().await;
    let (seen, wanted) = (storage.takes.load(Ordering::Relaxed), TAGS * (switches + 1));
    if seen < wanted {
        return Err(Failure::new(format!("{seen} segments were taken, {wanted} should have been")));
    }
    Ok(times)
}

/// Takes one number after the other at a steady pace, until so many segments have been used up.
async fn caller(counter: Counter, switches: usize) -> Result<Histogram<u64>> {
    counter.next(1).await?;
    let mut times = Histogram::new(3)?;
    let mut ticks = interval(PACE);
    // A late tick must not be made up for: two at once would make a segment shorter.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for _ in 0..switches as u64 * STEP {
        ticks.tick().await;
        let began = Instant::now();
        counter.next(1).await?;
        times.record(began.elapsed().as_nanos() as u64)?;
    }
    Ok(times)
}

/// Storage in memory that takes its time for each segment.
struct Slowed {
    inner: MemoryRepository,
    pause: Duration,
    takes: AtomicUsize,
}

#[async_trait]
impl Repository for Slowed {
    async fn get(&self, tag: &Tag) -> std::result::Result<Option<TagRow>, RepositoryError> {
        self.inner.get(tag).await
    }

    async fn list(&self) -> std::result::Result<Vec<TagRow>, RepositoryError> {
        self.inner.list().await
    }

    async fn create(&self, tag: &Tag, values: Values) -> std::result::Result<bool, RepositoryError> {
        self.inner.create(tag, values).await
    }

    async fn take(
        &self,
        tag: &Tag,
        expected: u64,
        values: Values,
    ) -> std::result::Result<bool, RepositoryError> {
        if !self.pause.is_zero() {
            sleep(self.pause).await;
        }
        self.takes.fetch_add(1, Ordering::Relaxed);
        self.inner.take(tag, expected, values).await
    }

    async fn remove(&self, tag: &Tag) -> std::result::Result<bool, RepositoryError> {
        self.inner.remove(tag).await
    }

    async fn reconcile(&self, extension: &Extension) -> std::result::Result<bool, RepositoryError> {
        self.inner.reconcile(extension).await
    }

    async fn extensions(&self, tag: &Tag) -> std::result::Result<Vec<Extension>, RepositoryError> {
        self.inner.extensions(tag).await
    }
}
