//! On real servers: the contract, random histories beside the model, and what only several processes on one database
//! can do to each other.

use std::collections::HashMap;

use proptest::prelude::*;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tidemark_test_support::servers::postgres::durable_database;
use uuid::Uuid;

use super::*;
use crate::domain::{Content, MembershipEpoch};
use crate::store::conformance::compare::{same_answers, same_tails};
use crate::store::conformance::expiry::expire_all;
use crate::store::conformance::history::{Move, MoveHistory, moves};
use crate::store::conformance::{accept, client_id, id, ids, one, send_text, text_message};
use crate::store::memory::MemoryStore;
use crate::store::postgres::PgOptions;
use crate::store::postgres::learnt::Learnt;
use crate::store::{Accept, AcceptanceId, CopyOutcome, Row};

mod breaks;
mod distributed;
mod explain;
mod plans;
mod races;
mod tables;
mod turns;

const ANN: Uid = Uid(10_001);
const BOB: Uid = Uid(10_002);
const CAT: Uid = Uid(10_003);

/// A server's store of the database at `url`.
async fn open_with(url: &str, options: PgOptions) -> PostgresStore {
    let db = PgDb::open(url, &options).await.expect("opened");
    PostgresStore::open(db, HistoryId(Uuid::nil()), false).await.expect("opened")
}

async fn open(url: &str) -> PostgresStore {
    open_with(url, PgOptions::default()).await
}

/// The stores of two servers on one new database, and its URL.
async fn two() -> (PostgresStore, PostgresStore, String) {
    let url = durable_database().await;
    (open(&url).await, open(&url).await, url)
}

/// A copy whose id the store assigns.
fn unnumbered(receiver: Uid) -> Row {
    member(receiver, 0)
}

/// The same in a group.
fn member(receiver: Uid, epoch: u32) -> Row {
    Row { receiver, message_id: MessageId::ZERO, epoch: MembershipEpoch(epoch) }
}

/// `from` says something to `to`, under the `name`th name.
fn say(from: Uid, to: Uid, name: u128) -> Accept {
    let content = text_message(from, Conversation::User(to), name, &format!("message {name}"));
    accept(content, vec![unnumbered(from), unnumbered(to)], vec![])
}

/// A connection of its own, beside those of the stores.
async fn connection(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("connected")
}

async fn run(connection: &mut PgConnection, sql: &str) {
    connection.execute(AssertSqlSafe(sql.to_owned())).await.expect("the statement runs");
}

/// A statement that locks the head of `uid`.
fn lock_head(uid: Uid) -> String {
    format!(
        "SELECT FROM heads WHERE partition_key = '{}' AND receiver = {uid} FOR UPDATE",
        uid.partition_key()
    )
}

/// Which number the model gave to an acceptance, and which the database did.
type Numbers = HashMap<AcceptanceId, AcceptanceId>;

/// The writes as the database knows them.
fn translated(writes: &[Write], numbers: &Numbers) -> Vec<Write> {
    let mut writes = writes.to_vec();
    for write in &mut writes {
        if let Write::Deliver(deliver) = write {
            deliver.acceptance = numbers[&deliver.acceptance];
        }
    }
    writes
}

/// Commits the moves to both stores, which must answer alike but for numbers of acceptances. `unnumbered`: which rows get no id.
async fn commit(
    store: &dyn MessageStore,
    (model, numbers): (&MemoryStore, &mut Numbers),
    history: &mut MoveHistory,
    moves: &[Move],
    unnumbered: fn(u64) -> bool,
) {
    let mut writes: Vec<Write> = moves.iter().filter_map(|step| history.write(step)).collect();
    for row in writes.iter_mut().flat_map(Write::rows_mut).filter(|row| unnumbered(row.message_id.get())) {
        row.message_id = MessageId::ZERO;
    }
    for write in &mut writes {
        if let Write::Accept(accept) = write
            && let Some(key) = accept.content.key().filter(|_| accept.rows[0].epoch.0 == 0)
            && let [KeyState::Unused(unused)] = store.keys(&[key]).await.expect("read")[..]
        {
            accept.unused = Some(unused);
        }
    }
    let done = loop {
        match store.commit(translated(&writes, numbers)).await {
            // The model writes read markers that do not move forward; a queue would have answered them.
            Err(CommitError::Stale(mut stale)) => {
                while let Some(at) = stale.pop() {
                    assert_eq!(writes.remove(at).rows().len(), 1, "a read marker");
                }
            }
            done => break done,
        }
    };
    let (done, expected) = match (done, model.commit(writes.clone()).await) {
        (Err(CommitError::Behind(behind)), Err(CommitError::Behind(expected))) => {
            return assert_eq!(behind.latest, expected.latest);
        }
        (done, expected) => (done.expect("committed"), expected.expect("committed")),
    };
    assert_eq!(done.len(), expected.len());
    for ((write, done), expected) in writes.iter().zip(&done).zip(&expected) {
        match (done, expected, write) {
            (Outcome::Accepted(number, copies), Outcome::Accepted(models, same), Write::Accept(accept)) => {
                assert_eq!(copies, same);
                assert_eq!(*number == AcceptanceId(0), accept.rest.is_empty(), "only these have numbers");
                numbers.insert(*models, *number);
            }
            _ => assert_eq!(done, expected),
        }
        history.settle(write, expected);
    }
}

/// Two servers on one database live through the scenes by turns. After some, such a part of what is old goes (of 255).
async fn live(scenes: Vec<(Vec<Move>, bool, u8)>, unnumbered: fn(u64) -> bool) {
    let (one, other, _) = two().await;
    let (model, mut numbers, mut history) = (MemoryStore::new(), Numbers::new(), MoveHistory::default());
    for (moves, first, old) in scenes {
        let (writes, reads) = if first { (&one, &other) } else { (&other, &one) };
        commit(writes, (&model, &mut numbers), &mut history, &moves, unnumbered).await;
        let before = history.expire(old);
        expire_all(&model, before, 3).await;
        tokio::join!(expire_all(writes, before, 3), expire_all(reads, before, 2));
        let universe = history.universe();
        same_answers(reads, &model, &universe).await;
        for store in [reads, writes] {
            same_tails(store, &model, &universe).await;
        }
    }
    one.close().await;
    other.close().await;
}

fn run_case(case: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(case);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_of_given_ids_reads_like_the_model(
        scenes in prop::collection::vec((moves(), any::<bool>(), any::<u8>()), 1..8),
    ) {
        run_case(live(scenes, |_| false));
    }

    #[test]
    fn any_history_of_assigned_ids_reads_like_the_model(
        scenes in prop::collection::vec((moves(), any::<bool>(), any::<u8>()), 1..8),
    ) {
        run_case(live(scenes, |_| true));
    }

    #[test]
    fn any_history_of_given_and_assigned_ids_reads_like_the_model(
        scenes in prop::collection::vec((moves(), any::<bool>(), any::<u8>()), 1..8),
    ) {
        run_case(live(scenes, |id| id % 3 == 0));
    }
}

#[tokio::test]
async fn an_inbox_whose_newest_rows_were_deleted_gets_larger_ids() {
    let (store, other, url) = two().await;
    for name in 1..=3 {
        one(&store, Write::Accept(say(ANN, BOB, name))).await;
    }
    let mut beside = connection(&url).await;
    run(&mut beside, "DELETE FROM entries WHERE message_id >= 2").await;
    assert_eq!(store.watermark(BOB).await.expect("read"), id(3));
    one(&other, Write::Accept(say(ANN, BOB, 4))).await;
    assert_eq!((ids(&store, ANN).await, ids(&store, BOB).await), (vec![1, 4], vec![1, 4]));
}

#[tokio::test]
async fn the_first_history_is_kept_by_every_server() {
    let url = durable_database().await;
    let db = PgDb::open(&url, &PgOptions::default()).await.expect("opened");
    let name = |n| HistoryId(Uuid::from_u128(n));
    let first = PostgresStore::open(Arc::clone(&db), name(1), false).await.expect("opened");
    let second = PostgresStore::open(db, name(2), false).await.expect("opened");
    for store in [first, second] {
        assert_eq!(store.history().await.expect("read"), name(1));
    }
}

#[tokio::test]
async fn a_write_that_the_database_refuses_takes_no_other_with_it() {
    let (store, _, url) = two().await;
    send_text(&store, (CAT, 1), (BOB, 1), 99).await;
    let mut beside = connection(&url).await;
    // A copy that an inbox has already, without a record: what an import may leave.
    let key = client_id(2).0.simple();
    run(
        &mut beside,
        &format!(
            "INSERT INTO entries SELECT partition_key, receiver, 0, kind, conversation, {ANN}, '\\x{key}', body, sent_at
             FROM entries WHERE receiver = {BOB}"
        ),
    )
    .await;
    let done = store.commit((1..=4).map(|name| Write::Accept(say(ANN, BOB, name))).collect()).await;
    let done = done.expect("committed");
    assert!(
        matches!(&done[..], [Outcome::Accepted(..), Outcome::Rejected(why), Outcome::Accepted(..), Outcome::Accepted(..)]
            if why.contains("entries_once")),
        "{done:?}"
    );
    assert_eq!((ids(&store, ANN).await, ids(&store, BOB).await), (vec![1, 2, 3], vec![1, 2, 3, 4]));
}
