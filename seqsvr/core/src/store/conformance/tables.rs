//! The rules that every table store must keep, run by each of them: `tables::conformance!(fresh)` in a test module makes one test of each
//! rule, on a store that `fresh` returns empty. A table store keeps sections too, since a release wakes its readers.

use std::sync::Arc;
use std::time::Duration;

use super::{claim, owner, range};
use crate::ids::{Epoch, SectionId};
use crate::routing::{Assignment, Node, NodeState, Table};
use crate::store::SectionStore;
use crate::store::backup::{Restoring, restore};
use crate::store::tables::{Reading, Revisions, RoutingTableStore, WriteError};

/// Longer than anything takes here, shorter than a tester's patience.
const LONG: Duration = Duration::from_secs(20);

/// A table of one node that has everything.
pub fn table(term: u64, version: u64) -> Arc<Table> {
    let version = Epoch { term, version };
    let node = |name: &str| Node {
        name: name.to_owned(),
        addr: format!("http://{name}:7000"),
        state: NodeState::Active,
    };
    let everything = Assignment {
        sections: SectionId::new(0)..=SectionId::new(42_949),
        node: 0,
        home: 1,
        incarnation: version.version,
        epoch: version,
    };
    Arc::new(Table {
        set: 0,
        version,
        section_size: 100_000,
        uids: 0..=u32::MAX,
        nodes: vec![node("a"), node("b")],
        assignments: vec![everything],
    })
}

async fn read(store: &dyn RoutingTableStore) -> Reading {
    store.read(&Revisions::default(), Duration::ZERO).await.expect("it can be read")
}

/// The revisions behind everything that has happened: a late replica of a quorum may still show changes for a moment.
async fn settled(store: &dyn RoutingTableStore) -> Revisions {
    let mut revisions = read(store).await.revisions;
    loop {
        let reading = store.read(&revisions, Duration::from_millis(30)).await.expect("it can be read");
        if reading.revisions == revisions {
            return revisions;
        }
        revisions = reading.revisions;
    }
}

/// Reads on from `revisions` until the table is this one.
async fn read_until(store: &dyn RoutingTableStore, mut revisions: Revisions, awaited: &Arc<Table>) {
    loop {
        let reading = store.read(&revisions, LONG).await.expect("it can be read");
        if reading.table.as_ref() == Some(awaited) {
            return;
        }
        revisions = reading.revisions;
    }
}

pub async fn an_empty_store_has_no_table_and_no_term(store: &(impl RoutingTableStore + SectionStore)) {
    let reading = read(store).await;
    assert_eq!((reading.table, reading.promised, reading.acting), (None, 0, None));
    assert_eq!(store.promise(1).await.unwrap(), None);
}

pub async fn a_restored_table_knows_its_nodes_and_gives_nobody_anything(
    store: &(impl RoutingTableStore + SectionStore),
) {
    let source = crate::store::Memory::new();
    claim(&source, 0, 42_949, owner(1, 1)).await;
    source.promise(512).await.unwrap();
    let before = table(512, 7);
    source.write(&before).await.unwrap();
    let backup = source.backup().await.unwrap();
    let how = Restoring { ahead: 1_000_000, into_used: false };
    let restored = restore(store, Some(store), &backup, how, 77).await.expect("it is restored");
    let reading = read(store).await;
    let after = reading.table.expect("a table");
    assert_eq!((after.check(), &after.nodes), (Ok(()), &before.nodes));
    assert!(after.version > before.version && reading.promised == restored.term && restored.term > 512);
    assert!(
        after.assignments.iter().all(|one| one.incarnation == 0),
        "no life of a process is given anything"
    );
    assert!(store.promise(restored.term).await.is_err(), "arbiters begin above it");
}

pub async fn a_written_table_is_what_counts(store: &(impl RoutingTableStore + SectionStore)) {
    store.promise(3).await.unwrap();
    for version in 1..=3 {
        store.write(&table(3, version)).await.unwrap();
        assert_eq!(read(store).await.table, Some(table(3, version)));
    }
    assert_eq!(read(store).await.promised, 3);
}

pub async fn a_promise_carries_the_newest_table(store: &(impl RoutingTableStore + SectionStore)) {
    store.promise(3).await.unwrap();
    store.write(&table(3, 7)).await.unwrap();
    assert_eq!(store.promise(4).await.unwrap(), Some(table(3, 7)));
    assert_eq!(read(store).await.table, Some(table(3, 7)), "a promise takes nothing away");
}

/// Two arbiters with one number would both act under it.
pub async fn a_term_is_promised_once(store: &(impl RoutingTableStore + SectionStore)) {
    store.promise(3).await.unwrap();
    let refused = store.promise(3).await;
    assert!(matches!(refused, Err(WriteError::Outranked(3))), "{refused:?}");
    store.write(&table(3, 1)).await.unwrap();
    assert_eq!(store.promise(4).await.unwrap(), Some(table(3, 1)));
}

pub async fn a_promise_fences_lower_terms(store: &(impl RoutingTableStore + SectionStore)) {
    store.promise(3).await.unwrap();
    store.write(&table(3, 1)).await.unwrap();
    store.promise(5).await.unwrap();
    let refused = store.write(&table(3, 2)).await;
    assert!(matches!(refused, Err(WriteError::Outranked(5))), "{refused:?}");
    let refused = store.promise(4).await;
    assert!(matches!(refused, Err(WriteError::Outranked(5))), "{refused:?}");
    assert_eq!(read(store).await.table, Some(table(3, 1)));
    store.write(&table(5, 2)).await.unwrap();
    assert_eq!(read(store).await.table, Some(table(5, 2)));
}

pub async fn the_same_table_again_is_confirmed_again(store: &(impl RoutingTableStore + SectionStore)) {
    store.promise(3).await.unwrap();
    store.write(&table(3, 1)).await.unwrap();
    store.write(&table(3, 1)).await.unwrap();
    assert_eq!(read(store).await.table, Some(table(3, 1)));
}

pub async fn an_older_table_is_refused(store: &(impl RoutingTableStore + SectionStore)) {
    store.promise(3).await.unwrap();
    store.write(&table(3, 5)).await.unwrap();
    let refused = store.write(&table(3, 4)).await;
    assert!(matches!(refused, Err(WriteError::Older(newer)) if newer == table(3, 5).version), "{refused:?}");
    assert_eq!(read(store).await.table, Some(table(3, 5)));
}

pub async fn a_new_table_wakes_a_waiting_read(store: &(impl RoutingTableStore + SectionStore)) {
    store.promise(3).await.unwrap();
    store.write(&table(3, 1)).await.unwrap();
    let revisions = settled(store).await;
    let newer = table(3, 2);
    let both = async { tokio::join!(read_until(store, revisions, &newer), store.write(&newer)) };
    let ((), written) = tokio::time::timeout(LONG / 2, both).await.expect("the change wakes it");
    written.unwrap();
}

pub async fn a_release_wakes_a_waiting_read(store: &(impl RoutingTableStore + SectionStore)) {
    claim(store, 0, 9, owner(1, 1)).await;
    let revisions = settled(store).await;
    let released = [range(0, 9)];
    let both = async { tokio::join!(store.read(&revisions, LONG), store.release(&released, owner(1, 1))) };
    let (reading, done) = tokio::time::timeout(LONG / 2, both).await.expect("the change wakes it");
    done.unwrap();
    assert_ne!(reading.unwrap().revisions, revisions);
}

pub async fn a_read_without_a_change_ends_after_its_wait(store: &(impl RoutingTableStore + SectionStore)) {
    store.promise(3).await.unwrap();
    store.write(&table(3, 1)).await.unwrap();
    let revisions = settled(store).await;
    let reading = store.read(&revisions, Duration::from_millis(5)).await.unwrap();
    assert_eq!((reading.table, reading.revisions), (Some(table(3, 1)), revisions));
}

pub async fn a_new_table_wakes_who_waits_for_nothing_else(store: &(impl RoutingTableStore + SectionStore)) {
    let revisions = settled(store).await;
    store.promise(3).await.unwrap();
    let change = async { store.write(&table(3, 1)).await.unwrap() };
    let (reading, ()) = tokio::join!(store.read_table(&revisions, LONG), change);
    assert_eq!(reading.unwrap().table, Some(table(3, 1)));
}

pub async fn the_arbiter_that_acts_is_heard_of(store: &(impl RoutingTableStore + SectionStore)) {
    store.promise(3).await.unwrap();
    store.write(&table(3, 1)).await.unwrap();
    assert_eq!(store.acting(3).await.unwrap(), 3);
    let reading = read(store).await;
    assert_eq!(reading.promised, 3);
    assert!(reading.acting.is_some_and(|ago| ago < LONG), "{:?}", reading.acting);
    store.promise(5).await.unwrap();
    assert_eq!(store.acting(3).await.unwrap(), 5, "the replaced one hears of it");
}

/// One test for each rule; `fresh` is an async function that returns an empty store and a value that must outlive it.
#[macro_export]
#[doc(hidden)]
macro_rules! conformance_of_tables {
    ($fresh:path; $($rule:ident)*) => { $(
        #[tokio::test]
        async fn $rule() {
            let (store, _kept) = $fresh().await;
            $crate::store::conformance::tables::$rule(&store).await;
        }
    )* };
    ($fresh:path) => {
        $crate::store::conformance::tables::conformance! { $fresh;
            a_restored_table_knows_its_nodes_and_gives_nobody_anything
            an_empty_store_has_no_table_and_no_term
            a_written_table_is_what_counts
            a_promise_carries_the_newest_table
            a_term_is_promised_once
            a_promise_fences_lower_terms
            the_same_table_again_is_confirmed_again
            an_older_table_is_refused
            a_new_table_wakes_a_waiting_read
            a_release_wakes_a_waiting_read
            a_new_table_wakes_who_waits_for_nothing_else
            a_read_without_a_change_ends_after_its_wait
            the_arbiter_that_acts_is_heard_of
        }
    };
}
pub use conformance_of_tables as conformance;
