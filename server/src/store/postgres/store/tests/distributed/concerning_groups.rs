//! Changes of groups, and what is sent at the same time.

use super::*;
use crate::domain::message::Person;
use crate::domain::{Body, GroupChange, GroupStep, Kind, Timestamp};

const GID: GroupId = GroupId(7);

/// A change of the group by `by`, with copies for `to`, `by` first.
pub(super) fn change(gid: GroupId, by: Uid, from_version: u64, step: GroupStep, to: &[Uid]) -> Accept {
    let person = Person { uid: by, name: "somebody".into() };
    let content = Content {
        kind: Kind::Membership,
        body: Body::membership(gid, "walkers", &step, &person, &person, None),
        ..(*text_message(by, Conversation::Group(gid), 1_000 + u128::from(from_version), "changed")).clone()
    };
    let rows = to.iter().map(|uid| member(*uid, 1)).collect();
    let change = Some(GroupChange::of_step(gid, from_version, by, Timestamp(0), &step));
    Accept { change, group_version: Some(from_version), ..accept(Arc::new(content), rows, vec![]) }
}

pub(super) fn making(gid: GroupId) -> Accept {
    let step = GroupStep::Created { name: "walkers".into(), members: vec![ANN, BOB, CAT] };
    change(gid, ANN, 0, step, &[ANN, BOB, CAT])
}

/// Ann makes a group and puts Bob out; the version after that.
pub(super) async fn removal_of_bob(store: &PostgresStore, gid: GroupId) -> u64 {
    let removal = GroupStep::Removed(BOB, MembershipEpoch(1));
    for write in [making(gid), change(gid, ANN, 1, removal, &[ANN, BOB, CAT])] {
        let done = one(store, Write::Accept(write)).await;
        assert!(matches!(done, Outcome::Accepted(..)), "{done:?}");
    }
    2
}

/// Somebody says something to the group, as it was at this version.
fn speak(from: Uid, version: u64, to: &[Uid], name: u128) -> Accept {
    let rows = to.iter().map(|uid| member(*uid, 1)).collect();
    let accept = accept(text_message(from, Conversation::Group(GID), name, "all"), rows, vec![]);
    Accept { group_version: Some(version), ..accept }
}

#[tokio::test]
async fn whoever_was_put_out_sends_nothing_after_the_answer() {
    let (first, second, _) = servers().await;
    removal_of_bob(&first, GID).await;
    // Decided on another server before the removal.
    let done = one(&second, Write::Accept(speak(BOB, 1, &[BOB, ANN, CAT], 5))).await;
    assert_eq!(done, Outcome::GroupChanged);
    // One that was accepted before goes to nobody who has left.
    let done = one(&second, Write::Accept(speak(CAT, 1, &[CAT, ANN, BOB], 6))).await;
    assert_eq!(
        done.copies().iter().map(|copy| copy.1).collect::<Vec<_>>(),
        [CopyOutcome::Stored, CopyOutcome::Stored, CopyOutcome::Void]
    );
    assert_eq!((ids(&first, BOB).await, ids(&first, CAT).await), (vec![1, 2], vec![1, 2, 3]));
}

/// While the inbox of the leaver cannot be written to, nothing can be sent from it either; when it can, everything comes in order.
#[tokio::test]
async fn a_removal_comes_through_when_the_inbox_of_the_leaver_can_be_written_to() {
    let url = database().await;
    let patience = std::time::Duration::from_millis(20);
    let store = open_with(&url, PgOptions { lock_timeout: patience, ..options() }).await;
    one(&store, Write::Accept(making(GID))).await;
    let mut beside = connection(&url).await;
    run(&mut beside, "BEGIN").await;
    run(&mut beside, &lock_head(BOB)).await;
    let removal = change(GID, ANN, 1, GroupStep::Removed(BOB, MembershipEpoch(1)), &[ANN, BOB, CAT]);
    let done = one(&store, Write::Accept(removal)).await;
    assert_eq!(done.copies().len(), 2, "{done:?}");
    assert_eq!(store.group(GID).await.expect("read").expect("made").version, 2);
    let refused = store.commit(vec![Write::Accept(speak(BOB, 1, &[BOB, ANN, CAT], 5))]).await;
    assert!(matches!(&refused, Err(CommitError::Refused(_))), "{refused:?}");
    run(&mut beside, "COMMIT").await;
    deliver_what_is_owed(&store).await;
    let done = one(&store, Write::Accept(speak(BOB, 1, &[BOB, ANN, CAT], 5))).await;
    assert_eq!(done, Outcome::GroupChanged);
    assert_eq!(ids(&store, BOB).await, [1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_changes_decided_on_the_same_version_one_is_decided_again() {
    let (first, second, _) = servers().await;
    one(&first, Write::Accept(making(GID))).await;
    let add = |by, uid| change(GID, by, 1, GroupStep::Added(uid, MembershipEpoch(1)), &[by, uid]);
    let (left, right) = (Write::Accept(add(BOB, Uid(10_004))), Write::Accept(add(CAT, Uid(10_005))));
    let done = tokio::join!(first.commit(vec![left]), second.commit(vec![right]));
    // The change that is made may be accepted by the other server, whose own one it holds up. Its own server cannot tell then.
    let is_made = |done: &Result<Vec<Outcome>, CommitError>| {
        matches!(done.as_deref(), Ok([Outcome::Accepted(..)]) | Err(CommitError::Unknown(_)))
    };
    let is_refused =
        |done: &Result<Vec<Outcome>, CommitError>| matches!(done.as_deref(), Ok([Outcome::GroupChanged]));
    let (left, right) = &done;
    assert!(is_made(left) && is_refused(right) || is_made(right) && is_refused(left), "{done:?}");
    let group = first.group(GID).await.expect("read").expect("made");
    assert_eq!((group.version, group.active().count()), (2, 4));
}

/// Writes that rest on a refused change of the same call are decided again, too.
#[tokio::test]
async fn nothing_rests_on_a_change_that_is_refused() {
    let (first, second, _) = servers().await;
    removal_of_bob(&first, GID).await;
    let newcomer = Uid(10_004);
    let add = change(GID, ANN, 1, GroupStep::Added(newcomer, MembershipEpoch(1)), &[ANN, newcomer]);
    let said = speak(CAT, 2, &[CAT, ANN, newcomer], 7);
    let done = second.commit(vec![Write::Accept(add), Write::Accept(said)]).await.expect("committed");
    assert_eq!(done, [Outcome::GroupChanged, Outcome::GroupChanged]);
    assert_eq!(ids(&first, newcomer).await, [] as [u64; 0]);
}
