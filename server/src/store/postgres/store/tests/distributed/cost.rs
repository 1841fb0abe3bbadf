//! The cost of the distributed layout beside the plain one, on one PostgreSQL: transactions and bytes of the write-ahead log a message.
//! Each transaction is one call, so one round trip. `--nocapture` prints the table of docs/CITUS.md.

use std::time::Instant;

use tidemark_test_support::servers::postgres::Server;

use super::*;

const GROUP: u32 = 50;
const MANY: u32 = 64;
const MOST_CONNECTIONS: i64 = 12;

/// The cost of some commits.
struct Written {
    transactions: i64,
    wal: i64,
    milliseconds: u128,
}

async fn position(beside: &mut PgConnection) -> (i64, i64) {
    let sql = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, (pg_current_wal_insert_lsn() - '0/0')::bigint";
    sqlx::query_as(sql).fetch_one(beside).await.expect("read")
}

/// Commits once to warm up, and then so many times.
async fn measured(
    store: &PostgresStore,
    url: &str,
    times: u128,
    writes: impl Fn(u128) -> Vec<Write>,
) -> Written {
    let mut beside = connection(url).await;
    store.commit(writes(0)).await.expect("committed");
    let (before, began) = (position(&mut beside).await, Instant::now());
    for time in 1..=times {
        let done = store.commit(writes(time)).await.expect("committed");
        assert!(done.iter().all(|done| matches!(done, Outcome::Accepted(..))), "{done:?}");
    }
    let (after, took) = (position(&mut beside).await, began.elapsed());
    Written { transactions: after.0 - before.0, wal: after.1 - before.1, milliseconds: took.as_millis() }
}

/// A measurement: its name, how often, messages a commit, transactions a commit in the distributed layout, and the writes.
type Shape = (&'static str, u128, u128, i64, fn(u128) -> Vec<Write>);

fn one_message(time: u128) -> Vec<Write> {
    vec![Write::Accept(say(ANN, BOB, time))]
}

fn many_messages(time: u128) -> Vec<Write> {
    let say_one = |n: u32| say(Uid(11_000 + n), Uid(12_000 + n), 1_000_000 + time * 1_000 + u128::from(n));
    (0..MANY).map(|n| Write::Accept(say_one(n))).collect()
}

fn to_a_group(time: u128) -> Vec<Write> {
    let content = text_message(Uid(13_000), Conversation::Group(GroupId(1)), 2_000_000 + time, "all");
    let rows = (0..GROUP).map(|n| unnumbered(Uid(13_000 + n))).collect();
    vec![Write::Accept(accept(content, rows, vec![]))]
}

#[tokio::test]
async fn a_message_costs_a_transaction_for_each_of_its_users_and_one_more() {
    let server_of_its_own = Server::start_with("-c fsync=on -c autovacuum=off");
    let shapes: [Shape; 3] = [
        ("one message", 200, 1, 3, one_message),
        ("64 messages of 64 senders", 20, MANY.into(), 3 * i64::from(MANY), many_messages),
        ("one message to a group of 50", 20, 1, i64::from(GROUP) + 1, to_a_group),
    ];
    let plain_url = server_of_its_own.new_database().await;
    let url = server_of_its_own.new_database().await;
    distribute(&url).await;
    run(&mut connection(&url).await, "DROP FUNCTION one_partition() CASCADE").await;
    for (name, times, messages, transactions, writes) in shapes {
        // One at a time: a server that stores nothing tries whether it could.
        let before = measured(&open(&plain_url).await, &plain_url, times, writes).await;
        let after = measured(&server(&url).await, &url, times, writes).await;
        let count = (times * messages) as i64;
        for (layout, written) in [("plain", &before), ("distributed", &after)] {
            println!(
                "{name}, {layout}: {:.2} transactions, {} bytes, {:.2} ms a message",
                written.transactions as f64 / count as f64,
                written.wal / count,
                written.milliseconds as f64 / count as f64
            );
        }
        assert_eq!(before.transactions, times as i64, "{name}: a commit is one transaction");
        // With synchronous replication each connection that is new meanwhile is used after a commit.
        let new = after.transactions - times as i64 * transactions;
        assert!((0..=MOST_CONNECTIONS).contains(&new), "{name}: {new} transactions more than expected");
        assert!(after.wal < 4 * before.wal, "{name}: {} and {} bytes", before.wal, after.wal);
    }
}
