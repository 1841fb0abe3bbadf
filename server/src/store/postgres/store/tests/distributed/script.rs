//! `migrations/postgres/distribute.sql`: what it does once, and what it refuses.

use super::*;
use crate::store::postgres::layout::FUNCTIONS;
use crate::store::postgres::{PgExportSnapshot, PgOpenError};

/// The error of the script.
async fn refusal(owner: &mut PgConnection) -> String {
    let refused = owner.execute(DISTRIBUTE).await.expect_err("refused");
    let hint = refused.as_database_error().map(|error| format!("{error:?}")).unwrap_or_default();
    run(owner, "ROLLBACK").await;
    format!("{refused} {hint}")
}

#[tokio::test]
async fn it_distributes_once_and_refuses_what_is_not_ready() {
    let url = durable_database().await;
    let mut owner = connection(&url).await;
    let no_citus = refusal(&mut owner).await;
    assert!(
        no_citus.contains("Citus is not installed") && no_citus.contains("CREATE EXTENSION citus"),
        "{no_citus}"
    );
    run(&mut owner, CITUS).await;
    let no_tables = refusal(&mut owner).await;
    assert!(no_tables.contains("no tables of Tidemark"), "{no_tables}");

    let store = open(&url).await;
    let owes = vec![crate::store::Recipient { uid: BOB, epoch: MembershipEpoch(0) }];
    let content = text_message(ANN, Conversation::User(BOB), 1, "later");
    accepted(&store, accept(content, vec![unnumbered(ANN)], owes)).await;
    let in_use = refusal(&mut owner).await;
    assert!(in_use.contains("The database is in use: tidemark"), "{in_use}");
    store.close().await;
    until("the sessions end", async || !refusal(&mut owner).await.contains("in use")).await;
    let owed = refusal(&mut owner).await;
    assert!(owed.contains("Copies of messages are owed"), "{owed}");
    run(&mut owner, "TRUNCATE pending, outbox").await;
    run(&mut owner, DISTRIBUTE).await;
    let again = refusal(&mut owner).await;
    assert!(again.contains("distributed already"), "{again}");

    let unplaced = "SELECT relname::text FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attname = 'partition_key'
        WHERE relkind = 'r' AND pg_table_is_visible(pg_class.oid)
            AND pg_class.oid NOT IN (SELECT name FROM distributed_tables)";
    let unplaced: Vec<String> = sqlx::query_scalar(unplaced).fetch_all(&mut owner).await.expect("asked");
    assert_eq!(unplaced, [] as [&str; 0], "every table of users' rows is distributed");

    // The next start makes the functions of this layout, where their partitions are.
    server(&url).await.close().await;
    let placed = "SELECT name::regproc::text FROM distributed_functions ORDER BY 1";
    let placed: Vec<String> = sqlx::query_scalar(placed).fetch_all(&mut owner).await.expect("asked");
    let mut wanted: Vec<&str> = FUNCTIONS.iter().map(|(name, _)| *name).collect();
    wanted.push("compact_entry");
    wanted.sort_unstable();
    assert_eq!(placed, wanted);
    let commit = "SELECT to_regproc('commit_messages') IS NULL AND to_regproc('commit_facts') IS NULL
        AND to_regproc('commit_rows') IS NOT NULL";
    assert!(sqlx::query_scalar::<_, bool>(commit).fetch_one(&mut owner).await.expect("asked"));
    // One of them has another text: all are made anew.
    run(&mut owner, "UPDATE functions SET sum = 'x' WHERE name = 'lock_head'").await;
    server(&url).await.close().await;
}

#[tokio::test]
async fn what_was_there_is_served_on_in_the_new_layout() {
    let url = unused_database().await;
    let store = open(&url).await;
    for name in 1..=3 {
        one(&store, Write::Accept(say(ANN, BOB, name))).await;
    }
    let gid = GroupId(7);
    let change = super::concerning_groups::removal_of_bob(&store, gid).await;
    store.close().await;
    let mut owner = connection(&url).await;
    run(&mut owner, CITUS).await;
    until("the sessions end", async || {
        let done = owner.execute(DISTRIBUTE).await.is_ok();
        run(&mut owner, "ROLLBACK").await;
        done
    })
    .await;
    let store = server(&url).await;
    one(&store, Write::Accept(say(ANN, BOB, 4))).await;
    let group = store.group(gid).await.expect("read").expect("made");
    assert_eq!((group.version, group.epoch_of(BOB)), (change, None));
    // The end of the stay came along.
    let late = text_message(BOB, Conversation::Group(gid), 9, "late");
    let done = one(&store, Write::Accept(accept(late, vec![member(BOB, 1)], vec![]))).await;
    assert_eq!(done, Outcome::GroupChanged);
}

#[tokio::test]
async fn a_server_of_the_other_layout_does_not_write() {
    let url = unused_database().await;
    let plain = open(&url).await;
    _ = plain
        .latest_ids(&[ANN])
        .await
        .expect("it has connections, as a script that did not look would leave it");
    let mut owner = connection(&url).await;
    run(&mut owner, CITUS).await;
    let blind = DISTRIBUTE.replace("IF others IS NOT NULL THEN", "IF false THEN");
    assert_ne!(blind, DISTRIBUTE);
    run(&mut owner, &blind).await;
    let writes = [Write::Accept(say(ANN, BOB, 1))];
    let learnt = Learnt::default();
    let plan = crate::store::postgres::plan::CommitPlan::of(&writes, &learnt).expect("decided");
    let refused = plan
        .arguments
        .call(&plan.heads, plain.db.deadline(), &mut owner)
        .await
        .expect_err("refused")
        .to_string();
    assert!(refused.contains("function commit_messages") && refused.contains("does not exist"), "{refused}");
    assert!(matches!(plain.commit(writes.to_vec()).await, Err(CommitError::Refused(_))));
    run(&mut owner, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()").await;
    until("a new connection is refused", async || {
        let said = plain.latest_ids(&[ANN]).await.err().map(|error| error.to_string()).unwrap_or_default();
        said.contains("the layout of the tables has changed")
    })
    .await;

    let asynchronous = PgDb::open(&url, &PgOptions::default()).await.err().expect("refused");
    assert!(matches!(&asynchronous, PgOpenError::Layout { .. }), "{asynchronous}");
    let store = server(&url).await;
    store.commit(vec![Write::Accept(say(ANN, BOB, 1))]).await.expect("committed");
    let import = store.db.only_plain("an import").expect_err("refused").to_string();
    assert!(import.contains("an import does not work on them yet"), "{import}");
    let export = PgExportSnapshot::take(&url, &options()).await.err().expect("refused");
    assert!(matches!(&export, PgOpenError::Layout { .. }), "{export}");
}
