//! Servers that die between the transactions of a commit. A lock of another session holds the commit in the gap; then
//! its task is dropped, as with a process that is killed, and its sessions end.

use super::concerning_groups::{change, making};
use super::*;
use crate::domain::GroupStep;

const GID: GroupId = GroupId(7);

/// A server that is killed while it commits `write`, when it waits for `lock`.
async fn killed_at(url: &str, lock: &str, writes: Vec<Write>) {
    let doomed = Arc::new(server(url).await);
    let mut holder = connection(url).await;
    run(&mut holder, "BEGIN").await;
    run(&mut holder, lock).await;
    let committing = tokio::spawn({
        let doomed = Arc::clone(&doomed);
        async move { doomed.commit(writes).await.map(drop) }
    });
    let mut operator = connection(url).await;
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until("the commit waits", async || {
        sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut operator).await.expect("counted") > 0
    })
    .await;
    committing.abort();
    assert!(committing.await.is_err_and(|end| end.is_cancelled()));
    let end =
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database()
        AND wait_event_type = 'Lock'";
    sqlx::query_scalar::<_, i64>(end).fetch_one(&mut operator).await.expect("ended");
    run(&mut holder, "COMMIT").await;
}

async fn owed(store: &PostgresStore) -> usize {
    store.pending(PendingKey::default(), 100).await.expect("read").iter().map(|one| one.owed.len()).sum()
}

#[tokio::test]
async fn a_server_that_dies_before_the_delivery_leaves_it_to_others_in_order() {
    let url = database().await;
    let store = server(&url).await;
    one(&store, Write::Accept(say(ANN, BOB, 1))).await;
    killed_at(&url, &lock_head(BOB), vec![Write::Accept(say(ANN, BOB, 2)), Write::Accept(say(ANN, CAT, 3))])
        .await;
    assert_eq!((ids(&store, ANN).await, ids(&store, BOB).await), (vec![1, 2, 3], vec![1]));
    assert!(owed(&store).await >= 1);
    // The next message of the sender, on another server, does not overtake it.
    let done = one(&store, Write::Accept(say(ANN, BOB, 4))).await;
    assert_eq!(done.copies().len(), 1, "{done:?}");
    deliver_what_is_owed(&store).await;
    assert_eq!(check_inboxes(&store, [ANN, BOB, CAT].into_iter()).await, 4 + 3 + 1);
    assert_eq!(owed(&store).await, 0);
}

#[tokio::test]
async fn a_server_that_dies_before_it_settles_leaves_nothing_twice() {
    let url = database().await;
    let store = server(&url).await;
    one(&store, Write::Accept(say(ANN, BOB, 1))).await;
    // Acceptances come through, and settling waits.
    let lock = "LOCK TABLE outbox IN SHARE ROW EXCLUSIVE MODE";
    let content = text_message(ANN, Conversation::User(BOB), 2, "later");
    let rest = vec![crate::store::Recipient { uid: BOB, epoch: MembershipEpoch(0) }];
    let acceptance = accepted(&store, accept(Arc::clone(&content), vec![unnumbered(ANN)], rest)).await;
    let deliver = || {
        Write::Deliver(Deliver {
            acceptance,
            content: Arc::clone(&content),
            rows: vec![unnumbered(BOB)],
            earlier: Vec::new(),
        })
    };
    killed_at(&url, lock, vec![deliver()]).await;
    assert_eq!((ids(&store, BOB).await, owed(&store).await), (vec![1, 2], 1));
    let done = one(&store, deliver()).await;
    assert_eq!(done.copies()[0].1, CopyOutcome::Already);
    assert_eq!((ids(&store, BOB).await, owed(&store).await), (vec![1, 2], 0));
}

/// The change stands, nobody has heard of it: the next change accepts it first.
#[tokio::test]
async fn a_server_that_dies_between_a_change_and_its_acceptance_holds_no_group_up() {
    let url = database().await;
    let store = server(&url).await;
    one(&store, Write::Accept(making(GID))).await;
    let newcomer = Uid(10_004);
    let add = change(GID, ANN, 1, GroupStep::Added(newcomer, MembershipEpoch(1)), &[ANN, BOB, CAT, newcomer]);
    killed_at(&url, &lock_head(ANN), vec![Write::Accept(add)]).await;
    let group = store.group(GID).await.expect("read").expect("made");
    assert_eq!((group.version, ids(&store, ANN).await), (2, vec![1]));

    let removal =
        change(GID, BOB, 2, GroupStep::Removed(ANN, MembershipEpoch(1)), &[BOB, ANN, CAT, newcomer]);
    let done = one(&store, Write::Accept(removal)).await;
    assert!(matches!(&done, Outcome::Accepted(_, copies) if copies.len() == 4), "{done:?}");
    // The change that was made first is accepted first, and the end of Ann's stay comes after it.
    assert_eq!(ids(&store, ANN).await, [1, 2, 3]);
    deliver_what_is_owed(&store).await;
    for (uid, rows) in [(ANN, 3), (BOB, 3), (CAT, 3), (newcomer, 2)] {
        assert_eq!(ids(&store, uid).await.len(), rows, "of {uid}");
    }
    assert_eq!(owed(&store).await, 0);
}

/// The same where nobody changes the group again: a server that runs accepts it by itself.
#[tokio::test]
async fn a_change_that_nobody_accepts_is_accepted_after_a_while() {
    let url = database().await;
    let store = server(&url).await;
    killed_at(&url, &lock_or_make_head(ANN), vec![Write::Accept(making(GID))]).await;
    until("the change is accepted", async || store.watermark(ANN).await.expect("read") == id(1)).await;
    deliver_what_is_owed(&store).await;
    assert_eq!((ids(&store, BOB).await, ids(&store, CAT).await), (vec![1], vec![1]));
    let done = one(&store, Write::Accept(making(GID))).await;
    assert_eq!(done, Outcome::GroupChanged);
}

fn lock_or_make_head(uid: Uid) -> String {
    format!("INSERT INTO heads VALUES ('{}', {uid}, 0); {}", uid.partition_key(), lock_head(uid))
}

/// A session that ends within each transaction of a commit, as when the wire is cut: the outcome is unknown, and nothing is lost or doubled.
#[tokio::test]
async fn a_cut_connection_in_any_gap_loses_and_doubles_nothing() {
    for (table, event) in [
        ("sent", "INSERT"),
        ("outbox", "INSERT"),
        ("links", "INSERT"),
        ("outbox", "DELETE"),
        ("changes", "INSERT"),
        ("changes", "DELETE"),
    ] {
        let url = database().await;
        let store = server(&url).await;
        let mut owner = connection(&url).await;
        let cut = format!(
            "CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM pg_terminate_backend(pg_backend_pid());
                 PERFORM pg_sleep(10); RETURN NULL; END$$;
             CREATE TRIGGER cut BEFORE {event} ON {table} FOR EACH STATEMENT EXECUTE FUNCTION cut()"
        );
        run(&mut owner, &cut).await;
        let writes = || vec![Write::Accept(say(ANN, BOB, 1)), Write::Accept(making(GID))];
        let cut_short = store.commit(writes()).await;
        run(&mut owner, &format!("DROP TRIGGER cut ON {table}")).await;
        // As a queue does: look up the writes, send the missing ones again, and deliver the copies owed.
        let is_there = async |name: u128| {
            store.keys(&[(ANN, client_id(name))]).await.expect("read")[0].record().is_some()
        };
        until("the group is made or not", async || {
            let changes: i64 =
                sqlx::query_scalar("SELECT count(*) FROM changes").fetch_one(&mut owner).await.expect("read");
            changes == 0
        })
        .await;
        for (write, name) in writes().into_iter().zip([1, 1_000]) {
            if !is_there(name).await {
                assert!(
                    cut_short
                        .as_ref()
                        .map_or(true, |done| !matches!(done[usize::from(name > 1)], Outcome::Accepted(..)))
                );
                let done = one(&store, write).await;
                assert!(matches!(done, Outcome::Accepted(..)), "{table} {event}: {done:?}");
            }
        }
        deliver_what_is_owed(&store).await;
        assert_eq!(
            (ids(&store, ANN).await, ids(&store, BOB).await.len(), ids(&store, CAT).await),
            (vec![1, 2], 2, vec![1]),
            "{table} {event}"
        );
        assert_eq!(owed(&store).await, 0, "{table} {event}");
    }
}
