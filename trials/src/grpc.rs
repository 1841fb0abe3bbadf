//! The load of the sequence measurements over plain generated clients, so that the same load meets an AllocSvr and the
//! bare server: streams with a fixed number of requests in flight.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::try_join_all;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use seqsvr_rpc::v1;
use seqsvr_rpc::v1::sequence_client::SequenceClient;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};

use crate::{Failure, Result};

const WINDOW: u32 = 4 << 20;

/// The sequence service at `url`, over a connection of its own.
async fn connect(url: &str) -> Result<SequenceClient<Channel>> {
    let endpoint = Endpoint::from_shared(url.to_owned())?
        .tcp_nodelay(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);
    Ok(SequenceClient::new(endpoint.connect().await?))
}

/// The size of the load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Uids are drawn from 0 to one less.
    pub(crate) uids: u32,
    /// In flight on each stream.
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
