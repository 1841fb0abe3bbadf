//! One person of a fault run: a device that follows by heartbeat, a hand that writes without pause, and one that does everything else.
//!
//! The first two go through the library's client, as other programs do: it reconnects by itself and repeats a message under the
//! same `client_id` until it is settled. The other hand does one thing after the other, and repeats each until it has an answer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tidemark_client::{
    Account, Client, Draft, Entry, Error, Event, Events, Http, Kind, MemoryStore, Options, RangeEnd,
    RangeQuery, Sent,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::action::{RowPlace, lock, made_by_people, name};
use super::contacts::Contacts;
use super::record::{Acknowledged, Done, PersonRecord, Settled, Watched, is_message};
use crate::{Failure, Result};

/// Messages that one person may have unsettled.
const IN_FLIGHT: usize = 8;
/// The longest pause between two messages: enough load to be in the middle of something at any moment, and little
/// enough that minutes of it can be compared.
const LONGEST_PAUSE: Duration = Duration::from_millis(40);

/// How long anything may take after the last fault before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// A person while the fault run runs.
pub(super) struct Participant {
    pub(super) uid: u32,
    http: Http,
    /// Keeps the device alive.
    _client: Client,
    store: MemoryStore,
    seen: Arc<AtomicUsize>,
    watched: Arc<Mutex<Watched>>,
    writing: JoinHandle<Result<Vec<Acknowledged>>>,
    doing: JoinHandle<Result<Vec<Done>>>,
    /// The group that this person changes, if there is one.
    changing: Option<u64>,
}

impl Participant {
    /// Connects, and writes to random ones of the recipients and does everything else until `stop` says so; counts the messages that
    /// are acknowledged.
    pub(super) fn begin(
        server: &Http,
        account: &Account,
        known: Contacts,
        seed: u64,
        stop: watch::Receiver<bool>,
        count: Arc<AtomicUsize>,
    ) -> Participant {
        let http = server.with_token(&account.token);
        let store = MemoryStore::new();
        let (client, events) = Client::start(http.clone(), store.clone(), options(seed));
        let (uid, changing) = (account.uid, known.changing.as_ref().map(|changing| changing.gid));
        let known = Arc::new(Mutex::new(known));
        let mut random = StdRng::seed_from_u64(seed);
        let doer = Doer {
            http: http.clone(),
            known: Arc::clone(&known),
            random: StdRng::seed_from_u64(random.random()),
        };
        let writer = MessageWriter { uid, client: client.clone(), known: Arc::clone(&known), random, count };
        let (seen, watched) = (Arc::default(), Arc::default());
        tokio::spawn(watch_events(events, known, Arc::clone(&seen), Arc::clone(&watched)));
        Participant {
            uid,
            http,
            _client: client,
            store,
            watched,
            seen,
            writing: tokio::spawn(writer.run(stop.clone())),
            doing: tokio::spawn(doer.run(stop)),
            changing,
        }
    }

    /// Waits until everything that was written and done is settled.
    pub(super) async fn settle(&mut self) -> Result<Settled> {
        let late = |_| Failure::new(format!("{}: messages were not settled within {PATIENCE:?}", self.uid));
        let acknowledged = timeout(PATIENCE, &mut self.writing).await.map_err(late)???;
        let late = |_| Failure::new(format!("{}: actions were not settled within {PATIENCE:?}", self.uid));
        let done = timeout(PATIENCE, &mut self.doing).await.map_err(late)???;
        Ok(Settled { acknowledged, done })
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

    /// Looks at the inbox from all sides.
    pub(super) async fn look(&self, settled: Arc<Settled>) -> Result<PersonRecord> {
        let ranged = everything(&self.http).await?;
        let last = ranged.last().map_or(0, |row| row.message_id);
        // Rows that come in between, such as how many have read, are not in `ranged`.
        let mut fetched = fetch(&self.http, last).await?;
        fetched.retain(|row| row.message_id <= last);
        let group = match self.changing {
            Some(gid) => Some(self.http.group(gid).await?),
            None => None,
        };
        let mut record = PersonRecord {
            uid: self.uid,
            settled,
            watched: Watched::default(),
            followed: Vec::new(),
            fetched,
            ranged,
            group,
        };
        self.look_at_device(&mut record);
        Ok(record)
    }

    /// Looks at the device that was there all the time, after the rest: what it lacks then is not on its way.
    fn look_at_device(&self, record: &mut PersonRecord) {
        record.watched = lock(&self.watched).clone();
        record.followed = self.store.rows();
    }
}

/// The rows that a new device gets by heartbeat.
pub(super) async fn fetch(http: &Http, last: u64) -> Result<Vec<Entry>> {
    let store = MemoryStore::new();
    let (_client, mut events) = Client::start(http.clone(), store.clone(), options(last));
    let catch_up = async { while store.position().cursor < last && events.next().await.is_some() {} };
    timeout(PATIENCE, catch_up).await.map_err(|_| Failure::new("a new device did not catch up in time"))?;
    Ok(store.rows())
}

/// The hand that writes.
struct MessageWriter {
    uid: u32,
    client: Client,
    known: Arc<Mutex<Contacts>>,
    random: StdRng,
    count: Arc<AtomicUsize>,
}

impl MessageWriter {
    async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<Vec<Acknowledged>> {
        let mut acknowledged = Vec::new();
        let mut unsettled = FuturesUnordered::new();
        let mut number = 0_u64;
        while !*stop.borrow() {
            let pause = LONGEST_PAUSE.mul_f64(self.random.random_range(0.0..1.0));
            tokio::select! {
                () = sleep(pause), if unsettled.len() < IN_FLIGHT => {
                    number += 1;
                    let (draft, quoted) = self.draft(number);
                    let client = self.client.clone();
                    unsettled.push(async move { (client.send(draft.clone()).await, draft, quoted) });
                }
                Some((outcome, draft, quoted)) = unsettled.next() => {
                    let Some(message) = settled(outcome, draft, quoted)? else { continue };
                    acknowledged.push(message);
                    self.count.fetch_add(1, Ordering::Relaxed);
                }
                _ = stop.changed() => {}
            }
        }
        while let Some((outcome, draft, quoted)) = unsettled.next().await {
            acknowledged.extend(settled(outcome, draft, quoted)?);
        }
        self.repeat_some(&acknowledged).await?;
        Ok(acknowledged)
    }

    fn draft(&mut self, number: u64) -> (Draft, Option<RowPlace>) {
        let known = lock(&self.known);
        let to = known.recipients[self.random.random_range(0..known.recipients.len())];
        let quoted = known.quoted(to, &mut self.random).filter(|_| self.random.random_bool(0.2));
        drop(known);
        let (key, text) = (name(&mut self.random), format!("{} wrote {number}", self.uid));
        match quoted {
            Some(place) => (Draft::reply_as(key, to, &text, place.message_id), quoted),
            None => (Draft::text_as(key, to, &text), None),
        }
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

/// A message that has its answer; `None`: what it replies to was taken back or deleted meanwhile.
fn settled(
    outcome: std::result::Result<Sent, Error>,
    draft: Draft,
    quoted: Option<RowPlace>,
) -> Result<Option<Acknowledged>> {
    match outcome {
        Ok(sent) => Ok(Some(Acknowledged { message_id: sent.message_id, draft, quoted })),
        Err(error) if quoted.is_some() && matches!(error.code(), Some("recalled" | "no_message")) => Ok(None),
        Err(error) => Err(Failure::new(format!("a message was refused for good: {error}"))),
    }
}

/// The hand that does everything else, one thing after the other.
struct Doer {
    http: Http,
    known: Arc<Mutex<Contacts>>,
    random: StdRng,
}

impl Doer {
    async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<Vec<Done>> {
        let mut done = Vec::new();
        let mut number = 0_u64;
        let kinds: Vec<&Kind> = made_by_people().collect();
        while !*stop.borrow() {
            let pause = LONGEST_PAUSE.mul_f64(self.random.random_range(0.0..1.0));
            tokio::select! {
                () = sleep(pause) => {}
                _ = stop.changed() => return Ok(done),
            }
            number += 1;
            let kind = kinds[self.random.random_range(0..kinds.len())];
            let action = lock(&self.known).action(kind, number, &mut self.random);
            let Some(action) = action else { continue };
            let key = name(&mut self.random);
            let outcome = action.insist(&self.http, key).await?;
            done.push(Done { action, key, outcome });
        }
        Ok(done)
    }
}

async fn watch_events(
    mut events: Events,
    known: Arc<Mutex<Contacts>>,
    seen: Arc<AtomicUsize>,
    watched: Arc<Mutex<Watched>>,
) {
    while let Some(event) = events.next().await {
        match event {
            Event::Rows(rows) => {
                lock(&watched).rows.extend(rows.iter().map(|row| row.message_id));
                let mut known = lock(&known);
                rows.iter().for_each(|row| known.take(row));
                seen.fetch_add(rows.iter().filter(|row| is_message(row)).count(), Ordering::Relaxed);
            }
            Event::Cleared { .. } => lock(&watched).cleared += 1,
            _ => {}
        }
    }
}

/// All rows of a person, page by page.
pub(super) async fn everything(http: &Http) -> Result<Vec<Entry>> {
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
pub(super) fn options(seed: u64) -> Options {
    Options {
        first_retry: Duration::from_millis(20),
        longest_retry: Duration::from_millis(500),
        seed: Some(seed),
        ..Options::default()
    }
}
