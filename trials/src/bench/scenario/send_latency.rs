//! `send-latency`: one sender, one message at a time: how long until it is durable, and until it is delivered.

use std::time::Instant;

use hdrhistogram::Histogram;
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::Measured;
use crate::bench::baseline::disk;
use crate::bench::report::{Sample, Target};
use crate::bench::{Context, peak_memory};
use crate::connection::{ClientConnection, client_id, send_frame};
use crate::server::Server;
use crate::{Failure, Result, users};

/// Messages in a run.
const EACH: usize = 2_000;

pub(super) struct SendLatency {
    server: Server,
    data: TempDir,
    sender: String,
    receiver: (u32, String),
}

impl Measured for SendLatency {
    const NAME: &'static str = "send-latency";
    const ABOUT: &'static str = "one message at a time: to durable, to delivered";

    async fn prepare(context: &Context) -> Result<Self> {
        let data = context.fresh()?;
        let mut accounts = users::installed(&context.binary, data.path(), "late", 2).await?;
        let server = Server::start(&context.binary, data.path()).await?;
        let (Some(receiver), Some(sender)) = (accounts.pop(), accounts.pop()) else {
            return Err(Failure::new("two accounts were asked for"));
        };
        Ok(SendLatency { server, data, sender: sender.token, receiver: (receiver.uid, receiver.token) })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let count = context.scaled(EACH);
        let bare = disk::append_and_sync(self.data.path(), count, 4096)?;
        let (sent, delivered) = self.one_by_one(count).await?;
        let base = micros(&bare, 0.5);
        let name = "append + fdatasync p50";
        let sample = |metric: &str, times: &Histogram<u64>, quantile, most| {
            Sample::new(metric, micros(times, quantile), "µs")
                .against(name, base)
                .target(Target::RatioAtMost(most))
        };
        Ok(vec![
            sample("to sent, p50", &sent, 0.5, 5.0),
            sample("to sent, p99", &sent, 0.99, 20.0),
            sample("to delivered, p50", &delivered, 0.5, 5.0),
            sample("to delivered, p99", &delivered, 0.99, 20.0),
            peak_memory("peak server memory", &self.server)?,
        ])
    }
}

impl SendLatency {
    /// Nanoseconds from the send to `sent`, and to the receiver's row, of one message after the other.
    async fn one_by_one(&self, count: usize) -> Result<(Histogram<u64>, Histogram<u64>)> {
        let http = self.server.http()?;
        let seq = http.with_token(&self.receiver.1).seq().await?.seq;
        let mut device = ClientConnection::open(&http.socket_url(), &self.receiver.1).await?;
        let seq = device.begin_at(seq).await?;
        let (arrived, mut arrivals) = mpsc::channel(16);
        let following = tokio::spawn(async move {
            let tell = |_| {
                // The sender waits for each, so there is always room.
                let _ = arrived.try_send(Instant::now());
            };
            device.follow(seq, count, tell).await
        });
        let mut sender = ClientConnection::open(&http.socket_url(), &self.sender).await?;
        let (mut sent, mut delivered) = (Histogram::new(3)?, Histogram::new(3)?);
        let to = format!(r#"{{"user":{}}}"#, self.receiver.0);
        for _ in 0..count {
            let frame = send_frame(client_id(), &to, &"x".repeat(200));
            let began = Instant::now();
            sender.say(frame).await?;
            sender.expect("sent").await?;
            sent.record(began.elapsed().as_nanos() as u64)?;
            let arrival = arrivals.recv().await.ok_or_else(|| Failure::new("the receiver was cut off"))?;
            delivered.record((arrival - began).as_nanos() as u64)?;
        }
        following.await??;
        Ok((sent, delivered))
    }
}

fn micros(times: &Histogram<u64>, quantile: f64) -> f64 {
    times.value_at_quantile(quantile) as f64 / 1e3
}
