//! Rows that say how things stand (settings, friends), moments, and deletions.

use serde_json::value::RawValue;

use super::*;
use crate::domain::{FRIENDS, STARS, Setting, friend_key, pins, setting_key};
use crate::store::marked::marked;

const ANN: Uid = Uid(10_001);
const BOB: Uid = Uid(10_002);
const CAT: Uid = Uid(10_003);
const TO_BOB: Conversation = Conversation::User(BOB);

fn made(kind: Kind, sender: Uid, target: Conversation, name: u128, body: Body) -> Arc<Content> {
    let said = text_message(sender, target, name, "replaced");
    Arc::new(Content { kind, body, ..Content::clone(&said) })
}

fn setting(setting: Setting, target: Conversation, name: u128, value: &str) -> Arc<Content> {
    let value = RawValue::from_string(value.to_owned()).expect("JSON");
    made(Kind::Setting, ANN, target, name, Body::of_setting(setting, &value).expect("good"))
}

fn friend(by: Uid, with: Uid, name: u128, wanted: bool) -> Arc<Content> {
    made(Kind::Friend, by, Conversation::User(with), name, Body::friend(wanted, None).expect("short"))
}

async fn stands(store: &dyn MessageStore, uid: Uid, key: String) -> Option<Content> {
    let found = store.newest(&[(uid, key)]).await.expect("read").pop().expect("one for each");
    found.map(|entry| Content::clone(&entry.content))
}

/// Only the last one, and each inbox for itself.
pub async fn the_newest_row_of_each_key_says_how_things_stand(store: &dyn MessageStore) {
    let mute = |of| setting_key(Setting::Mute, of);
    assert_eq!(stands(store, ANN, mute(TO_BOB)).await, None);
    accepted(store, accept(setting(Setting::Mute, TO_BOB, 1, "{}"), vec![row(ANN, 1)], vec![])).await;
    let until = setting(Setting::Mute, TO_BOB, 2, r#"{"until":7}"#);
    accepted(store, accept(until.clone(), vec![row(ANN, 2)], vec![])).await;
    assert_eq!(stands(store, ANN, mute(TO_BOB)).await.as_ref(), Some(&*until));
    assert_eq!(stands(store, ANN, mute(Conversation::User(CAT))).await, None);
    assert_eq!(stands(store, BOB, mute(TO_BOB)).await, None);
    assert_eq!(ids(store, ANN).await, [2]);
    let of = [(ANN, mute(Conversation::User(CAT))), (ANN, mute(TO_BOB)), (BOB, mute(TO_BOB))];
    let found = store.newest(&of).await.expect("read");
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(store.newest(&[]).await.expect("read"), []);
}

/// In pages, without those that begin otherwise.
pub async fn keys_are_walked_in_their_order(store: &dyn MessageStore) {
    for (n, by, with, wanted) in
        [(1, ANN, BOB, true), (2, BOB, ANN, true), (3, CAT, ANN, true), (4, BOB, ANN, false)]
    {
        let rows = vec![row(by, n), row(with, n)];
        accepted(store, accept(friend(by, with, n.into(), wanted), rows, vec![])).await;
    }
    accepted(store, accept(setting(Setting::Pin, TO_BOB, 9, "null"), vec![row(ANN, 9)], vec![])).await;
    let keys = |found: &[(String, Entry)]| {
        found.iter().map(|(key, row)| (key.clone(), row.content.body.wanted())).collect::<Vec<_>>()
    };
    let key = |with: Uid, by| friend_key(Conversation::User(with), by);
    let all = [(key(BOB, ANN), true), (key(BOB, BOB), false), (key(CAT, CAT), true)];
    let found = store.newest_under(ANN, FRIENDS, "", 10).await.expect("read");
    assert_eq!(keys(&found), all);
    let first = store.newest_under(ANN, FRIENDS, "", 2).await.expect("read");
    assert_eq!(keys(&first), all[..2]);
    let rest = store.newest_under(ANN, FRIENDS, &first[1].0, 2).await.expect("read");
    assert_eq!(keys(&rest), all[2..]);
    let counted = async |most| store.keys_under(ANN, FRIENDS, most).await.expect("read");
    // A key that changed may count more than once.
    assert!(counted(100).await >= 3 && counted(2).await == 2);
    let none = store.keys_under(BOB, "friend v", 10).await.expect("read");
    assert_eq!(none, 0);
    let other = store.newest_under(CAT, FRIENDS, "", 10).await.expect("read");
    assert_eq!(keys(&other), [(key(ANN, CAT), true)]);
}

/// Of the rows that pin one message, or unpin it, the newest stays; each conversation for itself.
pub async fn pins_of_one_message_make_way_for_the_newest(store: &dyn MessageStore) {
    let said = text_message(ANN, TO_BOB, 1, "nine");
    accepted(store, accept(said.clone(), vec![row(ANN, 1), row(BOB, 1)], vec![])).await;
    let of = said.key().expect("named");
    for (n, pinned) in [(2, true), (3, false), (4, true)] {
        let body = Body::amendment(&Amendment::Pin(pinned), of, &said, 100).expect("short");
        let pin = made(Kind::Pin, ANN, TO_BOB, n.into(), body);
        accepted(store, accept(pin, vec![row(ANN, n), row(BOB, n)], vec![])).await;
    }
    for (uid, with) in [(ANN, TO_BOB), (BOB, Conversation::User(ANN))] {
        assert_eq!(ids(store, uid).await, [1, 4]);
        let under = async |prefix: &str| store.newest_under(uid, prefix, prefix, 10).await.expect("read");
        let found = under(&pins(with)).await;
        assert_eq!(found.iter().map(|(_, row)| row.content.body.pinned()).collect::<Vec<_>>(), [true]);
        assert!(under(&pins(Conversation::User(CAT))).await.is_empty());
        let listed = store.conversations(uid, None, 10).await.expect("read");
        assert_eq!(listed[0].last.message_id, id(1));
    }
}

/// Of the rows that star one message, or take its star away, the newest stays. They are no lines of a conversation.
pub async fn stars_of_one_message_make_way_for_the_newest(store: &dyn MessageStore) {
    let said = |n: u128| text_message(ANN, TO_BOB, n, "nine");
    for n in [1, 2] {
        let copies = vec![row(ANN, n), row(BOB, n)];
        accepted(store, accept(said(n.into()), copies, vec![])).await;
    }
    for (n, of, starred) in [(3, 1, true), (4, 2, true), (5, 1, false), (6, 1, true), (7, 2, false)] {
        let (amended, copy) = (said(of), id(u64::try_from(of).expect("small")));
        let star = Amendment::Star { copy, starred };
        let body = Body::amendment(&star, amended.key().expect("named"), &amended, 100).expect("short");
        accepted(store, accept(made(Kind::Star, ANN, TO_BOB, n.into(), body), vec![row(ANN, n)], vec![]))
            .await;
    }
    assert_eq!(ids(store, ANN).await, [1, 2, 6, 7]);
    assert_eq!(ids(store, BOB).await, [1, 2]);
    let found = store.newest_under(ANN, STARS, "", 10).await.expect("read");
    let stars: Vec<_> = found.iter().map(|(_, row)| (row.content.of(), row.content.body.starred())).collect();
    assert_eq!(stars, [(said(1).key(), Some(id(1))), (said(2).key(), None)]);
    let rows = store.conversation(ANN, TO_BOB, RangeQuery::before(None, 10)).await.expect("read").rows;
    assert_eq!(rows.iter().map(|row| row.message_id).collect::<Vec<_>>(), [id(2), id(1)]);
    assert_eq!(store.conversations(ANN, None, 10).await.expect("read")[0].last.message_id, id(2));
}

/// However many marks were taken away, those that stand are found.
pub async fn marks_that_stand_are_found_among_many_that_do_not(store: &dyn MessageStore) {
    const MANY: u64 = 1_100;
    let star = |n: u64| {
        let said = text_message(ANN, TO_BOB, n.into(), "nine");
        let star = Amendment::Star { copy: id(n), starred: n == MANY };
        let body = Body::amendment(&star, said.key().expect("named"), &said, 100).expect("short");
        let star = made(Kind::Star, ANN, TO_BOB, u128::from(MANY + n), body);
        Write::Accept(accept(star, vec![row(ANN, n)], vec![]))
    };
    let outcomes = store.commit((1..=MANY).map(star).collect()).await.expect("stored");
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Accepted(..))));
    let stands = |content: &Content| content.body.starred().is_some();
    let found = marked(store, ANN, STARS, 10, stands).await.expect("read");
    assert_eq!(found.iter().map(|row| row.content.body.starred()).collect::<Vec<_>>(), [Some(id(MANY))]);
}

/// Each user's copy is found under its own id; users without a copy get `None`.
pub async fn who_has_a_copy_is_known(store: &dyn MessageStore) {
    let moment = made(Kind::Moment, ANN, Conversation::MOMENTS, 1, Body::text("sun", 9).expect("short"));
    accepted(store, accept(moment.clone(), vec![row(ANN, 1), row(CAT, 5)], vec![])).await;
    let key = moment.key().expect("named");
    assert_eq!(store.copies(key, &[BOB, CAT, ANN]).await.expect("read"), [None, Some(id(5)), Some(id(1))]);
    let other = (BOB, key.1);
    assert_eq!(store.copies(other, &[ANN]).await.expect("read"), [None]);
}

/// A message for one person alone; a moment for all who have it.
pub async fn what_is_deleted_says_nothing_any_more(store: &dyn MessageStore) {
    let said = text_message(ANN, TO_BOB, 1, "secret");
    accepted(store, accept(said.clone(), vec![row(ANN, 1), row(BOB, 1)], vec![])).await;
    let edit = Amendment::Edit("secret, too".to_owned());
    let body = Body::amendment(&edit, said.key().expect("named"), &said, 100).expect("short");
    let edit = made(Kind::Edit, ANN, TO_BOB, 9, body);
    accepted(store, accept(edit, vec![row(ANN, 2), row(BOB, 2)], vec![])).await;
    let deletion = |name, of: &Content| {
        made(Kind::Delete, ANN, of.target, name, Body::deletion(of.key().expect("named")))
    };
    accepted(store, accept(deletion(2, &said), vec![row(ANN, 3)], vec![])).await;
    let moment = made(Kind::Moment, ANN, Conversation::MOMENTS, 3, Body::text("secret", 9).expect("short"));
    accepted(store, accept(moment.clone(), vec![row(ANN, 4), row(CAT, 4)], vec![])).await;
    accepted(store, accept(deletion(4, &moment), vec![row(ANN, 5), row(CAT, 5)], vec![])).await;
    let kind = async |uid, n| {
        let content = store.entry(uid, id(n)).await.expect("read").expect("there").content;
        (content.kind, content.body.as_json().to_owned())
    };
    let deleted = (Kind::Deleted, r#"{"deleted":true}"#.to_owned());
    assert_eq!((kind(ANN, 1).await, kind(ANN, 4).await), (deleted.clone(), deleted.clone()));
    assert_eq!((kind(CAT, 4).await, kind(BOB, 1).await.0), (deleted, Kind::Message));
    // Deleting once more, and taking back what one has deleted, change nothing.
    accepted(store, accept(deletion(5, &said), vec![row(ANN, 6)], vec![])).await;
    let recall = made(Kind::Recall, ANN, TO_BOB, 6, Body::deletion(said.key().expect("named")));
    accepted(store, accept(recall, vec![row(ANN, 7), row(BOB, 7)], vec![])).await;
    assert_eq!((kind(ANN, 1).await.0, kind(BOB, 1).await.0), (Kind::Deleted, Kind::Recalled));
    // Of the text nothing is left, not even in the edit.
    assert_eq!(ids(store, ANN).await, [1, 4, 5, 6, 7]);
}

/// They have their own page and their own read marker.
pub async fn moments_are_no_conversation(store: &dyn MessageStore) {
    let moment = made(Kind::Moment, ANN, Conversation::MOMENTS, 1, Body::text("sun", 9).expect("short"));
    accepted(store, accept(moment.clone(), vec![row(ANN, 1), row(BOB, 1)], vec![])).await;
    let like =
        made(Kind::Like, BOB, Conversation::MOMENTS, 2, Body::like(moment.key().expect("named"), true));
    accepted(store, accept(like, vec![row(BOB, 2), row(ANN, 2)], vec![])).await;
    for uid in [ANN, BOB] {
        assert_eq!(store.conversations(uid, None, 10).await.expect("read"), []);
        let page =
            store.conversation(uid, Conversation::MOMENTS, RangeQuery::before(None, 10)).await.expect("read");
        let kinds: Vec<Kind> = page.rows.iter().map(|row| row.content.kind).collect();
        assert_eq!(kinds, [Kind::Like, Kind::Moment]);
        assert_eq!(page.rows[0].content.target, Conversation::MOMENTS);
    }
    accepted(store, accept(read_marker(BOB, Conversation::MOMENTS, 1), vec![row(BOB, 3)], vec![])).await;
    assert_eq!(store.read_to(BOB, Conversation::MOMENTS).await.expect("read"), id(1));
    assert_eq!(store.conversations(BOB, None, 10).await.expect("read"), []);
}
