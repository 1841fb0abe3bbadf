//! Everybody of a fault run: from signing up, over the time in which they write and do what people do, to the comparison of what was
//! acknowledged, what devices saw and what is stored.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use indicatif::ProgressBar;
use rand::RngExt;
use rand::rngs::StdRng;
use tidemark_client::{Http, Kind};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::action::{ActionOutcome, made_by_people};
use super::check::broken_promises;
use super::person::Participant;
use super::record::Settled;
use super::stage::{Stage, USERS};
use crate::{Failure, Result, users};

/// How long anything may take to arrive after the last fault.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at what has arrived.
const PAUSE: Duration = Duration::from_millis(250);

/// The counts of a fault run.
#[derive(Clone, Debug)]
pub struct Summary {
    /// How often something was broken.
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

/// See the module.
pub(super) struct Crowd {
    stage: Stage,
    people: Vec<Participant>,
    stop: watch::Sender<bool>,
    acknowledged: Arc<AtomicUsize>,
}

impl Crowd {
    /// Signs everybody up at `server`, and lets them begin. `reach`: where the n-th of them goes.
    pub(super) async fn begin(
        server: &Http,
        random: &mut StdRng,
        reach: impl Fn(usize) -> Result<Http>,
    ) -> Result<Crowd> {
        let accounts = users::sign_up(server, "person", USERS).await?;
        let stage = Stage::set(server, &accounts, random).await?;
        let (stop, stopped) = watch::channel(false);
        let acknowledged = Arc::new(AtomicUsize::new(0));
        let mut people = Vec::new();
        for (n, account) in accounts.iter().enumerate() {
            let known = stage.known(account.uid, &accounts);
            let (stopped, count) = (stopped.clone(), Arc::clone(&acknowledged));
            people.push(Participant::begin(&reach(n)?, account, known, random.random(), stopped, count));
        }
        Ok(Crowd { stage, people, stop, acknowledged })
    }

    /// How many messages were acknowledged so far.
    pub(super) fn acknowledged(&self) -> usize {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Ends their work after so many faults, waits until everything has arrived, and compares it.
    pub(super) async fn end(mut self, faults: usize, bar: &ProgressBar) -> Result<Summary> {
        self.stop.send_replace(true);
        bar.set_message("waiting until everything has arrived");
        let mut all: Vec<Arc<Settled>> = Vec::new();
        for person in &mut self.people {
            all.push(Arc::new(person.settle().await?));
        }
        let (mut expected, mut done) = (HashMap::<u32, usize>::new(), BTreeMap::new());
        for (person, settled) in self.people.iter().zip(&all) {
            for message in &settled.acknowledged {
                for uid in message.everybody(person.uid, &self.stage.groups) {
                    *expected.entry(uid).or_default() += 1;
                }
            }
            for each in settled.done.iter().filter(|done| matches!(done.outcome, ActionOutcome::Done(_))) {
                *done.entry(each.action.kind().as_str().to_owned()).or_default() += 1;
            }
        }
        for person in &self.people {
            person.wait_for(expected.get(&person.uid).copied().unwrap_or_default()).await?;
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut records = Vec::new();
            for (person, settled) in self.people.iter().zip(&all) {
                records.push(person.look(Arc::clone(settled)).await?);
            }
            let broken = broken_promises(&records, &self.stage);
            if broken.is_empty() {
                let rows = records.iter().map(|record| record.ranged.len()).sum();
                return Ok(Summary { faults, acknowledged: self.acknowledged(), done, rows });
            }
            if Instant::now() > deadline {
                return Err(Failure::of(&broken, "promises broke"));
            }
            // Copies that are owed to others may come after the answer to whoever made them.
            sleep(PAUSE).await;
        }
    }
}
