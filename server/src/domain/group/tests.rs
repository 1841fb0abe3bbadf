//! Versions, epochs, and who owns a group.

use proptest::prelude::*;

use super::*;

const ANN: Uid = Uid(1);
const BOB: Uid = Uid(2);
const CAT: Uid = Uid(3);

fn made() -> Group {
    let step = GroupStep::Created { name: "walkers".into(), members: vec![BOB, ANN, CAT, BOB] };
    let change = GroupChange::of_step(GroupId(7), 0, BOB, Timestamp(5), &step);
    Group::create(&change).expect("a making")
}

fn then(group: &Group, step: &GroupStep) -> Group {
    group.apply(&group.change(ANN, Timestamp(9), step)).expect("current")
}

#[test]
fn a_change_decided_on_an_older_version_is_refused() {
    let group = made();
    let add = |version, uid| {
        let step = GroupStep::Added(uid, MembershipEpoch(1));
        GroupChange::of_step(group.gid, version, ANN, Timestamp(9), &step)
    };
    let second = group.apply(&add(1, Uid(4))).expect("current");
    assert_eq!(second.apply(&add(1, Uid(5))), None);
    assert_eq!(second.active().count(), 4);
}

#[test]
fn rejoining_starts_a_new_epoch() {
    let left = then(&made(), &GroupStep::Left(CAT, MembershipEpoch(1)));
    assert_eq!(left.epoch_of(CAT), None);
    assert_eq!(left.next_epoch(CAT), MembershipEpoch(2));
}

#[test]
fn the_maker_owns_it_and_whoever_stands_longest_follows() {
    let group = made();
    assert_eq!(group.owner(), Some(BOB));
    assert_eq!(group.role_of(ANN), Some(Role::Member));
    let group = then(&group, &GroupStep::Role(CAT, Role::Administrator));
    let left = then(&group, &GroupStep::Left(BOB, MembershipEpoch(1)));
    assert_eq!((left.owner(), left.role_of(CAT)), (Some(CAT), Some(Role::Owner)), "an administrator first");
    let alone = then(&left, &GroupStep::Left(CAT, MembershipEpoch(1)));
    assert_eq!((alone.owner(), alone.role_of(BOB)), (Some(ANN), None), "else a member");
    let empty = then(&alone, &GroupStep::Left(ANN, MembershipEpoch(1)));
    assert_eq!(empty.owner(), None);
}

#[test]
fn ownership_is_handed_over_and_the_owner_so_far_is_an_administrator() {
    let group = then(&made(), &GroupStep::Role(ANN, Role::Owner));
    assert_eq!((group.role_of(ANN), group.role_of(BOB)), (Some(Role::Owner), Some(Role::Administrator)));
    let group = then(&group, &GroupStep::Role(BOB, Role::Member));
    assert_eq!(group.role_of(BOB), Some(Role::Member));
}

#[test]
fn an_imported_group_without_roles_has_an_owner_whatever_is_changed_first() {
    let mut group = made();
    for member in &mut group.members {
        member.standing = Standing::from_code(true, 0, 0);
    }
    assert_eq!(group.owner(), Some(ANN), "the oldest account of those who never left");
    let group = then(&group, &GroupStep::Role(CAT, Role::Administrator));
    assert_eq!((group.owner(), group.role_of(CAT)), (Some(ANN), Some(Role::Administrator)));
}

#[test]
fn a_ban_puts_out_who_is_in_and_keeps_out_who_never_was() {
    let group = made();
    let change = group.change(BOB, Timestamp(9), &GroupStep::Banned(CAT));
    assert_eq!(change.ends, Some((CAT, MembershipEpoch(1))));
    let group = then(&then(&group, &GroupStep::Banned(CAT)), &GroupStep::Banned(Uid(8)));
    let standing = |group: &Group, uid| group.member(uid).map(|member| member.standing);
    assert_eq!(standing(&group, Uid(8)), Some(Standing::Banned { at: Timestamp(9) }));
    assert_eq!(group.next_epoch(Uid(8)), MembershipEpoch(1));
    let lifted = then(&group, &GroupStep::Unbanned(CAT));
    assert_eq!(standing(&lifted, CAT), Some(Standing::Removed { at: Timestamp(9) }));
}

#[derive(Clone, Debug)]
enum Move {
    Join(u32),
    Go(u32),
    Remove(u32),
    Role(u32, Role),
    Ban(u32),
    Unban(u32),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let who = || 1..6_u32;
    let role = prop_oneof![Just(Role::Member), Just(Role::Administrator), Just(Role::Owner)];
    let one = prop_oneof![
        who().prop_map(Move::Join),
        who().prop_map(Move::Go),
        who().prop_map(Move::Remove),
        (who(), role).prop_map(|(uid, role)| Move::Role(uid, role)),
        who().prop_map(Move::Ban),
        who().prop_map(Move::Unban),
    ];
    prop::collection::vec(one, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Also where the stores forget everything but what they keep of a member.
    #[test]
    fn a_group_with_members_has_one_owner_who_is_called_so(moves in moves()) {
        let mut group = made();
        for step in moves {
            let step = match step {
                Move::Join(uid) if group.epoch_of(Uid(uid)).is_none() => GroupStep::Added(Uid(uid), group.next_epoch(Uid(uid))),
                Move::Go(uid) => match group.epoch_of(Uid(uid)) {
                    Some(epoch) => GroupStep::Left(Uid(uid), epoch),
                    None => continue,
                },
                Move::Remove(uid) => match group.epoch_of(Uid(uid)) {
                    Some(epoch) => GroupStep::Removed(Uid(uid), epoch),
                    None => continue,
                },
                Move::Role(uid, role) if group.epoch_of(Uid(uid)).is_some() => GroupStep::Role(Uid(uid), role),
                Move::Ban(uid) => GroupStep::Banned(Uid(uid)),
                Move::Unban(uid) => GroupStep::Unbanned(Uid(uid)),
                Move::Join(_) | Move::Role(..) => continue,
            };
            group = then(&group, &step);
            let owners = group.active().filter(|member| member.role() == Some(Role::Owner)).count();
            prop_assert_eq!(owners, usize::from(group.active().next().is_some()));
            for member in &group.members {
                let (code, number) = member.standing.code();
                prop_assert_eq!(Standing::from_code(member.is_active(), code, number), member.standing);
            }
        }
    }
}

#[test]
fn a_mute_outlasts_a_leaving_and_goes_when_it_has_ended() {
    let muted = |group: &Group, uid| group.settings.mute_of(uid, Timestamp(9));
    let group = then(&made(), &GroupStep::Muted(BOB, Mute::Until(Timestamp(10))));
    let group = then(&group, &GroupStep::Muted(CAT, Mute::ForGood));
    let group = then(&group, &GroupStep::Left(CAT, MembershipEpoch(1)));
    let group = then(&group, &GroupStep::Added(CAT, MembershipEpoch(2)));
    assert_eq!(
        [BOB, CAT].map(|uid| muted(&group, uid)),
        [Some(Mute::Until(Timestamp(10))), Some(Mute::ForGood)]
    );
    let lifted = then(&group, &GroupStep::Unmuted(CAT));
    assert_eq!((muted(&lifted, CAT), lifted.settings.muted.len()), (None, 1));
    // The next one finds Bob's at its end.
    let step = GroupStep::Muted(CAT, Mute::ForGood);
    let later = lifted.apply(&lifted.change(ANN, Timestamp(10), &step)).expect("current");
    assert_eq!(later.settings.muted, [Muted { uid: CAT.0, until: Mute::ForGood }]);
}

#[test]
fn slow_mode_is_for_plain_members_alone() {
    let group = then(&made(), &GroupStep::Set(GroupSetting::SlowSeconds(30)));
    let group = then(&group, &GroupStep::Role(CAT, Role::Administrator));
    let slow = Some(Duration::from_secs(30));
    assert_eq!([ANN, BOB, CAT, Uid(4)].map(|uid| group.slow_for(uid)), [slow, None, None, None]);
    assert_eq!(then(&group, &GroupStep::Set(GroupSetting::SlowSeconds(0))).slow_for(ANN), None);
}

#[test]
fn people_who_have_gone_are_muted_no_more_where_too_many_are() {
    let mut group = made();
    for uid in 100..100 + u32::try_from(MOST_MUTED).expect("few") {
        group = then(&group, &GroupStep::Muted(Uid(uid), Mute::ForGood));
    }
    assert_eq!(group.settings.muted.len(), MOST_MUTED);
    let group = then(&group, &GroupStep::Muted(CAT, Mute::ForGood));
    assert_eq!(group.settings.muted, [Muted { uid: CAT.0, until: Mute::ForGood }]);
}
