//! The scenarios, one file each, all of the same shape.

mod alloc;
mod backup;
mod catch_up;
mod cluster;
mod disk;
mod fan_out;
mod files;
pub(crate) mod flood;
mod heartbeat;
mod idle;
mod ids;
mod issuer;
mod page;
mod postgres;
mod retention;
mod search;
mod send;
mod send_few;
mod send_latency;
mod send_spread;
mod start;
mod table;

use std::future::Future;
use std::pin::Pin;

use indicatif::ProgressBar;

use super::Context;
use super::report::Sample;
use crate::Result;

/// A scenario as `bench` sees it.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Only where it is named: it takes an hour or more.
    pub(super) takes_hours: bool,
    pub(super) run: for<'a> fn(&'a Context, usize, &'a ProgressBar) -> RunningScenario<'a>,
}

type RunningScenario<'a> = Pin<Box<dyn Future<Output = Result<Vec<Sample>>> + 'a>>;

/// All, in the order in which they run.
pub(super) const ALL: &[Scenario] = &[
    scenario::<alloc::Alloc>(),
    scenario::<send::Send>(),
    scenario::<send_few::SendFew>(),
    scenario::<send_latency::SendLatency>(),
    scenario::<send_spread::SendSpread>(),
    scenario::<heartbeat::Heartbeat>(),
    scenario::<idle::Idle>(),
    scenario::<fan_out::FanOut>(),
    scenario::<catch_up::CatchUp>(),
    scenario::<start::Start>(),
    scenario::<retention::Retention>(),
    scenario::<search::Search>(),
    scenario::<search::SendSearch>(),
    scenario::<backup::Backup>(),
    scenario::<disk::Disk>(),
    scenario::<retention::RetentionPeriods>(),
    scenario::<files::Upload>(),
    scenario::<files::Download>(),
    scenario::<files::SendFiles>(),
    scenario::<flood::Flood>(),
    scenario::<page::BrowserPage>(),
    scenario::<ids::IdSources>(),
    scenario::<postgres::SendPostgres>(),
    scenario::<postgres::Servers>(),
    scenario::<search::SearchPostgres>(),
    scenario::<table::TablePut>(),
    scenario::<table::TableRange>(),
    scenario::<cluster::Stream>(),
    scenario::<cluster::Latency>(),
    scenario::<cluster::Failover>(),
    scenario::<cluster::Drain>(),
    scenario::<issuer::Segment>(),
    scenario::<issuer::SegmentSwitch>(),
    scenario::<issuer::RedisSegment>(),
];

/// A scenario as its file sees it.
trait Measured: Sized {
    /// The name on the command line.
    const NAME: &'static str;
    /// The subject of the measurement, in one line.
    const ABOUT: &'static str;
    /// Whether a run takes an hour or more, so that it is measured only where it is named.
    const TAKES_HOURS: bool = false;

    /// Sets up the state that all runs share: data, processes, accounts.
    async fn prepare(context: &Context) -> Result<Self>;

    /// One run: our figures, each with its baseline measured beside it.
    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>>;
}

const fn scenario<M: Measured + 'static>() -> Scenario {
    Scenario {
        name: M::NAME,
        about: M::ABOUT,
        takes_hours: M::TAKES_HOURS,
        run: |context, runs, bar| Box::pin(all::<M>(context, runs, bar)),
    }
}

async fn all<M: Measured>(context: &Context, runs: usize, bar: &ProgressBar) -> Result<Vec<Sample>> {
    let mut scenario = M::prepare(context).await?;
    let mut samples = Vec::new();
    for run in 1..=runs {
        bar.set_message(format!("{}: run {run} of {runs}", M::NAME));
        samples.extend(scenario.measure(context).await?);
        bar.inc(1);
    }
    Ok(samples)
}
