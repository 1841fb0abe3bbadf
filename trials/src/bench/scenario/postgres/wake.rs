//! `wake`: two servers over one PostgreSQL. How long until a row that one of them wrote is a frame to a device of the other.

use tempfile::TempDir;

use super::{database, within_patience};
use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::bench::scenario::send_latency::{micros, one_by_one};
use crate::servers::Servers;
use crate::{Failure, Result, users};

/// Messages in a run, each way.
const EACH: usize = 1_000;

pub(in crate::bench::scenario) struct Wake {
    servers: Servers,
    sender: String,
    receiver: (u32, String),
    _logs: TempDir,
}

impl Measured for Wake {
    const NAME: &'static str = "wake";
    const ABOUT: &'static str =
        "two servers over one PostgreSQL: from a send on one to the frame on the other";

    async fn prepare(context: &Context) -> Result<Self> {
        let logs = context.fresh()?;
        let servers = Servers::start_over(database().await?, &context.binary, logs.path(), 2, vec![]).await?;
        let mut accounts = users::sign_up(&servers.server(0)?.http()?, "wake", 2).await?;
        let (Some(receiver), Some(sender)) = (accounts.pop(), accounts.pop()) else {
            return Err(Failure::new("two accounts were asked for"));
        };
        Ok(Wake { servers, sender: sender.token, receiver: (receiver.uid, receiver.token), _logs: logs })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let count = context.scaled(EACH);
        let (one, other) = (self.servers.server(0)?.http()?, self.servers.server(1)?.http()?);
        let here = one_by_one(&one, &self.sender, &one, &self.receiver, count);
        let (sent, here) = within_patience(here).await?;
        let there = one_by_one(&other, &self.sender, &one, &self.receiver, count);
        let (_, there) = within_patience(there).await?;
        let sample = |metric: &str, quantile| {
            Sample::new(metric, micros(&there, quantile), "µs")
                .against("on one server", micros(&here, quantile))
        };
        Ok(vec![
            sample("send to frame on another server, p50", 0.5).target(Target::RatioAtMost(3.0)),
            Sample::new("send to frame on another server, p99", micros(&there, 0.99) / 1e3, "ms")
                .target(Target::AtMost(50.0)),
            Sample::new("to sent on PostgreSQL, p50", micros(&sent, 0.5), "µs"),
            Sample::new("to sent on PostgreSQL, p99", micros(&sent, 0.99), "µs"),
        ])
    }
}
