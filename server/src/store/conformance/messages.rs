//! Acceptances, idempotency and deliveries.

use super::*;

const ANN: Uid = Uid(10_001);
const BOB: Uid = Uid(10_002);
const CAT: Uid = Uid(10_003);
const TO_BOB: Conversation = Conversation::User(BOB);

fn owed(uid: Uid) -> Recipient {
    Recipient { uid, epoch: MembershipEpoch(0) }
}

/// The empty store.
pub async fn an_empty_store_knows_nothing(store: &dyn MessageStore) {
    assert_eq!(store.watermark(ANN).await.expect("read"), MessageId::ZERO);
    assert_eq!(ids(store, ANN).await, [] as [u64; 0]);
    assert_eq!(records(store, &[(ANN, client_id(1))]).await, [None]);
    assert_eq!(store.conversations(ANN, None, 10).await.expect("read"), []);
    assert_eq!(store.read_to(ANN, TO_BOB).await.expect("read"), MessageId::ZERO);
    assert_eq!(store.entry(ANN, id(1)).await.expect("read"), None);
    assert!(store.pending(PendingKey::default(), 10).await.expect("read").is_empty());
    assert!(store.group(GroupId(1)).await.expect("read").is_none());
    assert_eq!(store.health().trouble, None);
}

/// Rows, watermarks and conversations of both sides.
pub async fn each_side_reads_its_own_copy(store: &dyn MessageStore) {
    send_text(store, (ANN, 5), (BOB, 9), 1).await;
    assert_eq!(ids(store, ANN).await, [5]);
    assert_eq!(ids(store, BOB).await, [9]);
    assert_eq!(store.watermark(BOB).await.expect("read"), id(9));
    let bobs = store.entry(BOB, id(9)).await.expect("read").expect("stored");
    assert_eq!(bobs.conversation(), Conversation::User(ANN));
    assert_eq!(bobs.content, text_message(ANN, TO_BOB, 1, "message 1"));
    assert_eq!(store.entry(BOB, id(5)).await.expect("read"), None);
    let conversations = [(ANN, TO_BOB), (BOB, Conversation::User(ANN)), (ANN, Conversation::User(ANN))];
    assert_eq!(store.have_messages(&conversations).await.expect("read"), [true, true, false]);
    assert_eq!(store.heard_from(BOB, &[BOB, ANN]).await.expect("read"), [false, true]);
    assert_eq!(
        store.heard_from(ANN, &[BOB]).await.expect("read"),
        [false],
        "who was written to has said nothing"
    );
}

/// I4.
pub async fn a_repeated_key_is_refused_and_known(store: &dyn MessageStore) {
    send_text(store, (ANN, 5), (BOB, 9), 1).await;
    let again = accept(text_message(ANN, TO_BOB, 1, "other"), vec![row(ANN, 6), row(BOB, 10)], vec![]);
    assert!(matches!(one(store, Write::Accept(again)).await, Outcome::Rejected(_)));
    let first = text_message(ANN, TO_BOB, 1, "message 1");
    let sent = IdempotencyRecord {
        message_id: id(5),
        sent_at: first.sent_at,
        digest: Digest::of(first.target, first.body.as_json()),
    };
    let keys = [(BOB, client_id(1)), (ANN, client_id(1)), (ANN, client_id(2))];
    assert_eq!(records(store, &keys).await, [None, Some(sent), None]);
    assert_eq!(ids(store, BOB).await, [9]);
}

/// I4, where nobody has asked for the key. Nothing of the call is stored.
pub async fn a_repeated_key_that_nobody_asked_for_is_given_back(store: &dyn MessageStore) {
    let Some(unused) = store.unasked() else { return };
    let say = |name, n| {
        let content = text_message(ANN, TO_BOB, name, "hi");
        let unused = Some(unused);
        Write::Accept(Accept { unused, ..accept(content, vec![row(ANN, n), row(BOB, n)], vec![]) })
    };
    assert!(matches!(one(store, say(1, 1)).await, Outcome::Accepted(..)));
    for n in 2..=20 {
        let given_back = store.commit(vec![say(u128::from(n), 1_000), say(1, 1_001)]).await;
        assert!(matches!(&given_back, Err(CommitError::Stale(at)) if *at == [1]), "{given_back:?}");
        send_text(store, (CAT, n), (ANN, n), n.into()).await;
    }
    assert_eq!(ids(store, BOB).await, [1]);
}

/// A proof that a key is unused holds until the key is used, however much is stored and flushed in between.
pub async fn an_old_proof_lets_no_key_be_used_twice(store: &dyn MessageStore) {
    let key = (ANN, client_id(1));
    let unused = async || match store.keys(&[key]).await.expect("read")[..] {
        [KeyState::Unused(unused)] => unused,
        ref other => panic!("one unused key, got {other:?}"),
    };
    let say = |n, unused| {
        let content = text_message(ANN, TO_BOB, 1, "hi");
        Write::Accept(Accept {
            unused: Some(unused),
            ..accept(content, vec![row(ANN, n), row(BOB, n)], vec![])
        })
    };
    let (old, new) = (unused().await, unused().await);
    assert!(matches!(one(store, say(1, new)).await, Outcome::Accepted(..)));
    for n in 2..=20 {
        outdated(store, say(1_000, old), |done| matches!(done, Outcome::Rejected(_))).await;
        send_text(store, (CAT, n), (ANN, n), n.into()).await;
    }
    assert_eq!(ids(store, BOB).await, [1]);
}

/// The others of the call are done.
pub async fn a_refused_write_takes_no_other_with_it(store: &dyn MessageStore) {
    send_text(store, (ANN, 5), (BOB, 9), 1).await;
    let say = |name, ann, bob| {
        let content = text_message(ANN, TO_BOB, name, "hi");
        Write::Accept(accept(content, vec![row(ANN, ann), row(BOB, bob)], vec![]))
    };
    let done = store.commit(vec![say(2, 6, 10), say(3, 7, 10), say(4, 8, 11)]).await.expect("committed");
    assert!(
        matches!(done[..], [Outcome::Accepted(..), Outcome::Rejected(_), Outcome::Accepted(..)]),
        "{done:?}"
    );
    assert_eq!(ids(store, ANN).await, [5, 6, 8]);
    assert_eq!(ids(store, BOB).await, [9, 10, 11]);
    assert_eq!(records(store, &[(ANN, client_id(3))]).await, [None]);
}

/// I1, I6: nothing of the call is stored, also what would be in order, so that it can be numbered again as a whole.
pub async fn an_id_must_be_larger_than_the_newest(store: &dyn MessageStore) {
    send_text(store, (ANN, 5), (BOB, 9), 1).await;
    let say = |name, ann, bob| {
        let content = text_message(ANN, TO_BOB, name, "hi");
        Write::Accept(accept(content, vec![row(ANN, ann), row(BOB, bob)], vec![]))
    };
    for (ann, bob, latest) in
        [(6, 8, vec![(BOB, id(9))]), (6, 9, vec![(BOB, id(9))]), (2, 3, vec![(ANN, id(5)), (BOB, id(9))])]
    {
        let refused = store.commit(vec![say(2, 7, 10), say(3, ann, bob)]).await;
        let Err(CommitError::Behind(behind)) = refused else { panic!("{refused:?}") };
        assert_eq!((behind.writes.len(), behind.latest), (2, latest));
    }
    assert_eq!((ids(store, ANN).await, ids(store, BOB).await), (vec![5], vec![9]));
    assert_eq!(records(store, &[(ANN, client_id(2)), (ANN, client_id(3))]).await, [None, None]);
    let done = store.commit(vec![say(2, 6, 10), say(3, 7, 11)]).await.expect("committed");
    assert!(matches!(done[..], [Outcome::Accepted(..), Outcome::Accepted(..)]), "{done:?}");
}

/// Only copies still owed are looked at: a copy that was delivered is `Already`, whatever its id.
pub async fn an_old_number_of_a_copy_that_is_there_is_no_matter(store: &dyn MessageStore) {
    let content = text_message(ANN, TO_BOB, 1, "hi");
    let acceptance = accepted(store, accept(content.clone(), vec![row(ANN, 1)], vec![owed(BOB)])).await;
    let deliver = |n| {
        Write::Deliver(Deliver {
            acceptance,
            content: content.clone(),
            rows: vec![row(BOB, n)],
            earlier: Vec::new(),
        })
    };
    assert_eq!(delivered(&one(store, deliver(5)).await), [CopyOutcome::Stored]);
    assert_eq!(delivered(&one(store, deliver(4)).await), [CopyOutcome::Already]);
    assert_eq!(ids(store, BOB).await, [5]);
}

/// An acceptance of several copies without the sender's has no id to answer with.
pub async fn the_senders_copy_comes_first(store: &dyn MessageStore) {
    for (rows, rest) in
        [(vec![], vec![]), (vec![row(BOB, 9)], vec![owed(CAT)]), (vec![row(BOB, 9), row(ANN, 5)], vec![])]
    {
        let write = accept(text_message(ANN, TO_BOB, 1, "hi"), rows, rest);
        assert!(matches!(one(store, Write::Accept(write)).await, Outcome::Rejected(_)));
    }
    assert_eq!(ids(store, BOB).await, [] as [u64; 0]);
}

/// I5.
pub async fn copies_owed_are_pending_until_delivered(store: &dyn MessageStore) {
    let content = text_message(ANN, Conversation::Group(GroupId(7)), 1, "hi");
    let write = accept(content.clone(), vec![row(ANN, 1)], vec![owed(CAT), owed(BOB)]);
    let acceptance = accepted(store, write).await;
    let pending = store.pending(PendingKey::default(), 10).await.expect("read");
    assert_eq!(pending.len(), 1);
    assert_eq!(pending[0].acceptance, acceptance);
    assert_eq!(pending[0].content, content);
    assert_eq!(pending[0].owed, [owed(CAT), owed(BOB)]);

    let deliver = |row| {
        Write::Deliver(Deliver { acceptance, content: content.clone(), rows: vec![row], earlier: Vec::new() })
    };
    assert_eq!(delivered(&one(store, deliver(row(CAT, 3))).await), [CopyOutcome::Stored]);
    assert_eq!(store.pending(PendingKey::default(), 10).await.expect("read")[0].owed, [owed(BOB)]);
    assert_eq!(delivered(&one(store, deliver(row(BOB, 4))).await), [CopyOutcome::Stored]);
    assert!(store.pending(PendingKey::default(), 10).await.expect("read").is_empty());
    assert_eq!(store.entry(BOB, id(4)).await.expect("read").expect("stored").content, content);
    assert_eq!(ids(store, CAT).await, [3]);
}

/// Once; also after the whole acceptance is done.
pub async fn a_copy_is_stored_once(store: &dyn MessageStore) {
    let content = text_message(ANN, Conversation::Group(GroupId(7)), 1, "hi");
    let write = accept(content.clone(), vec![row(ANN, 1)], vec![owed(BOB), owed(CAT)]);
    let acceptance = accepted(store, write).await;
    let deliver =
        |rows| Write::Deliver(Deliver { acceptance, content: content.clone(), rows, earlier: Vec::new() });
    use CopyOutcome::{Already, Stored};
    let done = store
        .commit(vec![
            deliver(vec![row(BOB, 2), row(BOB, 3)]),
            deliver(vec![row(BOB, 4), row(CAT, 2)]),
            deliver(vec![row(CAT, 5), row(ANN, 6)]),
        ])
        .await
        .expect("committed");
    let expected = [[Stored, Already], [Already, Stored], [Already, Already]];
    assert_eq!(done.iter().map(delivered).collect::<Vec<_>>(), expected);
    assert_eq!((ids(store, BOB).await, ids(store, CAT).await), (vec![2], vec![2]));
}

/// It is known again by its key, moves its inbox alone, and a program's own kind is in no list of conversations.
pub async fn a_post_is_one_row_of_one_inbox(store: &dyn MessageStore) {
    let app = |name| {
        let kind = AppKind::new("app.order").expect("a kind");
        let body = Body::app(&kind, r#"{"total": 3}"#, 100).expect("JSON");
        let said = text_message(ANN, TO_BOB, name, "replaced");
        Arc::new(Content { kind: Kind::App, body, ..Content::clone(&said) })
    };
    let post = |content: Arc<Content>, n| Write::Accept(accept(content, vec![row(BOB, n)], vec![]));
    for (write, n) in
        [(post(app(1), 3), 3), (post(text_message(ANN, TO_BOB, 2, "hi"), 4), 4), (post(app(3), 5), 5)]
    {
        let Outcome::Accepted(_, copies) = one(store, write).await else { panic!("accepted") };
        assert_eq!(copies, [(row(BOB, n), CopyOutcome::Stored)]);
    }
    assert_eq!((ids(store, BOB).await, ids(store, ANN).await), (vec![3, 4, 5], vec![]));
    let record = records(store, &[(ANN, client_id(1))]).await.remove(0).expect("known");
    assert_eq!(record.message_id, id(3));
    outdated(store, post(app(1), 6), |outcome| matches!(outcome, Outcome::Rejected(_))).await;

    let first = store.entry(BOB, id(3)).await.expect("read").expect("there");
    assert_eq!((first.content.kind_name(), first.content.body_json()), ("app.order", r#"{"total": 3}"#));
    assert_eq!(first.conversation(), Conversation::User(ANN));
    let listed = store.conversations(BOB, None, 10).await.expect("read");
    assert_eq!(
        listed.iter().map(|line| (line.last.message_id, line.unread)).collect::<Vec<_>>(),
        [(id(4), 1)]
    );
    let page =
        store.conversation(BOB, Conversation::User(ANN), RangeQuery::before(None, 10)).await.expect("read");
    assert_eq!(page.rows.len(), 3);

    let several = accept(app(4), vec![row(BOB, 7), row(CAT, 1)], vec![]);
    outdated(store, Write::Accept(several), |outcome| matches!(outcome, Outcome::Rejected(_))).await;
}

/// I12 rests on it.
pub async fn pending_comes_in_the_order_of_acceptance(store: &dyn MessageStore) {
    let mut numbers = Vec::new();
    for n in 1..=3u64 {
        let content = text_message(ANN, TO_BOB, n.into(), "hi");
        numbers.push(accepted(store, accept(content, vec![row(ANN, n)], vec![owed(BOB)])).await);
    }
    assert!(numbers.is_sorted());
    let read = async |acceptance: AcceptanceId, limit| -> Vec<AcceptanceId> {
        let sender = if acceptance == AcceptanceId(0) { Uid(0) } else { ANN };
        let pending = store.pending(PendingKey { sender, acceptance }, limit).await.expect("read");
        pending.iter().map(|pending| pending.acceptance).collect()
    };
    assert_eq!(read(AcceptanceId(0), 10).await, numbers);
    assert_eq!(read(AcceptanceId(0), 2).await, numbers[..2]);
    assert_eq!(read(numbers[0], 10).await, numbers[1..]);
}

/// A number that was never given.
pub async fn an_unknown_acceptance_is_refused(store: &dyn MessageStore) {
    let content = text_message(ANN, TO_BOB, 1, "hi");
    for acceptance in [AcceptanceId(0), AcceptanceId(99)] {
        let write = Write::Deliver(Deliver {
            acceptance,
            content: content.clone(),
            rows: vec![row(BOB, 1)],
            earlier: Vec::new(),
        });
        assert!(matches!(one(store, write).await, Outcome::Rejected(_)));
    }
}

/// Order within a call.
pub async fn writes_of_one_call_see_each_other(store: &dyn MessageStore) {
    let say = |name, ann| {
        Write::Accept(accept(
            text_message(ANN, Conversation::User(ANN), name, "hi"),
            vec![row(ANN, ann)],
            vec![],
        ))
    };
    let done = store.commit(vec![say(1, 5), say(1, 6), say(2, 5), say(2, 7)]).await.expect("committed");
    assert!(
        matches!(
            done[..],
            [Outcome::Accepted(..), Outcome::Rejected(_), Outcome::Rejected(_), Outcome::Accepted(..)]
        ),
        "{done:?}"
    );
    assert_eq!(ids(store, ANN).await, [5, 7]);
    assert_eq!(store.commit(vec![]).await.expect("committed"), []);
}
