//! Calls while the database is away, one test for each answer that can be configured. The repository is the real one in memory, which can
//! be made unavailable.

#![allow(clippy::unwrap_used, reason = "a test whose stage cannot be set fails")]

#[path = "support/faulty.rs"]
mod faulty;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use faulty::FaultyRepository;
use seqsvr_issuer::clock::Clock;
use seqsvr_issuer::repository::Repository;
use seqsvr_issuer::{IssueError, Journal, Range, SegmentOptions, SegmentStrategy, Strategy, Tag};
use tidemark_test_support::until::until;

fn tag() -> Tag {
    Tag::new("order").unwrap()
}

/// Segments of exactly ten numbers; with a journal, two of them ahead.
async fn open(database: &Arc<FaultyRepository>, journal: Option<&Path>) -> SegmentStrategy {
    let options = SegmentOptions {
        step: 10,
        step_min: 10,
        step_max: 10,
        ahead: if journal.is_some() { 2 } else { 0 },
        ..SegmentOptions::default()
    };
    let journal = journal.map(|path| Journal::open(path, Clock::system()).unwrap());
    let repository = Arc::clone(database) as Arc<dyn Repository>;
    let strategy = SegmentStrategy::new(&tag(), repository, journal, options).unwrap();
    strategy.init().await.unwrap();
    strategy
}

/// With the first number taken, and all ranges ahead of it.
async fn begun(database: &Arc<FaultyRepository>, journal: &Path) -> SegmentStrategy {
    let strategy = open(database, Some(journal)).await;
    assert_eq!(one(&strategy).await, Ok(1));
    until("two ranges are taken ahead", async || strategy.status().left == Some(29)).await;
    strategy
}

async fn one(strategy: &SegmentStrategy) -> Result<u64, IssueError> {
    strategy.issue(1).await.map(|issued| issued.first())
}

/// Takes numbers until none is left: them, and the refusal.
async fn drain(strategy: &SegmentStrategy) -> (Vec<u64>, IssueError) {
    let mut numbers = vec![];
    loop {
        match one(strategy).await {
            Ok(number) => numbers.push(number),
            Err(refusal) => return (numbers, refusal),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn with_refuse_the_remaining_segments_serve_and_then_calls_are_refused_clearly() {
    let database = Arc::new(FaultyRepository::default());
    let strategy = open(&database, None).await;
    for expected in 1..=4 {
        assert_eq!(one(&strategy).await, Ok(expected));
    }
    until("the next segment is there", async || strategy.status().left == Some(16)).await;
    database.shut(true);
    tokio::time::advance(Duration::from_secs(60)).await;
    let lasts = strategy.status().lasts.expect("there is a rate");
    assert!(lasts >= Duration::from_secs(180), "four in a minute, sixteen left: {lasts:?}");
    let (numbers, refusal) = drain(&strategy).await;
    assert_eq!(numbers, (5..=20).collect::<Vec<_>>());
    assert!(matches!(&refusal, IssueError::Retryable(text) if text.contains("away")), "{refusal}");
    assert!(strategy.status().trouble.is_some());
    database.shut(false);
    until("numbers come again", async || one(&strategy).await.is_ok_and(|number| number > 20)).await;
    assert_eq!(strategy.status().trouble, None);
}

#[tokio::test(start_paused = true)]
async fn with_extend_ranges_taken_ahead_serve_and_the_database_is_notified_once() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let database = Arc::new(FaultyRepository::default());
    let strategy = begun(&database, &journal).await;
    database.shut(true);
    let (numbers, refusal) = drain(&strategy).await;
    assert_eq!(numbers, (2..=30).collect::<Vec<_>>(), "every number that was taken ahead, in order");
    assert!(matches!(refusal, IssueError::Retryable(_)), "never from a guess");
    database.shut(false);
    until("the database is told", async || !database.behind.extensions(&tag()).await.unwrap().is_empty())
        .await;
    let reported: Vec<Range> =
        database.behind.extensions(&tag()).await.unwrap().iter().map(|extension| extension.range).collect();
    assert_eq!(reported, [Range { first: 11, last: 20 }, Range { first: 21, last: 30 }]);
    until("numbers come again", async || one(&strategy).await.is_ok_and(|number| number > 30)).await;
}

#[tokio::test(start_paused = true)]
async fn a_journal_replayed_twice_gives_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, copy) = (folder.path().join("journal"), folder.path().join("copy"));
    let database = Arc::new(FaultyRepository::default());
    let strategy = begun(&database, &journal).await;
    database.shut(true);
    drain(&strategy).await;
    strategy.shutdown().await;
    drop(strategy);
    std::fs::copy(&journal, &copy).unwrap();
    database.shut(false);
    let mut seen = vec![];
    for path in [&journal, &copy] {
        let again = open(&database, Some(path)).await;
        seen.push(database.behind.extensions(&tag()).await.unwrap());
        assert!(one(&again).await.unwrap() > 30, "and numbers go on above");
        again.shutdown().await;
    }
    assert_eq!(seen[0].len(), 2);
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test(start_paused = true)]
async fn a_start_without_the_database_goes_on_with_the_ranges_taken_ahead() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let database = Arc::new(FaultyRepository::default());
    let strategy = begun(&database, &journal).await;
    strategy.shutdown().await;
    drop(strategy);
    database.shut(true);
    let again = open(&database, Some(&journal)).await;
    let (numbers, _) = drain(&again).await;
    assert_eq!(numbers, (11..=30).collect::<Vec<_>>());
    again.shutdown().await;
    drop(again);
    let third = open(&database, Some(&journal)).await;
    assert_eq!(drain(&third).await.0, [0; 0], "a range that was begun is not begun again");
}

#[tokio::test(start_paused = true)]
async fn everything_down_and_restarted_goes_on_at_the_durable_max_plus_one() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let database = Arc::new(FaultyRepository::default());
    let strategy = begun(&database, &journal).await;
    drop(strategy);
    let max = database.behind.get(&tag()).await.unwrap().unwrap().values.max;
    // The dropped one's tasks let go of the journal when they end.
    tokio::task::yield_now().await;
    until("the journal is let go", async || Journal::open(&journal, Clock::system()).is_ok()).await;
    let again = open(&database, Some(&journal)).await;
    assert_eq!(one(&again).await, Ok(max + 1));
}

#[tokio::test(start_paused = true)]
async fn a_tag_whose_database_is_away_at_the_start_refuses_until_it_is_there() {
    let database = Arc::new(FaultyRepository::default());
    database.shut(true);
    let strategy = open(&database, None).await;
    assert!(matches!(one(&strategy).await, Err(IssueError::Retryable(_))));
    database.shut(false);
    until("numbers come", async || one(&strategy).await == Ok(1)).await;
}

/// Numbers at a steady rate, by default settings but for a step that fits it: one every ten seconds, 100 in 1,000 seconds.
async fn steady(database: &Arc<FaultyRepository>, numbers: u64) -> SegmentStrategy {
    let options = SegmentOptions { step: 100, ..SegmentOptions::default() };
    let repository = Arc::clone(database) as Arc<dyn Repository>;
    let strategy = SegmentStrategy::new(&tag(), repository, None, options).unwrap();
    strategy.init().await.unwrap();
    for _ in 0..numbers {
        tokio::time::sleep(Duration::from_secs(10)).await;
        one(&strategy).await.unwrap();
    }
    strategy
}

#[tokio::test(start_paused = true)]
async fn whenever_the_database_goes_away_numbers_last_for_twenty_minutes() {
    // A whole segment and more, after the first few.
    for numbers in (300..420).step_by(8) {
        let database = Arc::new(FaultyRepository::default());
        let strategy = steady(&database, numbers).await;
        database.shut(true);
        let away = tokio::time::Instant::now();
        while one(&strategy).await.is_ok() {
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        let lasted = away.elapsed().as_secs() / 60;
        assert!((20..60).contains(&lasted), "{lasted} minutes after {numbers} numbers");
        assert_eq!(database.behind.get(&tag()).await.unwrap().unwrap().values.step, 100);
    }
}

#[tokio::test(start_paused = true)]
async fn a_switch_waits_for_nothing_while_storage_is_slow() {
    let database = Arc::new(FaultyRepository::default());
    let options = SegmentOptions { step: 100, step_min: 100, step_max: 100, ..SegmentOptions::default() };
    let repository = Arc::clone(&database) as Arc<dyn Repository>;
    let strategy = SegmentStrategy::new(&tag(), repository, None, options).unwrap();
    strategy.init().await.unwrap();
    strategy.issue(1).await.unwrap();
    database.slow(Duration::from_millis(50));
    for _ in 0..100 * 100 {
        // A segment lasts 100 ms, of which 80 are left when the next is asked for.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let began = tokio::time::Instant::now();
        strategy.issue(1).await.unwrap();
        assert!(began.elapsed().is_zero(), "a call waited for storage");
    }
}
