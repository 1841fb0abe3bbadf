//! The embedded allocator over a store that works: what callers may rely on.

#![allow(clippy::unwrap_used, reason = "a failed test is what it is for")]

use std::sync::Arc;
use std::time::Duration;

use seqsvr_core::alloc::Embedded;
use seqsvr_core::store::sqlite::SqliteSections;
use seqsvr_core::store::{
    Ceiling, Claimed, Layout, Memory, Owner, RaiseError, Ranges, SectionStore, StoreError,
};
use seqsvr_core::{Epoch, NextError, Options, Refusal, Sequencer, TryNextError, Uid};

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

#[tokio::test]
async fn a_file_carries_the_numbers_over_a_restart_and_refuses_other_settings() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sections.db");
    let store = Arc::new(SqliteSections::open(&path).await.unwrap());
    let before = Embedded::open(store, Options::default()).await.unwrap();
    let last = before.next(ALICE, 100).await.unwrap().last;
    before.shutdown().await;
    drop(before);

    let store = Arc::new(SqliteSections::open(&path).await.unwrap());
    let shared = || Arc::<SqliteSections>::clone(&store);
    for options in [
        Options { section_size: 50_000, ..Options::default() },
        Options { step: 1_000, ..Options::default() },
    ] {
        let refused = Embedded::open(shared(), options).await.err().expect("the settings differ");
        let advice = "set section_size = 100000 and step = 10000";
        assert!(refused.to_string().contains(advice), "{refused}");
    }
    let after = Embedded::open(shared(), Options::default()).await.unwrap();
    let first = after.next(ALICE, 1).await.unwrap().first;
    assert!(last < first && first <= last + 20_000, "{last}, then {first}");
}

#[tokio::test]
async fn a_file_that_is_open_is_refused_to_the_next_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sections.db");
    let store = Arc::new(SqliteSections::open(&path).await.unwrap());
    let mine = Embedded::open(store, Options::default()).await.unwrap();
    let refused = SqliteSections::open(&path).await.expect_err("it is locked");
    assert!(refused.to_string().contains("another process"), "{refused}");
    mine.next(ALICE, 1).await.expect("it goes on");
}

/// A store that says nothing of itself counts as one that others may use.
struct SharedMemory(Memory);

#[async_trait::async_trait]
impl SectionStore for SharedMemory {
    async fn newest_epoch(&self) -> Result<Epoch, StoreError> {
        self.0.newest_epoch().await
    }

    async fn claim(&self, sections: &Ranges, owner: Owner, layout: Layout) -> Result<Claimed, StoreError> {
        self.0.claim(sections, owner, layout).await
    }

    async fn raise(&self, owner: Owner, raises: &[Ceiling]) -> Vec<Result<u64, RaiseError>> {
        self.0.raise(owner, raises).await
    }

    async fn release(&self, sections: &Ranges, owner: Owner) -> Result<(), StoreError> {
        self.0.release(sections, owner).await
    }
}

#[tokio::test]
async fn a_store_that_others_may_use_is_refused() {
    let store = Arc::new(SharedMemory(Memory::new()));
    let refused = Embedded::open(Arc::<SharedMemory>::clone(&store), Options::default()).await.err();
    let refused = refused.expect("it has no lease").to_string();
    assert!(refused.contains("no lease") && refused.contains("seqsvr alloc"), "{refused}");
    assert_eq!(store.newest_epoch().await.unwrap(), Epoch::default(), "nothing was claimed");
}

#[tokio::test]
async fn options_out_of_range_are_refused_by_name() {
    let options = [
        ("section_size", Options { section_size: 9_999, ..Options::default() }),
        ("step", Options { step: 1, ..Options::default() }),
        ("limit", Options { limit: 1 << 63, ..Options::default() }),
        ("max_count", Options { max_count: 0, ..Options::default() }),
        ("raise_batch", Options { raise_batch: 0, ..Options::default() }),
        ("retry_first", Options { retry_first: Duration::ZERO, ..Options::default() }),
    ];
    for (name, options) in options {
        let refused = Embedded::open(Arc::new(Memory::new()), options).await.err();
        let refused = refused.expect("the option is out of range").to_string();
        assert!(refused.starts_with(&format!("option {name}: ")), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn threads_that_share_uids_never_share_a_number() {
    let sequencer = Arc::new(open(&Arc::new(Memory::new())).await);
    let tasks = [0, 1, 2, 3].map(|_| {
        let sequencer = Arc::clone(&sequencer);
        tokio::spawn(async move {
            let mut taken = Vec::new();
            let mut newest = [0; 20];
            for round in 0..30_000_u32 {
                let uid = 99_990 + round % 20;
                let granted = sequencer.next(Uid::new(uid), 1 + round % 3).await.unwrap();
                let newest = &mut newest[round as usize % 20];
                assert!(granted.first > *newest, "{granted:?} after {newest}");
                *newest = granted.last;
                taken.extend((granted.first..=granted.last).map(|number| (uid, number)));
            }
            taken
        })
    });
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.unwrap());
    }
    let taken = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), taken);
    assert_eq!(sequencer.metrics().allocated, taken as u64);
}
