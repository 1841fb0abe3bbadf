//! One tag in a real Redis, shared by many issuers: one of them brings each segment, no matter which ones die, and
//! numbers increase across all of them.

#![allow(clippy::unwrap_used, reason = "a test whose stage cannot be set fails")]

#[path = "../../issuer/tests/support/faulty.rs"]
mod faulty;
#[path = "support/issuer.rs"]
mod issuer;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use faulty::FaultyRepository;
use issuer::{Process, take};
use seqsvr_issuer::repository::{Repository, SqliteRepository};
use seqsvr_issuer::{IssueError, RedisOptions, RedisStrategy, Strategy, Tag};
use tidemark_test_support::servers::redis::RedisServer as Redis;
use tidemark_test_support::until::until;
use tokio_util::sync::CancellationToken;

fn order() -> Tag {
    Tag::new("order").unwrap()
}

/// With the settings that a tag has if nobody configures any.
async fn open(database: &Arc<FaultyRepository>, url: &str) -> RedisStrategy {
    open_with(database, RedisOptions::new(vec![url.to_owned()])).await
}

async fn open_with(database: &Arc<FaultyRepository>, options: RedisOptions) -> RedisStrategy {
    let repository = Arc::clone(database) as Arc<dyn Repository>;
    let strategy = RedisStrategy::new(&order(), repository, None, options).unwrap();
    strategy.init().await.unwrap();
    strategy
}

/// The numbers of all callers together: each is larger than any that was answered before it was asked for.
#[derive(Default)]
struct AnsweredNumbers {
    newest: AtomicU64,
    count: AtomicU64,
}

impl AnsweredNumbers {
    fn before(&self) -> u64 {
        self.newest.load(Ordering::SeqCst)
    }

    fn after(&self, before: u64, numbers: impl IntoIterator<Item = u64>) {
        let mut last = before;
        for number in numbers {
            assert!(number > last, "{number} after {last}");
            last = number;
            self.count.fetch_add(1, Ordering::SeqCst);
        }
        self.newest.fetch_max(last, Ordering::SeqCst);
    }

    /// No number was given twice, or lost but for the ends of `segments` segments of `step` numbers.
    fn lost_at_most(&self, segments: u64, step: u64, durable: u64) {
        let (count, newest) = (self.count.load(Ordering::SeqCst), self.before());
        assert!(newest >= count, "{count} numbers up to {newest}: some were given twice");
        let lost = durable - count;
        assert!(lost <= segments * step, "{lost} of {durable} lost, with steps of {step}");
    }
}

async fn durable(database: &FaultyRepository) -> (u64, u64) {
    let row = database.behind.get(&order()).await.unwrap().unwrap();
    (row.values.max, row.values.step)
}

/// Every issuer takes `calls` numbers, one at a time, all at once.
async fn race(issuers: Vec<RedisStrategy>, calls: usize) -> Arc<AnsweredNumbers> {
    let seen = Arc::new(AnsweredNumbers::default());
    let task = |issuer: RedisStrategy| {
        let seen = Arc::clone(&seen);
        tokio::spawn(async move {
            for _ in 0..calls {
                let before = seen.before();
                seen.after(before, issuer.issue(1).await.unwrap().numbers());
            }
            issuer
        })
    };
    for done in issuers.into_iter().map(task).collect::<Vec<_>>() {
        done.await.unwrap();
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_issuers_on_one_tag_share_its_segments() {
    let (redis, database) = (Redis::start(), Arc::new(FaultyRepository::default()));
    database.slow(Duration::from_millis(5));
    let mut issuers = vec![];
    for _ in 0..50 {
        issuers.push(open(&database, &redis.url()).await);
    }
    let seen = race(issuers, 100).await;
    let (max, step) = durable(&database).await;
    // The one in use and the one that follows are not lost; twice as many for a machine on which a claim ran out.
    seen.lost_at_most(4, step, max);
    assert!(step >= 2_000, "the step follows the rate of all: {step}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn issuers_with_and_without_scripts_share_its_segments() {
    let (redis, database) = (Redis::start(), Arc::new(FaultyRepository::default()));
    database.slow(Duration::from_millis(5));
    redis.command(&["ACL", "SETUSER", "plain", "on", ">secret", "~*", "+@all", "-@scripting"]).await;
    let plain = format!("redis://plain:secret@127.0.0.1:{}", redis.port());
    let mut issuers = vec![];
    for _ in 0..8 {
        issuers.push(open(&database, &plain).await);
        issuers.push(open(&database, &redis.url()).await);
    }
    let seen = race(issuers, 150).await;
    let (max, step) = durable(&database).await;
    seen.lost_at_most(6, step, max);
}

#[tokio::test]
async fn who_waits_for_a_segment_of_a_process_that_died_brings_it() {
    let (redis, database) = (Redis::start(), Arc::new(FaultyRepository::default()));
    let issuer = open(&database, &redis.url()).await;
    redis.command(&["SET", "{issuer:order}:claim", "1", "PX", "100"]).await;
    let begun = Instant::now();
    assert_eq!(issuer.issue(1).await.unwrap().first(), 1);
    assert!(begun.elapsed() >= Duration::from_millis(90), "the claim was the other's");
    assert_eq!(durable(&database).await.0, 1_000, "one segment was taken");
}

#[tokio::test]
async fn a_database_slower_than_a_claim_still_serves_all() {
    let (redis, database) = (Redis::start(), Arc::new(FaultyRepository::default()));
    let mut issuers = vec![];
    for _ in 0..4 {
        let mut options = RedisOptions::new(vec![redis.url()]);
        // A claim lasts half of it, so the second process prepares while the first one still does.
        options.segment.wait = Duration::from_millis(500);
        issuers.push(open_with(&database, options).await);
    }
    database.slow(Duration::from_millis(300));
    let seen = race(issuers, 30).await;
    assert_eq!(seen.count.load(Ordering::SeqCst), 4 * 30);
}

#[tokio::test]
async fn a_segment_that_comes_too_late_is_left_out() {
    let (redis, database) = (Redis::start(), Arc::new(FaultyRepository::default()));
    let issuer = open(&database, &redis.url()).await;
    assert_eq!(issuer.issue(150).await.unwrap().count(), 150);
    let life = redis.command(&["HGET", "issuer:order", "life"]).await;
    // Asked for in another life of Redis, and below what is in use.
    for (life, cur, max) in [("another", "500000", "600000"), (life.as_str(), "10", "400000")] {
        let next = ["HSET", "issuer:order", "next_life", life, "next_cur", cur, "next_max", max];
        redis.command(&next).await;
        let before = durable(&database).await.0;
        let issued = issuer.issue(2_000).await.unwrap();
        assert!(issued.ranges().iter().all(|range| range.last < 400_000), "{issued:?}");
        assert!(durable(&database).await.0 > before, "others were taken from the database");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_killed_and_started_among_issuers_gives_no_number_twice() {
    let (mut redis, database) = (Redis::start(), Arc::new(FaultyRepository::default()));
    let mut issuers = vec![];
    for _ in 0..8 {
        let mut options = RedisOptions::new(vec![redis.url()]);
        options.segment.retry_longest = Duration::from_millis(20);
        issuers.push(Arc::new(open_with(&database, options).await));
    }
    let stop = CancellationToken::new();
    let callers: Vec<_> = issuers
        .iter()
        .map(|issuer| {
            let (issuer, stop) = (Arc::clone(issuer), stop.clone());
            tokio::spawn(async move {
                let mut mine = vec![];
                while !stop.is_cancelled() {
                    mine.push(issuer.issue(1).await.unwrap().first());
                }
                assert!(mine.is_sorted_by(|a, b| a < b), "never back within a process");
                mine
            })
        })
        .collect();
    until("all issue", async || issuers.iter().all(|one| one.status().issued > 50)).await;
    redis.kill();
    until("all know that Redis is away", async || issuers.iter().all(|one| one.status().trouble.is_some()))
        .await;
    redis.run();
    until("all are back", async || issuers.iter().all(|one| one.status().trouble.is_none())).await;
    stop.cancel();
    let (seen, mut all) = (AnsweredNumbers::default(), vec![]);
    for caller in callers {
        all.extend(caller.await.unwrap());
    }
    for issuer in issuers.iter().chain(&issuers) {
        let before = seen.before();
        let number = issuer.issue(1).await.unwrap().first();
        seen.after(before, [number]);
        all.push(number);
    }
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "no number twice");
}

#[tokio::test]
async fn a_database_that_is_away_is_reported_by_each_issuer() {
    let (redis, database) = (Redis::start(), Arc::new(FaultyRepository::default()));
    let (a, b) = (open(&database, &redis.url()).await, open(&database, &redis.url()).await);
    database.shut(true);
    for issuer in [&a, &b, &a] {
        let refusal = issuer.issue(1).await.unwrap_err();
        assert!(matches!(&refusal, IssueError::Retryable(text) if text.contains("away")), "{refusal}");
    }
    database.shut(false);
    assert_eq!(a.issue(1).await.unwrap().first(), 1);
    assert_eq!(b.issue(1).await.unwrap().first(), 2);
}

#[tokio::test]
async fn the_status_says_how_long_the_numbers_in_redis_last() {
    let (redis, database) = (Redis::start(), Arc::new(FaultyRepository::default()));
    let issuer = open(&database, &redis.url()).await;
    for _ in 0..100 {
        issuer.issue(1).await.unwrap();
    }
    let status = issuer.status();
    assert_eq!((status.issued, status.left), (100, Some(900)));
    assert!(status.lasts.is_some_and(|lasts| lasts > Duration::ZERO), "{status:?}");
}

fn configured(folder: &Path, redis: &Redis) -> std::path::PathBuf {
    let config = folder.join("issuer.toml");
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[issuer]\ndatabase = \"sqlite:{}\"\nredis = [\"{}\"]\n\
         [issuer.tags.order]\nstrategy = \"redis\"\n",
        folder.join("issuer.db").display(),
        redis.url()
    );
    std::fs::write(&config, text).unwrap();
    config
}

#[test]
fn processes_under_sigkill_share_a_tag_that_increases_across_them() {
    let (folder, redis) = (tempfile::tempdir().unwrap(), Redis::start());
    let config = configured(folder.path(), &redis);
    let seen = Arc::new(AnsweredNumbers::default());
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let (config, seen) = (config.clone(), Arc::clone(&seen));
            std::thread::spawn(move || {
                for _ in 0..2 {
                    let mut process = Process::start(&config);
                    for call in 0..25 {
                        let before = seen.before();
                        seen.after(before, take(&process.addr, 1 + call * 3).expect("it runs"));
                    }
                    // Killed while a call is under way, and perhaps a segment.
                    let (addr, before) = (process.addr.clone(), seen.before());
                    let last = std::thread::spawn(move || take(&addr, 700));
                    process.kill();
                    seen.after(before, last.join().unwrap().unwrap_or_default());
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    let row = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        SqliteRepository::new(folder.path().join("issuer.db")).get(&order()).await.unwrap().unwrap()
    });
    // Each of the eight processes that were killed may have lost a call and a segment.
    seen.lost_at_most(8 + 2, row.values.step, row.values.max);
}
