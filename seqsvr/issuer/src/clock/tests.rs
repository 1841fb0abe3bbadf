//! The guard over a real file, in a test's own time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::manual::Hands;
use super::*;

const START: u64 = 1_800_000_000_000;

async fn open(hands: &Hands, file: &Path) -> Arc<Guard> {
    Guard::open(ClockOptions::default(), hands.clock(), Some(file)).await.unwrap()
}

#[tokio::test]
async fn the_first_millisecond_begins_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let hands = Hands::at(START);
    let guard = open(&hands, &folder.path().join("a.clock")).await;
    assert_eq!(guard.floor(), 0);
    assert_eq!(guard.begin(START), Ok(()));
    assert_eq!((guard.latest(), guard.health()), (START, ClockHealth::Good));
}

#[tokio::test]
async fn nothing_begins_beyond_the_horizon_until_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let hands = Hands::at(START);
    let guard = open(&hands, &folder.path().join("a.clock")).await;
    assert_eq!(guard.begin(START + 2_000), Ok(()), "written two seconds ahead");
    hands.pass(2_001);
    assert_eq!(guard.begin(START + 2_001), Err(ClockHold::Unwritten));
    guard.moved(Duration::from_secs(10)).await;
    assert_eq!(guard.begin(START + 2_001), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn in_the_steady_state_the_horizon_stays_ahead() {
    let folder = tempfile::tempdir().unwrap();
    let hands = Hands::at(START);
    let guard = open(&hands, &folder.path().join("a.clock")).await;
    for _ in 0..200 {
        assert_eq!(guard.begin(hands.clock().wall()), Ok(()));
        hands.pass(100);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let writes = guard.metrics().writes;
    assert!((15..=30).contains(&writes), "about one a second over twenty seconds: {writes}");
}

#[tokio::test(start_paused = true)]
async fn an_idle_process_does_not_write() {
    let folder = tempfile::tempdir().unwrap();
    let hands = Hands::at(START);
    let guard = open(&hands, &folder.path().join("a.clock")).await;
    guard.begin(START).unwrap();
    let mut writes = Vec::new();
    for _ in 0..4 {
        for _ in 0..60 {
            hands.pass(1_000);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        writes.push(guard.metrics().writes);
    }
    assert!(writes[0] > 10, "{writes:?}");
    assert_eq!(writes[1], writes[3], "{writes:?}");
}

#[tokio::test]
async fn a_small_step_back_is_waited_out_and_a_large_one_alarms_until_caught_up() {
    let hands = Hands::at(START);
    let guard = Guard::open(ClockOptions::default(), hands.clock(), None).await.unwrap();
    guard.begin(START).unwrap();
    hands.set(START - 3);
    assert_eq!(guard.went_back(3), ClockHold::Wait { behind_ms: 3 });
    assert_eq!((guard.health(), guard.metrics().alarms), (ClockHealth::Good, 0));

    hands.set(START - 60_000);
    for _ in 0..2 {
        assert_eq!(guard.went_back(60_000), ClockHold::Back { behind_ms: 60_000 });
    }
    assert_eq!(guard.health(), ClockHealth::Back { behind_ms: 60_000 });
    let metrics = guard.metrics();
    assert_eq!((metrics.behind_ms, metrics.alarms, metrics.refused), (60_000, 1, 2));

    hands.pass(60_001);
    assert_eq!(guard.begin(START + 1), Ok(()));
    assert_eq!((guard.health(), guard.metrics().behind_ms), (ClockHealth::Good, 0));
    hands.set(START - 60_000);
    guard.went_back(60_001);
    assert_eq!(guard.metrics().alarms, 2, "each time it happens");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_a_year_ahead_for_a_moment_costs_a_moment() {
    const YEAR: u64 = 365 * 86_400_000;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.clock");
    let hands = Hands::at(START);
    let guard = open(&hands, &file).await;
    guard.begin(START).unwrap();
    hands.set(START + YEAR);
    assert_eq!(guard.begin(START + YEAR), Err(ClockHold::Ahead { ahead_ms: YEAR }));
    assert_eq!(guard.health(), ClockHealth::Ahead { ahead_ms: YEAR });
    // Meanwhile the keeper looks.
    tokio::time::sleep(Duration::from_secs(5)).await;
    hands.set(START);
    hands.pass(5_000);
    guard.begin(START + 1_000).unwrap();
    assert_eq!(guard.health(), ClockHealth::Good);
    guard.close().await;
    assert_eq!(open(&hands, &file).await.floor(), START + 1_000, "nor does the next start wait");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_set_ahead_is_believed_after_a_minute() {
    let folder = tempfile::tempdir().unwrap();
    let hands = Hands::at(START);
    let guard = open(&hands, &folder.path().join("a.clock")).await;
    guard.begin(START).unwrap();
    hands.set(START + 3_600_000);
    assert_eq!(guard.begin(START + 3_600_000), Err(ClockHold::Ahead { ahead_ms: 3_600_000 }));
    hands.pass(60_000);
    let now = hands.clock().wall();
    assert_eq!(guard.begin(now), Err(ClockHold::Unwritten));
    guard.moved(Duration::from_secs(10)).await;
    assert_eq!((guard.begin(now), guard.health()), (Ok(()), ClockHealth::Good));
}

#[tokio::test]
async fn a_clean_stop_leaves_nothing_to_wait_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.clock");
    let hands = Hands::at(START);
    let guard = open(&hands, &file).await;
    guard.begin(START + 7).unwrap();
    guard.close().await;
    assert_eq!(guard.begin(START + 8), Err(ClockHold::Closed));
    assert_eq!(open(&hands, &file).await.floor(), START + 7);
}

#[tokio::test]
async fn a_run_that_was_cut_off_leaves_its_horizon() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.clock");
    let hands = Hands::at(START);
    let guard = open(&hands, &file).await;
    guard.begin(START).unwrap();
    // A copy of the file as it is while the process runs is what a power cut leaves.
    let cut = folder.path().join("cut.clock");
    std::fs::copy(&file, &cut).unwrap();
    let next = open(&hands, &cut).await;
    assert_eq!(next.floor(), START + 2_000);
    assert_eq!(next.went_back(2_000), ClockHold::Wait { behind_ms: 2_000 });
    assert_eq!(next.health(), ClockHealth::Good);
}

#[tokio::test]
async fn a_clock_moved_back_between_runs_is_noticed_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.clock");
    let hands = Hands::at(START);
    let guard = open(&hands, &file).await;
    guard.begin(START).unwrap();
    guard.close().await;
    drop(guard);

    hands.set(START - 3_600_000);
    let guard = open(&hands, &file).await;
    assert_eq!(guard.health(), ClockHealth::Back { behind_ms: 3_600_000 });
    assert_eq!(guard.metrics().alarms, 1);
    guard.close().await;
    drop(guard);
    assert_eq!(open(&hands, &file).await.floor(), START, "a run that issued nothing lowers nothing");
}

#[tokio::test]
async fn settings_out_of_range_are_named() {
    let options = ClockOptions { ahead: Duration::from_millis(99), ..ClockOptions::default() };
    let error = Guard::open(options, Clock::system(), None).await.unwrap_err().to_string();
    assert_eq!(error, "clock option ahead: 99ms is not between 100ms and 3600s");
}
