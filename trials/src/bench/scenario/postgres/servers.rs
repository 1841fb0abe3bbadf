//! `servers`: the same load on one, two and three servers over one PostgreSQL, which share the processors of one machine.

use tempfile::TempDir;
use tidemark_client::{Account, Http};

use super::{DatabaseWork, database, within_patience};
use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::bench::scenario::send::deliver_between;
use crate::servers::Servers as Group;
use crate::{Result, users};

const MOST: usize = 3;
const SENDERS: usize = 20;
const IN_FLIGHT: usize = 16;
/// Messages of each sender in a run, for each number of servers.
const EACH: usize = 2_500;

pub(in crate::bench::scenario) struct Servers {
    group: Group,
    accounts: Vec<Account>,
    _logs: TempDir,
}

impl Measured for Servers {
    const NAME: &'static str = "servers";
    const ABOUT: &'static str = "the same load on 1, 2 and 3 servers over one PostgreSQL";

    async fn prepare(context: &Context) -> Result<Self> {
        let logs = context.fresh()?;
        let group = Group::start_over(database().await?, &context.binary, logs.path(), MOST, vec![]).await?;
        let accounts = users::sign_up(&group.server(0)?.http()?, "servers", SENDERS * 2).await?;
        Ok(Servers { group, accounts, _logs: logs })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let each = context.scaled(EACH);
        let (mut samples, mut of_one) = (Vec::new(), None);
        for count in 1..=MOST {
            for at in 0..MOST {
                self.group.stop(at).await?;
            }
            let before = DatabaseWork::of(self.group.database()).await?;
            for at in 0..count {
                self.group.run(at).await?;
            }
            let rate = within_patience(self.load(count, each)).await?;
            let mut seconds = 0.0;
            for at in 0..count {
                seconds += self.group.server(at)?.processor_seconds()?;
                self.group.stop(at).await?;
            }
            let done = DatabaseWork::of(self.group.database()).await?.since(before);
            let total = (SENDERS * each) as f64;
            let named = |what: &str| match count {
                1 => format!("1 server{what}"),
                _ => format!("{count} servers{what}"),
            };
            let sample = Sample::new(named(""), rate, "messages/s");
            samples.push(match of_one {
                Some(one) => sample.against("1 server", one).target(Target::RatioAtLeast(0.8)),
                None => sample,
            });
            of_one.get_or_insert(rate);
            let micros = |seconds: f64| seconds / total * 1e6;
            samples.push(Sample::new(named(", their processor a message"), micros(seconds), "µs"));
            samples.push(Sample::new(named(", PostgreSQL's"), micros(done.seconds), "µs"));
            samples.push(Sample::new(named(", flushes a message"), done.flushes / total, ""));
        }
        Ok(samples)
    }
}

impl Servers {
    /// Messages a second, where users are connected to any of the first `count` servers.
    async fn load(&self, count: usize, each: usize) -> Result<f64> {
        let http = (0..count).map(|at| self.group.server(at)?.http()).collect::<Result<Vec<Http>>>()?;
        let pairs = self.accounts.chunks_exact(2).enumerate();
        let places = pairs.map(|(at, pair)| {
            // Each way from a server to another occurs equally often.
            let (from, to) = (&http[at % count], &http[at / count % count]);
            ((from, &pair[0]), (to, &pair[1]))
        });
        deliver_between(&places.collect::<Vec<_>>(), IN_FLIGHT, each).await
    }
}
