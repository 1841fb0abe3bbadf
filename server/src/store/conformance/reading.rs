//! Ranges, tails, conversations and read markers.

use super::*;
use crate::domain::{Amendment, Bound, Direction, Mentions};

const ANN: Uid = Uid(10_001);
const BOB: Uid = Uid(10_002);
const CAT: Uid = Uid(10_003);
const WITH_ANN: Conversation = Conversation::User(ANN);

fn numbers(page: &Page) -> Vec<u64> {
    page.rows.iter().map(|entry| entry.message_id.get()).collect()
}

async fn ten_messages(store: &dyn MessageStore) {
    for n in 1..=10 {
        send_text(store, (ANN, n), (BOB, 10 * n), n.into()).await;
    }
}

/// S20.
pub async fn a_range_runs_both_ways(store: &dyn MessageStore) {
    ten_messages(store).await;
    let read = async |start, end, direction| {
        let query = RangeQuery::new(start, end, direction, 100).expect("a range");
        numbers(&store.range(BOB, query).await.expect("read"))
    };
    use Bound::{Id, InfMax, InfMin};
    assert_eq!(read(Id(30), Id(60), Direction::Forward).await, [30, 40, 50]);
    assert_eq!(read(Id(31), Id(61), Direction::Forward).await, [40, 50, 60]);
    assert_eq!(read(Id(60), Id(30), Direction::Backward).await, [60, 50, 40]);
    assert_eq!(read(InfMax, Id(80), Direction::Backward).await, [100, 90]);
    assert_eq!(read(InfMin, InfMax, Direction::Forward).await.len(), 10);
    assert_eq!(read(InfMax, InfMin, Direction::Backward).await.len(), 10);
    assert_eq!(read(Id(101), InfMax, Direction::Forward).await, [] as [u64; 0]);
}

/// `more` is exact.
pub async fn a_page_says_whether_there_is_more(store: &dyn MessageStore) {
    ten_messages(store).await;
    let read = async |limit, direction| {
        let (start, end) = match direction {
            Direction::Forward => (Bound::Id(80), Bound::InfMax),
            Direction::Backward => (Bound::Id(30), Bound::InfMin),
        };
        let query = RangeQuery::new(start, end, direction, limit).expect("a range");
        let page = store.range(BOB, query).await.expect("read");
        (numbers(&page), page.more)
    };
    assert_eq!(read(2, Direction::Forward).await, (vec![80, 90], true));
    assert_eq!(read(3, Direction::Forward).await, (vec![80, 90, 100], false));
    assert_eq!(read(2, Direction::Backward).await, (vec![30, 20], true));
    assert_eq!(read(3, Direction::Backward).await, (vec![30, 20, 10], false));
}

/// 4 MB a page.
pub async fn a_page_ends_at_its_bytes(store: &dyn MessageStore) {
    let long = "x".repeat(1 << 20);
    for n in 1..=6 {
        let content = text_message(ANN, Conversation::User(ANN), n.into(), &long);
        accepted(store, accept(content, vec![row(ANN, n)], vec![])).await;
    }
    let all = RangeQuery::after(MessageId::ZERO, 100);
    let page = store.range(ANN, all).await.expect("read");
    assert_eq!((numbers(&page), page.more), (vec![1, 2, 3], true));
    let page = store.range(ANN, RangeQuery::after(id(3), 100)).await.expect("read");
    assert_eq!((numbers(&page), page.more), (vec![4, 5, 6], false));
    let page = store.conversation(ANN, WITH_ANN, RangeQuery::before(None, 100)).await.expect("read");
    assert_eq!((numbers(&page), page.more), (vec![6, 5, 4], true));
    let page = store.range(ANN, all.within(5 << 19)).await.expect("read");
    assert_eq!((numbers(&page), page.more), (vec![1, 2], true));
    let page = store.range(ANN, all.within(1)).await.expect("read");
    assert_eq!((numbers(&page), page.more), (vec![1], true), "the first row always goes");
}

/// Where the tail knows, it says what the range says, or the beginning of that: another handle may have written the rest.
pub async fn a_tail_is_what_the_range_says(store: &dyn MessageStore) {
    ten_messages(store).await;
    let known = store.watermark(BOB).await.expect("read");
    let begins = |tail: &Page, page: &Page| page.rows.starts_with(&tail.rows) && (page.more || !tail.more);
    for cursor in 0..=110 {
        for limit in [1, 3, 100] {
            if let Some(tail) = store.tail(BOB, id(cursor), known, PageLimit::of_rows(limit)) {
                let page = store.range(BOB, RangeQuery::after(id(cursor), limit)).await.expect("read");
                assert!(begins(&tail, &page), "after {cursor}, at most {limit}: {tail:?}, {page:?}");
                assert_eq!(
                    tail.rows.is_empty(),
                    page.rows.is_empty(),
                    "after {cursor}: nothing is not known"
                );
                let few = PageLimit { rows: limit, bytes: 100 };
                let page = store.range(BOB, RangeQuery::after(id(cursor), limit).within(few.bytes)).await;
                let page = page.expect("read");
                let tail = store.tail(BOB, id(cursor), known, few).unwrap_or_else(|| page.clone());
                assert!(begins(&tail, &page), "after {cursor}, few bytes: {tail:?}, {page:?}");
            }
        }
    }
}

/// Own messages and read markers are not unread.
pub async fn unread_counts_others_messages_beyond_the_read_marker(store: &dyn MessageStore) {
    ten_messages(store).await;
    send_text(store, (BOB, 101), (ANN, 101), 50).await;
    let unread = async || store.conversations(BOB, None, 10).await.expect("read")[0].clone();
    assert_eq!((unread().await.unread, unread().await.read_to), (10, MessageId::ZERO));
    let marker = accept(read_marker(BOB, WITH_ANN, 70), vec![row(BOB, 102)], vec![]);
    accepted(store, marker).await;
    let summary = unread().await;
    assert_eq!((summary.unread, summary.read_to), (3, id(70)));
    assert_eq!(summary.last.message_id, id(101));
    assert_eq!(store.conversations(ANN, None, 10).await.expect("read")[0].unread, 1);
}

/// Only those that are unread and not taken back; an edit keeps whom its message names.
pub async fn mentions_are_counted_among_what_is_unread(store: &dyn MessageStore) {
    let group = Conversation::Group(GroupId(7));
    let say = |name: u128, users: &[Uid], all| {
        // The digits of a NUL, as somebody types them; and one, as only a program can put it there.
        let said = text_message(ANN, group, name, "hi \"mentions\": \\u0000 \\\\");
        let body = said.body.clone().with_mentions(&Mentions { users: users.to_vec(), all });
        let body = Body::from_stored(body.as_json().replacen("hi", r#"h\"\\\u0000i"#, 1));
        Arc::new(Content { body, ..Content::clone(&said) })
    };
    let counted = async |uid| {
        let listed = store.conversations(uid, None, 10).await.expect("read");
        (listed[0].unread, listed[0].mentions)
    };
    let messages = [say(1, &[BOB], false), say(2, &[], true), say(3, &[CAT, BOB], false), say(4, &[], false)];
    for (n, message) in (1..).zip(&messages) {
        let rows = vec![row(ANN, n), row(BOB, n), row(CAT, n)];
        accepted(store, accept(message.clone(), rows, vec![])).await;
    }
    assert_eq!(counted(BOB).await, (4, 3));
    assert_eq!(counted(CAT).await, (4, 2));
    assert_eq!(counted(ANN).await, (0, 0), "nobody is told of what he says himself");
    let amend = |name: u128, message: &Content, amendment: &Amendment| {
        let of = message.key().expect("named");
        let body = Body::amendment(amendment, of, message, 100).expect("short");
        let said = text_message(ANN, group, name, "replaced");
        Arc::new(Content { kind: amendment.kind(), body, ..Content::clone(&said) })
    };
    let edit = amend(5, &messages[0], &Amendment::Edit("nobody".to_owned()));
    accepted(store, accept(edit, vec![row(ANN, 5), row(BOB, 5)], vec![])).await;
    let recall = amend(6, &messages[2], &Amendment::Recall);
    accepted(store, accept(recall, vec![row(ANN, 6), row(BOB, 6)], vec![])).await;
    assert_eq!(counted(BOB).await, (3, 2));
    accepted(store, accept(read_marker(BOB, group, 1), vec![row(BOB, 7)], vec![])).await;
    assert_eq!(counted(BOB).await, (2, 1));
    accepted(store, accept(read_marker(BOB, group, 4), vec![row(BOB, 8)], vec![])).await;
    assert_eq!(counted(BOB).await, (0, 0));
}

/// The list's order and limit.
pub async fn conversations_come_newest_first(store: &dyn MessageStore) {
    send_text(store, (ANN, 1), (BOB, 1), 1).await;
    send_text(store, (ANN, 2), (CAT, 1), 2).await;
    send_text(store, (ANN, 3), (ANN, 4), 3).await;
    send_text(store, (BOB, 5), (ANN, 5), 4).await;
    let list = async |limit| -> Vec<Conversation> {
        let summaries = store.conversations(ANN, None, limit).await.expect("read");
        assert!(summaries.iter().all(|summary| summary.last.conversation() == summary.conversation));
        summaries.iter().map(|summary| summary.conversation).collect()
    };
    let all = [BOB, ANN, CAT].map(Conversation::User);
    assert_eq!(list(10).await, all);
    assert_eq!(list(2).await, all[..2]);
}

/// Pages of one conversation, without its read markers.
pub async fn a_conversation_is_read_both_ways(store: &dyn MessageStore) {
    ten_messages(store).await;
    send_text(store, (CAT, 1), (BOB, 101), 60).await;
    accepted(store, accept(read_marker(BOB, WITH_ANN, 70), vec![row(BOB, 102)], vec![])).await;
    let asked = async |query| {
        let page = store.conversation(BOB, WITH_ANN, query).await.expect("read");
        (numbers(&page), page.more)
    };
    let read = async |before: Option<u64>, limit| asked(RangeQuery::before(before.map(id), limit)).await;
    assert_eq!(read(None, 3).await, (vec![100, 90, 80], true));
    assert_eq!(read(Some(80), 3).await, (vec![70, 60, 50], true));
    assert_eq!(read(Some(31), 3).await, (vec![30, 20, 10], false));
    assert_eq!(read(Some(10), 3).await, (vec![], false));
    assert_eq!(read(Some(0), 3).await, (vec![], false));
    let above = async |after, before: Option<u64>, limit| {
        asked(RangeQuery::after(id(after), limit).up_to(before.map(id))).await
    };
    assert_eq!(above(0, None, 3).await, (vec![10, 20, 30], true));
    assert_eq!(above(75, None, 3).await, (vec![80, 90, 100], false));
    assert_eq!(above(30, Some(60), 3).await, (vec![40, 50], false));
    assert_eq!(above(30, Some(40), 3).await, (vec![], false));
    assert_eq!(above(100, None, 3).await, (vec![], false));
}

/// A late, smaller read marker changes nothing.
pub async fn a_read_marker_only_grows(store: &dyn MessageStore) {
    ten_messages(store).await;
    let marker = |n, read_to| accept(read_marker(BOB, WITH_ANN, read_to), vec![row(BOB, n)], vec![]);
    accepted(store, marker(101, 70)).await;
    outdated(store, Write::Accept(marker(102, 30)), |done| matches!(done, Outcome::Accepted(..))).await;
    assert_eq!(store.read_to(BOB, WITH_ANN).await.expect("read"), id(70));
    assert_eq!(store.read_to(ANN, Conversation::User(BOB)).await.expect("read"), MessageId::ZERO);
}

/// In the order of the keys, both ways, from any place.
pub async fn all_inboxes_are_walked_over(store: &dyn MessageStore) {
    let mut uids: Vec<Uid> = (1..=9).map(|n| Uid(10_000 + n)).collect();
    for (n, uid) in uids.iter().enumerate() {
        send_text(store, (*uid, 1), (*uid, 1), n as u128).await;
    }
    uids.sort_by_key(|uid| (uid.partition_key(), *uid));
    let walk = async |key: &str, uid: i64, direction, limit| {
        store.inboxes((key, uid), direction, limit).await.expect("walked")
    };
    assert_eq!(walk("", i64::MIN, Direction::Forward, 100).await, uids);
    assert_eq!(walk("g", i64::MIN, Direction::Forward, 100).await, []);
    let downwards: Vec<Uid> = uids.iter().rev().copied().collect();
    assert_eq!(walk("g", i64::MAX, Direction::Backward, 100).await, downwards);
    assert_eq!(walk("", 0, Direction::Backward, 100).await, []);
    let (key, uid) = (uids[4].partition_key(), i64::from(uids[4].0));
    assert_eq!(walk(key.as_str(), uid, Direction::Forward, 3).await, uids[4..7]);
    assert_eq!(walk(key.as_str(), uid, Direction::Backward, 3).await, downwards[4..7]);
    assert_eq!(walk(key.as_str(), uid + 1, Direction::Forward, 3).await, uids[5..8]);
}

/// Nobody reads another's rows.
pub async fn inboxes_are_apart(store: &dyn MessageStore) {
    ten_messages(store).await;
    assert_eq!(ids(store, CAT).await, [] as [u64; 0]);
    assert_eq!(
        store.conversation(CAT, WITH_ANN, RangeQuery::before(None, 9)).await.expect("read"),
        Page::default()
    );
    assert_eq!(ids(store, ANN).await, (1..=10).collect::<Vec<_>>());
}

/// Those that are not there are passed over.
pub async fn rows_are_read_in_any_order(store: &dyn MessageStore) {
    ten_messages(store).await;
    let rows = store.entries_of(ANN, &[id(7), id(3), id(99), id(10)]).await.expect("read");
    assert_eq!(rows.iter().map(|row| row.message_id).collect::<Vec<_>>(), [id(7), id(3), id(10)]);
    for row in rows {
        assert_eq!(store.entry(ANN, row.message_id).await.expect("read"), Some(row));
    }
}

/// I14.
pub async fn the_history_stays(store: &dyn MessageStore) {
    let before = store.history().await.expect("read");
    send_text(store, (ANN, 1), (BOB, 1), 1).await;
    assert_eq!(store.history().await.expect("read"), before);
}
