//! The embedded allocator over a store that fails: raises under way, failed, lost and of unknown outcome,
//! restarts, and another owner. Time is paused, so every wait is exact.

#![allow(clippy::unwrap_used, reason = "a failed test is what it is for")]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use seqsvr_core::alloc::Embedded;
use seqsvr_core::store::{Ceiling, Owner, SectionStore};
use seqsvr_core::{NextError, Options, Refusal, SectionId, Sequencer, TryNextError, Uid};
use support::{Faulty, RaiseFault};
use tokio::time::Instant;

const ALICE: Uid = Uid::new(10_001);
const BOB: Uid = Uid::new(10_002);

async fn open_with(store: &Arc<Faulty>, options: Options) -> Embedded {
    Embedded::open(Arc::<Faulty>::clone(store), options).await.unwrap()
}

async fn open(store: &Arc<Faulty>) -> Embedded {
    open_with(store, Options::default()).await
}

/// Lets all tasks run until nothing can go on without the caller.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_raise_in_flight_holds_nobody_up_who_is_below_the_ceiling() {
    let store = Arc::new(Faulty::new());
    let sequencer = open(&store).await;
    sequencer.next(ALICE, 1).await.unwrap();
    store.shut();
    for expected in 2..=10_000 {
        assert_eq!(sequencer.try_next(ALICE, 1).unwrap().last, expected);
    }
    settle().await;
    assert_eq!(store.calls(), 2, "the second raise is on its way");
    assert_eq!(sequencer.try_next(ALICE, 1), Err(TryNextError::WouldWait), "not one above the ceiling");
    assert_eq!(sequencer.try_next(BOB, 10_000).unwrap().last, 10_000, "but everything up to it");
    store.let_one_through();
    settle().await;
    assert_eq!(sequencer.try_next(ALICE, 1).unwrap().last, 10_001);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_the_store_in_the_steady_state() {
    let store = Arc::new(Faulty::new());
    let sequencer = open(&store).await;
    sequencer.next(ALICE, 1).await.unwrap();
    for taken in 2..200_000 {
        assert_eq!(sequencer.try_next(ALICE, 1).unwrap().last, taken);
        // The raiser gets its turn once for every 1,000 numbers, long before half a step is used.
        if taken % 1_000 == 0 {
            settle().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn at_most_one_raise_for_each_step_of_numbers() {
    let store = Arc::new(Faulty::new());
    let sequencer = open(&store).await;
    for _ in 0..50_000 {
        sequencer.next(ALICE, 7).await.unwrap();
    }
    settle().await;
    assert!(store.calls() <= 50_000 * 7 / 10_000 + 1, "{} raises", store.calls());
    assert_eq!(sequencer.metrics().raises, store.calls());
    assert_eq!(sequencer.metrics().allocated, 350_000);
}

/// S3: at ten million numbers a second, a thousand writes a second.
#[tokio::test(start_paused = true)]
async fn ten_million_numbers_are_a_thousand_writes() {
    let store = Arc::new(Faulty::new());
    let sequencer = open(&store).await;
    for _ in 0..100_000 {
        sequencer.next(ALICE, 100).await.unwrap();
    }
    settle().await;
    assert_eq!(sequencer.metrics().allocated, 10_000_000);
    // One more is ahead of need.
    assert_eq!(store.calls(), 1_000 + 1);
}

/// S2: it is answered from memory, however often a heartbeat asks.
#[tokio::test(start_paused = true)]
async fn a_look_up_asks_the_store_for_nothing() {
    let store = Arc::new(Faulty::new());
    let sequencer = open(&store).await;
    sequencer.next(ALICE, 7).await.unwrap();
    settle().await;
    let asked = store.asked();
    for _ in 0..10_000 {
        assert_eq!(sequencer.current(ALICE).await, Ok(7));
        assert_eq!(sequencer.current(BOB).await, Ok(0));
    }
    settle().await;
    assert_eq!(store.asked(), asked);
}

#[tokio::test(start_paused = true)]
async fn many_callers_that_wait_share_one_raise() {
    let store = Arc::new(Faulty::new());
    let sequencer = Arc::new(open(&store).await);
    store.shut();
    let waiting: Vec<_> = (0..1_000)
        .map(|uid| {
            let sequencer = Arc::clone(&sequencer);
            tokio::spawn(async move { sequencer.next(Uid::new(uid), 3).await })
        })
        .collect();
    settle().await;
    assert_eq!(store.calls(), 1);
    store.let_one_through();
    for task in waiting {
        assert_eq!(task.await.unwrap().unwrap().last, 3);
    }
    assert_eq!(store.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_for_many_uids_waits_once_for_all_their_sections() {
    let store = Arc::new(Faulty::new());
    let sequencer = open(&store).await;
    store.shut();
    let uids: Vec<_> = [7, 100_007, 7, 300_007, 100_007, 7].map(Uid::new).to_vec();
    let call = async { sequencer.next_each(&uids, Duration::MAX).await };
    let open_once = async {
        settle().await;
        assert_eq!(store.raises().len(), 3, "all sections were asked for");
        store.let_one_through();
    };
    let (numbers, ()) = tokio::join!(call, open_once);
    let numbers: Vec<_> = numbers.into_iter().map(Result::unwrap).collect();
    assert_eq!(numbers, [1, 1, 2, 1, 2, 3], "a uid that is there again gets a larger one");
    assert_eq!(store.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn in_a_call_for_many_uids_each_has_an_outcome_of_its_own() {
    let store = Arc::new(Faulty::new());
    let limit = 100;
    let sequencer = open_with(&store, Options { limit, ..Options::default() }).await;
    sequencer.advance(ALICE, limit).await.unwrap();
    store.always(RaiseFault::Fails);
    let far = Uid::new(500_000);
    let began = Instant::now();
    let numbers = sequencer.next_each(&[BOB, ALICE, far, BOB, far], Duration::MAX).await;
    assert_eq!(began.elapsed(), Options::default().raise_wait, "one wait for all");
    assert_eq!(numbers[1], Err(NextError::Final(Refusal::Exhausted { limit })));
    assert_eq!((&numbers[0], &numbers[3]), (&Ok(1), &Ok(2)));
    assert!(matches!(numbers[2], Err(NextError::Retryable(_))), "{numbers:?}");
    assert_eq!(numbers[2], numbers[4]);
}

#[tokio::test(start_paused = true)]
async fn a_call_for_many_uids_waits_no_longer_than_its_caller() {
    let store = Arc::new(Faulty::new());
    let sequencer = open(&store).await;
    assert_eq!(sequencer.next_each(&[BOB], Duration::MAX).await, [Ok(1)]);
    store.always(RaiseFault::Fails);
    let began = Instant::now();
    let patience = Duration::from_millis(50);
    let numbers = sequencer.next_each(&[BOB, Uid::new(500_000)], patience).await;
    assert_eq!(began.elapsed(), patience);
    assert_eq!(numbers[0], Ok(2), "what can be had is there");
    assert!(matches!(numbers[1], Err(NextError::Retryable(_))), "{numbers:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failing_store_gives_a_retryable_error_in_bounded_time_and_then_heals() {
    let store = Arc::new(Faulty::new());
    let sequencer = open(&store).await;
    store.always(RaiseFault::Fails);
    let began = Instant::now();
    let refused = sequencer.next(ALICE, 1).await;
    assert!(matches!(refused, Err(NextError::Retryable(_))), "{refused:?}");
    assert_eq!(began.elapsed(), Options::default().raise_wait);
    assert!(store.calls() <= 20, "{} calls: it must back off", store.calls());
    assert_eq!(sequencer.current(ALICE).await, Ok(0), "nothing was handed out");
    store.always(None);
    tokio::time::sleep(Options::default().retry_longest).await;
    assert_eq!(sequencer.try_next(ALICE, 1).unwrap().last, 1, "healed without being asked again");
    let metrics = sequencer.metrics();
    assert_eq!((metrics.refused_unavailable, metrics.raises), (1, 1));
    assert_eq!(metrics.raises_failed, store.calls() - 1);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_counts_as_not_confirmed_and_is_repeated_not_lowered() {
    for fault in [RaiseFault::CommitsUnseen, RaiseFault::LostUnseen] {
        let store = Arc::new(Faulty::new());
        let sequencer = open(&store).await;
        store.then([fault]);
        store.shut();
        store.let_one_through();
        let waiting = sequencer.next(ALICE, 1);
        tokio::pin!(waiting);
        assert!(tokio::time::timeout(Duration::from_secs(1), &mut waiting).await.is_err(), "{fault:?}");
        assert_eq!(sequencer.try_next(BOB, 1), Err(TryNextError::WouldWait), "{fault:?}");
        store.let_one_through();
        assert_eq!(waiting.await.unwrap().last, 1, "{fault:?}");
        let targets: Vec<_> = store.raises().iter().map(|raise| raise.max).collect();
        assert!(targets.len() == 2 && targets.is_sorted(), "{fault:?}: {targets:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_never_answers_is_given_up_and_asked_again() {
    let store = Arc::new(Faulty::new());
    let sequencer = open(&store).await;
    store.then([RaiseFault::Hangs]);
    assert!(matches!(sequencer.next(ALICE, 1).await, Err(NextError::Retryable(_))));
    tokio::time::sleep(Options::default().store_timeout).await;
    assert_eq!(sequencer.next(ALICE, 1).await.unwrap().last, 1);
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_an_unseen_commit_never_goes_back() {
    let store = Arc::new(Faulty::new());
    let before = open(&store).await;
    let last = before.next(ALICE, 10).await.unwrap().last;
    store.always(RaiseFault::CommitsUnseen);
    assert!(matches!(before.next(ALICE, 20_000).await, Err(NextError::Retryable(_))));
    drop(before);
    store.always(None);
    let after = open(&store).await;
    assert!(after.next(ALICE, 1).await.unwrap().first > last);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_uid_jumps_to_the_ceiling_of_its_section_at_a_restart_only() {
    let store = Arc::new(Faulty::new());
    let before = open(&store).await;
    for _ in 0..100 {
        before.next(ALICE, 10_000).await.unwrap();
    }
    assert_eq!(before.next(BOB, 1).await.unwrap().last, 1, "untouched: where it stood at the start");
    assert_eq!(before.next(Uid::new(100_000), 1).await.unwrap().last, 1, "another section");
    let alice = before.current(ALICE).await.unwrap();
    before.shutdown().await;
    let after = open(&store).await;
    let (quiet, busy) = (after.current(BOB).await.unwrap(), after.current(ALICE).await.unwrap());
    assert_eq!(quiet, busy);
    assert!((alice..=alice + 20_000).contains(&busy), "the busiest: at most the window raised ahead");
    assert_eq!(after.current(Uid::new(100_000)).await, Ok(10_000));
}

#[tokio::test(start_paused = true)]
async fn numbers_end_exactly_at_the_limit() {
    for limit in [(1_u64 << 63) - 1, (1 << 53) - 1] {
        let store = Arc::new(Faulty::new());
        let options = Options { limit, ..Options::default() };
        let sequencer = open_with(&store, options.clone()).await;
        sequencer.advance(ALICE, limit - 3).await.unwrap();
        assert_eq!(sequencer.next(ALICE, 4).await, Err(NextError::Final(Refusal::Exhausted { limit })));
        assert_eq!(sequencer.next(ALICE, 2).await.unwrap().last, limit - 1);
        assert_eq!(sequencer.next(ALICE, 1).await.unwrap().last, limit);
        for _ in 0..3 {
            assert_eq!(sequencer.try_next(ALICE, 1), Err(TryNextError::Final(Refusal::Exhausted { limit })));
        }
        assert_eq!(sequencer.current(ALICE).await, Ok(limit));
        assert_eq!(
            sequencer.advance(ALICE, limit + 1).await,
            Err(NextError::Final(Refusal::Exhausted { limit }))
        );
        assert_eq!(sequencer.next(BOB, 1).await.unwrap().last, 1, "others of the section go on");
        sequencer.shutdown().await;
        let after = open_with(&store, options).await;
        assert_eq!(after.next(ALICE, 1).await, Err(NextError::Final(Refusal::Exhausted { limit })));
    }
}

#[tokio::test(start_paused = true)]
async fn advance_is_durable_and_never_lowers() {
    let store = Arc::new(Faulty::new());
    let before = open(&store).await;
    before.advance(ALICE, 1_000_000).await.unwrap();
    before.advance(ALICE, 5).await.unwrap();
    assert_eq!(before.next(ALICE, 1).await.unwrap().last, 1_000_001);
    before.advance(BOB, 77).await.unwrap();
    assert_eq!(before.next(BOB, 1).await.unwrap().last, 78);
    assert_eq!(before.metrics().allocated, 2, "what was skipped was not handed out");
    drop(before);
    let after = open(&store).await;
    assert!(after.next(ALICE, 1).await.unwrap().first > 1_000_001);
}

#[tokio::test(start_paused = true)]
async fn a_uid_that_comes_further_than_32_bits_goes_on() {
    let store = Arc::new(Faulty::new());
    let sequencer = open(&store).await;
    let far = u64::from(u32::MAX);
    sequencer.advance(ALICE, far - 2).await.unwrap();
    let numbers: Vec<_> = take_one_by_one(&sequencer, 6).await;
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    assert!(numbers[0] == far - 1 && numbers[5] <= far + 5, "{numbers:?}");
    sequencer.advance(BOB, far << 20).await.unwrap();
    assert_eq!(sequencer.next(BOB, 1).await.unwrap().last, (far << 20) + 1);
    assert_eq!(sequencer.next(Uid::new(10_003), 1).await.unwrap().last, 1);
    assert_eq!(sequencer.metrics().allocated, 8);
}

async fn take_one_by_one(sequencer: &Embedded, count: usize) -> Vec<u64> {
    let mut numbers = Vec::new();
    for _ in 0..count {
        numbers.push(sequencer.next(ALICE, 1).await.unwrap().last);
    }
    numbers
}

#[tokio::test(start_paused = true)]
async fn a_count_beyond_the_step_raises_as_far_as_it_needs() {
    let store = Arc::new(Faulty::new());
    let sequencer = open(&store).await;
    let granted = sequencer.next(ALICE, 100_000).await.unwrap();
    assert_eq!((granted.first, granted.last), (1, 100_000));
    for count in [0, 100_001, u32::MAX] {
        let refused = Refusal::BadCount { count, max: 100_000 };
        assert_eq!(sequencer.try_next(ALICE, count), Err(TryNextError::Final(refused.clone())));
        assert_eq!(sequencer.next(ALICE, count).await, Err(NextError::Final(refused)));
    }
}

#[tokio::test(start_paused = true)]
async fn the_loser_of_a_takeover_hands_out_nothing_more() {
    let store = Arc::new(Faulty::new());
    let old = open(&store).await;
    old.next(ALICE, 1).await.unwrap();
    let new = open(&store).await;
    assert!(new.next(ALICE, 1).await.unwrap().first > 10_000);
    // The old one learns it from the store when it next raises, here ahead of need.
    old.next(ALICE, 6_000).await.unwrap();
    settle().await;
    let fenced = Refusal::Fenced { mine: old.epoch() };
    assert_eq!(old.try_next(ALICE, 1), Err(TryNextError::Final(fenced.clone())));
    assert_eq!(old.next(BOB, 1).await, Err(NextError::Final(fenced.clone())));
    assert_eq!(old.advance(BOB, 5).await, Err(NextError::Final(fenced)));
    assert_eq!(old.metrics().refused_fenced, 3);
}

#[tokio::test(start_paused = true)]
async fn a_ceiling_that_went_further_is_caught_up_with() {
    let store = Arc::new(Faulty::new());
    let sequencer = open_with(&store, Options { incarnation: 42, ..Options::default() }).await;
    sequencer.next(ALICE, 1).await.unwrap();
    // The same owner's earlier raise arrives late, after its answer was given up.
    let owner = Owner { epoch: sequencer.epoch(), incarnation: 42 };
    let late = Ceiling { section: SectionId::new(0), max: 500_000 };
    assert_eq!(store.raise(owner, &[late]).await, [Ok(500_000)]);
    assert_eq!(sequencer.next(ALICE, 50_000).await.unwrap().last, 50_001);
}

#[tokio::test(start_paused = true)]
async fn shutdown_finishes_the_raise_under_way_and_answers_who_waits() {
    let store = Arc::new(Faulty::new());
    let sequencer = Arc::new(open(&store).await);
    store.shut();
    let waiter = {
        let sequencer = Arc::clone(&sequencer);
        tokio::spawn(async move { sequencer.next(ALICE, 1).await })
    };
    settle().await;
    let stopping = {
        let sequencer = Arc::clone(&sequencer);
        tokio::spawn(async move { sequencer.shutdown().await })
    };
    settle().await;
    assert!(!stopping.is_finished(), "the raise is still under way");
    store.let_one_through();
    stopping.await.unwrap();
    let answer = waiter.await.unwrap();
    assert!(matches!(answer, Ok(_) | Err(NextError::Final(Refusal::Stopped))), "{answer:?}");
    assert_eq!(sequencer.try_next(ALICE, 1), Err(TryNextError::Final(Refusal::Stopped)));
}

/// The next act of a caller or the world.
#[derive(Clone, Debug)]
enum CallStep {
    Take { uid: u8, count: u32 },
    Advance { uid: u8, by: u32 },
    Faults(Vec<RaiseFault>),
    Crash,
}

fn step() -> impl Strategy<Value = CallStep> {
    let uid = 0..3_u8;
    let fault = prop_oneof![
        Just(RaiseFault::Fails),
        Just(RaiseFault::CommitsUnseen),
        Just(RaiseFault::LostUnseen),
        Just(RaiseFault::Hangs)
    ];
    prop_oneof![
        8 => (uid.clone(), 1..30_000_u32).prop_map(|(uid, count)| CallStep::Take { uid, count }),
        1 => (uid, 0..1_000_000_u32).prop_map(|(uid, by)| CallStep::Advance { uid, by }),
        2 => prop::collection::vec(fault, 1..4).prop_map(CallStep::Faults),
        1 => Just(CallStep::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_uid_ever_goes_back_whatever_fails(steps in prop::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let store = Arc::new(Faulty::new());
            let mut sequencer = open(&store).await;
            let mut newest = BTreeMap::<u8, u64>::new();
            for step in steps {
                match step {
                    CallStep::Take { uid, count } => match sequencer.next(Uid::new(uid.into()), count).await {
                        Ok(granted) => {
                            let newest = newest.entry(uid).or_default();
                            assert!(granted.first > *newest, "{granted:?} after {newest}");
                            assert_eq!(granted.last - granted.first + 1, u64::from(count));
                            *newest = granted.last;
                        }
                        Err(error) => assert!(matches!(error, NextError::Retryable(_)), "{error}"),
                    },
                    CallStep::Advance { uid, by } => {
                        let newest = newest.entry(uid).or_default();
                        let at_least = *newest + u64::from(by);
                        if sequencer.advance(Uid::new(uid.into()), at_least).await.is_ok() {
                            *newest = at_least;
                        }
                    }
                    CallStep::Faults(faults) => store.then(faults),
                    CallStep::Crash => sequencer = open(&store).await,
                }
                for (&uid, &newest) in &newest {
                    assert!(sequencer.current(Uid::new(uid.into())).await.unwrap() >= newest);
                }
            }
        });
    }
}
