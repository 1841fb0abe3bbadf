//! The one task for each tag that talks to Redis. Calls that wait at the same time share one step of the hash, each
//! with its own part of the numbers, so many callers cost Redis as much as one. Of all processes that share the tag,
//! the one with the claim brings the next segment; the others take numbers meanwhile, or wait and look again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::hash::{Hash, HashError, PrimaryLink};
use super::stock::{Stock, split};
use super::turn::{Ask, HashStep};
use super::{RedisOptions, RedisState};
use crate::range::Range;
use crate::segment::{Source, Supply, Task};
use crate::strategy::{IssueError, Issued};

/// How long to wait before Redis is asked again.
const PAUSE: Duration = Duration::from_millis(5);

/// How long to wait before looking for the segment that another process brings: at first, and at most.
const LOOK_PAUSES: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(32));

/// No more numbers than this are taken in one step for callers that wait together.
const TOGETHER: u64 = 100_000;

/// A caller that waits.
pub(super) struct IssueRequest {
    pub(super) count: u32,
    pub(super) answer: oneshot::Sender<Result<Issued, IssueError>>,
}

/// How long a call is still tried.
struct Patience {
    deadline: Instant,
    /// The next pause before it looks for another process's segment.
    look_pause: Duration,
    /// Redis answered the last attempt that ended.
    answered: bool,
}

pub(super) struct Worker {
    shared: Arc<RedisState>,
    options: RedisOptions,
    hash: Hash,
    stock: Stock,
    requests: mpsc::Receiver<IssueRequest>,
    stop: CancellationToken,
    /// The last number issued; every later one is larger.
    floor: u64,
    /// A segment that was taken under a claim of this life, to be installed.
    ready: Option<(Range, String)>,
    /// The last segment could not be taken.
    failed: bool,
    /// Redis is away, and the task that looks for it.
    away: bool,
    probe: Option<JoinHandle<Result<PrimaryLink, HashError>>>,
}

impl Worker {
    pub(super) fn new(
        shared: Arc<RedisState>,
        options: RedisOptions,
        source: Source,
        requests: mpsc::Receiver<IssueRequest>,
        stop: CancellationToken,
    ) -> Self {
        let key = format!("{}{}", options.prefix, shared.tag);
        // When a process dies with the claim, waiting callers must still get numbers in time.
        let hash = Hash::new(options.urls.clone(), key, options.timeout, options.segment.wait / 2);
        let stock = Stock::new(source, options.segment.clone());
        Self {
            shared,
            options,
            hash,
            stock,
            requests,
            stop,
            floor: 0,
            ready: None,
            failed: false,
            away: false,
            probe: None,
        }
    }
}

impl Task for Worker {
    async fn load(&mut self) -> Result<(), IssueError> {
        match self.stock.source.lock().await.load().await {
            Err(IssueError::Retryable(problem)) => {
                warn!(%problem, "starting without the database; numbers come from Redis until they are used up");
                Ok(())
            }
            loaded => loaded,
        }
    }

    async fn run(mut self) {
        let mut ticks = interval(self.options.segment.retry_longest);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.stop.cancelled() => break,
                request = self.requests.recv() => match request {
                    Some(request) => self.serve(request).await,
                    None => break,
                },
                (supply, life) = self.stock.taken() => {
                    // A failure is told in the status; the claim ends by itself, and then some process tries again.
                    let _ = self.receive(supply, life);
                    self.deliver().await;
                }
                _ = ticks.tick() => {
                    if self.away {
                        self.probe().await;
                    } else {
                        self.deliver().await;
                    }
                    if let Some(done) = self.stock.catch_up().await && !self.away {
                        self.shared.tell(done.err().map(|error| error.to_string()));
                    }
                }
            }
        }
        self.stock.finish().await;
        self.requests.close();
        while let Ok(request) = self.requests.try_recv() {
            let stopped = IssueError::Final(format!("{}: the issuer was shut down", self.shared.tag));
            // The caller may have given up; ignore send errors.
            let _ = request.answer.send(Err(stopped));
        }
    }
}

impl Worker {
    /// Answers a caller and those that wait behind it.
    async fn serve(&mut self, first: IssueRequest) {
        let mut total = u64::from(first.count);
        let mut waiting = vec![first];
        while total < TOGETHER
            && let Ok(request) = self.requests.try_recv()
        {
            total += u64::from(request.count);
            waiting.push(request);
        }
        let mut taken = Vec::new();
        let outcome = self.take(total, &mut taken).await;
        let mut rest = taken.into_iter();
        let mut current: Option<Range> = rest.next();
        for IssueRequest { count, answer } in waiting {
            let mut missing = u64::from(count);
            let mut ranges = Vec::with_capacity(1);
            while missing > 0
                && let Some(range) = current
            {
                let (part, left) = split(range, missing);
                missing -= part.count();
                ranges.push(part);
                current = left.or_else(|| rest.next());
            }
            let result = match (&outcome, missing) {
                (_, 0) => Ok(Issued::new(ranges)),
                (Err(error), _) => Err(error.clone()),
                (Ok(()), _) => Err(IssueError::Retryable(format!("{}: try again", self.shared.tag))),
            };
            let _ = answer.send(result);
        }
    }

    /// Takes `count` numbers; after an error `taken` holds fewer.
    async fn take(&mut self, count: u64, taken: &mut Vec<Range>) -> Result<(), IssueError> {
        let deadline = Instant::now() + self.options.segment.wait;
        let mut patience = Patience { deadline, look_pause: LOOK_PAUSES.0, answered: false };
        let mut missing = count;
        while missing > 0 {
            let Some(range) = self.step(missing, &mut patience).await? else { continue };
            missing -= range.count();
            self.floor = range.last;
            match taken.last_mut() {
                Some(last) if last.last + 1 == range.first => last.last = range.last,
                _ => taken.push(range),
            }
        }
        Ok(())
    }

    /// One step towards `missing` numbers; `None`: look again.
    async fn step(&mut self, missing: u64, patience: &mut Patience) -> Result<Option<Range>, IssueError> {
        if self.away {
            let part = self.through_memory(missing, patience.deadline).await?;
            return if part.is_some() { Ok(part) } else { self.none_yet(patience) };
        }
        let stepped = match self.through_redis_until(missing, patience).await {
            Ok(stepped) => stepped,
            // Of a Redis that has not answered by the deadline the next attempt says so.
            Err(HashError::Busy | HashError::Unanswered(_)) if Instant::now() < patience.deadline => {
                patience.answered = false;
                sleep_until(patience.deadline.min(Instant::now() + PAUSE)).await;
                return Ok(None);
            }
            Err(error) => {
                self.away(error.to_string());
                // The database, which is asked now, has as long as Redis had.
                patience.deadline = Instant::now() + self.options.segment.wait;
                return Ok(None);
            }
        };
        self.back();
        patience.answered = true;
        if stepped.is_none() {
            self.wait(patience.deadline.min(Instant::now() + patience.look_pause)).await?;
            patience.look_pause = LOOK_PAUSES.1.min(patience.look_pause * 2);
            return self.none_yet(patience);
        }
        Ok(stepped)
    }

    /// Looks again, unless the deadline has passed.
    fn none_yet(&self, patience: &Patience) -> Result<Option<Range>, IssueError> {
        if Instant::now() < patience.deadline {
            return Ok(None);
        }
        Err(IssueError::Retryable(format!("{}: no numbers in time; try again", self.shared.tag)))
    }

    /// The same as `through_redis`, given up at the deadline. A Redis that answered until then merely had no numbers.
    async fn through_redis_until(
        &mut self,
        missing: u64,
        patience: &Patience,
    ) -> Result<Option<Range>, HashError> {
        if let Ok(stepped) = timeout_at(patience.deadline, self.through_redis(missing)).await {
            return stepped;
        }
        self.hash.disconnect();
        if patience.answered {
            return Ok(None);
        }
        Err(HashError::Unanswered("it did not answer in time".to_owned()))
    }

    async fn through_redis(&mut self, missing: u64) -> Result<Option<Range>, HashError> {
        self.install().await?;
        let ask = Ask { count: missing, floor: self.floor, prepare_at: self.options.segment.prepare_at };
        let HashStep { taken, left, ahead, claim } = self.hash.step(&ask).await?;
        if let Some(claim) = claim {
            let count = if taken.is_some() { 1 } else { missing };
            self.stock.take(count, Some(claim.life), claim.lasted);
        }
        if let Some(taken) = taken {
            self.shared.issued(taken.count(), left + ahead);
        }
        // Another process has got numbers from the database.
        if ahead > 0 && std::mem::take(&mut self.failed) && !self.away {
            self.shared.tell(None);
        }
        Ok(taken)
    }

    /// Waits for the segment that this process is taking, if it is, or to look for another's.
    async fn wait(&mut self, until: Instant) -> Result<(), IssueError> {
        let (supply, life) = tokio::select! {
            taken = self.stock.taken() => taken,
            () = sleep_until(until) => return Ok(()),
        };
        let claimed = life.is_some() && !self.away;
        let received = self.receive(supply, life);
        if received.is_err() && claimed {
            // Another may be luckier, and need not wait until the claim ends. If this fails, it does.
            let _ = self.hash.release().await;
        }
        // A take that began for this process alone, before Redis was back, does not decide the call.
        if claimed || self.away { received } else { Ok(()) }
    }

    /// Numbers of this process's own.
    async fn through_memory(&mut self, missing: u64, deadline: Instant) -> Result<Option<Range>, IssueError> {
        let part = self.stock.split(missing, self.floor);
        if let Some(part) = part {
            self.shared.issued(part.count(), self.stock.left());
        } else {
            self.stock.take(missing, None, None);
            self.wait(deadline).await?;
        }
        Ok(part)
    }

    /// Decides what becomes of a segment that was taken, for this life of Redis or for this process.
    fn receive(
        &mut self,
        supply: Result<Supply, IssueError>,
        life: Option<String>,
    ) -> Result<(), IssueError> {
        let life = life.filter(|_| !self.away);
        let (mut segments, trouble) = match supply {
            Ok(Supply { segments, away }) => (segments.into_iter(), away),
            Err(error) => {
                self.failed = true;
                self.shared.tell(Some(error.to_string()));
                // Without the database, what is left from when Redis was away becomes everybody's.
                let own = life.as_ref().and_then(|_| self.stock.give(self.floor)).ok_or(error)?;
                self.ready = life.map(|life| (own, life));
                return Ok(());
            }
        };
        if trouble.is_some() || !self.away {
            self.shared.tell(trouble);
        }
        if let Some(life) = life {
            self.ready = segments.next().map(|segment| (segment, life));
        }
        self.stock.keep(segments, self.floor);
        Ok(())
    }

    /// Lets the segment that this process has brought follow. It may have got there though no answer came, so after that it
    /// is never used otherwise: if it did not, it is a gap.
    async fn install(&mut self) -> Result<(), HashError> {
        if self.ready.is_none() {
            return Ok(());
        }
        self.hash.connect().await?;
        let Some((segment, life)) = self.ready.take() else { return Ok(()) };
        let installed = self.hash.install(segment, &life).await;
        if let Err(HashError::Busy) = installed {
            self.ready = Some((segment, life));
        }
        installed
    }

    /// The same apart from callers. Busy: the next of them, or the next tick, tries again.
    async fn deliver(&mut self) {
        if let Err(error @ HashError::Down(_)) = self.install().await {
            self.away(error.to_string());
        }
    }

    /// Looks whether Redis is back, apart from callers, whom memory serves meanwhile.
    async fn probe(&mut self) {
        match self.probe.take() {
            Some(under_way) if !under_way.is_finished() => self.probe = Some(under_way),
            Some(done) => {
                if let Ok(Ok(link)) = done.await {
                    self.hash.adopt(link);
                    self.back();
                }
            }
            None => self.probe = Some(tokio::spawn(self.hash.search())),
        }
    }

    fn back(&mut self) {
        if std::mem::take(&mut self.away) {
            info!(tag = %self.shared.tag, "Redis answers again");
            self.shared.tell(None);
        }
    }

    /// Redis is left alone until a probe finds it.
    fn away(&mut self, problem: String) {
        if !std::mem::replace(&mut self.away, true) {
            warn!(tag = %self.shared.tag, %problem, "Redis cannot be used; no numbers come from it");
        }
        self.stock.keep(self.ready.take().map(|(segment, _)| segment), self.floor);
        self.shared.tell(Some(problem));
    }
}
