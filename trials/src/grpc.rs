//! The load of the sequence measurements over plain generated clients, so that the same load meets an AllocSvr and the
//! bare server: streams with a fixed number of requests in flight, and unary calls.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::try_join_all;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use seqsvr_rpc::v1;
use seqsvr_rpc::v1::sequence_client::SequenceClient;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};

use crate::{Failure, Result};

const WINDOW: u32 = 4 << 20;

/// A connection to `url`.
async fn channel(url: &str) -> Result<Channel> {
    let endpoint = Endpoint::from_shared(url.to_owned())?
        .tcp_nodelay(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);
    Ok(endpoint.connect().await?)
}

/// The sequence service at `url`.
async fn connect(url: &str) -> Result<SequenceClient<Channel>> {
    Ok(SequenceClient::new(channel(url).await?))
}

/// What the load is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Uids are drawn from 0 to one less.
    pub(crate) uids: u32,
    /// In flight on each stream or connection.
    pub(crate) in_flight: usize,
    /// How long.
    pub(crate) lasting: Duration,
}

/// Answers a second over `streams` streams, each on a connection of its own.
pub(crate) async fn streams(url: &str, streams: usize, load: Load) -> Result<f64> {
    let mut clients = Vec::new();
    for _ in 0..streams {
        clients.push(connect(url).await?);
    }
    let began = Instant::now();
    let tasks =
        clients.into_iter().enumerate().map(|(seed, client)| tokio::spawn(stream(client, seed as u64, load)));
    let mut answers = 0;
    for done in try_join_all(tasks).await? {
        answers += done?;
    }
    Ok(answers as f64 / began.elapsed().as_secs_f64())
}

/// One stream: as many requests go out as answers came in.
async fn stream(mut client: SequenceClient<Channel>, seed: u64, load: Load) -> Result<u64> {
    let mut chance = SmallRng::seed_from_u64(seed);
    let (requests, outgoing) = mpsc::channel(load.in_flight);
    let mut request = move |id: u64| {
        let next = v1::NextRequest { uid: chance.random_range(0..load.uids), count: 1, route: None };
        v1::StreamRequest { id, call: Some(v1::stream_request::Call::Next(next)) }
    };
    for id in 0..load.in_flight as u64 {
        requests.try_send(request(id))?;
    }
    let mut answers = client.stream(ReceiverStream::new(outgoing)).await?.into_inner();
    let until = Instant::now() + load.lasting;
    let mut answered = 0;
    while let Some(answer) = answers.next().await {
        let id = granted(&answer?)?;
        answered += 1;
        // The clock is read once in a while: it would cost as much as what is measured.
        if answered % 256 == 0 && Instant::now() >= until {
            return Ok(answered);
        }
        requests.try_send(request(id))?;
    }
    Err(Failure::new("the stream ended early"))
}

fn granted(answer: &v1::StreamReply) -> Result<u64> {
    use v1::next_reply::Outcome;
    use v1::stream_reply::Answer;
    match &answer.answer {
        Some(Answer::Next(v1::NextReply { outcome: Some(Outcome::Granted(_)), .. })) => Ok(answer.id),
        other => Err(Failure::new(format!("no number was granted: {other:?}"))),
    }
}

/// Unary calls a second over `connections` connections with `load.in_flight` at a time on each.
pub(crate) async fn unary<F, Fut>(url: &str, connections: usize, load: Load, call: F) -> Result<f64>
where
    F: Fn(Channel, u32) -> Fut + Copy + Send + 'static,
    Fut: Future<Output = Result<()>> + Send,
{
    let mut channels = Vec::new();
    for _ in 0..connections {
        channels.push(channel(url).await?);
    }
    let began = Instant::now();
    let until = began + load.lasting;
    let mut tasks = Vec::new();
    for (index, channel) in channels.into_iter().enumerate() {
        for lane in 0..load.in_flight {
            let channel = channel.clone();
            tasks.push(tokio::spawn(async move {
                let mut chance = SmallRng::seed_from_u64((index * 1_000 + lane) as u64);
                let mut answered = 0u64;
                while Instant::now() < until {
                    call(channel.clone(), chance.random_range(0..load.uids)).await?;
                    answered += 1;
                }
                Ok::<_, Failure>(answered)
            }));
        }
    }
    let mut answers = 0;
    for done in try_join_all(tasks).await? {
        answers += done?;
    }
    Ok(answers as f64 / began.elapsed().as_secs_f64())
}

/// One number of `uid`.
pub(crate) async fn next(channel: Channel, uid: u32) -> Result<()> {
    let mut client = SequenceClient::new(channel);
    let reply = client.next(v1::NextRequest { uid, count: 1, route: None }).await?.into_inner();
    match reply.outcome {
        Some(v1::next_reply::Outcome::Granted(_)) => Ok(()),
        other => Err(Failure::new(format!("no number was granted: {other:?}"))),
    }
}

/// The upper bounds of 64 uids from `uid` on.
pub(crate) async fn current(channel: Channel, uid: u32) -> Result<()> {
    let mut client = SequenceClient::new(channel);
    let uids = (uid..uid + 64).collect();
    let reply = client.current(v1::CurrentRequest { uids, route: None }).await?.into_inner();
    match reply.outcome {
        Some(v1::current_reply::Outcome::UpperBounds(bounds)) if bounds.numbers.len() == 64 => Ok(()),
        other => Err(Failure::new(format!("no bounds were told: {other:?}"))),
    }
}

/// One stream that many tasks share, each waiting for its own answer: the least that a client library has to do.
pub(crate) struct Pipeline {
    requests: mpsc::Sender<v1::StreamRequest>,
    waiting: Arc<Waiting>,
    ids: AtomicU64,
}

type Waiting = Mutex<HashMap<u64, oneshot::Sender<v1::StreamReply>>>;

impl Pipeline {
    /// Opens a stream to `url`.
    pub(crate) async fn open(url: &str) -> Result<Pipeline> {
        let (requests, outgoing) = mpsc::channel(4_096);
        let mut answers = connect(url).await?.stream(ReceiverStream::new(outgoing)).await?.into_inner();
        let waiting = Arc::new(Waiting::default());
        let pairing = Arc::clone(&waiting);
        // Ends with the stream, which ends when the sender is dropped.
        tokio::spawn(async move {
            while let Some(Ok(answer)) = answers.next().await {
                let waiter = pairing.lock().expect("nothing panics while it is locked").remove(&answer.id);
                // A task that no longer waits is no concern of the others.
                if let Some(waiter) = waiter {
                    let _ = waiter.send(answer);
                }
            }
        });
        Ok(Pipeline { requests, waiting, ids: AtomicU64::new(0) })
    }

    /// One number of `uid`.
    pub(crate) async fn next(&self, uid: u32) -> Result<()> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let (waiter, answered) = oneshot::channel();
        self.waiting.lock().expect("nothing panics while it is locked").insert(id, waiter);
        let next = v1::NextRequest { uid, count: 1, route: None };
        self.requests
            .send(v1::StreamRequest { id, call: Some(v1::stream_request::Call::Next(next)) })
            .await?;
        granted(&answered.await?)?;
        Ok(())
    }
}
