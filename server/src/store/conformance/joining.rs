//! Rows that come before a delivered copy: stored with it, in one inbox, and bound to it.

use super::*;

const ANN: Uid = Uid(10_001);
const BOB: Uid = Uid(10_002);
const CAT: Uid = Uid(10_003);
const IN_GROUP: Conversation = Conversation::Group(GroupId(7));

fn earlier(content: &Arc<Content>, n: u64) -> Earlier {
    Earlier { content: Arc::clone(content), message_id: id(n) }
}

/// Ann says something to Bob and owes a copy to Cat: the acceptance, and what was said.
async fn owing(store: &dyn MessageStore, n: u64) -> (AcceptanceId, Arc<Content>) {
    let content = text_message(ANN, IN_GROUP, n.into(), "joined");
    let rest = vec![Recipient { uid: CAT, epoch: MembershipEpoch(1) }];
    (accepted(store, accept(Arc::clone(&content), vec![row(ANN, n), row(BOB, n)], rest)).await, content)
}

fn deliver((acceptance, content): &(AcceptanceId, Arc<Content>), n: u64, earlier: Vec<Earlier>) -> Write {
    let rows = vec![Row { receiver: CAT, message_id: id(n), epoch: MembershipEpoch(1) }];
    Write::Deliver(Deliver { acceptance: *acceptance, content: Arc::clone(content), rows, earlier })
}

async fn texts(store: &dyn MessageStore, uid: Uid) -> Vec<(u64, Uid, Option<String>)> {
    let page = store.conversation(uid, IN_GROUP, RangeQuery::before(None, 100)).await.expect("read");
    let row = |row: Entry| (row.message_id.get(), row.content.sender, row.content.body.said());
    page.rows.into_iter().rev().map(row).collect()
}

/// Rows of others, under ids of their own, before the copy; a second delivery brings nothing. An amendment finds them.
pub async fn what_comes_before_a_copy_comes_with_it_or_not_at_all(store: &dyn MessageStore) {
    let (first, second) =
        (text_message(ANN, IN_GROUP, 50, "first"), text_message(BOB, IN_GROUP, 51, "second"));
    for (content, n) in [(&first, 1), (&second, 2)] {
        let others = if content.sender == ANN { BOB } else { ANN };
        let rows = vec![row(content.sender, n), row(others, n)];
        accepted(store, accept(Arc::clone(content), rows, vec![])).await;
    }
    let before = records(store, &[first.key().expect("keyed"), second.key().expect("keyed")]).await;
    let owing = owing(store, 3).await;
    let write = || deliver(&owing, 9, vec![earlier(&first, 4), earlier(&second, 6)]);
    assert_eq!(delivered(&one(store, write()).await), [CopyOutcome::Stored]);
    let expected = [
        (4, ANN, Some("first".to_owned())),
        (6, BOB, Some("second".to_owned())),
        (9, ANN, Some("joined".to_owned())),
    ];
    assert_eq!(texts(store, CAT).await, expected);
    let again = deliver(&owing, 20, vec![earlier(&first, 12)]);
    assert_eq!(delivered(&one(store, again).await), [CopyOutcome::Already]);
    assert_eq!(texts(store, CAT).await, expected);
    assert_eq!(store.watermark(CAT).await.expect("read"), id(9));
    assert_eq!(store.pending(PendingKey::default(), 10).await.expect("read").len(), 0);
    // The idempotency records have not changed.
    assert_eq!(records(store, &[first.key().expect("keyed"), second.key().expect("keyed")]).await, before);
    let copies = store.copies(first.key().expect("keyed"), &[ANN, BOB, CAT]).await.expect("read");
    assert_eq!(copies, [Some(id(1)), Some(id(1)), Some(id(4))]);

    let body =
        Body::amendment(&Amendment::Edit("first, edited".into()), first.key().expect("keyed"), &first, 99);
    let kind = Amendment::Edit(String::new()).kind();
    let edit =
        Content { kind, client_id: Some(client_id(60)), body: body.expect("short"), ..(*first).clone() };
    accepted(store, accept(Arc::new(edit), vec![row(ANN, 10), row(BOB, 10), row(CAT, 10)], vec![])).await;
    assert_eq!(texts(store, CAT).await[0], (4, ANN, Some("first, edited".to_owned())));
}

/// Nothing of it counts as unread.
pub async fn a_read_marker_before_a_copy_counts(store: &dyn MessageStore) {
    let owing = owing(store, 1).await;
    let said = text_message(BOB, IN_GROUP, 50, "said before");
    let marker = read_marker(CAT, IN_GROUP, 2);
    let write = deliver(&owing, 3, vec![earlier(&marker, 1), earlier(&said, 2)]);
    assert_eq!(delivered(&one(store, write).await), [CopyOutcome::Stored]);
    assert_eq!(store.read_to(CAT, IN_GROUP).await.expect("read"), id(2));
    let list = store.conversations(CAT, None, 10).await.expect("read");
    assert_eq!((list.len(), list[0].unread, list[0].read_to, list[0].last.message_id), (1, 1, id(2), id(3)));
}

/// An inbox that has got something else meanwhile gives the whole back.
pub async fn what_comes_before_a_copy_must_come_after_the_inbox(store: &dyn MessageStore) {
    let owing = owing(store, 1).await;
    let said = text_message(BOB, IN_GROUP, 50, "said before");
    send_text(store, (BOB, 5), (CAT, 5), 70).await;
    let late = vec![deliver(&owing, 9, vec![earlier(&said, 5)])];
    match store.commit(late).await {
        Err(CommitError::Behind(behind)) => {
            assert_eq!(behind.latest, [(CAT, id(5))]);
            assert!(behind.writes[0].has_earlier());
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(texts(store, CAT).await, []);
    for wrong in
        [vec![earlier(&said, 9)], vec![earlier(&said, 8), earlier(&said, 7)], vec![earlier(&said, 0)]]
    {
        let done = one(store, deliver(&owing, 9, wrong)).await;
        assert!(matches!(done, Outcome::Rejected(_)), "{done:?}");
    }
    let done = one(store, deliver(&owing, 9, vec![earlier(&said, 8)])).await;
    assert_eq!(delivered(&done), [CopyOutcome::Stored]);
}
