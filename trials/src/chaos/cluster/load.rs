//! Callers of a cluster: they ask for numbers in every way there is, for a few uids that all of them want, and write
//! down what they were told. Failures that pass are part of a fault; any other ends the fault run.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use seqsvr_client::{CallError, Client};
use seqsvr_core::Uid;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::history::{AnswerHistory, Bound, Granted, Span};
use crate::{Failure, Result};

/// Callers at the same time.
const CALLERS: usize = 12;

/// How long a call may take: shorter than some faults, so that some fail.
const PATIENCE: Duration = Duration::from_secs(1);

/// The callers at work. Dropping it ends them.
#[derive(Debug)]
pub struct Load {
    callers: JoinSet<Result<AnswerHistory>>,
    stop: watch::Sender<bool>,
}

/// The uids that are asked for: spread over the space, neighbours, and both sides of borders of sections.
pub(super) fn uids() -> Vec<Uid> {
    let spread = (0..24).map(|part| part * (u32::MAX / 24));
    let special = [1, 2, 99_999, 100_000, 100_001, 2_147_499_999, 2_147_500_000, u32::MAX - 1, u32::MAX];
    spread.chain(special).map(Uid::new).collect()
}

impl Load {
    /// Starts a dozen callers, which share `clients`.
    pub fn begin(clients: &[Client], seed: u64) -> Load {
        let (stop, stopped) = watch::channel(false);
        let began = Instant::now();
        let mut callers = JoinSet::new();
        for (caller, client) in (0..CALLERS).zip(clients.iter().cycle()) {
            let caller = Caller {
                client: client.within(PATIENCE),
                random: StdRng::seed_from_u64(seed.wrapping_add(caller as u64)),
                uids: uids(),
                began,
                reported: AnswerHistory::default(),
            };
            callers.spawn(caller.call(stopped.clone()));
        }
        Load { callers, stop }
    }

    /// Why a caller gave up, if one did.
    pub fn broken(&mut self) -> Option<Failure> {
        match self.callers.try_join_next()? {
            Ok(Err(failure)) => Some(failure),
            Ok(Ok(_)) => Some(Failure::new("a caller ended before it was told to")),
            Err(error) => Some(error.into()),
        }
    }

    /// Ends the calls, and answers with what all of them were told.
    ///
    /// # Errors
    /// A caller met a failure that does not pass.
    pub async fn end(mut self) -> Result<AnswerHistory> {
        self.stop.send_replace(true);
        let mut all = AnswerHistory::default();
        while let Some(reported) = self.callers.join_next().await {
            all.join(reported??);
        }
        Ok(all)
    }
}

struct Caller {
    client: Client,
    random: StdRng,
    uids: Vec<Uid>,
    began: Instant,
    reported: AnswerHistory,
}

impl Caller {
    async fn call(mut self, stopped: watch::Receiver<bool>) -> Result<AnswerHistory> {
        while !*stopped.borrow() {
            match self.random.random_range(0..10) {
                0..5 => self.next(1).await?,
                5..7 => {
                    let count = self.random.random_range(2..=200);
                    self.next(count).await?;
                }
                7..9 => self.next_each().await?,
                _ => self.current().await?,
            }
            sleep(Duration::from_micros(self.random.random_range(0..8_000))).await;
        }
        Ok(self.reported)
    }

    async fn next(&mut self, count: u32) -> Result<()> {
        let uid = *self.uids.choose(&mut self.random).expect("there are uids");
        let asked = self.began.elapsed();
        match self.client.next(uid, count).await {
            Ok(granted) => self.granted(uid, asked, granted.first, granted.last),
            Err(error) => return passing(&error),
        }
        Ok(())
    }

    async fn next_each(&mut self) -> Result<()> {
        let uids = self.some();
        let asked = self.began.elapsed();
        let (numbers, error) = match self.client.next_each(&uids).await {
            Ok(numbers) => (numbers.into_iter().map(Ok).collect(), None),
            Err(error) => (error.numbers, Some(error.first)),
        };
        for (uid, number) in uids.into_iter().zip(numbers) {
            if let Ok(number) = number {
                self.granted(uid, asked, number, number);
            }
        }
        error.map_or(Ok(()), |error| passing(&error))
    }

    async fn current(&mut self) -> Result<()> {
        let uids = self.some();
        let asked = self.began.elapsed();
        match self.client.current(&uids).await {
            Ok(numbers) => {
                let span = Span { asked, answered: self.began.elapsed() };
                for (uid, number) in uids.into_iter().zip(numbers) {
                    let sequence = self.reported.0.entry(uid.get()).or_default();
                    sequence.bounds.push(Bound { span, number });
                }
                Ok(())
            }
            Err(error) => passing(&error.first),
        }
    }

    /// Different ones, in any order.
    fn some(&mut self) -> Vec<Uid> {
        let count = self.random.random_range(2..=self.uids.len());
        self.uids.sample(&mut self.random, count).copied().collect()
    }

    fn granted(&mut self, uid: Uid, asked: Duration, first: u64, last: u64) {
        let span = Span { asked, answered: self.began.elapsed() };
        self.reported.0.entry(uid.get()).or_default().granted.push(Granted { span, first, last });
    }
}

fn passing(error: &CallError) -> Result<()> {
    if error.is_retryable() { Ok(()) } else { Err(Failure::new(error.to_string())) }
}
