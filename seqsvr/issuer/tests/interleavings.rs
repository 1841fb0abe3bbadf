//! Every interleaving of a few threads on the numbers of a tag: the switch from one segment to the next. The very
//! sources of the crate are compiled here against a model checker's types.

#[path = "../src/segment/buffer.rs"]
#[allow(dead_code, unreachable_pub, reason = "compiled for the interleavings alone")]
mod buffer;
#[path = "../src/range.rs"]
#[allow(dead_code, unreachable_pub, reason = "compiled for the interleavings alone")]
mod range;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
    pub(crate) use loom::sync::{Mutex, MutexGuard};
}

use std::time::Duration;

use loom::sync::Arc;
use loom::thread;

use buffer::{BufferTake, SegmentBuffer};
use range::Range;

/// A buffer whose segments are these; the next is asked for when half of one is used.
fn buffer(segments: &[(u64, u64)]) -> Arc<SegmentBuffer> {
    let buffer = SegmentBuffer::new(50, Duration::ZERO);
    for &(first, last) in segments {
        assert!(buffer.put(Range { first, last }, Duration::ZERO));
    }
    Arc::new(buffer)
}

/// Takes one number with care alone.
fn one(buffer: &SegmentBuffer) -> Option<u64> {
    match buffer.take(1, Duration::ZERO) {
        BufferTake::Taken(ranges) => Some(ranges[0].first),
        BufferTake::Need(_) => None,
    }
}

/// As the strategy does it: what was drawn in vain may still be good.
fn drawn(buffer: &SegmentBuffer) -> Option<u64> {
    match buffer.take_one() {
        Ok(number) => Some(number),
        Err(drawn) => buffer.resolve(drawn, Duration::ZERO),
    }
}

fn spawn<T: 'static>(
    buffer: &Arc<SegmentBuffer>,
    work: impl FnOnce(&SegmentBuffer) -> T + 'static,
) -> thread::JoinHandle<T> {
    let buffer = Arc::clone(buffer);
    thread::spawn(move || work(&buffer))
}

/// All interleavings with up to `preemptions` switches that no thread asked for.
fn bounded(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Nothing twice, each thread's own increasing, and all from the segments.
fn check(segments: &[(u64, u64)], threads: &[Vec<u64>]) {
    let mut all: Vec<u64> = threads.concat();
    for number in &all {
        assert!(
            segments.iter().any(|(first, last)| first <= number && number <= last),
            "{number} is nobody's"
        );
    }
    for numbers in threads {
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    }
    all.sort_unstable();
    assert!(all.is_sorted_by(|a, b| a < b), "{threads:?}");
}

const APART: &[(u64, u64)] = &[(1, 2), (11, 14)];
const ADJACENT: &[(u64, u64)] = &[(1, 2), (3, 6)];

#[test]
fn two_takers_over_a_switch_get_different_and_growing_numbers() {
    for segments in [APART, ADJACENT] {
        bounded(3, move || {
            let buffer = buffer(segments);
            let other = spawn(&buffer, |buffer| [drawn(buffer), drawn(buffer)]);
            let mine = [drawn(&buffer), drawn(&buffer)];
            let theirs = other.join().unwrap();
            let numbers = |taken: [Option<u64>; 2]| taken.into_iter().flatten().collect::<Vec<_>>();
            assert_eq!(
                numbers(mine).len() + numbers(theirs).len(),
                4,
                "the next segment is there: nobody waits"
            );
            check(segments, &[numbers(mine), numbers(theirs)]);
        });
    }
}

#[test]
fn three_takers_at_the_end_of_a_segment_share_no_number() {
    for segments in [APART, ADJACENT] {
        bounded(2, move || {
            let buffer = buffer(segments);
            let others = [0, 1].map(|_| spawn(&buffer, drawn));
            let mut taken = vec![vec![drawn(&buffer).unwrap()]];
            taken.extend(others.map(|other| vec![other.join().unwrap().unwrap()]));
            check(segments, &taken);
        });
    }
}

#[test]
fn a_segment_that_arrives_while_others_take_is_used_from_its_start_on() {
    for (second, first) in [(Range { first: 2, last: 4 }, 2), (Range { first: 8, last: 9 }, 8)] {
        bounded(3, move || {
            let buffer = buffer(&[(1, 1)]);
            let taker = spawn(&buffer, |buffer| [drawn(buffer), drawn(buffer)]);
            assert!(buffer.put(second, Duration::ZERO));
            let taken = taker.join().unwrap();
            let last = drawn(&buffer).expect("two numbers at least were left");
            let taken: Vec<u64> = taken.into_iter().flatten().chain([last]).collect();
            check(&[(1, 1), (first, second.last)], &[taken]);
        });
    }
}

#[test]
fn a_batch_over_a_switch_shares_nothing_with_a_taker() {
    for segments in [APART, ADJACENT] {
        bounded(3, move || {
            let buffer = buffer(segments);
            let taker = spawn(&buffer, |buffer| [one(buffer), drawn(buffer)]);
            let batch = match buffer.take(3, Duration::ZERO) {
                BufferTake::Taken(ranges) => {
                    ranges.iter().flat_map(|range| range.first..=range.last).collect()
                }
                BufferTake::Need(_) => vec![],
            };
            let taken = taker.join().unwrap().into_iter().flatten().collect();
            assert!(batch.is_empty() || batch.len() == 3);
            check(segments, &[batch, taken]);
        });
    }
}

#[test]
fn a_number_taken_after_another_was_seen_is_larger() {
    bounded(3, || {
        let buffer = buffer(APART);
        let seen = Arc::new(loom::sync::atomic::AtomicU64::new(0));
        let (reported, taker) = (Arc::clone(&seen), Arc::clone(&buffer));
        let other = thread::spawn(move || {
            let number = drawn(&taker).unwrap();
            reported.store(number, loom::sync::atomic::Ordering::Release);
        });
        let before = seen.load(loom::sync::atomic::Ordering::Acquire);
        let mine = drawn(&buffer).unwrap();
        assert!(mine > before, "{mine} after {before}");
        other.join().unwrap();
    });
}
