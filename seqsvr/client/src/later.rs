//! Calls for callers who can wait: a bounded queue that goes on asking long after a call of their own would have given
//! up (S9). Owns one task; a handle for each call tells when it is done.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};

use super::{CallError, Client};
use seqsvr_core::ids::{Granted, Uid};

/// Bounds of a [`RetryQueue`].
#[derive(Clone, Copy, Debug)]
pub struct QueueOptions {
    /// Calls that wait; more are refused at once. Default 10,000.
    pub waiting: usize,
    /// Calls that are tried at the same time. Default 64.
    pub at_once: usize,
    /// How long each is tried once its turn has come. Default 5 minutes.
    pub patience: Duration,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self { waiting: 10_000, at_once: 64, patience: Duration::from_secs(300) }
    }
}

/// Takes calls in and sees them through. Dropping it ends the task once what was taken in is done. Calls for one uid may be
/// carried out in any order.
#[derive(Debug)]
pub struct RetryQueue {
    calls: mpsc::Sender<Later>,
}

#[derive(Debug)]
struct Later {
    uid: Uid,
    count: u32,
    answer: oneshot::Sender<Result<Granted, CallError>>,
}

impl RetryQueue {
    /// Starts a queue; must be called within a Tokio runtime. Each bound is taken as at least 1.
    pub fn start(client: &Client, options: QueueOptions) -> Self {
        let (calls, waiting) = mpsc::channel(options.waiting.max(1));
        tokio::spawn(run(client.within(options.patience), waiting, options.at_once.max(1)));
        Self { calls }
    }

    /// Takes `count` numbers for `uid`, whenever that can be done.
    ///
    /// # Errors
    ///
    /// [`CallError::Unavailable`] when too many wait already.
    pub fn next(&self, uid: Uid, count: u32) -> Result<Ticket, CallError> {
        let (answer, done) = oneshot::channel();
        let full = || CallError::late(Duration::ZERO, "the retry queue is full");
        self.calls.try_send(Later { uid, count, answer }).map_err(|_| full())?;
        Ok(Ticket { done })
    }
}

/// Done when its call is, with what came of it; dropping it gives the call up unless its turn has come.
#[derive(Debug)]
pub struct Ticket {
    done: oneshot::Receiver<Result<Granted, CallError>>,
}

impl Future for Ticket {
    type Output = Result<Granted, CallError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.done).poll(context).map(|done| done.unwrap_or(Err(CallError::Closed)))
    }
}

async fn run(client: Client, mut waiting: mpsc::Receiver<Later>, at_once: usize) {
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(later) = waiting.recv(), if running.len() < at_once => {
                let client = &client;
                running.push(async move {
                    if !later.answer.is_closed() {
                        // A caller who has left needs no answer.
                        let _ = later.answer.send(client.next(later.uid, later.count).await);
                    }
                });
            }
            Some(()) = running.next() => {}
            else => return,
        }
    }
}
