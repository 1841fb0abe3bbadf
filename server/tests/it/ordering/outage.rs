//! A part of the uid space without numbers delays only its own users (I1, I5, I12).

use std::time::Duration;

use tokio::time::Instant;

use tidemark::app::SendError;
use tidemark::app::messages::OutgoingMessage;
use tidemark::domain::{Conversation, Mentions};
use tidemark::queue::{NUMBER_WAIT, Options};
use tidemark::store::faulty::Fault;

use crate::ordering::world::{PEOPLE, World, client_ids_of, ids, name, options, person, to};

#[tokio::test(start_paused = true)]
async fn a_section_without_numbers_delays_only_its_own_users() {
    for queues in [1, 4] {
        let world = World::new().await;
        let process = world.start(options(queues)).await;
        let (ann, bob, cat) = (person(0), person(1), person(2));
        process.refuse_numbers(bob);
        let wait = NUMBER_WAIT;
        let began = Instant::now();
        process.messages.submit(ann, to(bob, 1, "for one without numbers")).await.expect("accepted");
        assert!(began.elapsed() <= wait, "the first time, the numbers are waited for: {:?}", began.elapsed());
        process.idle().await;
        tokio::time::advance(wait).await;
        for id in 2..10 {
            let began = Instant::now();
            process.messages.submit(ann, to(cat, id, "for another")).await.expect("accepted");
            process.messages.submit(ann, to(bob, 100 + id, "more")).await.expect("accepted");
            let own = process.messages.submit(bob, to(ann, 200 + id, "from the one without")).await;
            assert_eq!(own, Err(SendError::Unavailable));
            assert!(began.elapsed() < Duration::from_millis(1), "nobody waits any more");
        }
        assert!(world.inbox(bob).await.is_empty());
        assert_eq!(process.queues.sections_out(), 1);
        assert!(process.queues.owed_bytes() > 0);

        let device = process.follow(bob, 10);
        process.serve_numbers();
        process.owed_nothing(&world).await;
        process.insist(ann, to(bob, 999, "after it")).await;
        process.queues.stop().await;
        let inbox = world.inbox(bob).await;
        let expected: Vec<_> = [1].into_iter().chain(102..110).chain([999]).map(name).collect();
        assert_eq!(client_ids_of(&inbox), expected, "in the order of acceptance");
        assert_eq!(device.await.expect("runs"), ids(&inbox));
        assert_eq!((process.queues.sections_out(), process.queues.owed_bytes()), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_numbers_is_bounded() {
    let world = World::new().await;
    let process = world.start(Options { owed_bytes: 1_000, ..options(1) }).await;
    let (ann, bob, cat) = (person(0), person(1), person(2));
    process.refuse_numbers(bob);
    let mut accepted = 0;
    let refusal = loop {
        match process.messages.submit(ann, to(bob, accepted, "hi")).await {
            Ok(_) => accepted += 1,
            Err(refusal) => break refusal,
        }
    };
    assert_eq!(refusal, SendError::Unavailable);
    assert!((1..10).contains(&accepted), "{accepted}");
    process.messages.submit(ann, to(cat, 100, "for another")).await.expect("accepted");
    process.serve_numbers();
    for id in accepted..accepted + 20 {
        process.insist(ann, to(bob, id, "hi")).await;
    }
    process.queues.stop().await;
    assert_eq!(client_ids_of(&world.inbox(bob).await), (0..accepted + 20).map(name).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_group_hears_at_once_except_for_those_without_numbers() {
    for queues in [1, 4] {
        let world = World::new().await;
        let process = world.start(options(queues)).await;
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
        process.refuse_numbers(person(3));
        for id in 1..=5 {
            process.messages.submit(person(id as u32 % 2), message(id)).await.expect("accepted");
        }
        process.groups.remove(person(0), gid, person(3)).await.expect("removed");
        process.messages.submit(person(0), message(6)).await.expect("accepted");
        process.idle().await;
        assert_eq!(
            client_ids_of(&world.inbox(person(2)).await).len(),
            8,
            "the making, six messages, the removal"
        );
        process.serve_numbers();
        process.owed_nothing(&world).await;
        process.queues.stop().await;
        let late = client_ids_of(&world.inbox(person(3)).await);
        let others = client_ids_of(&world.inbox(person(2)).await);
        assert_eq!(
            late,
            others[others.len() - 8..][..7],
            "all up to the row that says so, in the same order"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_with_a_section_out_serves_all_others() {
    for queues in [1, 4] {
        let world = World::new().await;
        let (ann, bob, cat) = (person(0), person(1), person(2));
        let before = world.start(options(queues)).await;
        before.refuse_numbers(bob);
        for id in 0..300 {
            before.insist(ann, to(bob, id, "owed")).await;
        }
        before.store.kill();

        let after = world.start(options(queues)).await;
        after.refuse_numbers(bob);
        after.insist(ann, to(cat, 1_000, "for another")).await;
        // A refused commit makes the queues recover, with the section still out.
        after.store.script([Fault::Refuse, Fault::Pass, Fault::Refuse]);
        after.insist(ann, to(cat, 1_001, "for another")).await;
        after.insist(ann, to(bob, 1_002, "more")).await;
        after.insist(cat, to(ann, 1_003, "for another")).await;
        assert!(world.inbox(bob).await.is_empty());
        after.serve_numbers();
        after.owed_nothing(&world).await;
        after.queues.stop().await;
        let expected: Vec<_> = (0..300).chain([1_002]).map(name).collect();
        assert_eq!(client_ids_of(&world.inbox(bob).await), expected, "with {queues} queues");
    }
}
