//! Several servers at the same time.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use tidemark_test_support::until::until;

use super::*;
use crate::domain::message::Person;
use crate::domain::{Amendment, Body, GroupChange, GroupStep, Kind, Timestamp};
use crate::store::postgres::plan::CommitPlan;

const GID: GroupId = GroupId(7);

/// Deadlocks that the database has found. A session reports its count when it ends, so the stores must be closed.
pub(super) async fn deadlocks(url: &str) -> i64 {
    let mut beside = connection(url).await;
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    until("the sessions end", async || {
        let left: i64 = sqlx::query_scalar(others).fetch_one(&mut beside).await.expect("counted");
        left == 0
    })
    .await;
    let sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    sqlx::query_scalar(sql).fetch_one(&mut beside).await.expect("counted")
}

/// Returns once so many sessions wait for a lock.
async fn until_waiting(url: &str, sessions: i64) {
    let mut beside = connection(url).await;
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until("sessions wait for a lock", async || {
        let found: i64 = sqlx::query_scalar(waiting).fetch_one(&mut beside).await.expect("counted");
        found >= sessions
    })
    .await;
}

/// Follows an inbox as a device does, and tells the ids that it got.
async fn follow(store: &PostgresStore, uid: Uid, until: &AtomicBool) -> Vec<u64> {
    let (mut cursor, mut got) = (MessageId::ZERO, Vec::new());
    loop {
        let is_last = until.load(Ordering::Acquire);
        let page = store.range(uid, RangeQuery::after(cursor, 50)).await.expect("read");
        let has_more = page.more;
        got.extend(page.rows.iter().map(|entry| entry.message_id.get()));
        cursor = page.rows.last().map_or(cursor, |entry| entry.message_id);
        if is_last && !has_more {
            return got;
        }
        tokio::task::yield_now().await;
    }
}

/// One server decided to edit what another has taken back meanwhile: the text is nowhere.
#[tokio::test]
async fn an_edit_that_comes_after_a_recall_is_left_out() {
    let (one, other, _) = two().await;
    let (ann, bob) = (Uid(10_001), Uid(10_002));
    let said = say(ann, bob, 1);
    let message = said.content.clone();
    let amend = |name, what: Amendment| {
        let body = Body::amendment(&what, message.key().expect("named"), &message, 99).expect("short");
        let mut accept = say(ann, bob, name);
        accept.content = Arc::new(Content { kind: what.kind(), body, ..Content::clone(&accept.content) });
        Write::Accept(accept)
    };
    one.commit(vec![Write::Accept(said)]).await.expect("committed");
    one.commit(vec![amend(2, Amendment::Recall)]).await.expect("committed");
    other.commit(vec![amend(3, Amendment::Edit("secret".to_owned()))]).await.expect("committed");
    for uid in [ann, bob] {
        let rows = one.range(uid, RangeQuery::after(MessageId::ZERO, 50)).await.expect("read").rows;
        let kinds: Vec<Kind> = rows.iter().map(|row| row.content.kind).collect();
        assert_eq!(kinds, [Kind::Recalled, Kind::Recall]);
        assert_eq!(one.watermark(uid).await.expect("read").get(), 3);
    }
}

/// I1, and nothing else: ids without a gap, each row once, and whoever follows by cursor gets them all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_write_to_the_same_inboxes_in_order_and_without_a_deadlock() {
    const WRITERS: u128 = 6;
    const CALLS: u128 = 25;
    const BATCH: u128 = 8;
    let (one, other, url) = two().await;
    let user = |n: u128| Uid(10_001 + (n % 7) as u32);
    let write = async |store: &PostgresStore, writer: u128| {
        for call in 0..CALLS {
            let batch = (0..BATCH).map(|nth| {
                let name = (writer * CALLS + call) * BATCH + nth;
                let (from, to) = (user(name * 31 + writer), user(name * 17 + call * 5 + 1));
                let mut accept = say(from, to, name);
                if from == to {
                    accept.rows.truncate(1);
                }
                Write::Accept(accept)
            });
            let done = store.commit(batch.collect()).await.expect("committed");
            assert!(done.iter().all(|done| matches!(done, Outcome::Accepted(..))), "{done:?}");
        }
    };
    let is_over = AtomicBool::new(false);
    let writers = async {
        join_all((0..WRITERS).map(|writer| write(if writer % 2 == 0 { &one } else { &other }, writer))).await;
        is_over.store(true, Ordering::Release);
    };
    let followers =
        join_all((0..7).map(|n| follow(if n % 2 == 0 { &other } else { &one }, user(n), &is_over)));
    let ((), followed) = tokio::join!(writers, followers);
    let mut rows = 0;
    for got in &followed {
        let all: Vec<u64> = (1..=got.len() as u64).collect();
        assert_eq!(*got, all, "each id once, in order");
        rows += got.len();
    }
    let mut beside = connection(&url).await;
    let stored: i64 =
        sqlx::query_scalar("SELECT count(*) FROM entries").fetch_one(&mut beside).await.expect("counted");
    assert_eq!(stored, rows as i64);
    drop(beside);
    one.close().await;
    other.close().await;
    assert_eq!(deadlocks(&url).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_who_write_to_each_other_on_two_servers_never_deadlock() {
    let (one, other, url) = two().await;
    let send = async |store: &PostgresStore, from, to, names: std::ops::Range<u128>| {
        for name in names {
            store.commit(vec![Write::Accept(say(from, to, name))]).await.expect("committed");
        }
    };
    tokio::join!(
        send(&one, ANN, BOB, 0..200),
        send(&other, BOB, ANN, 200..400),
        send(&other, ANN, BOB, 400..500),
        send(&one, BOB, ANN, 500..600),
    );
    let all: Vec<u64> = (1..=600).collect();
    assert_eq!((ids(&one, ANN).await, ids(&other, BOB).await), (all.clone(), all));
    one.close().await;
    other.close().await;
    assert_eq!(deadlocks(&url).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_on_two_servers_at_once_is_one_message() {
    let (one, other, _) = two().await;
    for name in 0..20 {
        let key = (ANN, client_id(name));
        let send = async |store: &PostgresStore| {
            let [KeyState::Unused(unused)] = store.keys(&[key]).await.expect("read")[..] else {
                panic!("nothing was sent yet");
            };
            // The other has looked, too, before one of the two writes.
            tokio::task::yield_now().await;
            Write::Accept(Accept { unused: Some(unused), ..say(ANN, BOB, name) })
        };
        let (first, second) = tokio::join!(send(&one), send(&other));
        let done = tokio::join!(one.commit(vec![first]), other.commit(vec![second]));
        let (accepted, stale) = match &done {
            (Ok(accepted), Err(CommitError::Stale(stale)))
            | (Err(CommitError::Stale(stale)), Ok(accepted)) => (accepted, stale),
            _ => panic!("{done:?}"),
        };
        assert_eq!(*stale, [0], "it is decided again");
        let record = one.keys(&[key]).await.expect("read")[0].record().expect("accepted");
        assert_eq!(record.message_id, accepted[0].copies()[0].0.message_id);
    }
    assert_eq!(ids(&one, BOB).await, (1..=20).collect::<Vec<_>>());
}

/// A change of the group by `by`, whose rows go to `to`.
fn change(by: Uid, from_version: u64, step: GroupStep, to: &[Uid]) -> Accept {
    let person = Person { uid: by, name: "somebody".into() };
    let content = Content {
        kind: Kind::Membership,
        body: Body::membership(GID, "walkers", &step, &person, &person, None),
        ..(*text_message(by, Conversation::Group(GID), 1_000 + u128::from(from_version), "changed")).clone()
    };
    let rows = to.iter().map(|uid| member(*uid, 1)).collect();
    let change = Some(GroupChange::of_step(GID, from_version, by, Timestamp(0), &step));
    Accept { change, group_version: Some(from_version), ..accept(Arc::new(content), rows, vec![]) }
}

/// Somebody says something to the group, as it was at this version.
fn speak(from: Uid, version: u64, to: &[Uid], name: u128) -> Accept {
    let rows = to.iter().map(|uid| member(*uid, 1)).collect();
    let accept = accept(text_message(from, Conversation::Group(GID), name, "all"), rows, vec![]);
    Accept { group_version: Some(version), ..accept }
}

async fn with_group() -> (PostgresStore, PostgresStore, String) {
    let (one, other, url) = two().await;
    let step = GroupStep::Created { name: "walkers".into(), members: vec![ANN, BOB, CAT] };
    let done = one.commit(vec![Write::Accept(change(BOB, 0, step, &[BOB, ANN, CAT]))]).await;
    assert!(matches!(done.expect("committed")[..], [Outcome::Accepted(..)]));
    (one, other, url)
}

/// A send that was decided before a removal and waits for its locks until after it is given back, and nothing of it is stored.
#[tokio::test]
async fn a_send_that_stalls_while_its_sender_is_removed_is_not_stored() {
    let (one, other, url) = with_group().await;
    let removal = change(BOB, 1, GroupStep::Removed(ANN, MembershipEpoch(1)), &[BOB, ANN, CAT]);
    let writes = [Write::Accept(removal)];
    let learnt = Learnt::default();
    let plan = CommitPlan::of(&writes, &learnt).expect("decided on what is there");
    let mut beside = connection(&url).await;
    run(&mut beside, "BEGIN").await;
    let answer = plan.arguments.call(&plan.heads, one.db.deadline(), &mut beside).await.expect("called");
    assert_eq!(answer.verdict, "stored");

    let group = other.group(GID).await.expect("read").expect("made");
    assert_eq!(group.version, 1, "the removal is not committed");
    let send = async || other.commit(vec![Write::Accept(speak(ANN, 1, &[ANN, BOB, CAT], 5))]).await;
    let (sent, ()) = tokio::join!(send(), async {
        until_waiting(&url, 1).await;
        run(&mut beside, "COMMIT").await;
    });
    assert!(matches!(&sent, Err(CommitError::Stale(stale)) if *stale == [0]), "{sent:?}");
    assert_eq!(ids(&one, ANN).await, [1, 2], "nothing after the row that says so");
    let group = other.group(GID).await.expect("read").expect("made");
    assert_eq!((group.version, group.epoch_of(ANN)), (2, None), "the facts are read anew");
    assert!(matches!(send().await, Err(CommitError::Stale(_))));
}

/// A send that was decided before somebody joined, and waits for its locks until after it, is decided again: the newcomer is among those
/// who get it.
#[tokio::test]
async fn a_send_that_stalls_while_somebody_joins_goes_to_the_newcomer_too() {
    const DEA: Uid = Uid(10_004);
    let (one, other, url) = with_group().await;
    // Her inbox is there.
    one_of(&one, Accept { rows: vec![unnumbered(DEA)], ..say(DEA, DEA, 9) }).await;
    let joining = change(BOB, 1, GroupStep::Added(DEA, MembershipEpoch(1)), &[BOB, ANN, CAT, DEA]);
    let writes = [Write::Accept(joining)];
    let learnt = Learnt::default();
    let plan = CommitPlan::of(&writes, &learnt).expect("decided on what is there");
    let mut beside = connection(&url).await;
    run(&mut beside, "BEGIN").await;
    let answer = plan.arguments.call(&plan.heads, one.db.deadline(), &mut beside).await.expect("called");
    assert_eq!(answer.verdict, "stored");
    let send = other.commit(vec![Write::Accept(speak(ANN, 1, &[ANN, BOB, CAT], 5))]);
    let (sent, ()) = tokio::join!(send, async {
        until_waiting(&url, 1).await;
        run(&mut beside, "COMMIT").await;
    });
    assert!(matches!(&sent, Err(CommitError::Stale(stale)) if *stale == [0]), "{sent:?}");
    let group = other.group(GID).await.expect("read").expect("made");
    assert_eq!((group.version, group.epoch_of(DEA)), (2, Some(MembershipEpoch(1))));
    one_of(&other, speak(ANN, 2, &[ANN, BOB, CAT, DEA], 5)).await;
    assert_eq!((ids(&one, DEA).await, ids(&one, CAT).await), (vec![1, 2, 3], vec![1, 2, 3]));
}

async fn one_of(store: &PostgresStore, accept: Accept) {
    let done = one(store, Write::Accept(accept)).await;
    assert!(matches!(done, Outcome::Accepted(..)), "{done:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_changes_decided_on_the_same_version_one_is_decided_again() {
    let (one, other, url) = with_group().await;
    let add = |by, uid| change(by, 1, GroupStep::Added(uid, MembershipEpoch(1)), &[by, uid]);
    let done = tokio::join!(
        one.commit(vec![Write::Accept(say(ANN, CAT, 1)), Write::Accept(add(BOB, Uid(10_004)))]),
        other.commit(vec![Write::Accept(say(CAT, ANN, 2)), Write::Accept(add(CAT, Uid(10_005)))]),
    );
    let stale = match &done {
        (Ok(_), Err(CommitError::Stale(stale))) | (Err(CommitError::Stale(stale)), Ok(_)) => stale,
        _ => panic!("{done:?}"),
    };
    assert_eq!(*stale, [1]);
    let group = one.group(GID).await.expect("read").expect("made");
    assert_eq!((group.version, group.active().count()), (2, 4));
    assert_eq!(ids(&one, ANN).await.len() + ids(&one, CAT).await.len(), 2 + 2 + usize::from(done.1.is_ok()));
    one.close().await;
    other.close().await;
    assert_eq!(deadlocks(&url).await, 0);
}

/// A copy becomes a row once: if both servers deliver it, one of them finds it there already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_that_two_servers_deliver_are_stored_once() {
    let (first, second, _) = two().await;
    let to: Vec<Uid> = (0..10).map(|n| Uid(10_010 + n)).collect();
    let content = text_message(ANN, Conversation::Group(GID), 1, "all");
    let rest =
        to.iter().map(|uid| crate::store::Recipient { uid: *uid, epoch: MembershipEpoch(1) }).collect();
    let accepted = one(&first, Write::Accept(accept(Arc::clone(&content), vec![member(ANN, 1)], rest))).await;
    let Outcome::Accepted(acceptance, _) = accepted else { panic!("{accepted:?}") };
    let deliver = |uids: &[Uid]| {
        let rows = uids.iter().map(|uid| member(*uid, 1)).collect();
        vec![Write::Deliver(crate::store::Deliver {
            acceptance,
            content: Arc::clone(&content),
            rows,
            earlier: Vec::new(),
        })]
    };
    let done = tokio::join!(first.commit(deliver(&to[..7])), second.commit(deliver(&to[3..])));
    let copies = [done.0.expect("committed"), done.1.expect("committed")];
    let stored = copies.iter().flat_map(|done| done[0].copies());
    let stored = stored.filter(|(_, copy)| *copy == CopyOutcome::Stored).count();
    assert_eq!(stored, 10);
    for uid in to {
        assert_eq!(ids(&first, uid).await, [1]);
    }
    assert!(first.pending(PendingKey::default(), 9).await.expect("read").is_empty());
}
