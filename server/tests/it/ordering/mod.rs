//! The invariants of every sequence, whatever fails while it is written (I1 to I5, I8, I12, I13).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tidemark::app::SendError;
use tidemark::app::messages::OutgoingMessage;
use tidemark::domain::{Conversation, Mentions, MessageId};
use tidemark::queue::Options;
use tidemark::store::faulty::Fault;

mod invites;
mod outage;
mod overtaken;
mod pipeline;
mod random;
mod read_counts;
mod slices;
mod world;

use world::{PEOPLE, World, client_ids_of, ids, name, options, person, to};

#[tokio::test(start_paused = true)]
async fn a_stalled_commit_holds_back_what_comes_after_it() {
    for queues in [1, 4] {
        let world = World::new().await;
        let process = world.start(options(queues)).await;
        let (ann, bob) = (person(0), person(queues as u32 % PEOPLE));
        process.store.script([Fault::Stall]);
        let first = tokio::spawn(process.messages.submit(ann, to(bob, 1, "first")));
        process.store.until_stalled(1).await;
        let second = tokio::spawn(process.messages.submit(ann, to(bob, 2, "second")));
        process.idle().await;
        assert!(world.inbox(bob).await.is_empty(), "nothing may be visible behind a commit under way");
        assert_eq!(process.sync.watermark(bob).await.expect("memory").latest(), MessageId::ZERO);
        process.store.release();
        assert!(first.await.expect("runs").is_ok() && second.await.expect("runs").is_ok());
        process.queues.stop().await;
        assert_eq!(client_ids_of(&world.inbox(bob).await), [name(1), name(2)]);
    }
}

#[tokio::test(start_paused = true)]
async fn resend_returns_the_first_id() {
    let world = World::new().await;
    let process = world.start(options(4)).await;
    let (ann, bob) = (person(0), person(1));
    let first = process.messages.submit(ann, to(bob, 1, "hi")).await.expect("accepted");
    let again = process.messages.submit(ann, to(bob, 1, "hi")).await.expect("accepted");
    assert_eq!((again.message_id, again.sent_at), (first.message_id, first.sent_at));
    assert!(again.repeated && !first.repeated);
    let other = process.messages.submit(ann, to(bob, 1, "ho")).await;
    assert_eq!(other, Err(SendError::ClientIdReused));
    process.queues.stop().await;
    assert_eq!(client_ids_of(&world.inbox(bob).await), [name(1)]);
}

/// Nobody asks for the key of a message before it would be refused.
#[tokio::test(start_paused = true)]
async fn a_message_that_would_be_refused_now_gets_its_first_answer() {
    let world = World::new().await;
    let (ann, bob) = (person(0), person(1));
    let before = world.start(options(1)).await;
    let first = before.messages.submit(ann, to(bob, 1, "long")).await.expect("accepted");
    before.queues.stop().await;

    let after = world.start(Options { text_characters: 2, ..options(1) }).await;
    let (again, new) = tokio::join!(
        after.messages.submit(ann, to(bob, 1, "long")),
        after.messages.submit(ann, to(bob, 2, "also long"))
    );
    let again = again.expect("accepted before");
    assert_eq!((again.message_id, again.repeated), (first.message_id, true));
    assert!(matches!(new, Err(SendError::Text(_))), "{new:?}");
    let other = after.messages.submit(ann, to(bob, 1, "other")).await;
    assert_eq!(other, Err(SendError::ClientIdReused));
    after.queues.stop().await;
    assert_eq!(client_ids_of(&world.inbox(bob).await), [name(1)]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_and_a_lost_write_both_end_in_one_row() {
    for (queues, fault) in
        [(1, Fault::LoseAnswer), (1, Fault::LoseWrite), (4, Fault::LoseAnswer), (4, Fault::LoseWrite)]
    {
        let world = World::new().await;
        let process = world.start(options(queues)).await;
        let (ann, bob) = (person(0), person(1));
        process.store.script([fault, fault, fault]);
        let device = process.follow(bob, 2);
        let first = process.insist(ann, to(bob, 1, "one")).await;
        assert!(first < process.insist(ann, to(bob, 2, "two")).await);
        process.queues.stop().await;
        let inbox = world.inbox(bob).await;
        assert_eq!(client_ids_of(&inbox), [name(1), name(2)], "{fault:?} with {queues} queues");
        assert_eq!(device.await.expect("runs"), ids(&inbox));
        assert_eq!(client_ids_of(&world.inbox(ann).await), [name(1), name(2)]);
    }
}

#[tokio::test(start_paused = true)]
async fn copies_owed_at_a_crash_are_written_at_the_next_start_before_anything_new() {
    let world = World::new().await;
    let (ann, bob) = (person(0), person(1));
    let before = world.start(options(4)).await;
    // Accepted in Ann's queue; the commit in Bob's queue never returns: the process dies there.
    before.store.script([Fault::Pass, Fault::Stall]);
    before.insist(ann, to(bob, 1, "before the crash")).await;
    before.store.until_stalled(1).await;
    assert!(world.inbox(bob).await.is_empty());

    let after = world.start(options(4)).await;
    after.insist(ann, to(bob, 2, "after the crash")).await;
    after.queues.stop().await;
    let inbox = world.inbox(bob).await;
    assert_eq!(client_ids_of(&inbox), [name(1), name(2)]);
    let lines: BTreeSet<_> = ids(&inbox).into_iter().collect();
    assert_eq!(lines.len(), 2);
}

/// Nothing that waits for the store keeps a process from ending.
#[tokio::test(start_paused = true)]
async fn a_process_whose_store_is_gone_ends_at_once_and_the_next_one_delivers_what_is_owed() {
    for queues in [1, 4] {
        let world = World::new().await;
        let (ann, bob) = (person(0), person(1));
        let before = world.start(options(queues)).await;
        before.store.script([Fault::Pass, Fault::Stall]);
        before.insist(ann, to(bob, 1, "before the loss")).await;
        if queues > 1 {
            before.store.until_stalled(1).await;
        }
        before.store.cut_off();
        before.store.release();
        let answer = tokio::spawn(before.messages.submit(ann, to(bob, 2, "into the loss")));
        before.pause().await;
        let ended = tokio::time::timeout(Duration::from_secs(1), before.queues.stop()).await;
        assert!(ended.is_ok(), "{queues} queues still wait for the store");
        assert_eq!(answer.await.expect("runs"), Err(SendError::Unavailable));

        let after = world.start(options(queues)).await;
        after.insist(ann, to(bob, 2, "into the loss")).await;
        after.queues.stop().await;
        assert_eq!(client_ids_of(&world.inbox(bob).await), [name(1), name(2)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_panicking_writer_is_replaced_and_other_queues_notice_nothing() {
    for fault in [Fault::Panic, Fault::PanicAfter] {
        let world = World::new().await;
        let process = world.start(options(2)).await;
        let (even, odd) = (person(1), person(0)); // uids start at an odd number
        process.store.script([fault]);
        let lost = process.messages.submit(even, to(even, 1, "in the hand of the one that dies")).await;
        assert_eq!(lost, Err(SendError::Unavailable));
        // At once, although the other queue is still pausing.
        process.messages.submit(odd, to(odd, 2, "elsewhere")).await.expect("unharmed");
        let taken_over = process.insist(even, to(even, 1, "in the hand of the one that dies")).await;
        process.insist(even, to(even, 3, "later")).await;
        process.queues.stop().await;
        let inbox = world.inbox(even).await;
        assert_eq!(client_ids_of(&inbox), [name(1), name(3)]);
        assert_eq!(inbox[0].message_id, taken_over);
        assert_eq!(process.sync.watermark(even).await.expect("memory").latest(), inbox[1].message_id);
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_refuses_its_own_order_and_no_other() {
    let world = World::new().await;
    let process = world.start(options(1)).await;
    let (ann, bob) = (person(0), person(1));
    process.store.spoil((ann, name(3)));
    process.store.script([Fault::Stall]);
    let first = tokio::spawn(process.messages.submit(ann, to(bob, 1, "hi")));
    process.store.until_stalled(1).await;
    // Sends that come while the first is written are one batch.
    let batch: Vec<_> = (2..=5).map(|id| process.messages.submit(ann, to(bob, id, "hi"))).collect();
    process.store.release();
    first.await.expect("runs").expect("accepted");
    let mut answers = Vec::new();
    for answer in batch {
        answers.push(answer.await.err());
    }
    assert_eq!(answers, [None, Some(SendError::Rejected), None, None]);
    process.queues.stop().await;
    assert_eq!(client_ids_of(&world.inbox(bob).await), [1, 2, 4, 5].map(name));
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_at_once() {
    let world = World::new().await;
    let process = world.start(Options { queues: 1, length: 2, batch: 1, ..Options::default() }).await;
    let ann = person(0);
    process.store.script([Fault::Stall]);
    let mut waiting = vec![tokio::spawn(process.messages.submit(ann, to(ann, 1, "x")))];
    process.store.until_stalled(1).await;
    waiting.extend([2, 3].map(|id| tokio::spawn(process.messages.submit(ann, to(ann, id, "x")))));
    assert_eq!(process.messages.submit(ann, to(ann, 4, "x")).await, Err(SendError::Busy));
    process.store.release();
    for sent in waiting {
        assert!(sent.await.expect("runs").is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_asks_for_all_its_numbers_at_once() {
    let world = World::new().await;
    let process = world.start(options(1)).await;
    let members = (1..PEOPLE).map(person).collect();
    let gid = process.groups.create(person(0), "all".into(), members, None).await.expect("made");
    let message = |id| OutgoingMessage {
        client_id: name(id),
        to: Conversation::Group(gid),
        text: "hi".into(),
        reply_to: None,
        forward: None,
        files: Vec::new(),
        mentions: Mentions::default(),
    };
    process.store.script([Fault::Stall]);
    let first = tokio::spawn(process.messages.submit(person(0), message(1)));
    process.store.until_stalled(1).await;
    // Sends that come while the first is written are one batch.
    let next: Vec<_> =
        (2..=5).map(|id| process.messages.submit(person(id as u32 % 2), message(id))).collect();
    process.store.release();
    first.await.expect("runs").expect("accepted");
    for answer in next {
        answer.await.expect("accepted");
    }
    let everyone = PEOPLE as usize;
    let questions = process.questions.lock().expect("whole").clone();
    assert_eq!(questions, [everyone, everyone, 4 * everyone], "the group, the first message, the batch");
    process.queues.stop().await;
    for n in 0..PEOPLE {
        let inbox = world.inbox(person(n)).await;
        assert_eq!(
            client_ids_of(&inbox)[1..],
            (1..=5).map(name).collect::<Vec<_>>(),
            "in the order of acceptance"
        );
        assert!(ids(&inbox).is_sorted_by(|one, next| one < next));
    }
}

#[tokio::test(start_paused = true)]
async fn a_line_that_has_ended_silences_its_own_user_and_nobody_else() {
    let world = World::new().await;
    let process = world.start(options(1)).await;
    let (ann, bob) = (person(0), person(1));
    let gid = process.groups.create(ann, "all".into(), vec![bob, person(2)], None).await.expect("made");
    process.lines.advance(seqsvr_core::Uid::new(bob.0), MessageId::MAX.get()).await.expect("memory");
    let message = |id| OutgoingMessage {
        client_id: name(id),
        to: Conversation::Group(gid),
        text: "hi".into(),
        reply_to: None,
        forward: None,
        files: Vec::new(),
        mentions: Mentions::default(),
    };
    process.messages.submit(ann, message(1)).await.expect("accepted");
    assert_eq!(process.messages.submit(bob, message(2)).await, Err(SendError::Exhausted));
    process.queues.stop().await;
    assert_eq!(client_ids_of(&world.inbox(person(2)).await)[1..], [name(1)]);
    assert_eq!(client_ids_of(&world.inbox(bob).await).len(), 1, "nothing after the making of the group");
}

#[tokio::test(start_paused = true)]
async fn stopping_finishes_what_was_accepted_and_refuses_the_rest() {
    let world = World::new().await;
    let process = world.start(options(4)).await;
    let members = (1..PEOPLE).map(person).collect();
    let gid = process.groups.create(person(0), "all".into(), members, None).await.expect("made");
    let message = |id| OutgoingMessage {
        client_id: name(id),
        to: Conversation::Group(gid),
        text: "bye".into(),
        reply_to: None,
        forward: None,
        files: Vec::new(),
        mentions: Mentions::default(),
    };
    let sent: Vec<_> = (1..=20).map(|id| process.messages.submit(person(0), message(id))).collect();
    process.queues.stop().await;
    for answer in sent {
        assert!(answer.await.is_ok());
    }
    for n in 0..PEOPLE {
        assert_eq!(world.inbox(person(n)).await.len(), 21, "20 messages and the making of the group");
    }
    let late = process.messages.submit(person(0), message(99)).await;
    assert_eq!(late, Err(SendError::Stopping));
}

#[tokio::test(start_paused = true)]
async fn a_failure_after_the_last_order_does_not_hold_up_a_stop() {
    let world = World::new().await;
    let process = world.start(options(3)).await;
    let (ann, bob, cat) = (person(0), person(1), person(2)); // one in each queue
    process.store.script([Fault::Stall, Fault::Pass, Fault::Stall, Fault::Refuse]);
    let late = tokio::spawn(process.messages.submit(cat, to(ann, 1, "accepted while stopping")));
    process.store.until_stalled(1).await;
    process.insist(ann, to(bob, 2, "owed to a queue that is stuck")).await;
    process.store.until_stalled(2).await;
    let queues = process.queues.clone();
    let stop = tokio::spawn(async move { queues.stop().await });
    // Ann's queue takes its last order; then Cat's copy for her comes, and its commit is refused.
    process.idle().await;
    process.store.release();
    assert!(late.await.expect("runs").is_ok());
    process.idle().await;
    process.store.release();
    // At once: a writer that had panicked meanwhile would still be pausing.
    tokio::time::timeout(Duration::from_millis(20), stop).await.expect("in time").expect("runs");
    assert_eq!(client_ids_of(&world.inbox(bob).await), [name(2)]);
    assert_eq!(client_ids_of(&world.inbox(ann).await).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn after_the_row_that_says_you_left_nothing_of_that_epoch_arrives() {
    let world = World::new().await;
    let process = world.start(options(4)).await;
    let (ann, bob) = (person(0), person(1));
    let gid = process.groups.create(ann, "pair".into(), vec![bob], None).await.expect("made");
    let say = |id| OutgoingMessage {
        client_id: name(id),
        to: Conversation::Group(gid),
        text: "hello".into(),
        reply_to: None,
        forward: None,
        files: Vec::new(),
        mentions: Mentions::default(),
    };
    process.insist(ann, say(1)).await;
    // Ann's message is accepted while Bob is in; his queue gets to it only after he has left.
    process.groups.remove(bob, gid, bob).await.expect("left");
    assert_eq!(process.messages.submit(bob, say(9)).await, Err(SendError::UnknownGroup));
    process.insist(ann, say(2)).await;
    process.groups.add(ann, gid, bob, None).await.expect("back");
    process.insist(ann, say(3)).await;
    process.queues.stop().await;
    let inbox = world.inbox(bob).await;
    let left =
        inbox.iter().position(|entry| entry.content.body.as_json().contains("\"left\"")).expect("a row");
    let back =
        inbox.iter().position(|entry| entry.content.body.as_json().contains("\"added\"")).expect("a row");
    assert_eq!(back, left + 1, "between leaving and rejoining there is nothing");
    assert!(!client_ids_of(&inbox).contains(&name(2)) && client_ids_of(&inbox).contains(&name(3)));
}

#[tokio::test(start_paused = true)]
async fn an_up_to_date_heartbeat_touches_no_storage() {
    let world = World::new().await;
    let process = world.start(options(4)).await;
    let (ann, bob) = (person(0), person(1));
    process.insist(ann, to(bob, 1, "hi")).await;
    process.sync.watermark(bob).await.expect("memory");
    let asked = process.store.asked();
    for _ in 0..1_000 {
        let watermark = process.sync.watermark(bob).await.expect("from memory");
        assert!(watermark.latest() > MessageId::ZERO);
    }
    assert_eq!(process.store.asked(), asked);
    // The first heartbeat after a start loads the watermark, once for all who ask.
    let restarted = world.start(options(4)).await;
    let asked = restarted.store.asked();
    let (first, second) = tokio::join!(restarted.sync.watermark(bob), restarted.sync.watermark(bob));
    assert_eq!(first.expect("memory").latest(), second.expect("memory").latest());
    assert_eq!(restarted.store.asked() - asked, 1);
}

#[tokio::test]
async fn devices_that_follow_by_cursor_miss_nothing_under_concurrent_senders() {
    for queues in [1, 4] {
        let world = World::new().await;
        let process = Arc::new(world.start(options(queues)).await);
        let devices: Vec<_> = (0..PEOPLE).map(|n| process.follow(person(n), 200 * PEOPLE as usize)).collect();
        let senders: Vec<_> = (0..PEOPLE)
            .map(|from| {
                let process = process.clone();
                tokio::spawn(async move {
                    for n in 0..200_u32 {
                        for other in 0..PEOPLE {
                            let id = u128::from(from) << 64 | u128::from(n) << 32 | u128::from(other);
                            let sent = process.messages.submit(person(from), to(person(other), id, "tick"));
                            if n % 8 == 7 {
                                sent.await.expect("accepted");
                            }
                        }
                    }
                })
            })
            .collect();
        for sender in senders {
            sender.await.expect("runs");
        }
        let mut seen = Vec::new();
        for device in devices {
            seen.push(device.await.expect("runs"));
        }
        process.queues.stop().await;
        for (n, seen) in seen.iter().enumerate() {
            let inbox = ids(&world.inbox(person(n as u32)).await);
            assert!(inbox.starts_with(seen), "a row became visible behind the cursor");
        }
    }
}
