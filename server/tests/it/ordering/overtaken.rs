//! A sequence that is behind the rows is advanced above them, and nobody is refused for it (I1, I12).

use std::sync::Arc;

use tidemark::domain::MessageId;
use tidemark::store::faulty::Fault;

use crate::ordering::world::{World, client_ids_of, name, options, person, to};

/// Its file was lost, or another one is the source now: every message is accepted at the first try, above what is there, in order.
#[tokio::test(start_paused = true)]
async fn a_sequence_behind_the_rows_is_overtaken_without_a_refusal() {
    for queues in [1, 3] {
        let mut world = World::new().await;
        let (ann, bob, cat) = (person(0), person(1), person(2));
        let before = world.start(options(queues)).await;
        for n in 1..=10 {
            before.insist(ann, to(bob, n, "before")).await;
        }
        before.queues.stop().await;
        world.sections = Arc::new(seqsvr_core::store::Memory::new());

        let after = world.start(options(queues)).await;
        // Cat's line is in order, Bob's and Ann's are behind: none may overtake the other.
        let sends =
            (11..=20).map(|n| after.messages.submit(ann, to(if n % 2 == 0 { cat } else { bob }, n, "after")));
        let sent: Vec<_> = sends.collect();
        let mut last = MessageId::new(10).expect("small");
        for answer in sent {
            let accepted = answer.await.expect("accepted").message_id;
            assert!(accepted > last, "{accepted} after {last}");
            last = accepted;
        }
        after.messages.submit(bob, to(ann, 30, "back")).await.expect("accepted");
        after.queues.stop().await;
        let names = |of: Vec<u128>| of.into_iter().map(name).collect::<Vec<_>>();
        assert_eq!(client_ids_of(&world.inbox(ann).await), names((1..=20).chain([30]).collect()));
        assert_eq!(
            client_ids_of(&world.inbox(bob).await),
            names((1..=10).chain([11, 13, 15, 17, 19, 30]).collect())
        );
        assert_eq!(client_ids_of(&world.inbox(cat).await), names(vec![12, 14, 16, 18, 20]));
        assert!(after.overtaken() >= 2, "{}", after.overtaken());
    }
}

/// Also what an earlier process still owes.
#[tokio::test(start_paused = true)]
async fn copies_owed_overtake_a_sequence_that_is_behind() {
    let mut world = World::new().await;
    let (ann, bob) = (person(0), person(1));
    let before = world.start(options(4)).await;
    for n in 1..=5 {
        before.insist(ann, to(bob, n, "before")).await;
    }
    before.store.script([Fault::Pass, Fault::Stall]);
    before.insist(ann, to(bob, 6, "before the crash")).await;
    before.store.until_stalled(1).await;
    world.sections = Arc::new(seqsvr_core::store::Memory::new());

    let after = world.start(options(4)).await;
    after.insist(ann, to(bob, 7, "after the crash")).await;
    after.queues.stop().await;
    assert_eq!(client_ids_of(&world.inbox(bob).await), (1..=7).map(name).collect::<Vec<_>>());
}
