//! Segments in a real PostgreSQL that is killed and started again while numbers are issued.

#![allow(clippy::unwrap_used, reason = "a test whose stage cannot be set fails")]

#[path = "support/postgres.rs"]
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use seqsvr::issuer::repository::{PostgresRepository, Repository};
use seqsvr::issuer::{IssueError, SegmentOptions, SegmentStrategy, Strategy, Tag};
use server::Server;

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_killed_and_restarted_while_issuing_gives_no_number_twice() {
    let server = tokio::task::spawn_blocking(Server::start).await.unwrap();
    let url = server.new_database().await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut callers = vec![];
    for _ in 0..2 {
        let strategy = open(&url).await;
        for _ in 0..2 {
            let (strategy, stop) = (Arc::clone(&strategy), Arc::clone(&stop));
            callers.push(tokio::spawn(async move {
                let (mut mine, mut refusals) = (vec![], 0);
                while !stop.load(Ordering::Relaxed) {
                    match strategy.issue(7).await {
                        Ok(issued) => mine.extend(issued.numbers()),
                        Err(IssueError::Retryable(_)) => refusals += 1,
                        Err(error) => panic!("{error}"),
                    }
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                assert!(mine.is_sorted_by(|a, b| a < b), "each caller's numbers grow");
                (mine, refusals)
            }));
        }
    }
    let server = Arc::new(server);
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let restarted = Arc::clone(&server);
        tokio::task::spawn_blocking(move || {
            restarted.kill();
            std::thread::sleep(Duration::from_millis(200));
            restarted.run();
        })
        .await
        .unwrap();
    }
    // Numbers come again after the last restart.
    let newcomer = open(&url).await;
    let number = newcomer.issue(1).await.unwrap().first();
    tokio::time::sleep(Duration::from_millis(300)).await;
    stop.store(true, Ordering::Relaxed);
    let (mut all, mut refusals) = (vec![], 0);
    for caller in callers {
        let (mine, refused) = caller.await.unwrap();
        assert!(mine.last().is_some_and(|last| *last > number), "it went on after the restarts");
        all.extend(mine);
        refusals += refused;
    }
    all.push(number);
    let issued = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), issued, "no number twice");
    assert!(refusals > 0, "the kills were felt");
}
