//! Segments in a real PostgreSQL that is killed and started again while numbers are issued.

#![allow(clippy::unwrap_used, reason = "a test whose stage cannot be set fails")]

use std::sync::Arc;
use std::time::Duration;

use seqsvr_issuer::repository::{PostgresRepository, Repository};
use seqsvr_issuer::{IssueError, SegmentOptions, SegmentStrategy, Strategy, Tag};
use tidemark_test_support::servers::postgres::Server;
use tokio::sync::watch;
use tokio::task::{JoinHandle, yield_now};

async fn open(url: &str) -> Arc<SegmentStrategy> {
    let repository: Arc<dyn Repository> = Arc::new(PostgresRepository::new(url).unwrap());
    let options = SegmentOptions {
        step: 50,
        step_min: 50,
        step_max: 50,
        retry_longest: Duration::from_millis(50),
        ..SegmentOptions::default()
    };
    let strategy = SegmentStrategy::new(&Tag::new("order").unwrap(), repository, None, options).unwrap();
    strategy.init().await.unwrap();
    Arc::new(strategy)
}

/// The calls and refusals that a caller has seen so far.
#[derive(Clone, Copy, Default)]
struct SeenCalls {
    calls: u64,
    refusals: u64,
}

/// Takes numbers one call after the other until nobody watches.
struct Caller {
    seen: watch::Receiver<SeenCalls>,
    numbers: JoinHandle<Vec<u64>>,
}

impl Caller {
    fn start(strategy: Arc<SegmentStrategy>) -> Self {
        let (seen, watched) = watch::channel(SeenCalls::default());
        let numbers = tokio::spawn(async move {
            let mut numbers = vec![];
            while !seen.is_closed() {
                match strategy.issue(7).await {
                    Ok(issued) => {
                        numbers.extend(issued.numbers());
                        seen.send_modify(|seen| seen.calls += 1);
                    }
                    Err(IssueError::Retryable(_)) => seen.send_modify(|seen| seen.refusals += 1),
                    Err(error) => panic!("{error}"),
                }
                yield_now().await;
            }
            numbers
        });
        Self { seen: watched, numbers }
    }

    /// Waits until that has come about since now.
    async fn sees(&mut self, enough: impl Fn(SeenCalls, SeenCalls) -> bool) {
        let before = *self.seen.borrow();
        self.seen.wait_for(|now| enough(before, *now)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_killed_and_restarted_while_issuing_gives_no_number_twice() {
    let server = Arc::new(tokio::task::spawn_blocking(Server::start).await.unwrap());
    let url = server.new_database().await;
    let mut callers = vec![];
    for _ in 0..2 {
        let strategy = open(&url).await;
        callers.extend((0..2).map(|_| Caller::start(Arc::clone(&strategy))));
    }
    for _ in 0..2 {
        for caller in &mut callers {
            caller.sees(|before, now| now.calls > before.calls + 20).await;
        }
        let killed = Arc::clone(&server);
        tokio::task::spawn_blocking(move || killed.kill()).await.unwrap();
        for caller in &mut callers {
            caller.sees(|before, now| now.refusals > before.refusals).await;
        }
        let started = Arc::clone(&server);
        tokio::task::spawn_blocking(move || started.run()).await.unwrap();
    }
    let newcomer = open(&url).await;
    let number = newcomer.issue(1).await.unwrap().first();
    let mut all = vec![number];
    for mut caller in callers {
        // Numbers of a segment taken after the newcomer's.
        caller.sees(|before, now| now.calls > before.calls + 50).await;
        drop(caller.seen);
        let mine = caller.numbers.await.unwrap();
        assert!(mine.is_sorted_by(|a, b| a < b), "each caller's numbers grow");
        assert!(mine.last().is_some_and(|last| *last > number), "it went on after the restarts");
        all.extend(mine);
    }
    let issued = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), issued, "no number twice");
}
