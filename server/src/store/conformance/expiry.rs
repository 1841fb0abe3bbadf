//! Rows and idempotency records that are removed because they are old.

use serde_json::value::RawValue;
use tidemark_test_support::until::until;

use super::*;
use crate::domain::{Keep, STARS, Setting, amendment_key, pins, setting_key};

const ANN: Uid = Uid(10_001);
const BOB: Uid = Uid(10_002);
const CAT: Uid = Uid(10_003);
const TO_BOB: Conversation = Conversation::User(BOB);

/// How often it is tried to remove what lies in memory.
const TRIES: usize = 2_000;
/// Rows of a step; more than one step where the rows are more.
const STEP: usize = 2;

/// Before what is sent under the `name`th name.
fn before(name: i64) -> Timestamp {
    Timestamp(1_795_000_000_000 + name)
}

/// Walks over all inboxes until `expected` rows were removed. `false`: this store keeps them in memory, and moves them into the tables later.
async fn expire(store: &dyn MessageStore, before: Timestamp, expected: u64) -> bool {
    let (mut removed, mut after, mut walks) = (0, None, 0);
    while removed < expected && walks < if removed == 0 { TRIES } else { 100 * TRIES } {
        let step = store.expire_rows(after, before, STEP).await.expect("removed");
        assert!(step.removed <= STEP as u64, "{step:?}");
        removed += step.removed;
        after = step.after.filter(|_| !step.is_done);
        walks += usize::from(step.is_done);
        tokio::task::yield_now().await;
    }
    assert!(removed == expected || removed == 0, "{removed} of {expected} were removed");
    removed == expected
}

/// The same for one conversation of one inbox.
async fn expire_one(
    store: &dyn MessageStore,
    (uid, of): (Uid, Conversation),
    before: Timestamp,
    expected: u64,
) -> bool {
    let (mut removed, mut tries) = (0, 0);
    while removed < expected && tries < if removed == 0 { TRIES } else { 100 * TRIES } {
        let step = store.expire_conversation(uid, of, before, STEP).await.expect("removed");
        assert!(step.removed <= STEP as u64, "{step:?}");
        removed += step.removed;
        tries += usize::from(!step.more);
        tokio::task::yield_now().await;
    }
    assert!(removed == expected || removed == 0, "{removed} of {expected} were removed");
    removed == expected
}

/// Walks over all inboxes once: rows, then records, `step` at a time.
pub async fn expire_all(store: &dyn MessageStore, before: Timestamp, step: usize) {
    let (mut after, mut is_done) = (None, false);
    while !is_done {
        let expired = store.expire_rows(after, before, step).await.expect("removed");
        (after, is_done) = (expired.after, expired.is_done);
    }
    let (mut after, mut is_done) = (None, false);
    while !is_done {
        let expired = store.expire_records(after, before, step).await.expect("removed");
        (after, is_done) = (expired.after, expired.is_done);
    }
}

async fn expired_to(store: &dyn MessageStore, uid: Uid) -> u64 {
    store.expired_to(uid).await.expect("read").get()
}

/// In steps; each inbox from the oldest row on.
pub async fn old_rows_go_and_no_id_comes_twice(store: &dyn MessageStore) {
    for n in 1..=6 {
        send_text(store, (ANN, n), (BOB, 10 * n), n.into()).await;
    }
    send_text(store, (CAT, 1), (ANN, 7), 7).await;
    assert_eq!(expired_to(store, ANN).await, 0);
    if !expire(store, before(5), 8).await {
        return assert_eq!((ids(store, BOB).await.len(), expired_to(store, BOB).await), (6, 0));
    }
    assert_eq!((ids(store, ANN).await, ids(store, BOB).await), (vec![5, 6, 7], vec![50, 60]));
    assert_eq!((expired_to(store, ANN).await, expired_to(store, BOB).await), (4, 40));
    assert_eq!((expired_to(store, CAT).await, expired_to(store, Uid(7)).await), (0, 0));
    let again = store.expire_rows(None, before(5), STEP).await.expect("asked");
    assert_eq!((again.removed, again.is_done), (0, true));
    assert_eq!(store.watermark(BOB).await.expect("read"), id(60));
    let listed = store.conversations(BOB, None, 10).await.expect("read");
    assert_eq!((listed[0].unread, listed[0].last.message_id), (2, id(60)));
    assert!(store.entry(BOB, id(40)).await.expect("read").is_none());
    send_text(store, (ANN, 8), (BOB, 61), 8).await;
    assert_eq!(ids(store, BOB).await, [50, 60, 61]);
}

/// A row that is not old holds back those behind it, whatever their age.
pub async fn a_row_that_is_young_holds_back_those_behind_it(store: &dyn MessageStore) {
    for (n, name) in [(1, 1), (2, 9), (3, 2), (4, 10)] {
        send_text(store, (ANN, n), (BOB, n), name).await;
    }
    if !expire(store, before(5), 2).await {
        return;
    }
    assert_eq!((ids(store, ANN).await, expired_to(store, ANN).await), (vec![2, 3, 4], 1));
    until("they are in the tables", async || expire(store, before(10), 4).await).await;
    assert_eq!((ids(store, ANN).await, expired_to(store, BOB).await), (vec![4], 3));
}

/// So the conversation stays in the list, and is known as one.
pub async fn the_newest_row_of_a_conversation_leaves_its_shell(store: &dyn MessageStore) {
    for n in 1..=3 {
        send_text(store, (ANN, n), (BOB, n), n.into()).await;
    }
    if !expire(store, before(9), 6).await {
        return;
    }
    for (uid, with) in [(ANN, TO_BOB), (BOB, Conversation::User(ANN))] {
        let shell = store.entry(uid, id(3)).await.expect("read").expect("it stays");
        let Content { kind, sender, client_id, body, .. } = &*shell.content;
        assert_eq!(
            (*kind, *sender, *client_id, body.as_json()),
            (Kind::Deleted, ANN, None, r#"{"deleted":true}"#)
        );
        assert_eq!((ids(store, uid).await, expired_to(store, uid).await), (vec![3], 3));
        let listed = store.conversations(uid, None, 10).await.expect("read");
        assert_eq!((listed.len(), listed[0].unread, &listed[0].last), (1, 0, &shell));
        assert_eq!(store.have_messages(&[(uid, with)]).await.expect("read"), [true]);
    }
    for n in 4..=5 {
        send_text(store, (ANN, n), (BOB, n), u128::from(10 + n)).await;
    }
    if !expire(store, before(15), 2).await {
        return;
    }
    assert_eq!((ids(store, ANN).await, ids(store, BOB).await), (vec![5], vec![5]));
}

/// Pins and stars count, and nobody could take one away whose message is gone.
pub async fn pins_and_stars_go_with_their_message(store: &dyn MessageStore) {
    let said = text_message(ANN, TO_BOB, 1, "nine");
    accepted(store, accept(said.clone(), vec![row(ANN, 1), row(BOB, 1)], vec![])).await;
    let star = Amendment::Star { copy: id(1), starred: true };
    let marks = [(2, Amendment::Pin(true), vec![row(ANN, 2), row(BOB, 2)]), (3, star, vec![row(ANN, 3)])];
    for (n, mark, rows) in marks {
        let body = Body::amendment(&mark, said.key().expect("named"), &said, 100).expect("short");
        let text = text_message(ANN, TO_BOB, 20 + n, "replaced");
        let content = Content { kind: mark.kind(), body, ..Content::clone(&text) };
        accepted(store, accept(Arc::new(content), rows, vec![])).await;
    }
    send_text(store, (ANN, 4), (BOB, 4), 30).await;
    if !expire(store, before(5), 2).await {
        return;
    }
    assert_eq!((ids(store, ANN).await, ids(store, BOB).await), (vec![4], vec![4]));
    for (uid, prefix) in [(ANN, pins(TO_BOB)), (ANN, STARS.to_owned()), (BOB, pins(Conversation::User(ANN)))]
    {
        assert_eq!(store.keys_under(uid, &prefix, 10).await.expect("read"), 0, "{uid} {prefix}");
    }
}

/// Read markers, settings and what happened to a group; an edit goes with its key.
pub async fn what_says_how_things_stand_stays(store: &dyn MessageStore) {
    send_text(store, (ANN, 1), (BOB, 1), 1).await;
    let said = text_message(ANN, TO_BOB, 1, "message 1");
    let of = said.key().expect("named");
    let edit = Body::amendment(&Amendment::Edit("ten".to_owned()), of, &said, 100).expect("short");
    let value = RawValue::from_string("{}".to_owned()).expect("JSON");
    let mute = Body::of_setting(Setting::Mute, &value).expect("good");
    let in_group = Conversation::Group(GroupId(1));
    for (n, kind, target, body) in [
        (2, Kind::Edit, TO_BOB, edit),
        (3, Kind::Setting, TO_BOB, mute),
        (4, Kind::Membership, in_group, Body::from_stored("{}")),
    ] {
        let content =
            Content { kind, body, ..Content::clone(&text_message(ANN, target, n.into(), "replaced")) };
        accepted(store, accept(Arc::new(content), vec![row(ANN, n)], vec![])).await;
    }
    accepted(store, accept(read_marker(ANN, TO_BOB, 1), vec![row(ANN, 5)], vec![])).await;
    send_text(store, (ANN, 6), (BOB, 6), 20).await;
    if !expire(store, before(10), 3).await {
        return;
    }
    assert_eq!((ids(store, ANN).await, expired_to(store, ANN).await), (vec![3, 4, 5, 6], 2));
    let keys = [amendment_key(of), setting_key(Setting::Mute, TO_BOB), format!("read {TO_BOB}")];
    let found = store.newest(&keys.map(|key| (ANN, key))).await.expect("read");
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(store.keys_under(ANN, "amend ", 10).await.expect("read"), 0);
    assert_eq!(store.read_to(ANN, TO_BOB).await.expect("read"), id(1));
}

/// Then the same key stands for another message.
pub async fn old_records_go_and_their_keys_are_free(store: &dyn MessageStore) {
    for n in 1..=5 {
        send_text(store, (ANN, n), (BOB, n), n.into()).await;
    }
    if !expire(store, before(5), 8).await {
        return;
    }
    let (mut removed, mut after, mut is_done) = (0, None, false);
    while !is_done {
        let step = store.expire_records(after, before(4), STEP).await.expect("removed");
        removed += step.removed;
        (after, is_done) = (step.after, step.is_done);
    }
    assert_eq!(removed, 3);
    let keys: Vec<_> = (1..=5).map(|n| (ANN, client_id(n))).collect();
    let found = records(store, &keys).await;
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, false, true, true]);
    send_text(store, (ANN, 6), (BOB, 6), 1).await;
    assert_eq!((ids(store, ANN).await, ids(store, BOB).await), (vec![5, 6], vec![5, 6]));
}

/// Of the inbox of one person alone, and it does not count as expired.
pub async fn a_conversation_loses_what_is_old_and_others_keep_it(store: &dyn MessageStore) {
    for n in 1..=4 {
        send_text(store, (ANN, n), (BOB, n), n.into()).await;
    }
    send_text(store, (CAT, 1), (ANN, 5), 1).await;
    let said = text_message(ANN, TO_BOB, 1, "message 1");
    let of = said.key().expect("named");
    let pin = Amendment::Pin(true);
    let body = Body::amendment(&pin, of, &said, 100).expect("short");
    let pin =
        Content { kind: pin.kind(), body, ..Content::clone(&text_message(ANN, TO_BOB, 10, "replaced")) };
    accepted(store, accept(Arc::new(pin), vec![row(ANN, 6), row(BOB, 6)], vec![])).await;

    if !expire_one(store, (ANN, TO_BOB), before(4), 3).await {
        return;
    }
    assert_eq!((ids(store, ANN).await, ids(store, BOB).await), (vec![4, 5], vec![1, 2, 3, 4, 6]));
    assert_eq!(expired_to(store, ANN).await, 0);
    assert_eq!(store.keys_under(ANN, &pins(TO_BOB), 10).await.expect("read"), 0);
    // What stands for the conversation leaves its shell, once, and that goes with the next.
    until("it is in the tables", async || expire_one(store, (ANN, TO_BOB), before(9), 1).await).await;
    let shell = store.entry(ANN, id(4)).await.expect("read").expect("it stays");
    assert!(shell.content.is_shell());
    let again = store.expire_conversation(ANN, TO_BOB, before(9), STEP).await.expect("asked");
    assert_eq!((again.removed, again.more), (0, false));
    for n in 8..=9 {
        send_text(store, (ANN, n), (BOB, n), u128::from(n)).await;
    }
    if expire_one(store, (ANN, TO_BOB), before(9), 1).await {
        assert_eq!(ids(store, ANN).await, [5, 9]);
    }
}

/// They are found by their keys.
pub async fn inboxes_with_a_time_of_their_own_are_found(store: &dyn MessageStore) {
    send_text(store, (ANN, 1), (BOB, 1), 1).await;
    send_text(store, (CAT, 1), (ANN, 2), 2).await;
    let body = Body::of_keep(Keep { seconds: 60, gone_before: 0 });
    let keep =
        Content { kind: Kind::Keep, body, ..Content::clone(&text_message(ANN, TO_BOB, 3, "replaced")) };
    accepted(store, accept(Arc::new(keep), vec![row(ANN, 3), row(BOB, 3)], vec![])).await;
    let mut found = Vec::new();
    for _ in 0..TRIES {
        found.clear();
        let (mut after, mut is_done) = (None, false);
        while !is_done {
            let walk = store.keeping(after).await.expect("read");
            found.extend(walk.uids);
            (after, is_done) = (walk.after, walk.is_done);
        }
        if found.len() == 2 {
            break;
        }
        tokio::task::yield_now().await;
    }
    found.sort_unstable();
    // Where it stays in memory, nothing is found.
    assert!(found == [ANN, BOB] || found.is_empty(), "{found:?}");
}
