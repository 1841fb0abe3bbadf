//! Sends that do not wait for each other's answers keep their order, whatever is refused on the way (I12).

use proptest::prelude::*;

use tidemark::app::SendError;
use tidemark::app::messages::{OutgoingMessage, Request};
use tidemark::domain::Uid;
use tidemark::queue::{Options, RESEND_WAIT};
use tidemark::store::faulty::Fault;

use crate::ordering::world::{Process, World, client_ids_of, name, options, person, to};

/// Sends as the clients do: so many at a time, and from the first refused one on again.
async fn pump(
    process: &Process,
    who: Uid,
    messages: &[OutgoingMessage],
    window: usize,
    mut between: impl FnMut(usize),
) {
    let pipeline = process.messages.pipeline();
    let mut settled = 0;
    for round in 0.. {
        between(round);
        let window = &messages[settled..messages.len().min(settled + window)];
        if window.is_empty() {
            return;
        }
        let answers: Vec<_> = window
            .iter()
            .map(|message| process.messages.submit_in(&pipeline, who, Request::Message(message.clone())))
            .collect();
        let mut refused = false;
        for answer in answers {
            match answer.await {
                Ok(_) if refused => panic!("accepted behind one that was refused"),
                Ok(_) => settled += 1,
                Err(refusal) => {
                    assert!(refusal.is_retryable(), "{refusal}");
                    refused = true;
                }
            }
        }
        process.pause().await;
    }
}

#[derive(Clone, Debug)]
struct Run {
    queues: usize,
    length: usize,
    batch: usize,
    window: usize,
    faults: Vec<Fault>,
    /// Rounds in which the sender gets no numbers.
    outage: (usize, usize),
}

fn run() -> impl Strategy<Value = Run> {
    let fault = prop_oneof![
        2 => Just(Fault::Pass),
        1 => Just(Fault::Refuse),
        1 => Just(Fault::LoseAnswer),
        1 => Just(Fault::LoseWrite),
        1 => Just(Fault::Panic),
        1 => Just(Fault::PanicAfter),
    ];
    let sizes = (1..4_usize, 1..12_usize, 1..6_usize, 1..20_usize);
    (sizes, prop::collection::vec(fault, 0..20), (0..6_usize, 0..4_usize)).prop_map(
        |((queues, length, batch, window), faults, outage)| Run {
            queues,
            length,
            batch,
            window,
            faults,
            outage,
        },
    )
}

async fn check(run: Run) {
    let world = World::new().await;
    let Run { queues, length, batch, .. } = run;
    let process = world.start(Options { queues, length, batch, ..Options::default() }).await;
    let (ann, bob) = (person(0), person(1));
    process.store.script(run.faults.iter().copied());
    let messages: Vec<OutgoingMessage> =
        (0..40).map(|id| to(if id % 3 == 0 { ann } else { bob }, id, "hi")).collect();
    let (from, rounds) = run.outage;
    pump(&process, ann, &messages, run.window, |round| {
        if rounds > 0 && round == from {
            process.refuse_numbers(ann);
        } else if round == from + rounds {
            process.serve_numbers();
        }
    })
    .await;
    process.serve_numbers();
    process.owed_nothing(&world).await;
    process.queues.stop().await;
    assert_eq!(client_ids_of(&world.inbox(ann).await), (0..40).map(name).collect::<Vec<_>>());
    let bobs: Vec<_> = (0..40).filter(|id| id % 3 != 0).map(name).collect();
    assert_eq!(client_ids_of(&world.inbox(bob).await), bobs);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sends_that_do_not_wait_for_each_other_keep_their_order_whatever_is_refused(run in run()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(check(run));
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_given_up_holds_the_others_for_a_bounded_time_and_nobody_else() {
    let world = World::new().await;
    let options = Options { length: 1, batch: 1, ..Options::default() };
    let process = world.start(options).await;
    let (ann, bob) = (person(0), person(1));
    let pipeline = process.messages.pipeline();
    let send = |id| process.messages.submit_in(&pipeline, ann, Request::Message(to(ann, id, "hi")));
    process.store.script([Fault::Refuse]);
    assert_eq!(send(1).await, Err(SendError::Unavailable));
    assert_eq!(send(2).await, Err(SendError::OutOfOrder));
    process.messages.submit(ann, to(ann, 3, "another way")).await.expect("accepted");
    process.messages.submit(bob, to(ann, 4, "hi")).await.expect("accepted");
    tokio::time::advance(RESEND_WAIT).await;
    send(2).await.expect("accepted");
    send(1).await.expect("accepted");
    process.queues.stop().await;
    assert_eq!(client_ids_of(&world.inbox(ann).await), [3, 4, 2, 1].map(name));
}

/// Requests that another server's change made stale are decided again, in the same order, and nobody notices.
#[tokio::test(start_paused = true)]
async fn what_others_changed_meanwhile_is_decided_again() {
    let world = World::new().await;
    let process = world.start(options(1)).await;
    let (ann, bob) = (person(0), person(1));
    let pipeline = process.messages.pipeline();
    process.store.script([Fault::Stale, Fault::Stale, Fault::Stale]);
    let sends: Vec<_> = (1..=3)
        .map(|id| process.messages.submit_in(&pipeline, ann, Request::Message(to(bob, id, "hi"))))
        .collect();
    for send in sends {
        send.await.expect("accepted at the fourth try");
    }
    assert_eq!(client_ids_of(&world.inbox(bob).await), [name(1), name(2), name(3)]);
}

/// One whose grounds keep changing is refused for the moment, and nothing of its pipeline overtakes it; others go on.
#[tokio::test(start_paused = true)]
async fn what_keeps_changing_is_refused_and_not_overtaken() {
    let world = World::new().await;
    let process = world.start(options(1)).await;
    let (ann, bob, cat) = (person(0), person(1), person(2));
    let pipeline = process.messages.pipeline();
    process.store.script([Fault::Stale, Fault::Stale, Fault::Stale, Fault::Stale]);
    let first = process.messages.submit_in(&pipeline, ann, Request::Message(to(bob, 1, "hi")));
    let second = process.messages.submit_in(&pipeline, ann, Request::Message(to(bob, 2, "hi")));
    let other = process.messages.submit(cat, to(bob, 3, "hi"));
    assert_eq!(first.await, Err(SendError::Unavailable));
    assert_eq!(second.await, Err(SendError::OutOfOrder));
    other.await.expect("accepted");
    assert_eq!(client_ids_of(&world.inbox(bob).await), [name(3)]);
    let again =
        [1, 2].map(|id| process.messages.submit_in(&pipeline, ann, Request::Message(to(bob, id, "hi"))));
    for send in again {
        send.await.expect("accepted");
    }
    assert_eq!(client_ids_of(&world.inbox(bob).await), [name(3), name(1), name(2)]);
}
