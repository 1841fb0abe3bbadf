//! The one thread that owns a replica's state and files, and the handle by which everybody asks it. It takes all
//! questions that wait, answers them from the state, makes their changes durable with one sync, and only then lets the
//! answers out (group commit). After a failed write or sync nothing more is answered (I3); only a full disk is waited for: nothing is
//! answered until a new file has everything.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::directory::Files;
use super::identity::FilesError;
use super::journal;
use super::metrics::Metrics;
use super::state::{Decision, State, StateChange};
use seqsvr_core::clock::{self, Moment};
use seqsvr_core::store::Address;
use seqsvr_core::store::message::{Answer, Question};

/// How often it is noted how far the files reach.
const NOTE_EVERY: Duration = Duration::from_secs(1);

/// How often a full disk is tried anew, at most, and only when somebody asks.
const TRY_EVERY: Duration = Duration::from_secs(1);

/// How much one replica takes at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriterLimits {
    /// Questions that wait for the writer.
    pub(super) queue: usize,
    /// Questions that share one sync.
    pub(super) batch: usize,
    /// Reads that are held back at a time.
    pub(super) waiters: usize,
    /// How long one may be held back.
    pub(super) longest_wait: Duration,
}

impl Default for WriterLimits {
    fn default() -> Self {
        Self { queue: 4_096, batch: 1_024, waiters: 4_096, longest_wait: Duration::from_secs(10) }
    }
}

/// Why a question was not answered. Counts as no answer: it may or may not have taken effect.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// Too many wait.
    #[error("the replica is busy: {0} requests wait already; try again")]
    Busy(usize),
    /// Too many reads are held back.
    #[error("{0} readers wait already; ask again")]
    Waiters(usize),
    /// Its disk is full.
    #[error("the disk of the replica is full; free some space there, and it continues by itself")]
    Full,
    /// It stops, or its storage failed.
    #[error("the replica has stopped; its log says why")]
    Stopped,
}

struct Asked {
    to: Option<Address>,
    question: Question,
    answer: oneshot::Sender<Result<Option<Answer>, Unanswered>>,
}

enum Order {
    Answer(Asked),
    Stop,
}

/// The news that readers wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
struct News {
    /// [`State::revision`].
    revision: u64,
    /// The last one with another table, as far as this process knows.
    table: u64,
}

impl News {
    /// Whether there is news for a reader that knows `revision`: of any kind, or of other changes than releases.
    fn wakes(&self, revision: u64, releases: bool) -> bool {
        // A smaller one: another replica has taken this one's place.
        self.revision != revision && (releases || self.table > revision || self.revision < revision)
    }
}

/// Asks the writer. Cheap to clone.
#[derive(Clone)]
pub(super) struct Asker {
    queue: mpsc::Sender<Order>,
    news: watch::Receiver<News>,
    waiters: Arc<Semaphore>,
    limits: WriterLimits,
    stopping: CancellationToken,
    metrics: Metrics,
}

/// The running writer. It ends when it is told to, or the storage fails.
pub(super) struct ReplicaWriter {
    queue: mpsc::Sender<Order>,
    thread: thread::JoinHandle<Result<(), FilesError>>,
    /// Closed when the thread has ended; `None` once that was seen.
    ended: Option<oneshot::Receiver<()>>,
}

impl ReplicaWriter {
    /// Starts the thread. Reads that wait are let go when `stopping` is cancelled.
    pub(super) fn start(
        state: State,
        files: Files,
        limits: WriterLimits,
        stopping: CancellationToken,
        metrics: Metrics,
    ) -> (Self, Asker) {
        let (queue, questions) = mpsc::channel(limits.queue);
        let (news, changes) = watch::channel(News { revision: state.revision(), table: state.revision() });
        let (ending, ended) = oneshot::channel();
        let waiters = Arc::new(Semaphore::new(limits.waiters));
        let counted = metrics.clone();
        let thread = thread::spawn(move || {
            let _ending: oneshot::Sender<()> = ending;
            let mut writing = Writing {
                state,
                files,
                news,
                noted: Moment::default(),
                full: None,
                metrics: counted,
                limits,
            };
            writing.run(questions)
        });
        let asker = Asker { queue: queue.clone(), news: changes, waiters, limits, stopping, metrics };
        (Self { queue, thread, ended: Some(ended) }, asker)
    }

    /// Waits until the thread has ended.
    pub(super) async fn ended(&mut self) {
        if let Some(ended) = &mut self.ended {
            // The sender is only ever dropped.
            let _ = ended.await;
            self.ended = None;
        }
    }

    /// Answers the questions that were asked before, then ends; later ones are not answered.
    ///
    /// # Errors
    ///
    /// [`FilesError::Io`] when the storage failed.
    pub(super) async fn stop(mut self) -> Result<(), FilesError> {
        // It may have ended already.
        let _ = self.queue.send(Order::Stop).await;
        self.ended().await;
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Asker {
    /// The answer to a question that counts for the first configuration.
    #[cfg(test)]
    pub(super) async fn ask(&self, question: Question) -> Result<Answer, Unanswered> {
        self.call(Some(Address { number: 1, member: 0 }), question).await
    }

    /// The answer, once it is durable. A read may be held back for its wait.
    pub(super) async fn call(&self, to: Option<Address>, question: Question) -> Result<Answer, Unanswered> {
        let Question::Read { revision, wait, releases } = question else {
            return self.once(to, question).await?.ok_or(Unanswered::Stopped);
        };
        let wait = wait.min(self.limits.longest_wait);
        if let Some(answer) = self.once(to, Question::Read { revision, wait, releases }).await? {
            return Ok(answer);
        }
        let Ok(_waits) = self.waiters.try_acquire() else {
            return Err(Unanswered::Waiters(self.limits.waiters));
        };
        let _counted = self.metrics.waits();
        let mut news = self.news.clone();
        let changed = timeout(wait, news.wait_for(|news| news.wakes(revision, releases)));
        tokio::select! {
            // Whether it changed, the time is up, or the writer has ended: the next question finds out.
            _ = changed => {}
            () = self.stopping.cancelled() => return Err(Unanswered::Stopped),
        }
        let read = Question::Read { revision, wait: Duration::ZERO, releases };
        self.once(to, read).await?.ok_or(Unanswered::Stopped)
    }

    async fn once(&self, to: Option<Address>, question: Question) -> Result<Option<Answer>, Unanswered> {
        let (answer, answered) = oneshot::channel();
        self.queue.try_send(Order::Answer(Asked { to, question, answer })).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Unanswered::Busy(self.limits.queue),
            mpsc::error::TrySendError::Closed(_) => Unanswered::Stopped,
        })?;
        answered.await.map_err(|_| Unanswered::Stopped)?
    }
}

/// The thread's own.
struct Writing {
    state: State,
    files: Files,
    news: watch::Sender<News>,
    noted: Moment,
    /// When the disk is tried anew, while it is full: the state has changes that no file has.
    full: Option<Moment>,
    metrics: Metrics,
    limits: WriterLimits,
}

impl Writing {
    fn run(&mut self, mut orders: mpsc::Receiver<Order>) -> Result<(), FilesError> {
        let mut asked = Vec::new();
        let mut next = orders.blocking_recv();
        while let Some(Order::Answer(first)) = next {
            asked.push(first);
            next = loop {
                match orders.try_recv() {
                    Ok(Order::Answer(more)) if asked.len() < self.limits.batch => asked.push(more),
                    Ok(order) => break Some(order),
                    Err(_) => break None,
                }
            };
            self.answer(&mut asked)?;
            if next.is_none() {
                next = orders.blocking_recv();
            }
        }
        self.files.note(true)
    }

    /// When it fails, the answers are dropped with the questions.
    fn answer(&mut self, asked: &mut Vec<Asked>) -> Result<(), FilesError> {
        let now = clock::now();
        if let Some(again) = self.full
            && (now < again || !self.has_room(now)?)
        {
            for Asked { answer, .. } in asked.drain(..) {
                let _ = answer.send(Err(Unanswered::Full));
            }
            return Ok(());
        }
        let mut changes: Vec<StateChange> = Vec::new();
        let mut answers = Vec::with_capacity(asked.len());
        for Asked { to, question, answer } in asked.drain(..) {
            self.metrics.asked(&question);
            let decision: Decision = self.state.call(now, to, &question);
            changes.extend(decision.change);
            answers.push((answer, decision.answer));
        }
        let kept = changes.is_empty() || self.keep(now, &changes)?;
        for (to, answer) in answers {
            // The caller may be gone. Changes that are not kept must not show, not even in a read.
            let _ = to.send(if kept { Ok(answer) } else { Err(Unanswered::Full) });
        }
        Ok(())
    }

    /// Whether the changes are durable; if not, the disk is full.
    fn keep(&mut self, now: Moment, changes: &[StateChange]) -> Result<bool, FilesError> {
        let begun = clock::now();
        let kept = match changes.iter().any(|change| matches!(change, StateChange::Whole(_))) {
            true => self.files.turn(&self.state),
            false => self.files.keep(&journal::batch(changes), &self.state),
        };
        if let Err(full @ FilesError::Full { .. }) = kept {
            tracing::error!(%full, "the disk is full; no request is answered until there is space");
            self.full = Some(now + TRY_EVERY);
            return Ok(false);
        }
        kept?;
        self.metrics.synced(clock::now().since(begun));
        if now.since(self.noted) >= NOTE_EVERY {
            self.files.note(false)?;
            self.noted = now;
        }
        self.tell(
            changes.iter().any(|change| matches!(change, StateChange::Write(_) | StateChange::Whole(_))),
        );
        Ok(true)
    }

    /// Whether a full disk has room again: then a new file has all of the state.
    fn has_room(&mut self, now: Moment) -> Result<bool, FilesError> {
        match self.files.turn(&self.state) {
            Err(FilesError::Full { .. }) => {
                self.full = Some(now + TRY_EVERY);
                return Ok(false);
            }
            turned => turned?,
        }
        tracing::info!("the disk has space again");
        self.full = None;
        self.tell(true);
        Ok(true)
    }

    /// Wakes those that wait for news. `another`: there may be another table.
    fn tell(&self, another: bool) {
        let revision = self.state.revision();
        self.news.send_if_modified(|news| {
            let table = if another { revision } else { news.table };
            let newer = News { revision, table };
            std::mem::replace(news, newer) != newer
        });
    }
}

#[cfg(test)]
mod tests;
