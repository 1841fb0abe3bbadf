//! Nodes over stores in memory, in paused time: hand-over, takeover, restart and stop.

use std::time::Duration;

use tempfile::TempDir;
use tokio::time::advance;

use super::*;
use crate::alloc::fixture::{FixtureNode, LEASE, SIZE, give};
use crate::alloc::record::DataDir;
use crate::alloc::view::{Cause, Denied};
use seqsvr_core::ids::Uid;
use seqsvr_core::store::Memory;

fn folder() -> (TempDir, DataDir) {
    let folder = tempfile::tempdir().expect("there is room");
    let data = DataDir::open(folder.path()).expect("nobody else has it");
    (folder, data)
}

fn denied(node: &FixtureNode, uid: u32) -> Denied {
    let view = node.server.view();
    node.server.attempt(&view, |view| view.take(Uid::new(uid), 1)).expect_err("nothing is served")
}

#[tokio::test(start_paused = true)]
async fn what_is_given_is_served_and_nothing_else() {
    let (store, (_folder, data)) = (Arc::new(Memory::new()), folder());
    let a = FixtureNode::start(&store, data.record(0), "a", 1);
    assert!(matches!(denied(&a, 0), Denied::Unavailable(Cause::NoTable)));
    give(&store, 1, &[(0..=4, "a", 1, 1), (5..=9, "b", 2, 1)]).await;
    let (first, _) = a.number(7).await;
    let (second, _) = a.number(7).await;
    assert!(first < second);
    assert!(matches!(denied(&a, 5 * SIZE), Denied::NotOwner));
    assert!(matches!(denied(&a, 10 * SIZE), Denied::Refused(_)));
    assert_eq!(a.server.metrics().allocated, 2);
}

#[tokio::test(start_paused = true)]
async fn a_move_takes_no_wait_and_numbers_go_on_above() {
    let (store, (_fa, da), (_fb, db)) = (Arc::new(Memory::new()), folder(), folder());
    let (a, b) =
        (FixtureNode::start(&store, da.record(0), "a", 1), FixtureNode::start(&store, db.record(0), "b", 2));
    give(&store, 1, &[(0..=9, "a", 1, 1)]).await;
    let (before, _) = a.number(7).await;
    give(&store, 2, &[(0..=4, "b", 2, 2), (5..=9, "a", 1, 1)]).await;
    let (after, took) = b.number(7).await;
    assert!(after > before);
    assert!(took < Duration::from_millis(50), "{took:?}");
    assert!(matches!(denied(&a, 7), Denied::NotOwner));
    let (kept, _) = a.number(5 * SIZE).await;
    assert!(kept > 0, "what was not moved is served on");
}

#[tokio::test(start_paused = true)]
async fn a_silent_owner_is_waited_out_and_hands_out_nothing_afterwards() {
    let (store, (_fa, da), (_fb, db)) = (Arc::new(Memory::new()), folder(), folder());
    let (a, b) =
        (FixtureNode::start(&store, da.record(0), "a", 1), FixtureNode::start(&store, db.record(0), "b", 2));
    give(&store, 1, &[(0..=9, "a", 1, 1)]).await;
    let (before, _) = a.number(7).await;
    // It stops reading and releasing, as if it were cut off; its memory is as it was.
    a.task.abort();
    give(&store, 2, &[(0..=9, "b", 2, 2)]).await;
    let (after, took) = b.number(7).await;
    assert!(after > before);
    assert!((LEASE * 11 / 10..LEASE * 12 / 10).contains(&took), "{took:?}");
    assert!(matches!(denied(&a, 7), Denied::Unavailable(Cause::Lease)));
}

#[tokio::test(start_paused = true)]
async fn numbers_taken_before_a_pause_are_thrown_away_after_the_lease() {
    let (store, (_folder, data)) = (Arc::new(Memory::new()), folder());
    let a = FixtureNode::start(&store, data.record(0), "a", 1);
    give(&store, 1, &[(0..=9, "a", 1, 1)]).await;
    a.number(7).await;
    a.task.abort();
    let view = a.server.view();
    assert!(view.take(Uid::new(7), 1).is_ok());
    advance(LEASE).await;
    assert!(!a.server.may_answer(&view));
}

#[tokio::test(start_paused = true)]
async fn a_restart_does_not_wait_for_its_own_old_lease() {
    let (store, (folder, data)) = (Arc::new(Memory::new()), folder());
    let a = FixtureNode::start(&store, data.record(0), "a", 1);
    give(&store, 1, &[(0..=9, "a", 1, 1)]).await;
    let (before, _) = a.number(7).await;
    a.task.abort();
    drop(data);
    let data = DataDir::open(folder.path()).expect("the lock died with its process");
    let again = FixtureNode::start(&store, data.record(0), "a", 9);
    give(&store, 2, &[(0..=9, "a", 9, 2)]).await;
    let (after, took) = again.number(7).await;
    assert!(after > before);
    assert!(took < Duration::from_millis(50), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stop_goes_on_serving_until_the_sections_have_moved() {
    let (store, (_fa, da), (_fb, db)) = (Arc::new(Memory::new()), folder(), folder());
    let (a, b) =
        (FixtureNode::start(&store, da.record(0), "a", 1), FixtureNode::start(&store, db.record(0), "b", 2));
    give(&store, 1, &[(0..=9, "a", 1, 1)]).await;
    a.number(7).await;
    a.leave.cancel();
    advance(Duration::from_millis(100)).await;
    assert!(a.server.is_draining());
    let (before, _) = a.number(7).await;
    give(&store, 2, &[(0..=9, "b", 2, 2)]).await;
    let (after, took) = b.number(7).await;
    assert!(after > before && took < Duration::from_millis(50), "{took:?}");
    a.task.await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn a_stop_without_an_arbiter_releases_after_a_while() {
    let (store, (_fa, da), (_fb, db)) = (Arc::new(Memory::new()), folder(), folder());
    let a = FixtureNode::start(&store, da.record(0), "a", 1);
    give(&store, 1, &[(0..=9, "a", 1, 1)]).await;
    a.number(7).await;
    a.leave.cancel();
    a.task.await.expect("it ends");
    let b = FixtureNode::start(&store, db.record(0), "b", 2);
    give(&store, 2, &[(0..=9, "b", 2, 2)]).await;
    let (_, took) = b.number(7).await;
    assert!(took < Duration::from_millis(50), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn rates_tell_where_the_load_is() {
    let (store, (_folder, data)) = (Arc::new(Memory::new()), folder());
    let a = FixtureNode::start(&store, data.record(0), "a", 1);
    give(&store, 1, &[(0..=9, "a", 1, 1)]).await;
    for _ in 0..100 {
        a.number(3 * SIZE + SIZE / 2).await;
    }
    while a.server.rates().is_empty() {
        // Not `advance`: the node's own timers have to fire on the way.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let rates = a.server.rates();
    let [(section, rate)] = rates[..] else { panic!("{rates:?}") };
    assert_eq!(section, SectionId::new(3));
    assert!((1.0..=100.0).contains(&rate), "{rate}");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_takes_no_record_keeps_nothing_from_being_served() {
    let (store, (folder, data)) = (Arc::new(Memory::new()), folder());
    let record = data.record(0);
    // Nothing can be made in a folder that is gone.
    std::fs::remove_dir_all(folder.path()).expect("it is there");
    let a = FixtureNode::start(&store, record, "a", 1);
    give(&store, 1, &[(0..=9, "a", 1, 1)]).await;
    let (_, took) = a.number(7).await;
    assert!(took < LEASE, "{took:?}");
    assert_eq!(a.server.given().unserved(), 0);
}

#[tokio::test(start_paused = true)]
async fn sections_that_are_not_claimed_are_late_once_nobody_else_can_serve_them() {
    let (store, (_folder, data)) = (Arc::new(Memory::new()), folder());
    // Stored under another step than the node's.
    let other = seqsvr_core::store::Layout { section_size: SIZE, step: 7 };
    let before = Owner { epoch: seqsvr_core::ids::Epoch { term: 1, version: 0 }, incarnation: 9 };
    use seqsvr_core::store::SectionStore as _;
    store.claim(&[SectionId::new(0)..=SectionId::new(9)], before, other).await.expect("the first claim");
    let a = FixtureNode::start(&store, data.record(0), "a", 1);
    give(&store, 1, &[(0..=9, "a", 1, 1)]).await;
    let late = async || {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let given = a.server.given();
        given.waiting.first().map(|one| (a.server.overdue(one), a.server.why(one)))
    };
    let mut seen = late().await;
    while seen.is_none() {
        seen = late().await;
    }
    assert_eq!(seen.expect("it waits").0, Duration::ZERO);
    tokio::time::sleep(LEASE * 11 / 10 + Duration::from_secs(5)).await;
    let (overdue, (ago, why)) = late().await.expect("it waits");
    assert!(overdue >= Duration::from_secs(5) && ago > overdue, "{overdue:?} {ago:?}");
    assert!(why.contains("the stores refuse the claim") && why.contains("step"), "{why}");
    assert!(!a.server.is_serving());
}
