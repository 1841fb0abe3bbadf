//! A random run of two people with ten devices each. Devices go offline and come back, lose answers in the middle, start again over
//! what they have stored, and do every kind of thing, some of it twice. In the end all devices of a person show the same, as does a
//! new one, and both people agree on what they share.

mod compare;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::try_join_all;
use indicatif::ProgressBar;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tidemark_client::{
    Account, Client, Draft, Error, Event, Events, Http, Kind, MemoryStore, Recipient, Sent,
};
use tidemark_test_support::gate::Gate;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::Database;
use super::action::{Action, ActionOutcome, lock, made_by_people, name};
use super::contacts::{Changing, Contacts};
use super::person::options;
use super::view::EntryKey;
use compare::compare;

use crate::servers::Servers;
use crate::{Failure, Result};

/// Devices of each of the two.
const DEVICES: usize = 10;
/// Servers, where there may be several.
const SERVERS: usize = 3;
const PASSWORD: &str = "a password for a trial";
/// Logging in twenty times need not cost much.
const CHEAP_PASSWORDS: (&str, &str) = ("TIDEMARK_ACCOUNTS__PASSWORD_MEMORY_KIB", "8");
/// The longest pause between two steps of a device.
const LONGEST_PAUSE: Duration = Duration::from_millis(60);
/// Messages of one device that may be unsettled, as when it is offline.
const UNSETTLED: usize = 20;
/// How long some devices are away where rows expire.
const AWAY: Duration = Duration::from_secs(25);
/// How long anything may take once every device is online.
const PATIENCE: Duration = Duration::from_secs(60);

/// One run. `bar` shows seconds.
#[derive(Clone, Debug)]
pub struct DevicesRun {
    /// SQLite: one server; PostgreSQL: three.
    pub database: Database,
    /// Decides what is done and when devices are offline.
    pub seed: u64,
    /// How long they do it.
    pub length: Duration,
    /// Where progress is shown; [`ProgressBar::hidden`] where nobody looks.
    pub bar: ProgressBar,
}

/// The counts of a run.
#[derive(Clone, Debug)]
pub struct DevicesSummary {
    /// Actions of each kind that were acknowledged.
    pub done: BTreeMap<String, usize>,
    /// Actions that were refused for good.
    pub refused: usize,
    /// Connections that broke, were cut, or were given up.
    pub cuts: usize,
    /// Actions that were repeated after their answer.
    pub repeated: usize,
    /// How often a device started over.
    pub cleared: usize,
    /// Rows in both inboxes, in the end.
    pub rows: usize,
}

impl fmt::Display for DevicesSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DevicesSummary { done, refused, cuts, repeated, cleared, rows } = self;
        let all: usize = done.values().sum();
        write!(
            f,
            "{all} actions acknowledged ({done:?}), {refused} refused, {repeated} repeated, {cuts} cuts, "
        )?;
        write!(f, "started over {cleared} times, {rows} rows")
    }
}

impl DevicesRun {
    /// Carries it out over fresh data in `folder`.
    ///
    /// # Errors
    /// When devices or people disagree in the end, or when the run itself could not go on.
    pub async fn run(&self, binary: &Path, folder: &Path) -> Result<DevicesSummary> {
        let settings = vec![(CHEAP_PASSWORDS.0, CHEAP_PASSWORDS.1.to_owned())];
        let mut running = Servers::over_files(binary, folder, settings.clone());
        match self.database {
            Database::Sqlite => running.add(None).await?,
            Database::Postgres => running = Servers::start_with(binary, folder, SERVERS, settings).await?,
        }
        let hosts = (0..running.count()).map(|n| Ok(running.server(n)?.host().to_owned()));
        let summary = self.over(&hosts.collect::<Result<Vec<_>>>()?, false).await?;
        running.stop_all().await?;
        Ok(summary)
    }

    /// The same over servers that somebody else has started (`HOST:PORT`). `rows_expire`: devices are away for so long that they miss some
    /// that do.
    ///
    /// # Errors
    /// As [`DevicesRun::run`].
    pub async fn over(&self, hosts: &[String], rows_expire: bool) -> Result<DevicesSummary> {
        let mut random = StdRng::seed_from_u64(self.seed);
        let http = Http::new(&format!("http://{}", hosts[0]))?;
        let accounts = [http.sign_up("ann", PASSWORD).await?, http.sign_up("bob", PASSWORD).await?];
        let known = known(&http, &accounts).await?;
        let mut devices = Vec::new();
        for n in 0..2 * DEVICES {
            let host = &hosts[n % hosts.len()];
            let whose = n % 2;
            let at = Http::new(&format!("http://{host}"))?;
            let account = at.log_in(&accounts[whose].name, PASSWORD).await?;
            let seed = random.random();
            let device = Device::start(host, account, known[whose].clone(), seed, self.length).await?;
            let leaves = Instant::now() + self.length.mul_f64(random.random_range(0.0..0.3));
            let leaves = Some(leaves).filter(|_| rows_expire && n % 3 == 0);
            devices.push(Device { rows_expire, leaves, ..device });
        }
        self.bar.set_message("twenty devices do what they like");
        let devices = try_join_all(devices.into_iter().map(Device::live)).await?;
        self.bar.set_message("comparing what they show");
        let owners = accounts.each_ref().map(|account| http.with_token(&account.token));
        let rows = compare(&owners, &accounts, &devices).await?;
        let mut summary =
            DevicesSummary { done: BTreeMap::new(), refused: 0, cuts: 0, repeated: 0, cleared: 0, rows };
        for device in devices {
            summary.refused += device.refused;
            summary.cuts += device.cuts;
            summary.repeated += device.repeated;
            summary.cleared += device.cleared.load(Ordering::Relaxed);
            for (kind, count) in device.done {
                *summary.done.entry(kind.as_str().to_owned()).or_default() += count;
            }
        }
        Ok(summary)
    }
}

/// The people and groups that each of the two knows: both people, a group that stays as it is, and one that does not.
async fn known(http: &Http, accounts: &[Account; 2]) -> Result<[Contacts; 2]> {
    let [ann, bob] = accounts.each_ref();
    let anns = http.with_token(&ann.token);
    let stays = anns.create_group("both", &[bob.uid]).await?;
    let changes = anns.create_group("changing", &[bob.uid]).await?;
    let of = |me: &Account, other: &Account| Contacts {
        uid: me.uid,
        recipients: vec![
            Recipient::User(other.uid),
            Recipient::User(other.uid),
            Recipient::User(me.uid),
            Recipient::Group(stays),
            Recipient::Group(changes),
        ],
        fickle: vec![other.uid],
        changing: Some(Changing { gid: changes, lasting: vec![other.uid], passing: vec![other.uid] }),
        is_private: true,
        ..Contacts::default()
    };
    Ok([of(ann, bob), of(bob, ann)])
}

/// A device, and the hand that uses it.
struct Device {
    uid: u32,
    gate: Gate,
    http: Http,
    client: Client,
    store: MemoryStore,
    known: Arc<Mutex<Contacts>>,
    random: StdRng,
    until: Instant,
    sends: JoinSet<(Draft, std::result::Result<Sent, Error>)>,
    /// Without an answer so far.
    unsettled: Vec<(Action, Uuid)>,
    /// With an answer that names a row.
    settled: Vec<(Action, Uuid, Sent)>,
    messages: Vec<(Draft, Sent)>,
    done: HashMap<Kind, usize>,
    number: u64,
    refused: usize,
    cuts: usize,
    repeated: usize,
    /// Whether rows expire, and with them the answers to what is repeated.
    rows_expire: bool,
    /// What was repeated and got another answer: the name and the first answer.
    anew: Vec<(EntryKey, Sent)>,
    cleared: Arc<AtomicUsize>,
    /// When it goes offline for long, and until when it is.
    leaves: Option<Instant>,
    away: Option<Instant>,
}

impl Device {
    async fn start(
        host: &str,
        account: Account,
        known: Contacts,
        seed: u64,
        length: Duration,
    ) -> Result<Device> {
        let gate = Gate::before(host).await;
        let http = Http::new(&format!("http://{}", gate.address()))?.with_token(&account.token);
        let (store, known) = (MemoryStore::new(), Arc::new(Mutex::new(known)));
        let cleared = Arc::new(AtomicUsize::new(0));
        Ok(Device {
            uid: account.uid,
            client: follow(&http, &store, &known, &cleared, seed),
            gate,
            http,
            store,
            known,
            random: StdRng::seed_from_u64(seed),
            until: Instant::now() + length,
            sends: JoinSet::new(),
            unsettled: Vec::new(),
            settled: Vec::new(),
            messages: Vec::new(),
            done: HashMap::new(),
            // Texts of two devices differ.
            number: seed >> 32 << 20,
            refused: 0,
            cuts: 0,
            repeated: 0,
            rows_expire: false,
            anew: Vec::new(),
            cleared,
            leaves: None,
            away: None,
        })
    }

    /// Does things until the time is over, and then goes online and finishes.
    async fn live(mut self) -> Result<Device> {
        while Instant::now() < self.until {
            self.step().await?;
            self.collect(false).await?;
            sleep(LONGEST_PAUSE.mul_f64(self.random.random_range(0.0..1.0))).await;
        }
        self.gate.open().await;
        self.collect(true).await?;
        while let Some((action, key)) = self.unsettled.pop() {
            match action.insist(&self.http, key).await? {
                ActionOutcome::Done(sent) => self.settle(action, key, sent),
                ActionOutcome::Refused | ActionOutcome::Unknown => self.refused += 1,
            }
        }
        Ok(self)
    }

    async fn step(&mut self) -> Result<()> {
        if self.leaves.take_if(|at| *at < Instant::now()).is_some() {
            self.cuts += 1;
            self.gate.shut().await;
            self.away = Some(Instant::now() + AWAY);
        }
        if self.away.take_if(|until| *until < Instant::now()).is_some() {
            self.gate.open().await;
        }
        match self.random.random_range(0..100) {
            0..14 if self.away.is_some() => {}
            0..3 => {
                self.cuts += 1;
                self.gate.shut().await;
            }
            3..9 => self.gate.open().await,
            9..12 => {
                self.cuts += 1;
                let (to_server, to_client) =
                    (self.random.random_range(200..20_000), self.random.random_range(1..20_000));
                self.gate.break_after(to_server, to_client);
            }
            12..14 => {
                self.cuts += 1;
                let seed = self.random.random();
                // Messages that it had not settled go out over the old one until then.
                self.client = follow(&self.http, &self.store, &self.known, &self.cleared, seed);
            }
            14..40 => self.say(),
            40..45 => self.again().await?,
            45..52 => {
                if let Some((action, key)) = self.unsettled.pop() {
                    self.attempt(action, key).await?;
                }
            }
            _ => {
                let kinds: Vec<&Kind> = made_by_people().collect();
                let kind = kinds[self.random.random_range(0..kinds.len())];
                self.number += 1;
                let action = lock(&self.known).action(kind, self.number, &mut self.random);
                if let Some(action) = action {
                    let key = name(&mut self.random);
                    self.attempt(action, key).await?;
                }
            }
        }
        Ok(())
    }

    /// Sends a message, which waits while the device is offline.
    fn say(&mut self) {
        if self.sends.len() >= UNSETTLED {
            return;
        }
        self.number += 1;
        let known = lock(&self.known);
        let to = known.recipients[self.random.random_range(0..known.recipients.len())];
        let quoted = known.quoted(to, &mut self.random).filter(|_| self.random.random_bool(0.3));
        drop(known);
        let text = format!("{} wrote {}", self.uid, self.number);
        let key = name(&mut self.random);
        let draft = match quoted {
            Some(quoted) => Draft::reply_as(key, to, &text, quoted.message_id),
            None => Draft::text_as(key, to, &text),
        };
        let client = self.client.clone();
        self.sends.spawn(async move { (draft.clone(), client.send(draft).await) });
    }

    async fn attempt(&mut self, action: Action, key: Uuid) -> Result<()> {
        match action.attempt(&self.http, key).await {
            Ok(sent) => self.settle(action, key, sent),
            Err(error) if error.is_retryable() => self.unsettled.push((action, key)),
            Err(error) => {
                if matches!(
                    error.code(),
                    None | Some("client_id_reused" | "internal" | "rejected" | "not_yours")
                ) {
                    return Err(Failure::new(format!("{action:?} was refused: {error}")));
                }
                self.refused += 1;
            }
        }
        Ok(())
    }

    fn settle(&mut self, action: Action, key: Uuid, sent: Option<Sent>) {
        *self.done.entry(action.kind()).or_default() += 1;
        if let Some(sent) = sent {
            self.settled.push((action, key, sent));
        }
    }

    /// Does something a second time that has its answer; the answer is the same (I4).
    async fn again(&mut self) -> Result<()> {
        self.repeated += 1;
        if self.random.random_bool(0.5) && !self.messages.is_empty() {
            let (draft, first) = &self.messages[self.random.random_range(0..self.messages.len())];
            if let Ok(again) = self.http.send(draft).await
                && again != *first
            {
                let key = (self.uid, draft.client_id);
                self.anew.push((key, first.clone()));
            }
        } else if !self.settled.is_empty() {
            let at = self.random.random_range(0..self.settled.len());
            let (action, key, first) = self.settled[at].clone();
            // A wish that was fulfilled already stored nothing under its key.
            if matches!(action, Action::Befriend { .. }) {
                return Ok(());
            }
            match action.attempt(&self.http, key).await {
                Ok(Some(again)) if again != first => self.anew.push(((self.uid, key), first)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes the answers that have come; `all`: waits for those that have not.
    async fn collect(&mut self, all: bool) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let next = if all {
                let next = tokio::time::timeout_at(deadline, self.sends.join_next()).await;
                next.map_err(|_| Failure::new(format!("{}: messages were not settled in time", self.uid)))?
            } else {
                self.sends.try_join_next()
            };
            let Some(next) = next else { return Ok(()) };
            match next? {
                (draft, Ok(sent)) => {
                    *self.done.entry(Kind::Message).or_default() += 1;
                    self.messages.push((draft, sent));
                }
                // Its device was started again: as programs do, it goes out once more.
                (draft, Err(Error::Stopped)) => {
                    let client = self.client.clone();
                    self.sends.spawn(async move { (draft.clone(), client.send(draft).await) });
                }
                (_, Err(Error::Refused(_))) => self.refused += 1,
                (draft, Err(error)) => return Err(Failure::new(format!("{draft:?}: {error}"))),
            }
        }
    }

    /// Names of rows that the server has acknowledged, and their ids.
    fn acknowledged(&self) -> impl Iterator<Item = (EntryKey, u64)> {
        let messages = self.messages.iter().map(|(draft, sent)| (draft.client_id, sent.message_id));
        let said = |(action, key, sent): &(Action, Uuid, Sent)| match action {
            Action::Post { .. } | Action::Comment { .. } => Some((*key, sent.message_id)),
            _ => None,
        };
        messages.chain(self.settled.iter().filter_map(said)).map(|(key, id)| ((self.uid, key), id))
    }
}

/// Starts a client that stays in step and remembers what it is told.
fn follow(
    http: &Http,
    store: &MemoryStore,
    known: &Arc<Mutex<Contacts>>,
    cleared: &Arc<AtomicUsize>,
    seed: u64,
) -> Client {
    let (client, events) = Client::start(http.clone(), store.clone(), options(seed));
    tokio::spawn(remember(events, Arc::clone(known), Arc::clone(cleared)));
    client
}

async fn remember(mut events: Events, known: Arc<Mutex<Contacts>>, cleared: Arc<AtomicUsize>) {
    while let Some(event) = events.next().await {
        match event {
            Event::Rows(rows) => {
                let mut known = lock(&known);
                rows.iter().for_each(|row| known.take(row));
            }
            Event::Cleared { .. } => _ = cleared.fetch_add(1, Ordering::Relaxed),
            _ => {}
        }
    }
}
