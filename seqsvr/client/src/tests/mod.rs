//! The client against AllocSvrs in this process, over TCP: finding the owner, gathering, trouble, Sets.

mod server;

use std::time::Duration;

use futures_util::future::join_all;

use self::server::{Process, SECTION, SetWorld};
use super::{CallError, Client, ClientConfig, ClusterSequencer, Policy, QueueOptions, RetryQueue, SetConfig};
use seqsvr_core::ids::Uid;
use seqsvr_core::routing::Order;
use seqsvr_core::{NextError, Refusal, Sequencer as _};

fn uids(uids: impl IntoIterator<Item = u32>) -> Vec<Uid> {
    uids.into_iter().map(Uid::new).collect()
}

/// Short pauses, so that trouble is over soon; but time for an answer on a busy machine: one that is given up leaves a gap.
fn quick(mut config: ClientConfig) -> Client {
    config.call_ms = 10_000;
    config.answer = Duration::from_secs(5);
    Client::new(&config).expect("a good configuration")
}

const ALL: std::ops::RangeInclusive<u32> = 0..=10 * SECTION - 1;

fn config(processes: &[&Process]) -> ClientConfig {
    let mut config = ClientConfig::single_set(processes.iter().map(|process| process.addr.clone()).collect());
    config.sets[0].last_uid = *ALL.end();
    config
}

/// Two processes, a with the sections 0 to 4 and b with 5 to 9, and a client that knows a alone.
async fn two() -> (SetWorld, Process, Process, Client) {
    let world = SetWorld::new(0);
    let (a, b) = (world.start("a").await, world.start("b").await);
    world.assign(1, ALL, &[&a, &b], &[(0..=4, 0), (5..=9, 1)]).await;
    tokio::join!(a.until_it_serves(1), b.until_it_serves(60_000));
    let client = quick(config(&[&a]));
    (world, a, b, client)
}

#[tokio::test]
async fn the_first_answer_brings_the_table_and_the_second_question_goes_to_the_owner() {
    let (_world, a, b, client) = two().await;
    let far = Uid::new(7 * SECTION);
    let granted = client.next(far, 3).await.expect("b serves it");
    assert_eq!((granted.first, granted.last, granted.epoch.version), (1, 3, 1));
    assert_eq!(client.metrics().frames, 2);
    assert_eq!(client.next(far, 1).await.expect("served").first, 4);
    let metrics = client.metrics();
    assert_eq!((metrics.tables, metrics.not_owner, metrics.retries, metrics.frames), (1, 1, 1, 3));
    assert_eq!((a.handed_out(), b.handed_out()), (0, 4));
}

#[tokio::test]
async fn numbers_for_many_uids_come_in_their_order_across_processes() {
    let (_world, _a, _b, client) = two().await;
    let asked = uids([60_000, 1, 60_000, 99_999, 1, 1]);
    assert_eq!(client.next_each(&asked).await, Ok(vec![1, 1, 2, 1, 2, 3]));
    assert_eq!(client.current(&asked).await, Ok(vec![2, 3, 2, 1, 3, 3]));
    client.advance(Uid::new(1), 500).await.expect("advanced");
    assert_eq!(client.next(Uid::new(1), 1).await.expect("served").first, 501);
}

#[tokio::test]
async fn calls_at_the_same_time_share_frames_and_no_number() {
    let (_world, _a, _b, client) = two().await;
    client.next(Uid::new(1), 1).await.expect("connected");
    let before = client.metrics().frames;
    let calls = (0..1_000).map(|call| client.next(Uid::new(call % 10), 1));
    let mut taken: Vec<(u32, u64)> = Vec::new();
    for (call, granted) in (0..).zip(join_all(calls).await) {
        taken.push((call % 10, granted.expect("served").first));
    }
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), 1_000);
    let frames = client.metrics().frames - before;
    assert!(frames <= 10, "{frames} frames");
}

#[tokio::test]
async fn a_call_outlasts_a_takeover_and_goes_to_the_new_owner() {
    let (world, mut a, b, client) = two().await;
    client.next(Uid::new(1), 1).await.expect("a serves it");
    client.next(Uid::new(60_000), 1).await.expect("b serves it");
    a.die();
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.next(Uid::new(1), 1).await }
    });
    // Somebody has asked b in vain by now.
    while client.metrics().not_owner < 2 {
        tokio::task::yield_now().await;
    }
    world.assign(2, ALL, &[&a, &b], &[(0..=9, 1)]).await;
    let granted = waiting.await.expect("no panic").expect("within the deadline");
    assert!(granted.first > 1 && granted.epoch.version == 2, "{granted:?}");
}

#[tokio::test]
async fn a_silent_process_is_given_up_and_another_one_asked() {
    let (world, mut a, b, _) = two().await;
    let mut config = config(&[&a]);
    config.answer = Duration::from_millis(300);
    let client = Client::new(&config).expect("a good configuration");
    client.next_each(&uids([1, 60_000])).await.expect("served");
    a.fall_silent().await;
    world.assign(2, ALL, &[&a, &b], &[(0..=9, 1)]).await;
    assert!(client.next(Uid::new(1), 1).await.expect("b serves it").first > 1);
    assert!(client.metrics().lost >= 1);
}

#[tokio::test]
async fn a_section_that_waits_holds_up_no_other() {
    let (world, _a, _b, client) = two().await;
    client.next(Uid::new(1), 1).await.expect("connected");
    world.shut(2);
    let hasty = client.within(Duration::from_millis(500));
    let calls = join_all((0..5).map(|section| hasty.next(Uid::new(section * SECTION + 1), 1))).await;
    let served: Vec<bool> = calls.iter().map(Result::is_ok).collect();
    assert_eq!(served, [true, true, false, true, true]);
    let error = calls[2].as_ref().expect_err("it waits");
    assert!(error.is_retryable());
    let reported = "did not serve: the ceiling could not be raised in time; try again";
    assert!(error.to_string().starts_with("not within 500ms: http://127.0.0.1:"), "{error}");
    assert!(error.to_string().ends_with(reported), "{error}");

    let each = hasty.next_each(&uids([1, 2 * SECTION, SECTION])).await.expect_err("one waits");
    assert_eq!(each.numbers.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    world.open();
    client.next(Uid::new(2 * SECTION + 1), 1).await.expect("served again");
}

#[tokio::test]
async fn a_thousand_callers_of_a_section_that_is_not_served_ask_as_seldom_as_one() {
    let (world, _a, _b, client) = two().await;
    client.next(Uid::new(1), 1).await.expect("connected");
    world.shut(2);
    let before = client.metrics();
    let hasty = client.within(Duration::from_secs(2));
    let uid = |call: u32| Uid::new(2 * SECTION + call % 10);
    let failed = join_all((0..1_000).map(|call| hasty.next(uid(call), 1))).await;
    assert!(failed.iter().all(|one| one.as_ref().is_err_and(CallError::is_retryable)));
    // The owner asks for 100 ms between two questions, and each time another node is asked, too: some 30 frames, far from one for
    // each caller.
    let frames = client.metrics().frames - before.frames;
    assert!(frames <= 100, "{frames} frames in two seconds");

    let waiting = join_all((0..1_000).map(|call| client.next(uid(call), 1)));
    let before = client.metrics();
    world.open();
    assert!(waiting.await.iter().all(Result::is_ok));
    let frames = client.metrics().frames - before.frames;
    assert!(frames <= 20, "{frames} frames once it is served");
}

#[tokio::test]
async fn a_number_that_goes_back_is_never_passed_on() {
    let (_world, mut a, b, client) = two().await;
    let uid = Uid::new(5);
    assert_eq!(client.next(uid, 10).await.expect("served").last, 10);
    // The stores were restored behind the back of everybody.
    let put_back = SetWorld::new(0);
    a.move_to(&put_back).await;
    put_back.assign(1, ALL, &[&a, &b], &[(0..=4, 0), (5..=9, 1)]).await;
    let regression = |got| CallError::Regression { uid, got, known: 10 };
    assert_eq!(client.next(uid, 1).await, Err(regression(1)));
    assert_eq!(client.next(uid, 2).await, Err(regression(2)));
    assert_eq!(client.next_each(&[uid]).await.expect_err("back").first, regression(4));
    assert_eq!(client.current(&[uid]).await.expect_err("back").first, regression(4));
    assert_eq!(client.metrics().regressions, 4);
    client.advance(uid, 10).await.expect("what an operator does about it");
    assert_eq!(client.next(uid, 2).await.expect("larger again").first, 11);
}

#[tokio::test]
async fn a_dead_set_leaves_the_others_untouched() {
    let (alive, dead) = (SetWorld::new(3), SetWorld::new(4));
    let (a, mut b) = (alive.start("a").await, dead.start("b").await);
    let (low, high) = (0..=2 * SECTION - 1, 5 * SECTION..=6 * SECTION - 1);
    alive.assign(1, low.clone(), &[&a], &[(0..=1, 0)]).await;
    dead.assign(1, high.clone(), &[&b], &[(5..=5, 0)]).await;
    let set = |number, uids: std::ops::RangeInclusive<u32>, process: &Process| SetConfig {
        number,
        first_uid: *uids.start(),
        last_uid: *uids.end(),
        allocators: vec![process.addr.clone()],
        policy: Policy::Spread,
        arbiters: Vec::new(),
    };
    let sets = vec![set(4, high.clone(), &b), set(3, low, &a)];
    let client = quick(ClientConfig::of(sets));
    let mixed = uids([1, *high.start(), 2]);
    assert_eq!(client.next_each(&mixed).await, Ok(vec![1, 1, 1]));
    b.die();
    let hasty = client.within(Duration::from_millis(100));
    let failed = hasty.next_each(&mixed).await.expect_err("one Set is dead");
    assert_eq!(failed.numbers, [Ok(2), Err(failed.first.clone()), Ok(2)]);
    assert_eq!(hasty.next(Uid::new(1), 1).await.expect("untouched").first, 3);
    let outside = Uid::new(3 * SECTION);
    assert_eq!(client.next(outside, 1).await, Err(CallError::NoSet(outside)));
    let failed = client.next_each(&uids([1, outside.get()])).await.expect_err("outside");
    assert_eq!(failed.numbers, [Err(CallError::NoSet(outside)), Err(CallError::NoSet(outside))]);
    assert_eq!(client.next(Uid::new(1), 1).await.expect("nothing was taken").first, 4);
}

#[tokio::test]
async fn counts_out_of_range_are_refused_before_anything_is_sent() {
    let (_world, a, _b, client) = two().await;
    for count in [0, 100_001] {
        let refused = client.next(Uid::new(1), count).await.expect_err("out of range");
        assert_eq!(refused.to_string(), format!("asked for {count}; ask for 1 to 100000 at a time"));
    }
    assert!(client.next_each(&[]).await.is_err());
    assert!(client.next_each(&vec![Uid::new(1); 4_097]).await.is_err());
    assert_eq!((client.metrics().frames, a.handed_out()), (0, 0));
}

#[tokio::test]
async fn a_standby_is_found_with_at_most_one_wasted_question() {
    for policy in [Policy::Standby, Policy::StandbyByHash] {
        let world = SetWorld::new(0);
        let (mut a, b, c) = (world.start("a").await, world.start("b").await, world.start("c").await);
        let order = match policy {
            Policy::StandbyByHash => Order::Hash.of(0, &["a", "b", "c"]),
            _ => vec![0, 1, 2],
        };
        let standby = *order.iter().cycle().skip_while(|&&index| index != 0).nth(1).expect("three");
        world.assign(1, ALL, &[&a, &b, &c], &[(0..=9, 0)]).await;
        a.until_it_serves(1).await;
        let mut config = config(&[&a, &b, &c]);
        config.sets[0].policy = policy;
        let client = quick(config);
        client.next(Uid::new(1), 1).await.expect("the primary serves");
        assert_eq!(a.handed_out(), 1);
        // The next node serves from now on, as the arbiter decides by the same order.
        a.die();
        world.assign(2, ALL, &[&a, &b, &c], &[(0..=9, standby as u32)]).await;
        let standby = &[&a, &b, &c][standby];
        standby.until_it_serves(1).await;
        client.next(Uid::new(1), 1).await.expect("the standby serves");
        assert_eq!((client.metrics().not_owner, standby.handed_out()), (0, 1), "{policy:?}");
    }
}

#[tokio::test]
async fn processes_of_a_machine_share_what_one_of_them_learnt() {
    let (world, a, b, _) = two().await;
    let directory = tempfile::tempdir().expect("a directory");
    let mut config = config(&[&a]);
    config.cache_dir = Some(directory.path().to_owned());
    let (one, other) = (quick(config.clone()), quick(config));
    one.next(Uid::new(7 * SECTION), 1).await.expect("b serves it");
    other.next(Uid::new(7 * SECTION), 1).await.expect("b serves it");
    assert_eq!((one.metrics().not_owner, other.metrics().not_owner), (1, 0));
    world.assign(2, ALL, &[&a, &b], &[(0..=9, 0)]).await;
    a.until_it_serves(7 * SECTION).await;
    other.next(Uid::new(7 * SECTION), 1).await.expect("a serves it");
    one.next(Uid::new(7 * SECTION), 1).await.expect("a serves it");
    assert_eq!((one.metrics().not_owner, other.metrics().not_owner), (1, 1));
}

#[tokio::test]
async fn a_queued_call_is_done_when_the_section_is_served_again_and_a_full_queue_refuses() {
    let (world, _a, _b, client) = two().await;
    client.next(Uid::new(1), 1).await.expect("connected");
    world.shut(3);
    let uid = Uid::new(3 * SECTION);
    let queue =
        RetryQueue::start(&client, QueueOptions { waiting: 1, at_once: 1, ..QueueOptions::default() });
    let before = client.metrics().unavailable;
    let first = queue.next(uid, 2).expect("room");
    while client.metrics().unavailable == before {
        tokio::task::yield_now().await;
    }
    let second = queue.next(uid, 1).expect("room");
    let refused = queue.next(uid, 1).expect_err("full");
    assert!(refused.is_retryable(), "{refused}");
    world.open();
    assert_eq!(first.await.expect("served").last, 2);
    drop(queue);
    assert_eq!(second.await.expect("what was taken in is done").last, 3);
}

#[tokio::test]
async fn as_a_sequencer_it_asks_for_many_uids_in_few_frames_and_each_has_an_outcome_of_its_own() {
    let (world, a, b, _) = two().await;
    let mut config = config(&[&a, &b]);
    config.uids_per_call = 4;
    let client = quick(config);
    client.next_each(&uids([1, 60_000])).await.expect("served");
    let (sequencer, before) = (ClusterSequencer::new(client.clone()), client.metrics().frames);
    let asked = uids([1, 60_000, 2, 1, 60_000, 1]);
    let numbers: Vec<_> = sequencer
        .next_each(&asked, Duration::MAX)
        .await
        .into_iter()
        .map(|one| one.expect("served"))
        .collect();
    assert_eq!(numbers, [2, 2, 1, 3, 3, 4], "in the order of the uids, each line growing");
    assert_eq!(client.metrics().frames - before, 4, "one to each process for each call");

    let limit = Refusal::Exhausted { limit: (1 << 63) - 1 };
    client.advance(Uid::new(2), (1 << 63) - 1).await.expect("to its end");
    world.shut(4);
    let hasty = ClusterSequencer::new(client.within(Duration::from_millis(200)));
    let answered = hasty.next_each(&uids([1, 2, 4 * SECTION, 60_000]), Duration::MAX).await;
    assert_eq!(answered[1], Err(NextError::Final(limit)));
    assert!(answered[0].as_ref().is_ok_and(|&number| number > 4) && answered[3] == Ok(4), "{answered:?}");
    assert!(matches!(answered[2], Err(NextError::Retryable(_))), "{answered:?}");
}
