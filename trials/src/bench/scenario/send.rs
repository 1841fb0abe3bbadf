//! `send`: messages a second, durable and delivered to connected receivers.

use std::path::Path;
use std::time::Instant;

use futures_util::FutureExt as _;
use tidemark_client::{Account, Http};

use super::Measured;
use crate::bench::baseline::disk;
use crate::bench::baseline::sqlite::{BareSqlite, Message};
use crate::bench::report::{Sample, Target};
use crate::bench::{Context, peak_memory, rate};
use crate::connection::{ClientConnection, client_id, send_frame};
use crate::server::Server;
use crate::{Result, users};

/// Senders, how many messages each keeps in flight, and how many each sends in a run: 300,000 messages, 600,000 rows, so
/// that the server flushes several times while it is measured.
pub(super) const SHAPES: [(usize, usize, usize); 2] = [(20, 16, 15_000), (200, 1, 1_500)];

pub(super) struct Send {
    accounts: Vec<Account>,
    data: tempfile::TempDir,
}

impl Measured for Send {
    const NAME: &'static str = "send";
    const ABOUT: &'static str =
        "one-to-one messages of 200 B, durable and delivered: 20 senders × 16 in flight, 200 × 1";

    async fn prepare(context: &Context) -> Result<Self> {
        let data = context.fresh()?;
        let most = SHAPES.iter().map(|(senders, ..)| senders * 2).max().unwrap_or_default();
        let accounts = users::installed(&context.binary, data.path(), "send", most).await?;
        Ok(Send { accounts, data })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let mut samples = Vec::new();
        for (senders, in_flight, each) in SHAPES {
            let each = context.scaled(each);
            let server = Server::start(&context.binary, self.data.path()).await?;
            let ours = deliver(&server, &self.accounts[..senders * 2], in_flight, each).await?;
            let shape = format!("{senders} × {in_flight} in flight");
            let peak = peak_memory(format!("{shape}, peak server memory"), &server)?;
            // A stop flushes what is left: with it, every row lies where the bare loop's rows lie.
            let stopping = Instant::now();
            server.stop().await?;
            let total = (senders * each) as f64;
            let settled = total / (total / ours + stopping.elapsed().as_secs_f64());
            let bare = bare(self.data.path(), &self.accounts[..senders * 2], in_flight * senders, each)?;
            let disk = disk::group_commit(self.data.path(), context.scaled(1_000), 100)?;
            samples.push(
                Sample::new(shape.clone(), ours, "messages/s")
                    .against("bare SQLite loop", bare)
                    .target(Target::RatioAtLeast(0.6)),
            );
            samples.push(
                Sample::new(format!("{shape}, until all is flushed"), settled, "messages/s")
                    .against("bare SQLite loop", bare),
            );
            samples.push(
                Sample::new(format!("{shape}, of the disk's group commit"), ours, "messages/s")
                    .against("100 a sync", disk),
            );
            samples.push(peak);
        }
        Ok(samples)
    }
}

/// Messages a second from the first send until the last is acknowledged to its sender and delivered to its receiver.
pub(super) async fn deliver(
    server: &Server,
    accounts: &[Account],
    in_flight: usize,
    each: usize,
) -> Result<f64> {
    let http = server.http()?;
    let pairs = accounts.chunks_exact(2).map(|pair| ((&http, &pair[0]), (&http, &pair[1])));
    deliver_between(&pairs.collect::<Vec<_>>(), in_flight, each).await
}

/// A user, and the server to which the user's device is connected.
type Placed<'a> = (&'a Http, &'a Account);

/// The same for these senders and receivers.
pub(super) async fn deliver_between(
    pairs: &[(Placed<'_>, Placed<'_>)],
    in_flight: usize,
    each: usize,
) -> Result<f64> {
    let mut connected = Vec::new();
    for ((from, sender), (at, receiver)) in pairs {
        let seq = at.with_token(&receiver.token).seq().await?.seq;
        let mut inbox = ClientConnection::open(&at.socket_url(), &receiver.token).await?;
        let seq = inbox.begin_at(seq).await?;
        let outbox = ClientConnection::open(&from.socket_url(), &sender.token).await?;
        connected.push((outbox, receiver.uid, inbox, seq));
    }
    let total = connected.len() * each;
    let tasks = connected.into_iter().flat_map(|(outbox, to, mut inbox, seq)| {
        let receiving = async move { inbox.follow(seq, each, |_| {}).await.map(drop) };
        let sending = send(outbox, format!(r#"{{"user":{to}}}"#), in_flight, each);
        [receiving.boxed(), sending.boxed()]
    });
    rate(total, tasks).await
}

/// The same messages by the bare loop, in batches no larger than the number in flight; messages a second.
fn bare(folder: &Path, accounts: &[Account], batch: usize, each: usize) -> Result<f64> {
    let folder = tempfile::tempdir_in(folder)?;
    // One of each pair after the other, as they arrive.
    let round = || accounts.chunks_exact(2).map(|pair| (pair[0].uid, pair[1].uid));
    let message = |(sender, to)| Message { sender, receivers: vec![sender, to], group: None };
    let messages: Vec<Message> = (0..each).flat_map(|_| round()).map(message).collect();
    let seconds = BareSqlite::open(folder.path())?.store(&messages, batch)?;
    Ok(messages.len() as f64 / seconds)
}

/// Keeps `in_flight` messages of 200 B to `to` (JSON) unanswered.
pub(super) async fn send(
    connection: ClientConnection,
    to: String,
    in_flight: usize,
    each: usize,
) -> Result<()> {
    let text = "x".repeat(200);
    keep_in_flight(connection, in_flight, each, || send_frame(client_id(), &to, &text)).await
}

/// Keeps `in_flight` of `each` frames unanswered: one more goes out for each answer.
pub(super) async fn keep_in_flight(
    mut connection: ClientConnection,
    in_flight: usize,
    each: usize,
    frame: impl Fn() -> String,
) -> Result<()> {
    let first = in_flight.min(each);
    for _ in 0..first {
        connection.feed(frame()).await?;
    }
    connection.flush().await?;
    for answered in 0..each {
        connection.expect("sent").await?;
        if answered + first < each {
            connection.say(frame()).await?;
        }
    }
    Ok(())
}
