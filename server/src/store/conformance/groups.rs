//! Groups: versions, membership epochs and what is void (I13).

use super::*;
use crate::domain::message::Person;
use crate::domain::{FileId, GroupSetting, GroupStep, History, Keep, Mute, Muted};

const ANN: Uid = Uid(10_001);
const BOB: Uid = Uid(10_002);
const CAT: Uid = Uid(10_003);
const GID: GroupId = GroupId(7);
const IN_GROUP: Conversation = Conversation::Group(GID);

fn owed(uid: Uid, epoch: u32) -> Recipient {
    Recipient { uid, epoch: MembershipEpoch(epoch) }
}

/// The acceptance of a change made by Ann, whose copy gets the id `n`.
fn change(n: u64, from_version: u64, step: GroupStep, rest: Vec<Recipient>) -> Accept {
    let person = |uid: Uid| Person { uid, name: format!("user {uid}") };
    let who = step.concerns().unwrap_or(ANN);
    let content = Arc::new(Content {
        kind: Kind::Membership,
        sender: ANN,
        target: IN_GROUP,
        client_id: Some(client_id(1_000 + u128::from(n))),
        body: Body::membership(GID, "walkers", &step, &person(who), &person(ANN), None),
        sent_at: Timestamp(0),
    });
    let change = Some(GroupChange::of_step(GID, from_version, ANN, Timestamp(0), &step));
    Accept { change, group_version: Some(from_version), ..accept(content, vec![member_row(ANN, n, 1)], rest) }
}

fn created() -> GroupStep {
    GroupStep::Created { name: "walkers".to_owned(), members: vec![ANN, BOB] }
}

/// Ann says something to the group.
fn speak(n: u64, rest: Vec<Recipient>) -> Accept {
    accept(text_message(ANN, IN_GROUP, n.into(), "hi"), vec![member_row(ANN, n, 1)], rest)
}

async fn deliver(store: &dyn MessageStore, acceptance: AcceptanceId, row: Row) -> CopyOutcome {
    let pending = store.pending(PendingKey::default(), 100).await.expect("read");
    let owed = pending.into_iter().find(|pending| pending.acceptance == acceptance);
    let content = owed.expect("still owed").content;
    let done =
        one(store, Write::Deliver(Deliver { acceptance, content, rows: vec![row], earlier: Vec::new() }))
            .await;
    delivered(&done)[0]
}

/// Two changes decided on the same version: the second is told to decide again.
pub async fn a_change_needs_the_version_it_was_decided_on(store: &dyn MessageStore) {
    let add =
        |n, version| Write::Accept(change(n, version, GroupStep::Added(CAT, MembershipEpoch(1)), vec![]));
    let is_refused = |done: &Outcome| *done == Outcome::GroupChanged;
    outdated(store, add(1, 1), is_refused).await;
    accepted(store, change(1, 0, created(), vec![])).await;
    outdated(store, Write::Accept(change(2, 0, created(), vec![])), is_refused).await;
    let done = store.commit(vec![add(2, 1), add(3, 1)]).await.expect("committed");
    assert!(matches!(done[..], [Outcome::Accepted(..), Outcome::GroupChanged]), "{done:?}");
    assert_eq!(ids(store, ANN).await, [1, 2]);
}

/// The group keeps whether joiners see its history; only a change of that setting changes it.
pub async fn what_joiners_see_is_a_setting_of_the_group(store: &dyn MessageStore) {
    accepted(store, change(1, 0, created(), vec![])).await;
    let history = async || store.group(GID).await.expect("read").expect("made").settings.history;
    assert_eq!(history().await, History::Hidden);
    accepted(store, change(2, 1, GroupStep::Set(GroupSetting::History(History::Visible)), vec![])).await;
    accepted(store, change(3, 2, GroupStep::Set(GroupSetting::Topic("Sundays".into())), vec![])).await;
    assert_eq!(history().await, History::Visible);
    accepted(store, change(4, 3, GroupStep::Set(GroupSetting::History(History::Hidden)), vec![])).await;
    assert_eq!(history().await, History::Hidden);
}

/// A later change of another setting leaves them as they are.
pub async fn slow_mode_and_mutes_are_settings_of_the_group(store: &dyn MessageStore) {
    accepted(store, change(1, 0, created(), vec![])).await;
    let muted = [(BOB, Mute::ForGood), (CAT, Mute::Until(Timestamp(9)))];
    let muted = muted.map(|(uid, until)| Muted { uid: uid.0, until }).to_vec();
    let keep = Keep { seconds: 60, gone_before: 5 };
    let steps = [
        GroupSetting::SlowSeconds(30),
        GroupSetting::Keep(keep),
        GroupSetting::Picture(Some(FileId(uuid::Uuid::from_u128(7)))),
        GroupSetting::Picture(None),
        GroupSetting::Picture(Some(FileId(uuid::Uuid::from_u128(8)))),
        GroupSetting::Muted(muted.clone()),
        GroupSetting::Topic("hush".into()),
    ];
    for (n, setting) in (1..).zip(steps) {
        accepted(store, change(n + 1, n, GroupStep::Set(setting), vec![])).await;
    }
    let settings = store.group(GID).await.expect("read").expect("made").settings.clone();
    assert_eq!((settings.slow_seconds, settings.keep, settings.muted), (30, keep, muted));
    assert_eq!(settings.picture, Some(FileId(uuid::Uuid::from_u128(8))));
    accepted(store, change(9, 8, GroupStep::Set(GroupSetting::Muted(vec![])), vec![])).await;
    assert_eq!(store.group(GID).await.expect("read").expect("made").settings.muted, []);
}

/// Members, their epochs, version.
pub async fn a_group_is_read_as_last_accepted(store: &dyn MessageStore) {
    accepted(store, change(1, 0, created(), vec![owed(BOB, 1)])).await;
    accepted(store, change(2, 1, GroupStep::Removed(BOB, MembershipEpoch(1)), vec![owed(BOB, 1)])).await;
    accepted(store, change(3, 2, GroupStep::Added(BOB, MembershipEpoch(2)), vec![owed(BOB, 2)])).await;
    accepted(store, change(4, 3, GroupStep::Added(CAT, MembershipEpoch(1)), vec![owed(CAT, 1)])).await;
    let group = store.group(GID).await.expect("read").expect("made");
    assert_eq!((group.settings.name.as_str(), group.version), ("walkers", 4));
    let epochs: Vec<(Uid, u32)> = group.active().map(|member| (member.uid, member.epoch.0)).collect();
    assert_eq!(epochs, [(ANN, 1), (BOB, 2), (CAT, 1)]);
}

/// After "you left" nothing of that membership epoch is stored.
pub async fn a_row_after_the_end_of_its_epoch_is_void(store: &dyn MessageStore) {
    accepted(store, change(1, 0, created(), vec![])).await;
    let before = accepted(store, speak(2, vec![owed(BOB, 1)])).await;
    let after = accepted(store, speak(3, vec![owed(BOB, 1), owed(CAT, 1)])).await;
    let end =
        accepted(store, change(4, 1, GroupStep::Removed(BOB, MembershipEpoch(1)), vec![owed(BOB, 1)])).await;
    assert_eq!(deliver(store, before, member_row(BOB, 1, 1)).await, CopyOutcome::Stored);
    assert_eq!(deliver(store, end, member_row(BOB, 2, 1)).await, CopyOutcome::Stored);
    assert_eq!(deliver(store, after, member_row(BOB, 3, 1)).await, CopyOutcome::Void);
    assert_eq!(ids(store, BOB).await, [1, 2]);
    assert_eq!(store.pending(PendingKey::default(), 9).await.expect("read")[0].owed, [owed(CAT, 1)]);
}

/// A member that joins again begins a new epoch.
pub async fn a_rejoined_member_is_served_again(store: &dyn MessageStore) {
    accepted(store, change(1, 0, created(), vec![])).await;
    let end =
        accepted(store, change(2, 1, GroupStep::Removed(BOB, MembershipEpoch(1)), vec![owed(BOB, 1)])).await;
    let back =
        accepted(store, change(3, 2, GroupStep::Added(BOB, MembershipEpoch(2)), vec![owed(BOB, 2)])).await;
    let sent = accepted(store, speak(4, vec![owed(BOB, 2)])).await;
    for (n, acceptance, epoch) in [(1, end, 1), (2, back, 2), (3, sent, 2)] {
        assert_eq!(deliver(store, acceptance, member_row(BOB, n, epoch)).await, CopyOutcome::Stored);
    }
    assert_eq!(ids(store, BOB).await, [1, 2, 3]);
}

/// Not when it was accepted: rows accepted before it are still owed.
pub async fn an_epoch_ends_when_its_row_is_written(store: &dyn MessageStore) {
    accepted(store, change(1, 0, created(), vec![])).await;
    let early = accepted(store, speak(2, vec![owed(BOB, 1)])).await;
    accepted(store, change(3, 1, GroupStep::Removed(BOB, MembershipEpoch(1)), vec![owed(BOB, 1)])).await;
    assert_eq!(deliver(store, early, member_row(BOB, 1, 1)).await, CopyOutcome::Stored);
}

/// The sender's own copy cannot be void: its id is the answer.
pub async fn a_sender_whose_epoch_ended_decides_again(store: &dyn MessageStore) {
    accepted(store, change(1, 0, created(), vec![])).await;
    accepted(store, change(2, 1, GroupStep::Left(ANN, MembershipEpoch(1)), vec![owed(BOB, 1)])).await;
    assert_eq!(one(store, Write::Accept(speak(3, vec![owed(BOB, 1)]))).await, Outcome::GroupChanged);
    assert_eq!(ids(store, ANN).await, [1, 2]);
    assert_eq!(records(store, &[(ANN, client_id(3))]).await, [None]);
}

/// New groups get larger numbers.
pub async fn the_largest_group_is_known(store: &dyn MessageStore) {
    assert_eq!(store.largest_group_id().await.expect("read"), GroupId(0));
    accepted(store, change(1, 0, created(), vec![])).await;
    assert_eq!(store.largest_group_id().await.expect("read"), GID);
}
