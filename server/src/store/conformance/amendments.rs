//! Edits, recalls and reactions, and which earlier rows they make superfluous.

use super::*;
use crate::domain::{Bound, Direction};

const ANN: Uid = Uid(10_001);
const BOB: Uid = Uid(10_002);
const TO_ANN: Conversation = Conversation::User(ANN);
const TO_BOB: Conversation = Conversation::User(BOB);

/// "`who` does this to `message`, which ANN sent to BOB", in both inboxes.
async fn amend(store: &dyn MessageStore, message: &Content, who: Uid, name: u128, what: Amendment, n: u64) {
    let body = Body::amendment(&what, message.key().expect("named"), message, 100).expect("short");
    let said = text_message(who, if who == ANN { TO_BOB } else { TO_ANN }, name, "replaced");
    let content = Arc::new(Content { kind: what.kind(), body, ..Content::clone(&said) });
    let other = if who == ANN { BOB } else { ANN };
    accepted(store, accept(content, vec![row(who, n), row(other, n)], vec![])).await;
}

async fn said(store: &dyn MessageStore) -> Arc<Content> {
    let content = text_message(ANN, TO_BOB, 1, "hi");
    accepted(store, accept(content.clone(), vec![row(ANN, 1), row(BOB, 1)], vec![])).await;
    content
}

fn edit(text: &str) -> Amendment {
    Amendment::Edit(text.to_owned())
}

fn react(emoji: &[&str]) -> Amendment {
    Amendment::React(emoji.iter().map(|text| (*text).to_owned()).collect())
}

async fn first(store: &dyn MessageStore, uid: Uid) -> Arc<Content> {
    store.entry(uid, id(1)).await.expect("read").expect("there").content
}

/// Every later read returns the new text.
pub async fn an_edit_changes_the_message_in_every_inbox(store: &dyn MessageStore) {
    let message = said(store).await;
    amend(store, &message, ANN, 2, edit("ho"), 2).await;
    for uid in [ANN, BOB] {
        let content = first(store, uid).await;
        assert_eq!(content.body.as_json(), r#"{"edited":true,"text":"ho"}"#);
        assert_eq!((content.kind, content.sent_at), (Kind::Message, message.sent_at));
        let listed = store.conversations(uid, None, 10).await.expect("read");
        assert_eq!(listed[0].last.content, content);
    }
    amend(store, &message, ANN, 3, edit("he"), 3).await;
    assert_eq!(first(store, BOB).await.body.said().as_deref(), Some("he"));
    // The first edit says nothing that the second does not.
    assert_eq!(ids(store, BOB).await, [1, 3]);
    let edits = store.entry(BOB, id(3)).await.expect("read").expect("there");
    assert_eq!(edits.content.of(), message.key());
}

/// Of the text nothing is left, and it no longer counts as unread.
pub async fn a_recall_is_the_last_word(store: &dyn MessageStore) {
    let message = said(store).await;
    amend(store, &message, ANN, 2, edit("secret"), 2).await;
    assert_eq!(store.conversations(BOB, None, 10).await.expect("read")[0].unread, 1);
    amend(store, &message, ANN, 3, Amendment::Recall, 3).await;
    for uid in [ANN, BOB] {
        let content = first(store, uid).await;
        assert_eq!((content.kind, content.body.as_json()), (Kind::Recalled, r#"{"recalled":true}"#));
        assert_eq!(ids(store, uid).await, [1, 3]);
        let query = RangeQuery::new(Bound::InfMin, Bound::InfMax, Direction::Forward, 10).expect("a range");
        let rows = store.range(uid, query).await.expect("read").rows;
        assert!(rows.iter().all(|row| !row.content.body.as_json().contains("secret")), "{rows:?}");
        let listed = store.conversations(uid, None, 10).await.expect("read");
        assert_eq!((listed[0].last.content.kind, listed[0].unread), (Kind::Recalled, 0));
    }
}

/// The stored message says who took it back, where that is not its sender.
pub async fn a_recall_by_another_person_says_who(store: &dyn MessageStore) {
    let message = said(store).await;
    amend(store, &message, BOB, 2, Amendment::Recall, 2).await;
    for uid in [ANN, BOB] {
        let content = first(store, uid).await;
        let body = format!(r#"{{"by":{BOB},"recalled":true}}"#);
        assert_eq!((content.kind, content.sender, content.body.as_json()), (Kind::Recalled, ANN, &*body));
    }
}

/// A person's reactions to one message, and the read markers of one conversation, are one row each.
pub async fn of_rows_with_one_compaction_key_the_newest_stays(store: &dyn MessageStore) {
    let message = said(store).await;
    for n in 2..=20 {
        amend(store, &message, BOB, n.into(), react(if n % 2 == 0 { &["👍"] } else { &[] }), n).await;
    }
    amend(store, &message, ANN, 21, react(&["🎉"]), 21).await;
    for (n, conversation) in [(22, TO_BOB), (23, TO_ANN), (24, TO_BOB)] {
        let write = accept(read_marker(ANN, conversation, n - 21), vec![row(ANN, n)], vec![]);
        accepted(store, write).await;
    }
    assert_eq!(ids(store, ANN).await, [1, 20, 21, 23, 24]);
    assert_eq!(ids(store, BOB).await, [1, 20, 21]);
    assert_eq!(store.watermark(BOB).await.expect("read"), id(21));
    assert_eq!(store.read_to(ANN, TO_BOB).await.expect("read"), id(3));
    let page = store.conversation(BOB, TO_ANN, RangeQuery::before(None, 2)).await.expect("read");
    assert_eq!((page.rows.len(), page.more), (2, true));
    let query = RangeQuery::new(Bound::Id(2), Bound::InfMax, Direction::Forward, 2).expect("a range");
    let page = store.range(ANN, query).await.expect("read");
    let numbers: Vec<u64> = page.rows.iter().map(|row| row.message_id.get()).collect();
    assert_eq!((numbers, page.more), (vec![20, 21], true));
}

/// A reaction does not count as a message of its sender: Bob still has one unread.
pub async fn an_amendment_is_in_no_list_of_conversations(store: &dyn MessageStore) {
    let message = said(store).await;
    amend(store, &message, BOB, 2, react(&["👍"]), 2).await;
    amend(store, &message, ANN, 3, edit("ho"), 3).await;
    for (uid, unread) in [(ANN, 0), (BOB, 1)] {
        let listed = store.conversations(uid, None, 10).await.expect("read");
        let lines: Vec<_> = listed.iter().map(|line| (line.last.message_id, line.unread)).collect();
        assert_eq!(lines, [(id(1), unread)]);
    }
}
