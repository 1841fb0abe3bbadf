//! The distributed layout on PostgreSQL alone: a trigger refuses every transaction that writes to two partitions.

use tidemark_test_support::until::until;

use super::*;
use crate::store::conformance::{Made, accepted, history};
use crate::store::postgres::Replication;
use crate::store::{Deliver, Pending};

mod concerning_groups;
mod cost;
mod gaps;
mod nodes;
mod script;

/// Stand-ins for Citus.
const CITUS: &str = include_str!("../../../../../tests/support/citus.sql");
/// One partition a transaction.
const PARTITIONS: &str = include_str!("../../../../../tests/support/partitions.sql");
const DISTRIBUTE: &str = include_str!("../../../../../../migrations/postgres/distribute.sql");

fn options() -> PgOptions {
    PgOptions { replication: Replication::Synchronous, ..PgOptions::default() }
}

/// Makes the tables of the plain layout, and waits until nobody uses them.
async fn prepare(url: &str) {
    open(url).await.close().await;
    let mut beside = connection(url).await;
    let others =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type = 'client backend'";
    until("the sessions end", async || {
        sqlx::query_scalar::<_, i64>(others).fetch_one(&mut beside).await.expect("counted") == 0
    })
    .await;
    beside.close().await.expect("closed");
}

/// A new database of the plain layout that nobody uses.
async fn unused_database() -> String {
    let url = durable_database().await;
    prepare(&url).await;
    url
}

/// Distributes the tables of a new database.
async fn distribute(url: &str) {
    prepare(url).await;
    let mut owner = connection(url).await;
    run(&mut owner, CITUS).await;
    until("the tables are distributed", async || {
        let done = owner.execute(DISTRIBUTE).await;
        // The last session may not have ended yet.
        if let Err(why) = &done {
            assert!(why.to_string().contains("in use"), "{why}");
            run(&mut owner, "ROLLBACK").await;
        }
        done.is_ok()
    })
    .await;
    run(&mut owner, PARTITIONS).await;
}

/// A new database of the distributed layout.
async fn database() -> String {
    let url = durable_database().await;
    distribute(&url).await;
    url
}

async fn server(url: &str) -> PostgresStore {
    open_with(url, options()).await
}

/// The stores of two servers on one new database, and its URL.
async fn servers() -> (PostgresStore, PostgresStore, String) {
    let url = database().await;
    (server(&url).await, server(&url).await, url)
}

async fn made() -> Made {
    Made::new(server(&database().await).await)
}

// Not what rests on ids that the caller gives to acceptances, nor on numbers of acceptances that were never given: no caller has them.
// Where an inbox has come to its end, the sender is not refused. A post would be one transaction over two partitions. And nothing of a
// sender comes to a receiver before what the sender accepted earlier, whatever the caller delivers first.
crate::message_store_conformance! { made:
    messages: an_empty_store_knows_nothing, each_side_reads_its_own_copy, a_repeated_key_is_refused_and_known,
        an_old_proof_lets_no_key_be_used_twice,
        an_old_number_of_a_copy_that_is_there_is_no_matter,
        the_senders_copy_comes_first, copies_owed_are_pending_until_delivered, a_copy_is_stored_once,
        pending_comes_in_the_order_of_acceptance,
        writes_of_one_call_see_each_other;
    assigned: each_inbox_goes_on_after_its_latest_row, an_empty_inbox_begins_at_one;
    reading: a_range_runs_both_ways, a_page_says_whether_there_is_more, a_page_ends_at_its_bytes,
        a_tail_is_what_the_range_says, unread_counts_others_messages_beyond_the_read_marker,
        mentions_are_counted_among_what_is_unread,
        conversations_come_newest_first, a_conversation_is_read_both_ways, a_read_marker_only_grows,
        inboxes_are_apart, all_inboxes_are_walked_over, the_history_stays;
    groups: a_change_needs_the_version_it_was_decided_on, a_group_is_read_as_last_accepted,
        a_rejoined_member_is_served_again,
        an_epoch_ends_when_its_row_is_written, a_sender_whose_epoch_ended_decides_again,
        the_largest_group_is_known;
}

#[tokio::test]
async fn the_index_of_words_keeps_its_contract() {
    let db = PgDb::open(&database().await, &options()).await.expect("opened");
    crate::store::search::conformance::run(&crate::store::postgres::PgSearch::new(db)).await;
}

#[tokio::test]
async fn an_inbox_at_the_end_of_its_ids_silences_nobody() {
    let (store, _, _) = servers().await;
    send_text(&store, (CAT, 1), (BOB, MessageId::MAX.get()), 1).await;
    let done = one(&store, Write::Accept(say(ANN, BOB, 2))).await;
    assert_eq!(done.copies()[1].1, CopyOutcome::Void, "{done:?}");
    assert_eq!(ids(&store, ANN).await, [1]);
    assert!(store.pending(PendingKey::default(), 9).await.expect("read").is_empty());
}

/// Where nothing else of a commit is stored, it is decided again; where something is, the queue looks what is there.
#[tokio::test]
async fn a_write_whose_grounds_have_changed_takes_no_other_of_its_commit_with_it() {
    let (store, _, _) = servers().await;
    let [KeyState::Unused(proof)] = store.keys(&[(ANN, client_id(1))]).await.expect("read")[..] else {
        panic!("nothing was sent")
    };
    one(&store, Write::Accept(say(ANN, BOB, 1))).await;
    let again = || Write::Accept(Accept { unused: Some(proof), ..say(ANN, BOB, 1) });
    let alone = store.commit(vec![again()]).await;
    assert!(matches!(&alone, Err(CommitError::Stale(at)) if *at == [0]), "{alone:?}");
    let both = store.commit(vec![again(), Write::Accept(say(CAT, BOB, 2))]).await;
    assert!(matches!(&both, Err(CommitError::Unknown(_))), "{both:?}");
    assert_eq!((ids(&store, ANN).await, ids(&store, BOB).await), (vec![1], vec![1, 2]));
}

/// Deliveries as the queues make them: in the order of each sender.
async fn deliver_what_is_owed(store: &PostgresStore) {
    let mut after = PendingKey::default();
    loop {
        let page = store.pending(after, 10).await.expect("read");
        let Some(last) = page.last() else { return };
        after = last.key();
        let deliver = |Pending { acceptance, content, owed }| {
            let row = |to: crate::store::Recipient| member(to.uid, to.epoch.0);
            Write::Deliver(Deliver {
                acceptance,
                content,
                rows: owed.into_iter().map(row).collect(),
                earlier: Vec::new(),
            })
        };
        store.commit(page.into_iter().map(deliver).collect()).await.expect("committed");
    }
}

/// Commits the moves to both stores, which must answer alike but for numbers, and for what is stale: the model knows no others.
async fn commit_in_order(
    store: &dyn MessageStore,
    (model, numbers): (&MemoryStore, &mut Numbers),
    history: &mut MoveHistory,
    moves: &[Move],
) {
    for step in moves {
        let Some(mut write) = history.write_in_order(step) else { continue };
        let numbered = write.clone();
        write.rows_mut().iter_mut().for_each(|row| row.message_id = MessageId::ZERO);
        let done = match store.commit(translated(std::slice::from_ref(&write), numbers)).await {
            Err(CommitError::Stale(_)) => {
                assert_eq!(write.rows().len(), 1, "a read marker");
                continue;
            }
            done => done.expect("committed").remove(0),
        };
        let expected = model.commit(vec![write.clone()]).await.expect("committed").remove(0);
        match (&done, &expected) {
            (Outcome::Accepted(number, copies), Outcome::Accepted(models, same)) => {
                assert_eq!(copies, same);
                numbers.insert(*models, *number);
            }
            _ => assert_eq!(done, expected),
        }
        history.settle(&numbered, &expected);
    }
}

async fn live_distributed(scenes: Vec<(Vec<Move>, bool)>) {
    let (one, other, _) = servers().await;
    let (model, mut numbers, mut history) = (MemoryStore::new(), Numbers::new(), MoveHistory::default());
    for (moves, first) in scenes {
        let (writes, reads) = if first { (&one, &other) } else { (&other, &one) };
        commit_in_order(writes, (&model, &mut numbers), &mut history, &moves).await;
        same_answers(reads, &model, &history.universe()).await;
    }
    one.close().await;
    other.close().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_in_the_order_of_the_senders_reads_like_the_model(
        scenes in prop::collection::vec((history::moves(), any::<bool>()), 1..8),
    ) {
        run_case(live_distributed(scenes));
    }
}

/// Each inbox: ids without a gap, each message once, those of each sender in order.
async fn check_inboxes(store: &PostgresStore, users: impl Iterator<Item = Uid>) -> usize {
    let mut rows = 0;
    for uid in users {
        let (mut cursor, mut last) = (MessageId::ZERO, HashMap::new());
        loop {
            let page = store.range(uid, RangeQuery::after(cursor, 100)).await.expect("read");
            for entry in &page.rows {
                assert_eq!(entry.message_id.get(), cursor.get() + 1, "in the inbox of {uid}");
                cursor = entry.message_id;
                rows += 1;
                let name = entry.content.client_id.expect("a name").0.as_u128();
                let before = last.insert(entry.content.sender, name);
                assert!(before.is_none_or(|before| before < name), "{uid} got {before:?} before {name}");
            }
            if !page.more {
                break;
            }
        }
    }
    rows
}

/// Every user sends from two servers at the same time, batch by batch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_two_servers_send_for_the_same_users_arrives_once_and_in_order() {
    const BATCHES: u128 = 12;
    let (first, second, url) = servers().await;
    let user = |n: u128| Uid(10_001 + (n % 5) as u32);
    // The first server sends the even batches of a user, the other one the odd ones, which begin when those before are accepted.
    let send = async |from: u128| {
        for batch in 0..BATCHES {
            let say_one = |nth: u128| {
                let name = batch * 10 + nth;
                let content = text_message(user(from), Conversation::Group(GroupId(1)), name, "all");
                let rows = (0..5).map(|n| unnumbered(user(from + n))).collect();
                Write::Accept(accept(content, rows, vec![]))
            };
            let store = if batch % 2 == 0 { &first } else { &second };
            let done = store.commit((0..4).map(say_one).collect()).await.expect("committed");
            assert!(done.iter().all(|done| matches!(done, Outcome::Accepted(..))), "{done:?}");
        }
    };
    tokio::join!(send(0), send(1), send(2), send(3), send(4), async {
        for _ in 0..20 {
            deliver_what_is_owed(&second).await;
        }
    });
    deliver_what_is_owed(&first).await;
    assert_eq!(check_inboxes(&first, (0..5).map(user)).await, 5 * 5 * 4 * BATCHES as usize);
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM outbox")
        .fetch_one(&mut connection(&url).await)
        .await
        .expect("counted");
    assert_eq!(left, 0, "everything is settled");
}

/// The counter-proof: what the other tests rest on notices the commit of the plain layout.
#[tokio::test]
async fn a_transaction_over_two_partitions_is_noticed() {
    let url = unused_database().await;
    run(&mut connection(&url).await, PARTITIONS).await;
    let refused = open(&url).await.commit(vec![Write::Accept(say(ANN, BOB, 1))]).await;
    assert!(
        matches!(&refused, Err(CommitError::Refused(why)) if why.to_string().contains("writes to the partitions")),
        "{refused:?}"
    );
}

/// An import may have left this: the inbox has the copy already, without a link.
#[tokio::test]
async fn a_copy_that_an_inbox_never_takes_holds_nothing_up() {
    let (store, _, url) = servers().await;
    send_text(&store, (CAT, 1), (BOB, 1), 99).await;
    let key = client_id(2).0.simple();
    let sql = format!(
        "INSERT INTO entries SELECT partition_key, receiver, 0, kind, conversation, {ANN}, '\\x{key}', body, sent_at
         FROM entries WHERE receiver = {BOB}"
    );
    run(&mut connection(&url).await, &sql).await;
    let done = store.commit((1..=3).map(|name| Write::Accept(say(ANN, BOB, name))).collect()).await;
    let copies: Vec<_> = done.expect("committed").iter().map(|done| done.copies()[1].1).collect();
    assert_eq!(copies, [CopyOutcome::Stored, CopyOutcome::Void, CopyOutcome::Stored]);
    assert_eq!((ids(&store, ANN).await, ids(&store, BOB).await), (vec![1, 2, 3], vec![1, 2, 3]));
    assert_eq!(accepted(&store, say(ANN, BOB, 4)).await, AcceptanceId(0));
}
