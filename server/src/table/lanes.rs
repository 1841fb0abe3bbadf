//! The lanes in which jobs wait, one for each writer. When a writer panics, another one replaces it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tidemark_table::TableError;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Options;
use super::error::busy;
use super::job::{Answering, Job};
use super::writer::{Lane, LaneWriter};
use crate::domain::Clock;
use crate::log_limit::LogLimit;
use crate::store::tables::TableStore;
use crate::workers::replaced_after_panics;

/// The way to the writers; a cheap clone.
#[derive(Clone)]
pub(super) struct Lanes {
    lanes: Arc<[mpsc::Sender<Job>]>,
    /// Bytes that may still wait, also of rows that go past the lanes.
    room: Arc<Semaphore>,
}

/// Starts the writers.
pub(super) fn start(
    store: &Arc<dyn TableStore>,
    clock: &Clock,
    options: Options,
    closing: &CancellationToken,
    tasks: &TaskTracker,
) -> Lanes {
    let start = |_| {
        let (lane, jobs) = mpsc::channel(options.length.max(1));
        let lane_of_writer = Lane { jobs, log: LogLimit::default() };
        let writer = LaneWriter { store: Arc::clone(store), clock: clock.clone(), closing: closing.clone() };
        tasks.spawn(keep_alive(Arc::new(Mutex::new(lane_of_writer)), writer));
        lane
    };
    let lanes = (0..options.writers.max(1)).map(start).collect();
    let room = Arc::new(Semaphore::new(options.waiting_bytes.min(Semaphore::MAX_PERMITS)));
    Lanes { lanes, room }
}

impl Lanes {
    /// Puts jobs into their lanes at once, all of them or none; those of one lane stay in order.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::ServerBusy`](tidemark_table::ErrorCode::ServerBusy): a lane has no room, or the server stops. Nothing is applied.
    pub(super) fn submit(&self, jobs: Vec<(Job, Answering)>) -> Result<Vec<Answering>, TableError> {
        let mut places = Vec::with_capacity(jobs.len());
        for (job, _) in &jobs {
            let room = self.room(job.bytes)?;
            places.push((self.lane(job).try_reserve().map_err(|_| busy())?, room));
        }
        let put = |((mut job, answering), (place, room)): ((Job, Answering), (mpsc::Permit<'_, Job>, _))| {
            job.room = Some(room);
            place.send(job);
            answering
        };
        Ok(jobs.into_iter().zip(places).map(put).collect())
    }

    /// Room for a write of so many bytes, until it is dropped.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::ServerBusy`](tidemark_table::ErrorCode::ServerBusy): as many bytes wait as may.
    pub(super) fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, TableError> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        Arc::clone(&self.room).try_acquire_many_owned(bytes).map_err(|_| busy())
    }

    /// Puts a job of the background into its lane when there is room. `None`: the server stops.
    pub(super) async fn wait_to_submit(&self, (job, answering): (Job, Answering)) -> Option<Answering> {
        self.lane(&job).send(job).await.ok().map(|()| answering)
    }

    /// Jobs waiting in each lane.
    pub(super) fn depths(&self) -> impl Iterator<Item = usize> + '_ {
        self.lanes.iter().map(|lane| lane.max_capacity() - lane.capacity())
    }

    /// All jobs of one table and one value of its first key column go to the same writer.
    fn lane(&self, job: &Job) -> &mpsc::Sender<Job> {
        let mut hasher = DefaultHasher::new();
        (job.table.id, &job.first).hash(&mut hasher);
        &self.lanes[(hasher.finish() % self.lanes.len() as u64) as usize]
    }
}

/// Runs a writer, and another one each time it panics, until one returns.
async fn keep_alive(lane: Arc<Mutex<Lane>>, writer: LaneWriter) {
    replaced_after_panics("table writer", |_| {
        let (lane, writer) = (Arc::clone(&lane), writer.clone());
        async move { writer.run(&mut *lane.lock_owned().await).await }
    })
    .await;
}
