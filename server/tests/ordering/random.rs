//! Random runs with random failures and a crash, judged by what every inbox holds in the end.

use std::collections::HashMap;

use proptest::prelude::*;

use tidemark::app::messages::Draft;
use tidemark::domain::{ClientId, Conversation, GroupId, Kind, Mentions, Uid};
use tidemark::store::MessageStore;
use tidemark::store::faulty::Fault;

use crate::world::{PEOPLE, World, name, options, person};

/// What one random run does.
#[derive(Clone, Debug)]
struct Run {
    queues: usize,
    sends: Vec<(u32, Option<u32>)>,
    faults: Vec<Fault>,
    crash_after: usize,
    /// Before which send whose numbers end, and (None) all are there again.
    outages: Vec<(usize, Option<u32>)>,
}

fn run() -> impl Strategy<Value = Run> {
    let fault = prop_oneof![
        4 => Just(Fault::Pass),
        1 => Just(Fault::Refuse),
        1 => Just(Fault::LoseAnswer),
        1 => Just(Fault::LoseWrite),
        1 => Just(Fault::Panic),
        1 => Just(Fault::PanicAfter),
    ];
    // To a person, or (None) to the group of all.
    let send = (0..PEOPLE, prop_oneof![2 => (0..PEOPLE).prop_map(Some), 1 => Just(None)]);
    let outage = (0..40_usize, prop_oneof![2 => (0..PEOPLE).prop_map(Some), 1 => Just(None)]);
    let some = (prop::collection::vec(fault, 0..30), prop::collection::vec(outage, 0..6));
    (1..5_usize, prop::collection::vec(send, 1..40), some, 0..40_usize).prop_map(
        |(queues, sends, (faults, outages), crash_after)| Run { queues, sends, faults, crash_after, outages },
    )
}

async fn check(run: Run) {
    let world = World::new().await;
    let mut process = world.start(options(run.queues)).await;
    let all = (1..PEOPLE).map(person).collect();
    let gid = process.groups.create(person(0), "all".into(), all, None).await.expect("made");
    process.store.script(run.faults.iter().copied());

    let draft = |id: usize, to: Option<u32>| Draft {
        client_id: name(id as u128),
        to: to.map_or(Conversation::Group(gid), |n| Conversation::User(person(n))),
        text: format!("message {id}"),
        reply_to: None,
        mentions: Mentions::default(),
    };
    let mut unanswered = Vec::new();
    for (at, (from, to)) in run.sends.iter().enumerate() {
        if at == run.crash_after {
            // A crash: what runs is forgotten where it stands, the answers with it.
            unanswered.clear();
            process.store.kill();
            process = world.start(options(run.queues)).await;
            process.store.script(run.faults.iter().copied());
        }
        for (_, whose) in run.outages.iter().filter(|(before, _)| *before == at) {
            match whose {
                Some(n) => process.refuse_numbers(person(*n)),
                None => process.serve_numbers(),
            }
            // Some of what was sent is written before, some after it.
            process.pause().await;
        }
        unanswered.push((at, process.messages.submit(person(*from), draft(at, *to))));
    }
    drop(unanswered);
    process.serve_numbers();
    // Every client insists, as clients do; whatever had been accepted is not written again.
    for (at, (from, to)) in run.sends.iter().enumerate() {
        process.insist(person(*from), draft(at, *to)).await;
    }
    // Passes over what is owed come to their end.
    process.owed_nothing(&world).await;
    process.queues.stop().await;
    judge(&world, &run, gid).await;
}

async fn judge(world: &World, run: &Run, gid: GroupId) {
    let mut order: HashMap<Uid, Vec<ClientId>> = HashMap::new();
    for n in 0..PEOPLE {
        let own = world.inbox(person(n)).await;
        let own = own.iter().filter(|entry| entry.content.sender == person(n));
        let own = own.filter(|entry| entry.content.kind == Kind::Message);
        order.insert(person(n), own.filter_map(|entry| entry.content.client_id).collect());
    }
    for n in 0..PEOPLE {
        let inbox = world.inbox(person(n)).await;
        assert!(inbox.is_sorted_by(|a, b| a.message_id < b.message_id));
        let messages: Vec<_> = inbox.iter().filter(|entry| entry.content.kind == Kind::Message).collect();
        let mut due: Vec<ClientId> = Vec::new();
        for (at, (from, to)) in run.sends.iter().enumerate() {
            if *from == n || to.is_none() || *to == Some(n) {
                due.push(name(at as u128));
            }
        }
        let mut got: Vec<ClientId> = messages.iter().filter_map(|entry| entry.content.client_id).collect();
        for (sender, accepted) in &order {
            let theirs: Vec<_> = messages
                .iter()
                .filter(|e| e.content.sender == *sender)
                .filter_map(|e| e.content.client_id)
                .collect();
            let expected: Vec<_> = accepted.iter().copied().filter(|id| theirs.contains(id)).collect();
            assert_eq!(theirs, expected, "I12: {sender}'s order at {}", person(n));
        }
        got.sort_unstable();
        due.sort_unstable();
        assert_eq!(got, due, "I4, I5: everything once, to everyone, at {} in {gid}", person(n));
    }
    assert!(world.rows.pending(Default::default(), 1).await.expect("memory").is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_fails_everything_arrives_once_in_each_senders_order(run in run()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(check(run));
    }
}
