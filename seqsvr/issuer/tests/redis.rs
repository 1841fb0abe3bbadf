//! Segments in a real Redis: shared by issuers, through restarts, a promotion, a busy server, and without scripts.

#![allow(clippy::unwrap_used, reason = "a test whose stage cannot be set fails")]

#[path = "support/faulty.rs"]
mod faulty;

use std::sync::Arc;
use std::time::Duration;

use faulty::FaultyRepository;
use futures_util::future::join_all;
use seqsvr_issuer::Journal;
use seqsvr_issuer::clock::Clock;
use seqsvr_issuer::repository::{MemoryRepository, Repository};
use seqsvr_issuer::{IssueError, RedisOptions, RedisStrategy, SegmentOptions, Strategy, Tag};
use tidemark_test_support::gate::Gate;
use tidemark_test_support::servers::redis::RedisServer as Redis;
use tidemark_test_support::until::until;

fn options(urls: Vec<String>) -> RedisOptions {
    let mut options = RedisOptions::new(urls);
    let limit = options.segment.limit;
    options.segment = SegmentOptions {
        step: 10,
        step_min: 10,
        step_max: 10,
        limit,
        retry_longest: Duration::from_millis(20),
        ..SegmentOptions::default()
    };
    options
}

async fn open<R: Repository + 'static>(database: &Arc<R>, options: RedisOptions) -> RedisStrategy {
    let repository = Arc::clone(database) as Arc<dyn Repository>;
    let strategy = RedisStrategy::new(&Tag::new("order").unwrap(), repository, None, options).unwrap();
    strategy.init().await.unwrap();
    strategy
}

async fn one(strategy: &RedisStrategy) -> Result<u64, IssueError> {
    strategy.issue(1).await.map(|issued| issued.first())
}

#[tokio::test]
async fn a_tag_increases_across_issuers_that_share_redis() {
    let (redis, database) = (Redis::start(), Arc::new(MemoryRepository::new()));
    let (a, b) = (
        open(&database, options(vec![redis.url()])).await,
        open(&database, options(vec![redis.url()])).await,
    );
    let mut newest = 0;
    for _ in 0..50 {
        for strategy in [&a, &b] {
            let number = one(strategy).await.unwrap();
            assert!(number > newest, "{number} after {newest}");
            newest = number;
        }
    }
    let batch = a.issue(35).await.unwrap();
    assert_eq!(batch.count(), 35);
    assert!(batch.first() > newest && batch.numbers().is_sorted_by(|x, y| x < y));
}

#[tokio::test]
async fn the_step_of_a_call_counts_for_the_next_segment() {
    let (redis, database) = (Redis::start(), Arc::new(MemoryRepository::new()));
    let mut options = options(vec![redis.url()]);
    options.segment.step_max = 500;
    let strategy = open(&database, options).await;
    one(&strategy).await.unwrap();
    assert!(strategy.ask_step(501).unwrap_err().contains("set 10 to 500"));
    strategy.ask_step(333).unwrap();
    // One segment waits behind the first, at most.
    let mut sizes = vec![];
    let mut max = database.list().await.unwrap()[0].values.max;
    until("a segment of that size was taken", async || {
        one(&strategy).await.unwrap();
        let now = database.list().await.unwrap()[0].values.max;
        sizes.push(now - std::mem::replace(&mut max, now));
        sizes.contains(&333)
    })
    .await;
}

#[tokio::test]
async fn callers_at_once_get_different_numbers() {
    let (redis, database) = (Redis::start(), Arc::new(MemoryRepository::new()));
    let strategy = Arc::new(open(&database, options(vec![redis.url()])).await);
    let call = |strategy: Arc<RedisStrategy>| {
        tokio::spawn(async move {
            let mut mine = vec![];
            for count in [1, 3, 2, 5] {
                mine.extend(strategy.issue(count).await.unwrap().numbers());
            }
            assert!(mine.is_sorted_by(|x, y| x < y));
            mine
        })
    };
    let calls: Vec<_> = (0..50).map(|_| call(Arc::clone(&strategy))).collect();
    let mut all = vec![];
    for call in calls {
        all.extend(call.await.unwrap());
    }
    assert_eq!(all.len(), 50 * 11);
    all.sort_unstable();
    assert!(all.is_sorted_by(|x, y| x < y));
}

#[tokio::test]
async fn with_redis_down_numbers_come_from_memory_and_go_back_to_redis_without_going_back() {
    let (mut redis, database) = (Redis::start(), Arc::new(MemoryRepository::new()));
    let strategy = open(&database, options(vec![redis.url()])).await;
    let before = one(&strategy).await.unwrap();
    redis.kill();
    let during = strategy.issue(25).await.unwrap();
    assert!(during.first() > before && during.count() == 25);
    assert!(strategy.status().trouble.unwrap().contains("Redis"));
    redis.run();
    let newest = during.numbers().last().unwrap();
    until("Redis is back", async || one(&strategy).await.is_ok() && strategy.status().trouble.is_none())
        .await;
    let after = one(&strategy).await.unwrap();
    assert!(after > newest, "{after} after {newest}");
    let max: u64 = redis.command(&["HGET", "issuer:order", "max"]).await.parse().unwrap();
    assert!(after <= max, "it is Redis that counts");
}

#[tokio::test]
async fn with_both_down_ranges_taken_ahead_serve_and_the_database_is_notified_later() {
    let folder = tempfile::tempdir().unwrap();
    let (mut redis, database) = (Redis::start(), Arc::new(FaultyRepository::default()));
    let mut options = options(vec![redis.url()]);
    options.segment.ahead = 2;
    let journal = Journal::open(folder.path().join("journal"), Clock::system()).unwrap();
    let (repository, tag) = (Arc::clone(&database) as Arc<dyn Repository>, Tag::new("order").unwrap());
    let strategy = RedisStrategy::new(&tag, repository, Some(journal), options).unwrap();
    strategy.init().await.unwrap();
    let mut newest = one(&strategy).await.unwrap();
    let max = async || database.behind.get(&tag).await.unwrap().map_or(0, |row| row.values.max);
    until("two ranges are taken ahead", async || max().await >= 30).await;
    let durable = max().await;
    redis.kill();
    database.shut(true);
    let mut issued = 0;
    while let Ok(number) = one(&strategy).await {
        assert!(newest < number && number <= durable, "{number} was taken from the database before");
        (newest, issued) = (number, issued + 1);
    }
    assert!(issued >= 20, "two segments ahead: {issued}");
    database.shut(false);
    until("the database is told", async || database.behind.extensions(&tag).await.unwrap().len() >= 2).await;
    redis.run();
    until("numbers go on", async || one(&strategy).await.is_ok_and(|number| number > durable)).await;
}

#[tokio::test]
async fn a_restarted_redis_with_an_old_counter_is_not_believed() {
    let (redis, database) = (Redis::start(), Arc::new(MemoryRepository::new()));
    let strategy = open(&database, options(vec![redis.url()])).await;
    let newest = strategy.issue(5).await.unwrap().numbers().last().unwrap();
    // As after a restart from an old file: the counter is behind, and of another life.
    redis.command(&["HSET", "issuer:order", "cur", "1", "life", "another"]).await;
    let other = open(&database, options(vec![redis.url()])).await;
    let number = one(&other).await.unwrap();
    assert!(number > newest, "{number} after {newest}");
    assert!(one(&strategy).await.unwrap() > number);
}

#[tokio::test]
async fn a_redis_killed_and_started_on_an_old_dump_goes_on_above() {
    let (mut redis, database) = (Redis::start(), Arc::new(MemoryRepository::new()));
    let strategy = open(&database, options(vec![redis.url()])).await;
    strategy.issue(3).await.unwrap();
    redis.command(&["SAVE"]).await;
    let newest = strategy.issue(40).await.unwrap().numbers().last().unwrap();
    redis.kill();
    redis.run();
    assert_eq!(redis.command(&["HGET", "issuer:order", "cur"]).await, "3", "the dump was loaded");
    let other = open(&database, options(vec![redis.url()])).await;
    let number = one(&other).await.unwrap();
    assert!(number > newest, "{number} after {newest}");
    // The first one notices at its next call that its connection is gone, and is back after a look.
    until("numbers come from Redis", async || {
        one(&strategy).await.unwrap() > number && strategy.status().trouble.is_none()
    })
    .await;
    let (a, b) = (one(&strategy).await.unwrap(), one(&other).await.unwrap());
    assert!(b > a && a > newest, "one line again: {a}, then {b}");
}

#[tokio::test]
async fn a_promoted_replica_with_an_old_counter_is_not_believed() {
    let (mut primary, replica) = (Redis::start(), Redis::start());
    let database = Arc::new(MemoryRepository::new());
    let strategy = open(&database, options(vec![primary.url(), replica.url()])).await;
    assert_eq!(one(&strategy).await, Ok(1));
    replica.command(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]).await;
    until("the replica has it", async || replica.command(&["HGET", "issuer:order", "cur"]).await == "1")
        .await;
    // Later changes never reach the replica.
    replica.command(&["REPLICAOF", "127.0.0.1", "1"]).await;
    let newest = strategy.issue(5).await.unwrap().numbers().last().unwrap();
    primary.kill();
    replica.command(&["REPLICAOF", "NO", "ONE"]).await;
    assert_eq!(replica.command(&["HGET", "issuer:order", "cur"]).await, "1", "the replica is behind");
    let other = open(&database, options(vec![primary.url(), replica.url()])).await;
    let number = one(&other).await.unwrap();
    assert!(number > newest, "{number} after {newest}");
    until("numbers go on", async || one(&strategy).await.is_ok_and(|number| number > newest)).await;
    until("the new primary is found", async || {
        strategy.status().trouble.is_none() && one(&strategy).await.is_ok()
    })
    .await;
    let cur: u64 = replica.command(&["HGET", "issuer:order", "cur"]).await.parse().unwrap();
    assert!(cur > newest, "both count in the new primary");
}

#[tokio::test]
async fn without_scripts_plain_commands_do_the_same() {
    let (redis, database) = (Redis::start(), Arc::new(MemoryRepository::new()));
    redis.command(&["ACL", "SETUSER", "plain", "on", ">secret", "~*", "+@all", "-@scripting"]).await;
    let plain = format!("redis://plain:secret@127.0.0.1:{}", redis.port());
    let (a, b) =
        (open(&database, options(vec![plain])).await, open(&database, options(vec![redis.url()])).await);
    let mut newest = 0;
    for round in 0..40 {
        for strategy in [&a, &b] {
            let issued = strategy.issue(1 + round % 4).await.unwrap();
            assert!(issued.first() > newest, "{} after {newest}", issued.first());
            newest = issued.numbers().last().unwrap();
        }
    }
}

/// Options for a Redis behind a gate that are not in a hurry, and give up an answer after 50 ms.
fn through(gate: &Gate, wait: Duration) -> RedisOptions {
    let mut options = options(vec![format!("redis://{}", gate.address())]);
    options.timeout = Duration::from_millis(50);
    options.segment.wait = wait;
    options
}

#[tokio::test]
async fn a_slow_answer_is_asked_for_again_and_the_tag_increases_across_issuers() {
    let (redis, database) = (Redis::start(), Arc::new(MemoryRepository::new()));
    let gate = Gate::before(&format!("127.0.0.1:{}", redis.port())).await;
    let slow = Arc::new(open(&database, through(&gate, Duration::from_secs(60))).await);
    let fast = open(&database, options(vec![redis.url()])).await;
    let before = (one(&slow).await.unwrap(), one(&fast).await.unwrap());
    assert_eq!(before, (1, 2));
    let connections = gate.connections();
    gate.hold_answers(true);
    let caller = Arc::clone(&slow);
    let call = tokio::spawn(async move { one(&caller).await });
    // Redis did what it was asked; the answer is lost with its connection.
    until("Redis was asked again", async || gate.connections() > connections + 1).await;
    gate.hold_answers(false);
    let during = call.await.unwrap().unwrap();
    assert!(during > 3, "the number of the first try is skipped: {during}");
    let mut newest = during;
    for strategy in [&fast, &*slow, &fast] {
        let number = one(strategy).await.unwrap();
        assert!(number > newest, "{number} after {newest}");
        newest = number;
    }
}

#[tokio::test]
async fn a_redis_that_never_answers_is_given_up_and_no_number_is_given_twice() {
    let (redis, database) = (Redis::start(), Arc::new(FaultyRepository::default()));
    let gate = Arc::new(Gate::before(&format!("127.0.0.1:{}", redis.port())).await);
    let slow = open(&database, through(&gate, Duration::from_secs(1))).await;
    let fast = open(&database, options(vec![redis.url()])).await;
    // The segment that is being taken reaches Redis, but no answer comes back.
    let held = Arc::clone(&gate);
    database.before_next(move || held.hold_answers(true));
    let mut all = vec![one(&slow).await.unwrap()];
    assert!(slow.status().trouble.unwrap().contains("Redis"), "{all:?} came from memory");
    for _ in 0..15 {
        all.push(one(&fast).await.unwrap());
        all.push(one(&slow).await.unwrap());
    }
    gate.hold_answers(false);
    until("Redis is back", async || {
        all.push(one(&slow).await.unwrap());
        slow.status().trouble.is_none()
    })
    .await;
    let newest = *all.iter().max().unwrap();
    let (a, b) = (one(&slow).await.unwrap(), one(&fast).await.unwrap());
    assert!(b > a && a > newest, "one line again: {newest}, then {a}, then {b}");
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "no number twice");
}

#[tokio::test]
async fn a_call_whose_time_ends_between_two_tries_of_redis_gets_numbers_from_memory() {
    let redis = Redis::start();
    // A try and the pause after it take 55 ms together, so some of these end in a pause.
    let waits = (1_000..1_060).step_by(2).map(Duration::from_millis);
    let calls = waits.map(async |wait| {
        let database = Arc::new(FaultyRepository::default());
        let gate = Arc::new(Gate::before(&format!("127.0.0.1:{}", redis.port())).await);
        let mut options = through(&gate, wait);
        options.prefix = format!("{}:", wait.as_millis());
        let strategy = open(&database, options).await;
        let held = Arc::clone(&gate);
        database.before_next(move || held.hold_answers(true));
        let number = one(&strategy).await;
        assert!(number.is_ok(), "within {wait:?}: {number:?}");
    });
    join_all(calls).await;
}

#[tokio::test]
async fn a_busy_redis_is_asked_again_until_it_answers() {
    let (redis, database) = (Redis::start(), Arc::new(MemoryRepository::new()));
    redis.command(&["CONFIG", "SET", "busy-reply-threshold", "10"]).await;
    let strategy = Arc::new(open(&database, options(vec![redis.url()])).await);
    let before = one(&strategy).await.unwrap();
    let mut connection = redis.connect().await;
    let busy = tokio::spawn(async move {
        let endless = redis::cmd("EVAL").arg("while true do end").arg(0).exec_async(&mut connection).await;
        assert!(endless.is_err(), "it was killed");
    });
    // Busy is answered only once the threshold has passed.
    until("Redis says that it is busy", async || {
        let mut connection = redis.connect().await;
        let asked = redis::cmd("PING").exec_async(&mut connection).await;
        asked.is_err_and(|error| error.code() == Some("BUSY"))
    })
    .await;
    let caller = Arc::clone(&strategy);
    let call = tokio::spawn(async move { one(&caller).await });
    let mut killer = redis.connect().await;
    redis::cmd("SCRIPT").arg("KILL").exec_async(&mut killer).await.unwrap();
    busy.await.unwrap();
    assert!(call.await.unwrap().unwrap() > before);
}
