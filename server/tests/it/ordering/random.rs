//! Random runs with random failures and a crash, judged by what every inbox holds in the end.

use std::collections::HashMap;

use proptest::prelude::*;

use tidemark::app::messages::OutgoingMessage;
use tidemark::domain::{ClientId, Conversation, Entry, GroupId, Kind, Mentions, Uid};
use tidemark::queue::{Options, Request};
use tidemark::store::MessageStore;
use tidemark::store::faulty::Fault;

use crate::ordering::world::{PEOPLE, World, moment, name, options, person};

/// To whom something is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum To {
    Person(u32),
    /// The group of all.
    Group,
    /// A moment for all.
    Friends,
}

/// The plan of one random run.
#[derive(Clone, Debug)]
struct Run {
    queues: usize,
    sends: Vec<(u32, To)>,
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
    let to = prop_oneof![2 => (0..PEOPLE).prop_map(To::Person), 1 => Just(To::Group), 1 => Just(To::Friends)];
    let send = (0..PEOPLE, to);
    let outage = (0..40_usize, prop_oneof![2 => (0..PEOPLE).prop_map(Some), 1 => Just(None)]);
    let some = (prop::collection::vec(fault, 0..30), prop::collection::vec(outage, 0..6));
    (1..5_usize, prop::collection::vec(send, 1..40), some, 0..40_usize).prop_map(
        |(queues, sends, (faults, outages), crash_after)| Run { queues, sends, faults, crash_after, outages },
    )
}

async fn check(run: Run) {
    let world = World::new().await;
    // Moments are cut into single copies.
    let options = || Options { slice_rows: 1, ..options(run.queues) };
    let mut process = world.start(options()).await;
    let all = (1..PEOPLE).map(person).collect();
    let gid = process.groups.create(person(0), "all".into(), all, None).await.expect("made");
    process.store.script(run.faults.iter().copied());

    let request = |id: usize, from: u32, to: To| {
        let to = match to {
            To::Friends => return moment(person(from), id as u128),
            To::Group => Conversation::Group(gid),
            To::Person(n) => Conversation::User(person(n)),
        };
        let (client_id, text) = (name(id as u128), format!("message {id}"));
        Request::Message(OutgoingMessage {
            client_id,
            to,
            text,
            reply_to: None,
            forward: None,
            files: Vec::new(),
            mentions: Mentions::default(),
        })
    };
    let mut unanswered = Vec::new();
    for (at, (from, to)) in run.sends.iter().enumerate() {
        if at == run.crash_after {
            // A crash: what runs is forgotten where it stands, the answers with it.
            unanswered.clear();
            process.store.kill();
            process = world.start(options()).await;
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
        unanswered.push((at, process.queues.submit(person(*from), request(at, *from, *to))));
    }
    drop(unanswered);
    process.serve_numbers();
    // Every client insists, as clients do; whatever had been accepted is not written again.
    for (at, (from, to)) in run.sends.iter().enumerate() {
        process.insist_on(person(*from), request(at, *from, *to)).await;
    }
    // Passes over what is owed come to their end.
    process.owed_nothing(&world).await;
    process.queues.stop().await;
    judge(&world, &run, gid).await;
}

/// Whether a row is a message or a moment.
fn is_sent(entry: &Entry) -> bool {
    matches!(entry.content.kind, Kind::Message | Kind::Moment)
}

async fn judge(world: &World, run: &Run, gid: GroupId) {
    let mut order: HashMap<Uid, Vec<ClientId>> = HashMap::new();
    for n in 0..PEOPLE {
        let own = world.inbox(person(n)).await;
        let own = own.iter().filter(|entry| entry.content.sender == person(n));
        let own = own.filter(|entry| is_sent(entry));
        order.insert(person(n), own.filter_map(|entry| entry.content.client_id).collect());
    }
    for n in 0..PEOPLE {
        let inbox = world.inbox(person(n)).await;
        assert!(inbox.is_sorted_by(|a, b| a.message_id < b.message_id));
        let messages: Vec<_> = inbox.iter().filter(|entry| is_sent(entry)).collect();
        let mut due: Vec<ClientId> = Vec::new();
        for (at, (from, to)) in run.sends.iter().enumerate() {
            if *from == n || matches!(to, To::Group | To::Friends) || *to == To::Person(n) {
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
