//! The format by properties, the generator in a test's own time.

use std::sync::Arc;

use proptest::prelude::*;

use super::layout::IdStep;
use super::*;
use crate::clock::manual::Hands;
use crate::clock::{Clock, ClockHold, ClockOptions, Guard};
use crate::{IssueError, Strategy as _};

const NOW: u64 = DEFAULT_EPOCH + 60_000_000_000;

struct Fixed(u32);

impl MachineId for Fixed {
    fn at(&self, _wall: u64) -> Result<u32, Unheld> {
        Ok(self.0)
    }
}

fn layout() -> Layout {
    Layout::new(Bits::default(), DEFAULT_EPOCH, NOW).unwrap()
}

async fn guard(clock: Clock) -> Arc<Guard> {
    Guard::open(ClockOptions::default(), clock, None).await.unwrap()
}

fn tag(layout: Layout, guard: &Arc<Guard>) -> Snowflake {
    Snowflake::new(layout, SnowflakeOptions::default(), Arc::clone(guard), Arc::new(Fixed(5)))
}

fn any_bits() -> impl Strategy<Value = Bits> {
    (0_u32..=8, 0_u32..=8, 0_u32..=16).prop_map(|(data_centre, worker, sequence)| Bits {
        time: 63 - data_centre - worker - sequence,
        data_centre,
        worker,
        sequence,
    })
}

#[test]
fn the_default_lasts_until_2094() {
    assert_eq!(layout().last_day(), "2094-09-07");
    assert_eq!((layout().machines(), layout().per_millisecond()), (1_024, 4_096));
}

#[test]
fn each_wrong_format_has_its_own_error() {
    let wrong = |bits, epoch, now| Layout::new(bits, epoch, now).unwrap_err().to_string();
    let bits = Bits::default();
    assert_eq!(
        wrong(Bits { sequence: 13, ..bits }, 0, NOW),
        "bits: time 41 + data_centre 0 + worker 10 + sequence 13 is 64; make it 63"
    );
    let wide = Bits { time: 34, worker: 17, ..bits };
    assert!(wrong(wide, 0, NOW).contains("use at most 16"), "{}", wrong(wide, 0, NOW));
    let future = wrong(bits, NOW + 86_400_000, NOW);
    assert!(future.contains("is later than now, 2026-11-26; set one in the past"), "{future}");
    let short = Bits { time: 31, sequence: 22, ..bits };
    let ran_out = wrong(short, DEFAULT_EPOCH, NOW);
    assert!(ran_out.contains("31 bits of time since 2025-01-01 lasted until 2025-01-25"), "{ran_out}");
    assert!(wrong(Bits { time: u32::MAX, ..bits }, 0, NOW).contains("make it 63"));
}

#[test]
fn machines_and_workers_out_of_range_are_refused() {
    let split = Layout::new(Bits { data_centre: 2, worker: 8, ..Bits::default() }, 0, NOW).unwrap();
    assert_eq!(split.worker(3, 255), Ok(1_023));
    assert_eq!(split.worker(1, 0), Ok(256));
    assert_eq!(
        split.worker(4, 0).unwrap_err().to_string(),
        "machine id 4 is out of range: 2 bits hold 0 to 3"
    );
    assert!(split.worker(0, 256).is_err());
    assert_eq!(split.machine(1_023), Ok(1_023));
    assert_eq!(split.machine(1_024), Err(BadLayout::Machine { id: 1_024, bits: 10, most: 1_023 }));
}

proptest! {
    #[test]
    fn an_id_is_taken_apart_into_what_made_it(
        bits in any_bits(), passed in 0_u64..1 << 31, data_centre: u64, worker: u64, count in 1_u64..10_000,
    ) {
        let layout = Layout::new(bits, DEFAULT_EPOCH, DEFAULT_EPOCH).unwrap();
        let data_centre = data_centre % (1 << bits.data_centre);
        let worker = worker % (1 << bits.worker);
        let machine = layout.worker(data_centre, worker).unwrap();
        let (first, last) = layout.begin(DEFAULT_EPOCH + passed, machine, count);
        prop_assert_eq!(last - first + 1, count.min(layout.per_millisecond()));
        let parts = layout.decode(last).unwrap();
        prop_assert_eq!(parts.unix_ms, DEFAULT_EPOCH + passed);
        prop_assert_eq!((u64::from(parts.data_centre), u64::from(parts.worker)), (data_centre, worker));
        prop_assert_eq!((parts.machine, parts.sequence), (machine, last - first));
        prop_assert_eq!(layout.decode(first | 1 << 63), None);
    }

    #[test]
    fn every_step_leads_up_and_stays_in_its_millisecond(
        bits in any_bits(), last_passed in 0_u64..10_000, now_passed in 0_u64..10_000, used: u64, count in 1_u64..10_000,
    ) {
        let layout = Layout::new(bits, DEFAULT_EPOCH, DEFAULT_EPOCH).unwrap();
        let (begun, _) = layout.begin(DEFAULT_EPOCH + last_passed, 0, 1);
        let before = begun + used % layout.per_millisecond();
        match layout.step(before, DEFAULT_EPOCH + now_passed, count) {
            IdStep::Within { first, last } => {
                prop_assert!(before < first && first <= last && last - first < count);
                prop_assert_eq!(layout.decode(first).unwrap().unix_ms, layout.decode(last).unwrap().unix_ms);
                prop_assert_eq!(now_passed, last_passed);
            }
            IdStep::Begin => {
                prop_assert!(now_passed > last_passed);
                prop_assert!(layout.begin(DEFAULT_EPOCH + now_passed, 0, count).0 > before);
            }
            IdStep::Full => prop_assert_eq!(before % layout.per_millisecond(), layout.per_millisecond() - 1),
            IdStep::Behind { milliseconds } => prop_assert_eq!(now_passed + milliseconds, last_passed),
            IdStep::RanOut => prop_assert!(false, "ten seconds fit into every format"),
        }
    }

    #[test]
    fn whatever_the_clock_does_ids_only_grow(moves in prop::collection::vec((-50_i64..50, 1_u64..6_000), 1..100)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let hands = Hands::at(NOW);
        let guard = runtime.block_on(guard(hands.clock()));
        let (one, two) = (tag(layout(), &guard), tag(layout(), &guard));
        let (mut last, mut newest) = ([0; 2], 0);
        for (moved, count) in moves {
            let now = hands.clock().wall().saturating_add_signed(moved);
            hands.set(now);
            for (tag, last) in [&one, &two].into_iter().zip(&mut last) {
                if let Ok(range) = tag.try_take(count) {
                    prop_assert!(range.first > *last, "an id went back");
                    *last = range.last;
                    prop_assert_eq!(tag.decode(range.last).unwrap().unix_ms, now);
                    prop_assert!(now >= newest, "issued behind the newest millisecond of the process");
                    newest = now;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_full_millisecond_waits_for_the_next() {
    let hands = Hands::at(NOW);
    let guard = guard(hands.clock()).await;
    let tag = tag(layout(), &guard);
    let range = tag.try_take(10_000).unwrap();
    assert_eq!(range.count(), 4_096);
    assert_eq!(tag.try_next(), Err(NotNow::Full));
    assert_eq!(tag.metrics().full, 1);
    hands.pass(1);
    assert_eq!(tag.decode(tag.try_next().unwrap()).unwrap().sequence, 0);
}

#[tokio::test]
async fn ids_end_with_the_bits_of_time() {
    let hands = Hands::at(NOW);
    let guard = guard(hands.clock()).await;
    let tag = tag(layout(), &guard);
    hands.pass(tag.layout().last_ms() - NOW);
    tag.try_next().unwrap();
    hands.pass(1);
    assert_eq!(tag.try_next(), Err(NotNow::RanOut));
    let refused = tag.issue(1).await.unwrap_err();
    assert!(matches!(refused, IssueError::Final(_)), "{refused}");
}

#[tokio::test]
async fn a_machine_id_that_does_not_fit_the_format_makes_no_ids() {
    let guard = guard(Hands::at(NOW).clock()).await;
    let four = Layout::new(Bits { worker: 2, sequence: 20, ..Bits::default() }, DEFAULT_EPOCH, NOW).unwrap();
    let tag = tag(four, &guard);
    assert_eq!(tag.try_next(), Err(NotNow::Misfit(5)));
    assert!(matches!(tag.issue(1).await, Err(IssueError::Final(_))));
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_went_back_is_refused_until_it_has_caught_up() {
    let hands = Hands::at(NOW);
    let guard = guard(hands.clock()).await;
    let tag = tag(layout(), &guard);
    let last = tag.try_next().unwrap();
    hands.set(NOW - 10_000);
    assert_eq!(tag.try_next(), Err(NotNow::Clock(ClockHold::Back { behind_ms: 10_000 })));
    let refused = tag.issue(1).await.unwrap_err();
    assert!(matches!(&refused, IssueError::Retryable(text) if text.contains("10000 ms behind")), "{refused}");
    hands.pass(9_999);
    assert_eq!(tag.try_next(), Err(NotNow::Clock(ClockHold::Wait { behind_ms: 1 })));
    hands.pass(1);
    assert_eq!(tag.try_next(), Ok(last + 1));
}

#[tokio::test]
async fn a_small_step_back_is_waited_out_by_issue() {
    let clock = Clock::system();
    let hands = Hands::at(clock.wall());
    let guard = guard(hands.clock()).await;
    let tag = tag(layout(), &guard);
    let last = tag.try_next().unwrap();
    hands.set(clock.wall() - 4);
    let (issued, ()) = tokio::join!(tag.issue(1), async { hands.pass(4_000) });
    assert!(issued.unwrap().ranges()[0].first > last);
}

#[tokio::test]
async fn the_next_run_issues_above_the_last_even_with_another_machine_id() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.clock");
    let hands = Hands::at(NOW);
    let run = |machine| {
        let (clock, file) = (hands.clock(), file.clone());
        async move {
            let guard = Guard::open(ClockOptions::default(), clock, Some(&file)).await.unwrap();
            let machine = Arc::new(Fixed(machine));
            (Snowflake::new(layout(), SnowflakeOptions::default(), Arc::clone(&guard), machine), guard)
        }
    };
    let (tag, guard) = run(9).await;
    let last = tag.try_next().unwrap();
    guard.close().await;
    drop((tag, guard));
    let (tag, _guard) = run(3).await;
    assert_eq!(tag.try_next(), Err(NotNow::Full), "the same millisecond is not used again");
    hands.pass(1);
    assert!(tag.try_next().unwrap() > last);
}

#[tokio::test]
async fn threads_never_share_an_id_and_each_sees_them_grow() {
    let guard = guard(Clock::system()).await;
    let tag = tag(layout(), &guard);
    let mut all: Vec<u64> = std::thread::scope(|scope| {
        let take = || {
            let ids: Vec<u64> = (0..20_000).map(|_| tag.next().unwrap()).collect();
            assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
            ids
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 80_000);
}

#[tokio::test]
async fn an_id_is_shown_in_its_parts_and_ids_are_counted() {
    let hands = Hands::at(NOW);
    let guard = guard(hands.clock()).await;
    let split =
        Layout::new(Bits { data_centre: 2, worker: 8, ..Bits::default() }, DEFAULT_EPOCH, NOW).unwrap();
    let machine = Arc::new(Fixed(split.worker(1, 7).unwrap()));
    let tag = Snowflake::new(split, SnowflakeOptions::default(), Arc::clone(&guard), machine);
    let first = tag.try_next().unwrap();
    let shown: Vec<_> =
        tag.parts(first + 2).into_iter().map(|part| format!("{} {}", part.name, part.value)).collect();
    assert_eq!(
        shown,
        ["time 2026-11-26T10:40:00.000Z", "machine 263", "data_centre 1", "worker 7", "sequence 2"]
    );
    assert_eq!(tag.status().issued, 1);
    tag.try_take(9).unwrap();
    hands.pass(5);
    tag.try_take(100).unwrap();
    let status = tag.status();
    assert_eq!((status.issued, status.trouble), (110, None));
    hands.set(NOW - 60_000);
    assert!(tag.status().trouble.unwrap().contains("60005 ms behind the last number"));
}

#[tokio::test]
async fn a_batch_spans_milliseconds_and_is_complete() {
    let guard = guard(Clock::system()).await;
    let tag = tag(layout(), &guard);
    tag.init().await.unwrap();
    let issued = tag.issue(10_000).await.unwrap();
    assert_eq!(issued.count(), 10_000);
    assert!(issued.ranges().len() >= 3);
    let ids: Vec<u64> = issued.numbers().collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(tag.try_issue().is_ok_and(|id| id > ids[9_999]) || tag.metrics().full > 0);
}
