//! Reads that look more than once, and rows that are written and flushed between two of the looks.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::*;
use crate::domain::{Amendment, Body, Content, GroupId, Kind, Mentions, RangeQuery};
use crate::store::conformance::{accept, accepted, row};

const ANN: Uid = Uid(10_001);
const BOB: Uid = Uid(10_002);
const GROUP: Conversation = Conversation::Group(GroupId(7));

/// Ann says something in the group that names Bob, who gets it as row `n`.
async fn say(store: &dyn MessageStore, n: u64) {
    let mut content = Content::clone(&text_message(ANN, GROUP, n.into(), "hi"));
    content.body = content.body.with_mentions(&Mentions { users: vec![BOB], all: false });
    accepted(store, accept(Arc::new(content), vec![row(BOB, n)], vec![])).await;
}

/// Waits until all rows of Bob are in the tables. No connection is taken that reads are given.
async fn until_flushed(store: &SqliteStore) {
    let deadline = Instant::now() + Duration::from_secs(30);
    let latest = store.shared.latest_ids(&[BOB]).await.expect("read")[0];
    loop {
        let mut connection = store.shared.db.service().await.expect("free");
        let stored = lookup::latest_ids(&mut *connection, [BOB]).await.expect("read");
        connection.give_back();
        if stored.get(&BOB).copied().unwrap_or_default() == latest {
            return;
        }
        assert!(Instant::now() < deadline, "the tables have {stored:?}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_message_is_taken_from_the_unread_ones_twice() {
    const MESSAGES: u64 = 150;
    let made = made(flushing()).await;
    let said = |name: u128| text_message(ANN, GROUP, name, "hi");
    for n in 1..=MESSAGES {
        say(&*made.store, n).await;
    }
    for n in 1..=MESSAGES {
        let content = said(u128::from(n));
        let of = content.key().expect("named");
        let body = Body::amendment(&Amendment::Recall, of, &content, 100).expect("short");
        let said = said(u128::from(MESSAGES + n));
        let recall = Arc::new(Content { kind: Kind::Recall, body, ..Content::clone(&said) });
        accepted(&*made.store, accept(recall, vec![row(BOB, MESSAGES + n)], vec![])).await;
        let left = (MESSAGES - n) as u32;
        let listed = made.store.conversations(BOB, None, 10).await.expect("read");
        assert_eq!((listed[0].unread, listed[0].mentions), (left, left), "after {n} were taken back");
    }
    made.store.close().await;
}

/// Devices count on from the newest row of a line.
#[tokio::test]
async fn a_line_counts_what_its_newest_row_says_whatever_is_flushed_while_it_waits() {
    for before in 0..3 {
        for meanwhile in 1..4 {
            let directory = tempfile::tempdir().expect("a directory");
            let store = open(directory.path(), SqliteOptions { readers: 1, ..flushing() }).await;
            for n in 1..=before {
                say(&store, n).await;
            }
            until_flushed(&store).await;
            let only = store.shared.db.reader().await.expect("free");
            let meanwhile = async {
                for n in before + 1..=before + meanwhile {
                    say(&store, n).await;
                    until_flushed(&store).await;
                }
                drop(only);
            };
            // The list begins, and waits for a connection.
            let (listed, ()) = tokio::join!(store.conversations(BOB, None, 10), meanwhile);
            let listed = listed.expect("read").remove(0);
            let newest = u32::try_from(listed.last.message_id.get()).expect("small");
            assert_eq!((listed.unread, listed.mentions), (newest, newest), "{before} before");
            store.close().await;
        }
    }
}

#[tokio::test]
async fn a_page_of_a_conversation_has_no_row_twice_that_is_flushed_before_its_second_look() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path(), flushing()).await;
    for before in [0, 3] {
        let reader = store.reader(BOB);
        for n in before + 1..=before + 3 {
            say(&store, n).await;
            until_flushed(&store).await;
        }
        let page = reader.conversation(GROUP, RangeQuery::before(None, 10)).await.expect("read");
        let mut ids: Vec<u64> = page.rows.iter().map(|row| row.message_id.get()).collect();
        ids.reverse();
        assert!(ids.iter().copied().eq(1..=ids.len() as u64) && ids.len() as u64 >= before, "{ids:?}");
    }
    store.close().await;
}

/// The rows of Bob go on while somebody reads how they stand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_under_writes_and_flushes_counts_what_its_newest_row_says() {
    for options in [flushing(), settling()] {
        list_under_writes(SqliteOptions { flush_rows: 3, ..options }).await;
    }
}

async fn list_under_writes(options: SqliteOptions) {
    const MESSAGES: u64 = 200;
    let directory = tempfile::tempdir().expect("a directory");
    let store = Arc::new(open(directory.path(), options).await);
    let writer = Arc::clone(&store);
    let writes = tokio::spawn(async move {
        for n in 1..=MESSAGES {
            say(&*writer, n).await;
        }
    });
    let reads = async {
        loop {
            let listed = store.conversations(BOB, None, 10).await.expect("read");
            let Some(line) = listed.first() else { continue };
            let newest = line.last.message_id.get();
            assert_eq!((u64::from(line.unread), u64::from(line.mentions)), (newest, newest));
            if newest == MESSAGES {
                return;
            }
        }
    };
    timeout(Duration::from_secs(60), reads).await.expect("in time");
    writes.await.expect("written");
    store.close().await;
}
