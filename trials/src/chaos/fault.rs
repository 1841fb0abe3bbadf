//! A fault run: users under load, a server that ends again and again at seeded moments, and the comparison afterwards.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use indicatif::ProgressBar;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tidemark_client::{Account, Http, Recipient};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::Fault;
use super::check::{Acknowledged, Members, broken_promises};
use super::person::Person;
use crate::server::Server;
use crate::{Failure, Result, users};

pub(super) const USERS: usize = 8;
const GROUPS: usize = 2;
/// Out of eight, so that the groups overlap and somebody is in neither.
const MEMBERS: usize = 5;

/// One fault run. `bar` shows seconds.
#[derive(Clone, Debug)]
pub struct FaultRun {
    /// How the server ends.
    pub fault: Fault,
    /// Decides the moments, and who writes to whom.
    pub seed: u64,
    /// How long users write.
    pub length: Duration,
    /// Where progress is shown; [`ProgressBar::hidden`] where nobody looks.
    pub bar: ProgressBar,
}

/// What a fault run went through.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// How often the server ended.
    pub faults: usize,
    /// Messages that were acknowledged.
    pub acknowledged: usize,
    /// Rows that were compared.
    pub rows: usize,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { faults, acknowledged, rows } = self;
        write!(f, "{faults} faults, {acknowledged} messages acknowledged, {rows} rows compared")
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
        let groups = make_groups(&http, &accounts).await?;
        let (stop, stopped) = watch::channel(false);
        let count = Arc::new(AtomicUsize::new(0));
        let mut users = Vec::new();
        for account in &accounts {
            let to = recipients(account.uid, &accounts, &groups);
            let (stopped, count) = (stopped.clone(), Arc::clone(&count));
            users.push(Person::begin(&http, account, to, random.random(), stopped, count));
        }
        let (server, faults) = self.break_it(server, binary, data, &mut random, &count).await?;
        stop.send_replace(true);
        self.bar.set_message("waiting until everything has arrived");
        let rows = compare(users, &groups).await?;
        let ended = server.stop().await?;
        if !ended.success() {
            return Err(Failure::new(format!("asked to stop, the server ended with {ended}")));
        }
        Ok(Summary { faults, acknowledged: count.load(Ordering::Relaxed), rows })
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
                Fault::Kill => server.kill().await?,
                Fault::Stop => {
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

pub(super) async fn make_groups(server: &Http, accounts: &[Account]) -> Result<Members> {
    let mut groups = HashMap::new();
    for n in 0..GROUPS {
        let members: Vec<u32> = accounts.iter().cycle().skip(n * 2).take(MEMBERS).map(|a| a.uid).collect();
        let owner = accounts.iter().find(|account| account.uid == members[0]);
        let owner = owner.ok_or_else(|| Failure::new("a group needs somebody"))?;
        let gid = server.with_token(&owner.token).create_group(&format!("group {n}"), &members[1..]).await?;
        groups.insert(gid, members);
    }
    Ok(groups)
}

/// Everybody, oneself included, and one's groups.
pub(super) fn recipients(uid: u32, accounts: &[Account], groups: &Members) -> Vec<Recipient> {
    let mut own: Vec<u64> =
        groups.iter().filter(|(_, members)| members.contains(&uid)).map(|(gid, _)| *gid).collect();
    // A map has no order of its own, and the seed must lead to the same choices.
    own.sort_unstable();
    // About as many to groups as to users: they are where most can go wrong.
    let groups = own.iter().cycle().copied().map(Recipient::Group).take(own.len() * 4);
    accounts.iter().map(|account| Recipient::User(account.uid)).chain(groups).collect()
}

/// Waits until everything has arrived, and compares it; answers how many rows that were.
pub(super) async fn compare(mut users: Vec<Person>, groups: &Members) -> Result<usize> {
    let mut acknowledged: Vec<Vec<Acknowledged>> = Vec::new();
    for person in &mut users {
        acknowledged.push(person.settle().await?);
    }
    let mut expected: HashMap<u32, usize> = HashMap::new();
    for (person, messages) in users.iter().zip(&acknowledged) {
        for message in messages {
            let everybody: HashSet<u32> = message.everybody(person.uid, groups);
            for uid in everybody {
                *expected.entry(uid).or_default() += 1;
            }
        }
    }
    for person in &users {
        person.wait_for(expected.get(&person.uid).copied().unwrap_or_default()).await?;
    }
    let mut records = Vec::new();
    for (person, messages) in users.into_iter().zip(acknowledged) {
        records.push(person.record(messages).await?);
    }
    let broken = broken_promises(&records, groups);
    if broken.is_empty() {
        return Ok(records.iter().map(|record| record.ranged.len()).sum());
    }
    let shown = broken.iter().take(20).cloned().collect::<Vec<_>>().join("\n  ");
    Err(Failure::new(format!("{} promises broke:\n  {shown}", broken.len())))
}
