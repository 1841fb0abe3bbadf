//! The embedded allocator over a store that works: what callers may rely on.

#![allow(clippy::unwrap_used, reason = "a failed test is what it is for")]

use std::sync::Arc;

use seqsvr::store::Memory;
use seqsvr::{Embedded, NextError, Options, Refusal, Sequencer, TryNextError, Uid};

const ALICE: Uid = Uid::new(10_001);

async fn open(store: &Arc<Memory>) -> Embedded {
    Embedded::open(Arc::<Memory>::clone(store), Options::default()).await.expect("the store works")
}

#[tokio::test]
async fn numbers_of_one_uid_grow_without_gaps_while_it_runs() {
    let sequencer = open(&Arc::new(Memory::new())).await;
    let first = sequencer.next(ALICE, 1).await.unwrap();
    assert_eq!((first.first, first.last, first.epoch), (1, 1, sequencer.epoch()));
    let range = sequencer.next(ALICE, 5).await.unwrap();
    assert_eq!((range.first, range.last), (2, 6));
    assert_eq!(sequencer.try_next(ALICE, 1).unwrap().last, 7);
    assert_eq!(sequencer.current(ALICE).await, Ok(7));
}

#[tokio::test]
async fn reopening_goes_on_above_everything_handed_out() {
    let store = Arc::new(Memory::new());
    let before = open(&store).await;
    let last = before.next(ALICE, 3).await.unwrap().last;
    before.shutdown().await;
    let after = open(&store).await;
    assert!(after.epoch() > before.epoch());
    assert!(after.current(ALICE).await.unwrap() >= last);
    assert!(after.next(ALICE, 1).await.unwrap().first > last);
}

#[tokio::test]
async fn shutdown_refuses_later_calls_for_good() {
    let sequencer = open(&Arc::new(Memory::new())).await;
    sequencer.next(ALICE, 1).await.unwrap();
    sequencer.shutdown().await;
    sequencer.shutdown().await;
    assert_eq!(sequencer.try_next(ALICE, 1), Err(TryNextError::Final(Refusal::Stopped)));
    assert_eq!(sequencer.next(ALICE, 1).await, Err(NextError::Final(Refusal::Stopped)));
    assert_eq!(sequencer.metrics().refused_stopped, 2);
}
