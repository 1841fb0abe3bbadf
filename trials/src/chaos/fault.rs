//! A fault run: users under load, a server that ends again and again at seeded moments, and the comparison afterwards.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use indicatif::ProgressBar;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tidemark_client::Kind;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::ChatFault;
use super::action::{ActionOutcome, made_by_people};
use super::check::broken_promises;
use super::person::{Participant, Settled};
use super::stage::{Stage, USERS};
use crate::server::Server;
use crate::{Failure, Result, users};

/// How long anything may take to arrive after the last fault.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at what has arrived.
const PAUSE: Duration = Duration::from_millis(250);

/// One fault run. `bar` shows seconds.
#[derive(Clone, Debug)]
pub struct FaultRun {
    /// How the server ends.
    pub fault: ChatFault,
    /// Decides the moments, and who writes to whom.
    pub seed: u64,
    /// How long users write.
    pub length: Duration,
    /// Where progress is shown; [`ProgressBar::hidden`] where nobody looks.
    pub bar: ProgressBar,
}

/// The counts of a fault run.
#[derive(Clone, Debug)]
pub struct Summary {
    /// How often the server ended.
    pub faults: usize,
    /// Messages that were acknowledged.
    pub acknowledged: usize,
    /// Everything else that was acknowledged, by the kind of its row.
    pub done: BTreeMap<String, usize>,
    /// Rows that were compared.
    pub rows: usize,
}

impl Summary {
    /// Kinds of rows that people make and nobody made.
    pub fn never_done(&self) -> Vec<&'static Kind> {
        made_by_people().filter(|kind| !self.done.contains_key(kind.as_str())).collect()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { faults, acknowledged, done, rows } = self;
        write!(
            f,
            "{faults} faults, {acknowledged} messages acknowledged, {rows} rows compared; also done: {done:?}"
        )
    }
}

impl FaultRun {
    /// Carries it out over fresh data in `data`.
    ///
    /// # Errors
    /// When a promise broke, with all that broke, or when the fault run itself could not go on.
    pub async fn run(&self, binary: &Path, data: &Path) -> Result<Summary> {
        let mut random = StdRng::seed_from_u64(self.seed);
        let server = start(0, binary, data, &mut random).await?;
        let http = server.http()?;
        let accounts = users::sign_up(&http, "person", USERS).await?;
        let stage = Stage::set(&http, &accounts, &mut random).await?;
        let (stop, stopped) = watch::channel(false);
        let count = Arc::new(AtomicUsize::new(0));
        let mut users = Vec::new();
        for account in &accounts {
            let known = stage.known(account.uid, &accounts);
            let (stopped, count) = (stopped.clone(), Arc::clone(&count));
            users.push(Participant::begin(&http, account, known, random.random(), stopped, count));
        }
        let (server, faults) = self.break_it(server, binary, data, &mut random, &count).await?;
        stop.send_replace(true);
        self.bar.set_message("waiting until everything has arrived");
        let (done, rows) = compare(users, &stage).await?;
        let ended = server.stop().await?;
        if !ended.success() {
            return Err(Failure::new(format!("asked to stop, the server ended with {ended}")));
        }
        Ok(Summary { faults, acknowledged: count.load(Ordering::Relaxed), done, rows })
    }

    /// Ends and restarts the server until the time is over; answers the one that runs then.
    async fn break_it(
        &self,
        mut server: Server,
        binary: &Path,
        data: &Path,
        random: &mut StdRng,
        count: &AtomicUsize,
    ) -> Result<(Server, usize)> {
        let began = Instant::now();
        let mut faults = 0;
        while began.elapsed() < self.length {
            sleep(Duration::from_millis(random.random_range(100..2_000))).await;
            let port = server.port()?;
            match self.fault {
                ChatFault::Kill => server.kill().await?,
                ChatFault::Stop => {
                    let ended = server.stop().await?;
                    if !ended.success() {
                        return Err(Failure::new(format!("asked to stop, the server ended with {ended}")));
                    }
                }
            }
            faults += 1;
            server = start(port, binary, data, random).await?;
            self.bar.set_position(began.elapsed().as_secs());
            self.bar.set_message(format!("{faults} faults, {} acknowledged", count.load(Ordering::Relaxed)));
        }
        Ok((server, faults))
    }
}

/// Starts the server, each time with another number of queues: what one start leaves owed, the next must find.
async fn start(port: u16, binary: &Path, data: &Path, random: &mut StdRng) -> Result<Server> {
    let queues = random.random_range(1..=4_u8).to_string();
    Server::start_with(&[("TIDEMARK_QUEUES__COUNT", queues)], port, binary, data).await
}

/// Waits until everything has arrived and compares it; answers what was done beside sending, and how many rows there are.
pub(super) async fn compare(
    mut users: Vec<Participant>,
    stage: &Stage,
) -> Result<(BTreeMap<String, usize>, usize)> {
    let mut all: Vec<Arc<Settled>> = Vec::new();
    for person in &mut users {
        all.push(Arc::new(person.settle().await?));
    }
    let (mut expected, mut done) = (HashMap::<u32, usize>::new(), BTreeMap::new());
    for (person, settled) in users.iter().zip(&all) {
        for message in &settled.acknowledged {
            for uid in message.everybody(person.uid, &stage.groups) {
                *expected.entry(uid).or_default() += 1;
            }
        }
        for each in settled.done.iter().filter(|done| matches!(done.outcome, ActionOutcome::Done(_))) {
            *done.entry(each.action.kind().as_str().to_owned()).or_default() += 1;
        }
    }
    for person in &users {
        person.wait_for(expected.get(&person.uid).copied().unwrap_or_default()).await?;
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut records = Vec::new();
        for (person, settled) in users.iter().zip(&all) {
            records.push(person.look(Arc::clone(settled)).await?);
        }
        let broken = broken_promises(&records, stage);
        if broken.is_empty() {
            return Ok((done, records.iter().map(|record| record.ranged.len()).sum()));
        }
        if Instant::now() > deadline {
            let shown = broken.iter().take(20).cloned().collect::<Vec<_>>().join("\n  ");
            return Err(Failure::new(format!("{} promises broke:\n  {shown}", broken.len())));
        }
        // Copies that are owed to others may come after the answer to whoever made them.
        sleep(PAUSE).await;
    }
}
