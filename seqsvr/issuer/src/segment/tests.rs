//! A buffer behaves like a plain list of numbers, and the strategy like its contract, in paused time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::buffer::{BufferTake, SegmentBuffer};
use super::{SegmentOptions, SegmentStrategy};
use crate::range::Range;
use crate::repository::{MemoryRepository, Repository};
use crate::strategy::{IssueError, Strategy as _};
use crate::tag::Tag;

#[derive(Clone, Debug)]
enum BufferStep {
    One,
    Some(u64),
    Put { gap: u64, length: u64 },
}

fn step() -> impl Strategy<Value = BufferStep> {
    prop_oneof![
        Just(BufferStep::One),
        (1_u64..12).prop_map(BufferStep::Some),
        (0_u64..3, 1_u64..10).prop_map(|(gap, length)| BufferStep::Put { gap, length }),
    ]
}

proptest! {
    #[test]
    fn a_line_gives_the_numbers_of_its_segments_in_order(
        prepare_at in 0_u8..100,
        reserve in 0_u64..2,
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let buffer = SegmentBuffer::new(prepare_at, Duration::from_secs(reserve));
        let (mut model, mut end, mut newest) = (VecDeque::new(), 0, 0);
        for step in steps {
            let count = match step {
                BufferStep::Put { gap, length } => {
                    let range = Range { first: end + gap + 1, last: end + gap + length };
                    end = range.last;
                    prop_assert!(buffer.put(range, Duration::ZERO));
                    model.extend(range.first..=range.last);
                    continue;
                }
                BufferStep::Some(count) => count,
                BufferStep::One => 1,
            };
            let taken: Vec<u64> = match step {
                BufferStep::One => {
                    let number = buffer.take_one().or_else(|drawn| buffer.resolve(drawn, Duration::ZERO).ok_or(()));
                    number.into_iter().collect()
                }
                _ => match buffer.take(count, Duration::ZERO) {
                    BufferTake::Taken(ranges) => {
                        ranges.iter().flat_map(|range| range.first..=range.last).collect()
                    }
                    BufferTake::Need(missing) => {
                        prop_assert!(missing + model.len() as u64 >= count);
                        vec![]
                    }
                },
            };
            // A number that was drawn in vain at the end of a segment may leave a gap.
            for number in &taken {
                prop_assert!(*number > newest && model.contains(number), "{} after {}", number, newest);
                newest = *number;
            }
            model.retain(|number| *number > newest);
            prop_assert!(taken.is_empty() || taken.len() as u64 == count);
        }
    }
}

fn strategy(repository: &Arc<MemoryRepository>, options: SegmentOptions) -> SegmentStrategy {
    let repository = Arc::clone(repository) as Arc<dyn Repository>;
    SegmentStrategy::new(&Tag::new("order").unwrap(), repository, None, options).unwrap()
}

fn small() -> SegmentOptions {
    SegmentOptions { step: 10, step_min: 10, ..SegmentOptions::default() }
}

#[tokio::test(start_paused = true)]
async fn a_new_tag_begins_at_its_start() {
    let repository = Arc::new(MemoryRepository::new());
    let strategy = strategy(&repository, SegmentOptions { start: Some(100), ..small() });
    strategy.init().await.unwrap();
    let issued = strategy.issue(25).await.unwrap();
    assert_eq!(issued.ranges(), [Range { first: 100, last: 124 }]);
}

#[tokio::test(start_paused = true)]
async fn a_restart_goes_on_above_what_was_taken() {
    let repository = Arc::new(MemoryRepository::new());
    let first = strategy(&repository, small());
    first.init().await.unwrap();
    let last = first.issue(3).await.unwrap().ranges()[0].last;
    first.shutdown().await;
    let second = strategy(&repository, small());
    second.init().await.unwrap();
    assert!(second.issue(1).await.unwrap().ranges()[0].first > last);
}

#[tokio::test(start_paused = true)]
async fn two_issuers_on_one_repository_share_no_number() {
    let repository = Arc::new(MemoryRepository::new());
    let (one, two) = (strategy(&repository, small()), strategy(&repository, small()));
    one.init().await.unwrap();
    two.init().await.unwrap();
    let mut all = vec![];
    for count in 1..40 {
        for strategy in [&one, &two] {
            let issued = strategy.issue(count).await.unwrap();
            assert_eq!(issued.count(), u64::from(count));
            all.extend(issued.numbers());
        }
    }
    let issued = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), issued);
}

#[tokio::test(start_paused = true)]
async fn numbers_above_a_floor_only() {
    let repository = Arc::new(MemoryRepository::new());
    let strategy = strategy(&repository, SegmentOptions { above: 7_000, ..small() });
    strategy.init().await.unwrap();
    assert_eq!(strategy.issue(1).await.unwrap().ranges(), [Range::one(7_001)]);
}

#[tokio::test(start_paused = true)]
async fn a_start_below_what_was_taken_is_refused_and_one_above_moves_on() {
    let repository = Arc::new(MemoryRepository::new());
    let with = |start| strategy(&repository, SegmentOptions { start: Some(start), ..small() });
    let first = with(100);
    first.init().await.unwrap();
    first.issue(1).await.unwrap();
    first.shutdown().await;
    let error = with(50).init().await.unwrap_err().to_string();
    assert!(error.contains("start = 50 is not above 109"), "{error}");
    with(100).init().await.unwrap();
    let moved = with(5_000);
    moved.init().await.unwrap();
    assert_eq!(moved.issue(1).await.unwrap().ranges(), [Range::one(5_000)]);
}

#[tokio::test(start_paused = true)]
async fn a_largest_step_below_what_is_stored_is_refused() {
    let repository = Arc::new(MemoryRepository::new());
    strategy(&repository, SegmentOptions { step: 500, ..small() }).init().await.unwrap();
    let error = strategy(&repository, SegmentOptions { step_max: 400, ..small() }).init().await.unwrap_err();
    assert!(error.to_string().contains("step_max = 400 is below the step that is stored, 500"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_limit_ends_a_tag_for_good() {
    let repository = Arc::new(MemoryRepository::new());
    let strategy = strategy(&repository, SegmentOptions { limit: 25, ..small() });
    strategy.init().await.unwrap();
    assert_eq!(strategy.issue(25).await.unwrap().count(), 25);
    let error = strategy.issue(1).await.unwrap_err();
    assert!(matches!(&error, IssueError::Final(text) if text.contains("numbers end at 25")), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_busy_tag_gets_larger_segments_and_a_quiet_one_smaller() {
    let repository = Arc::new(MemoryRepository::new());
    let strategy = strategy(&repository, SegmentOptions { step: 100, ..small() });
    strategy.init().await.unwrap();
    let step = async || repository.list().await.unwrap()[0].values.step;
    for _ in 0..2_000 {
        strategy.issue(1).await.unwrap();
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    let busy = step().await;
    assert!(busy >= 400, "{busy}");
    for _ in 0..40_000 {
        strategy.issue(1).await.unwrap();
        tokio::time::advance(Duration::from_secs(60)).await;
    }
    assert!(step().await < 100);
}

#[tokio::test(start_paused = true)]
async fn the_step_of_a_call_counts_for_the_next_segment_and_adapts_from_there() {
    let repository = Arc::new(MemoryRepository::new());
    // One segment waits behind the one in use, and no more.
    let options = SegmentOptions { step_max: 5_000, reserve: Duration::ZERO, ..small() };
    let strategy = strategy(&repository, options);
    strategy.init().await.unwrap();
    strategy.issue(1).await.unwrap();
    for wrong in [0, 9, 5_001] {
        let problem = strategy.ask_step(wrong).unwrap_err();
        assert!(problem.contains("set 10 to 5000"), "{problem}");
    }
    strategy.ask_step(900).unwrap();
    let stored = async || repository.list().await.unwrap()[0].values;
    let before = stored().await.max;
    while stored().await.max == before {
        strategy.issue(1).await.unwrap();
        tokio::task::yield_now().await;
    }
    let taken = stored().await;
    assert_eq!((taken.max - before, taken.step), (900, 900));
    // Used up within a moment, so the next one is twice as large: the row's step, as ever.
    for _ in 0..50 {
        strategy.issue(100).await.unwrap();
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    assert!(stored().await.step > 900, "{:?}", stored().await);
}
