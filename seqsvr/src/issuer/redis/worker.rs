//! The one task for each tag that talks to Redis. Calls that wait at the same time share one step of the hash, each with
//! its own part of the numbers, so many callers cost Redis as much as one.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::hash::{Advance, Hash, HashError, Link};
use super::{RedisOptions, Shared, WhenHotDown};
use crate::issuer::range::Range;
use crate::issuer::segment::{Source, Supply};
use crate::issuer::strategy::{IssueError, Issued};

/// How long to wait before a busy Redis is asked again.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// No more numbers than this are taken in one step for callers that wait together.
const TOGETHER: u64 = 100_000;

/// A caller that waits.
pub(super) struct Request {
    pub(super) count: u32,
    pub(super) answer: oneshot::Sender<Result<Issued, IssueError>>,
}

type Prepared = JoinHandle<Result<Supply, IssueError>>;

pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) options: RedisOptions,
    pub(super) hash: Hash,
    pub(super) source: Arc<Mutex<Source>>,
    pub(super) requests: mpsc::Receiver<Request>,
    pub(super) stop: CancellationToken,
    state: State,
}

#[derive(Default)]
struct State {
    /// The last number issued; every later one is larger.
    floor: u64,
    /// A segment that is being prepared, and those that came with an earlier one.
    prepared: Option<Prepared>,
    spare: Vec<Range>,
    /// The database is being told what it missed, apart from callers, whom Redis may still serve.
    catching_up: Option<JoinHandle<Result<(), IssueError>>>,
    /// When a segment was last taken.
    taken_at: Option<Instant>,
    /// While Redis is away: what is left of the segment in memory, and who looks for it.
    memory: Option<Range>,
    away: bool,
    probe: Option<JoinHandle<Result<Link, HashError>>>,
}

impl Worker {
    pub(super) fn new(
        shared: Arc<Shared>,
        options: RedisOptions,
        source: Source,
        requests: mpsc::Receiver<Request>,
        stop: CancellationToken,
    ) -> Self {
        let key = format!("{}{}", options.prefix, shared.tag);
        let hash = Hash::new(options.urls.clone(), key, options.timeout);
        let source = Arc::new(Mutex::new(source));
        Self { shared, options, hash, source, requests, stop, state: State::default() }
    }

    /// Runs until told to stop.
    pub(super) async fn run(mut self) {
        let mut ticks = interval(self.options.segment.retry_longest);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.stop.cancelled() => break,
                request = self.requests.recv() => match request {
                    Some(request) => self.serve(request).await,
                    None => break,
                },
                _ = ticks.tick() => {
                    if self.state.away {
                        self.probe().await;
                    }
                    self.catch_up().await;
                }
            }
        }
        if let Some(catching_up) = self.state.catching_up.take()
            && let Err(error) = catching_up.await
        {
            tracing::error!(%error, "catching up ended badly");
        }
        self.requests.close();
        while let Ok(request) = self.requests.try_recv() {
            let stopped = IssueError::Final(format!("{}: the issuer was shut down", self.shared.tag));
            // Who no longer waits needs no answer.
            let _ = request.answer.send(Err(stopped));
        }
    }

    /// Answers a caller and those that wait behind it.
    async fn serve(&mut self, first: Request) {
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
        for Request { count, answer } in waiting {
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
        let mut missing = count;
        while missing > 0 {
            let range = match self.step(missing, deadline).await? {
                Some(range) => range,
                None if Instant::now() < deadline => continue,
                None => {
                    let tag = &self.shared.tag;
                    return Err(IssueError::Retryable(format!("{tag}: no numbers in time; try again")));
                }
            };
            missing -= range.count();
            self.state.floor = range.last;
            self.shared.issued.fetch_add(range.count(), Ordering::Relaxed);
            match taken.last_mut() {
                Some(last) if last.last + 1 == range.first => last.last = range.last,
                _ => taken.push(range),
            }
        }
        Ok(())
    }

    /// One step towards `missing` numbers; `None`: look again.
    async fn step(&mut self, missing: u64, deadline: Instant) -> Result<Option<Range>, IssueError> {
        if self.state.away && self.options.when_down == WhenHotDown::Memory {
            return self.through_memory(missing).await.map(Some);
        }
        match self.through_redis(missing).await {
            Ok(stepped) => {
                self.back();
                stepped
            }
            Err(HashError::Busy) if Instant::now() < deadline => {
                sleep(BUSY_PAUSE).await;
                Ok(None)
            }
            Err(HashError::Busy) => {
                self.away("Redis is busy with a script; SCRIPT KILL ends it".to_owned()).map(|()| None)
            }
            Err(HashError::Down(problem)) => self.away(problem).map(|()| None),
        }
    }

    /// Sees to it that the database learns what it missed, and that ranges are taken ahead.
    async fn catch_up(&mut self) {
        match self.state.catching_up.take() {
            Some(under_way) if !under_way.is_finished() => self.state.catching_up = Some(under_way),
            Some(done) => {
                let done = done.await.unwrap_or_else(|error| Err(IssueError::Retryable(error.to_string())));
                if !self.state.away {
                    self.trouble(done.err().map(|error| error.to_string()));
                }
            }
            // Locked: a segment is being taken, which tells the database, too.
            None if self.source.try_lock().is_ok_and(|source| source.lags()) => {
                let source = Arc::clone(&self.source);
                let catch_up = async move { source.lock().await.catch_up().await };
                self.state.catching_up = Some(tokio::spawn(catch_up));
            }
            None => {}
        }
    }

    /// Looks whether Redis is back, apart from callers, whom memory serves meanwhile.
    async fn probe(&mut self) {
        match self.state.probe.take() {
            Some(under_way) if !under_way.is_finished() => self.state.probe = Some(under_way),
            Some(done) => {
                if let Ok(Ok(link)) = done.await {
                    self.hash.adopt(link);
                    self.back();
                }
            }
            None => self.state.probe = Some(tokio::spawn(self.hash.search())),
        }
    }

    fn back(&mut self) {
        if std::mem::take(&mut self.state.away) {
            info!(tag = %self.shared.tag, "Redis is back");
            self.trouble(None);
        }
    }

    /// Redis is left alone until a probe finds it, or, where callers are refused, until the next of them.
    fn away(&mut self, problem: String) -> Result<(), IssueError> {
        if !std::mem::replace(&mut self.state.away, true) {
            warn!(tag = %self.shared.tag, %problem, "the hot counter is down");
        }
        self.trouble(Some(problem.clone()));
        match self.options.when_down {
            WhenHotDown::Memory => Ok(()),
            WhenHotDown::Refuse => Err(IssueError::Retryable(format!("{}: {problem}", self.shared.tag))),
        }
    }

    async fn through_redis(&mut self, missing: u64) -> Result<Result<Option<Range>, IssueError>, HashError> {
        // What is left of a segment in memory becomes everybody's.
        if let Some(left) = self.state.memory {
            self.hash.install(left).await?;
            self.state.memory = None;
        }
        match self.hash.advance(missing, self.state.floor).await? {
            Advance::Taken { range, max } => {
                self.shared.left.store(max - range.last, Ordering::Relaxed);
                self.prepare(range.last, max);
                Ok(Ok(Some(range)))
            }
            Advance::Empty => {
                let segment = match self.next_segment(missing).await {
                    Ok(segment) => segment,
                    Err(error) => return Ok(Err(error)),
                };
                // When a newer one is there, the numbers of this one are left as a gap.
                self.hash.install(segment).await?;
                Ok(Ok(None))
            }
        }
    }

    /// A fresh durable segment of this process's own, handed out from memory.
    async fn through_memory(&mut self, missing: u64) -> Result<Range, IssueError> {
        let segment = match self.state.memory.take() {
            Some(left) => left,
            None => self.next_segment(missing).await?,
        };
        let (part, left) = split(segment, missing);
        self.state.memory = left;
        self.shared.left.store(left.map_or(0, Range::count), Ordering::Relaxed);
        self.prepare(part.last, segment.last);
        Ok(part)
    }

    /// Lets the next segment be taken in the background when this one is used as far as configured.
    fn prepare(&mut self, last: u64, max: u64) {
        let segment = &self.options.segment;
        let size = self.shared.size.load(Ordering::Relaxed);
        let keep = u128::from(size) * u128::from(100 - segment.prepare_at) / 100;
        if u128::from(max - last) > keep || self.state.prepared.is_some() || !self.state.spare.is_empty() {
            return;
        }
        let lasted = self.state.taken_at.map(|at| at.elapsed());
        let source = Arc::clone(&self.source);
        self.state.prepared = Some(tokio::spawn(async move { source.lock().await.next(1, lasted).await }));
    }

    async fn next_segment(&mut self, missing: u64) -> Result<Range, IssueError> {
        loop {
            while let Some(segment) = self.state.spare.pop() {
                // One that another process's numbers have passed would go back.
                if segment.first > self.state.floor {
                    self.shared.size.store(segment.count(), Ordering::Relaxed);
                    return Ok(segment);
                }
            }
            let supply = match self.state.prepared.take() {
                Some(prepared) => prepared.await.unwrap_or_else(|error| {
                    Err(IssueError::Retryable(format!("{}: {error}", self.shared.tag)))
                }),
                None => {
                    let lasted = self.state.taken_at.map(|at| at.elapsed());
                    self.source.lock().await.next(missing, lasted).await
                }
            };
            match supply {
                Ok(Supply { mut segments, away }) => {
                    self.state.taken_at = Some(Instant::now());
                    segments.reverse();
                    self.state.spare = segments;
                    if away.is_some() || !self.state.away {
                        self.trouble(away);
                    }
                }
                Err(error) => {
                    self.trouble(Some(error.to_string()));
                    return Err(error);
                }
            }
        }
    }

    fn trouble(&self, trouble: Option<String>) {
        *self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

/// The first `count` numbers of a range, and the rest.
fn split(range: Range, count: u64) -> (Range, Option<Range>) {
    if range.count() <= count {
        return (range, None);
    }
    let last = range.first + count - 1;
    (Range { first: range.first, last }, Some(Range { first: last + 1, last: range.last }))
}
