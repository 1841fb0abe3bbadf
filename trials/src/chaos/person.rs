//! One person of a fault run: a device that follows by heartbeat, and a hand that writes without pause.
//!
//! Both go through the library's client, as other programs do: it reconnects by itself and repeats a message under the
//! same `client_id` until it is settled.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use tidemark_client::{
    Account, Client, Draft, Entry, Error, Event, Events, Http, Kind, MemoryStore, Options, RangeEnd,
    RangeQuery, Recipient, Sent,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::check::Acknowledged;
use crate::{Failure, Result};

/// Messages that one person may have unsettled.
const IN_FLIGHT: usize = 8;
/// The longest pause between two messages: enough load to be in the middle of something at any moment, and little
/// enough that minutes of it can be compared.
const LONGEST_PAUSE: Duration = Duration::from_millis(40);

/// How long anything may take after the last fault before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// A person while the fault run runs.
pub(super) struct Person {
    pub(super) uid: u32,
    http: Http,
    /// Keeps the device alive.
    client: Client,
    store: MemoryStore,
    seen: Arc<AtomicUsize>,
    watching: JoinHandle<Watched>,
    writing: JoinHandle<Result<Vec<Acknowledged>>>,
}

/// What a device was told, in the order in which it was told.
#[derive(Debug, Default)]
pub(super) struct Watched {
    pub(super) rows: Vec<u64>,
    /// How often it had to forget rows: never, in a fault run.
    pub(super) cleared: usize,
}

/// Everything about a person after the fault run.
pub(super) struct Record {
    pub(super) uid: u32,
    pub(super) acknowledged: Vec<Acknowledged>,
    pub(super) watched: Watched,
    /// What the device that was there all the time has stored.
    pub(super) followed: Vec<Entry>,
    /// What a new device got by heartbeat afterwards.
    pub(super) fetched: Vec<Entry>,
    /// What GetRange answers afterwards.
    pub(super) ranged: Vec<Entry>,
}

impl Person {
    /// Connects, and writes to random ones of `recipients` until `stop` says so; counts what is acknowledged.
    pub(super) fn begin(
        server: &Http,
        account: &Account,
        recipients: Vec<Recipient>,
        seed: u64,
        stop: watch::Receiver<bool>,
        count: Arc<AtomicUsize>,
    ) -> Person {
        let http = server.with_token(&account.token);
        let store = MemoryStore::new();
        let (client, events) = Client::start(http.clone(), store.clone(), options(seed));
        let random = StdRng::seed_from_u64(seed);
        let writer = Writer { uid: account.uid, client: client.clone(), recipients, random, count };
        let seen = Arc::default();
        Person {
            uid: account.uid,
            http,
            client,
            store,
            watching: tokio::spawn(watch_events(events, Arc::clone(&seen))),
            seen,
            writing: tokio::spawn(writer.run(stop)),
        }
    }

    /// Waits until everything that was written is settled.
    pub(super) async fn settle(&mut self) -> Result<Vec<Acknowledged>> {
        let late = |_| Failure::new(format!("{}: messages were not settled within {PATIENCE:?}", self.uid));
        timeout(PATIENCE, &mut self.writing).await.map_err(late)??
    }

    /// Waits until the device has seen this many messages: a group's rows may follow after the answer (I5).
    pub(super) async fn wait_for(&self, messages: usize) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while self.seen.load(Ordering::Relaxed) < messages {
            if Instant::now() > deadline {
                let seen = self.seen.load(Ordering::Relaxed);
                return Err(Failure::new(format!(
                    "{}: {seen} of {messages} messages came within {PATIENCE:?}",
                    self.uid
                )));
            }
            sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Looks at the inbox from all sides, and lets go of the device.
    pub(super) async fn record(self, acknowledged: Vec<Acknowledged>) -> Result<Record> {
        let ranged = everything(&self.http).await?;
        let last = ranged.last().map_or(0, |row| row.message_id);
        let fetched = fetch(&self.http, last).await?;
        drop(self.client);
        let watched = self.watching.await?;
        Ok(Record { uid: self.uid, acknowledged, watched, followed: self.store.rows(), fetched, ranged })
    }
}

/// What a new device gets by heartbeat.
async fn fetch(http: &Http, last: u64) -> Result<Vec<Entry>> {
    let store = MemoryStore::new();
    let (_client, mut events) = Client::start(http.clone(), store.clone(), options(last));
    let catch_up = async { while store.position().cursor < last && events.next().await.is_some() {} };
    timeout(PATIENCE, catch_up).await.map_err(|_| Failure::new("a new device did not catch up in time"))?;
    Ok(store.rows())
}

/// The hand that writes.
struct Writer {
    uid: u32,
    client: Client,
    recipients: Vec<Recipient>,
    random: StdRng,
    count: Arc<AtomicUsize>,
}

impl Writer {
    async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<Vec<Acknowledged>> {
        let mut acknowledged = Vec::new();
        let mut unsettled = FuturesUnordered::new();
        let mut number = 0_u64;
        while !*stop.borrow() {
            let pause = LONGEST_PAUSE.mul_f64(self.random.random_range(0.0..1.0));
            tokio::select! {
                () = sleep(pause), if unsettled.len() < IN_FLIGHT => {
                    number += 1;
                    let draft = self.draft(number);
                    let client = self.client.clone();
                    unsettled.push(async move { (client.send(draft.clone()).await, draft) });
                }
                Some((outcome, draft)) = unsettled.next() => {
                    acknowledged.push(settled(outcome, draft)?);
                    self.count.fetch_add(1, Ordering::Relaxed);
                }
                _ = stop.changed() => {}
            }
        }
        while let Some((outcome, draft)) = unsettled.next().await {
            acknowledged.push(settled(outcome, draft)?);
        }
        self.repeat_some(&acknowledged).await?;
        Ok(acknowledged)
    }

    fn draft(&mut self, number: u64) -> Draft {
        let to = self.recipients[self.random.random_range(0..self.recipients.len())];
        let mut bytes = [0; 16];
        self.random.fill_bytes(&mut bytes);
        let client_id = uuid::Builder::from_random_bytes(bytes).into_uuid();
        Draft::text_as(client_id, to, &format!("{} wrote {number}", self.uid))
    }

    /// The same again gets the first answer (I4), whatever happened to the server in between.
    async fn repeat_some(&mut self, acknowledged: &[Acknowledged]) -> Result<()> {
        for _ in 0..20.min(acknowledged.len()) {
            let first = &acknowledged[self.random.random_range(0..acknowledged.len())];
            let again = self.client.send(first.draft.clone()).await?;
            if again.message_id != first.message_id {
                let (before, now) = (first.message_id, again.message_id);
                return Err(Failure::new(format!("{}: a repeated send got {now}, first {before}", self.uid)));
            }
        }
        Ok(())
    }
}

fn settled(outcome: std::result::Result<Sent, Error>, draft: Draft) -> Result<Acknowledged> {
    match outcome {
        Ok(sent) => Ok(Acknowledged { message_id: sent.message_id, draft }),
        Err(error) => Err(Failure::new(format!("a message was refused for good: {error}"))),
    }
}

async fn watch_events(mut events: Events, seen: Arc<AtomicUsize>) -> Watched {
    let mut watched = Watched::default();
    while let Some(event) = events.next().await {
        match event {
            Event::Rows(rows) => {
                watched.rows.extend(rows.iter().map(|row| row.message_id));
                let messages = rows.iter().filter(|row| row.kind == Kind::Message).count();
                seen.fetch_add(messages, Ordering::Relaxed);
            }
            Event::Cleared { .. } => watched.cleared += 1,
            _ => {}
        }
    }
    watched
}

/// All rows of a person, page by page.
async fn everything(http: &Http) -> Result<Vec<Entry>> {
    let mut rows = Vec::new();
    let mut start = RangeEnd::Min;
    loop {
        let page = http.range(&RangeQuery { start, ..RangeQuery::after(0) }).await?;
        rows.extend(page.rows);
        match page.next_start {
            Some(next) => start = RangeEnd::At(next),
            None => return Ok(rows),
        }
    }
}

/// Quick to come back: the server is away for moments only.
fn options(seed: u64) -> Options {
    Options {
        first_retry: Duration::from_millis(20),
        longest_retry: Duration::from_millis(500),
        seed: Some(seed),
        ..Options::default()
    }
}
