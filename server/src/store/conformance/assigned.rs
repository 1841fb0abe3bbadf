//! Rows whose ids the store assigns (S19).

use super::*;

const ANN: Uid = Uid(10_001);
const BOB: Uid = Uid(10_002);

/// A copy without an id.
fn any(receiver: Uid) -> Row {
    Row { receiver, message_id: MessageId::ZERO, epoch: MembershipEpoch(0) }
}

/// Ann says something to Bob.
fn say(name: u128) -> Write {
    let content = text_message(ANN, Conversation::User(BOB), name, &format!("message {name}"));
    Write::Accept(accept(content, vec![any(ANN), any(BOB)], vec![]))
}

fn assigned(outcome: &Outcome) -> Vec<u64> {
    let stored = |(row, copy): &(Row, CopyOutcome)| {
        assert_eq!(*copy, CopyOutcome::Stored);
        row.message_id.get()
    };
    outcome.copies().iter().map(stored).collect()
}

/// Each inbox goes on after its own latest row, also within one call, and the outcome tells the ids.
pub async fn each_inbox_goes_on_after_its_latest_row(store: &dyn MessageStore) {
    send_text(store, (ANN, 5), (BOB, 9), 1).await;
    let done = store.commit(vec![say(2), say(3)]).await.expect("committed");
    assert_eq!(done.iter().map(assigned).collect::<Vec<_>>(), [[6, 10], [7, 11]]);
    assert_eq!((ids(store, ANN).await, ids(store, BOB).await), (vec![5, 6, 7], vec![9, 10, 11]));
    assert_eq!(store.watermark(BOB).await.expect("read"), id(11));
    let record = records(store, &[(ANN, client_id(3))]).await[0].expect("accepted");
    assert_eq!(record.message_id, id(7));
    let text = store.entry(BOB, id(11)).await.expect("read").expect("stored").content.body.clone();
    assert_eq!(text.as_json(), r#"{"text":"message 3"}"#);
}

/// An inbox begins at 1.
pub async fn an_empty_inbox_begins_at_one(store: &dyn MessageStore) {
    assert_eq!(assigned(&one(store, say(1)).await), [1, 1]);
}

/// A pending copy gets the next id of its inbox when it is delivered.
pub async fn a_late_copy_gets_the_next_id(store: &dyn MessageStore) {
    let content = text_message(ANN, Conversation::User(BOB), 1, "hi");
    let owed = Recipient { uid: BOB, epoch: MembershipEpoch(0) };
    let acceptance = accepted(store, accept(content.clone(), vec![any(ANN)], vec![owed])).await;
    send_text(store, (ANN, 2), (BOB, 40), 2).await;
    let deliver = || {
        Write::Deliver(Deliver {
            acceptance,
            content: content.clone(),
            rows: vec![any(BOB)],
            earlier: Vec::new(),
        })
    };
    assert_eq!(assigned(&one(store, deliver()).await), [41]);
    assert_eq!(delivered(&one(store, deliver()).await), [CopyOutcome::Already]);
    assert_eq!(ids(store, BOB).await, [40, 41]);
}

/// After 2^53 − 1 an inbox takes nothing more, and nobody else gets a part of it.
pub async fn the_largest_id_is_followed_by_a_refusal(store: &dyn MessageStore) {
    send_text(store, (ANN, 1), (BOB, MessageId::MAX.get()), 1).await;
    assert!(matches!(one(store, say(2)).await, Outcome::Rejected(_)));
    assert_eq!(ids(store, ANN).await, [1]);
}
