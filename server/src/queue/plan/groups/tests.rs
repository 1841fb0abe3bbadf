//! The rights of members.

use super::*;
use crate::domain::{GroupChange, GroupId, GroupSetting, Timestamp};

const OWNER: Uid = Uid(1);
const ADMINISTRATOR: Uid = Uid(2);
const OTHER: Uid = Uid(3);
const MEMBER: Uid = Uid(4);
const GUEST: Uid = Uid(5);
const PEOPLE: [Uid; 5] = [OWNER, ADMINISTRATOR, OTHER, MEMBER, GUEST];

fn facts() -> Facts {
    Facts { people: PEOPLE.map(|uid| (uid, uid.to_string())).into(), ..Facts::default() }
}

fn group() -> Group {
    let members = vec![OWNER, ADMINISTRATOR, OTHER, MEMBER];
    let step = GroupStep::Created { name: "walkers".into(), members };
    let making = GroupChange::of_step(GroupId(7), 0, OWNER, Timestamp(0), &step);
    let group = Group::create(&making).expect("a making");
    let group = after(&group, &GroupStep::Role(ADMINISTRATOR, Role::Administrator));
    after(&group, &GroupStep::Role(OTHER, Role::Administrator))
}

fn after(group: &Group, step: &GroupStep) -> Group {
    group.apply(&group.change(OWNER, Timestamp(50), step)).expect("current")
}

fn decide(group: &Group, who: Uid, action: GroupAction) -> Result<Option<GroupStep>, SendError> {
    step(who, &action, Some(group), (5, Timestamp(60)), &facts())
}

#[test]
fn each_may_do_what_the_role_allows() {
    let group = group();
    let (only, owner) = (Some(SendError::AdministratorsOnly), Some(SendError::OwnerOnly));
    let (stays, outside) = (Some(SendError::OwnerStays), Some(SendError::UnknownGroup));
    let rename = || GroupAction::Set(GroupSetting::Name("hikers".into()));
    let topic = || GroupAction::Set(GroupSetting::Topic("Sundays".into()));
    for (action, [by_owner, by_administrator, by_member]) in [
        (rename(), [None, None, only.clone()]),
        (topic(), [None, None, only.clone()]),
        (GroupAction::Add(GUEST), [None, None, None]),
        (GroupAction::Remove(MEMBER), [None, None, None]), // The member leaves.
        (GroupAction::Remove(OTHER), [None, owner.clone(), only.clone()]),
        (GroupAction::Remove(OWNER), [None, stays.clone(), only.clone()]), // The owner leaves.
        (GroupAction::Ban(MEMBER), [None, None, only.clone()]),
        (GroupAction::Ban(GUEST), [None, None, only.clone()]),
        (GroupAction::Ban(OTHER), [None, owner.clone(), only.clone()]),
        (GroupAction::Ban(OWNER), [stays.clone(), stays.clone(), only.clone()]),
        (GroupAction::Unban(GUEST), [None, None, only.clone()]),
        (GroupAction::Mute(OTHER, None), [None, owner.clone(), only.clone()]),
        (GroupAction::Mute(OWNER, None), [stays.clone(), stays.clone(), only.clone()]),
        (GroupAction::Mute(MEMBER, None), [None, None, only.clone()]),
        (GroupAction::Unmute(MEMBER), [None, None, only]),
        (GroupAction::Role(MEMBER, Role::Administrator), [None, owner.clone(), owner.clone()]),
        (GroupAction::Role(MEMBER, Role::Owner), [None, owner.clone(), owner.clone()]),
        (GroupAction::Role(OTHER, Role::Member), [None, owner.clone(), owner.clone()]),
        (GroupAction::Role(OWNER, Role::Member), [stays, owner.clone(), owner]),
    ] {
        for (who, expected) in [
            (OWNER, by_owner),
            (ADMINISTRATOR, by_administrator),
            (MEMBER, by_member),
            (GUEST, outside.clone()),
        ] {
            assert_eq!(decide(&group, who, action.clone()).err(), expected, "{who}: {action:?}");
        }
    }
    assert_eq!(decide(&group, OWNER, GroupAction::Role(GUEST, Role::Member)), Err(SendError::NotMember));
}

#[test]
fn what_is_so_already_is_no_change() {
    let group = after(&group(), &GroupStep::Banned(GUEST));
    for action in [
        GroupAction::Set(GroupSetting::Name(" walkers ".into())),
        GroupAction::Set(GroupSetting::Topic(String::new())),
        GroupAction::Role(MEMBER, Role::Member),
        GroupAction::Role(OWNER, Role::Owner),
        GroupAction::Ban(GUEST),
        GroupAction::Unban(MEMBER),
    ] {
        assert_eq!(decide(&group, OWNER, action.clone()), Ok(None), "{action:?}");
    }
}

#[test]
fn who_was_removed_comes_back_by_somebody_or_by_a_later_invitation() {
    let group = group();
    let epoch = group.epoch_of(MEMBER).expect("in");
    let admit = |made_at| GroupAction::Admit { guest: MEMBER, made_at: Timestamp(made_at) };
    let removed = after(&group, &GroupStep::Removed(MEMBER, epoch));
    assert_eq!(decide(&removed, OTHER, admit(50)), Err(SendError::RemovedSince));
    let next = removed.next_epoch(MEMBER);
    assert_eq!(decide(&removed, OTHER, admit(51)), Ok(Some(GroupStep::Joined(MEMBER, next))));
    assert_eq!(decide(&removed, OTHER, GroupAction::Add(MEMBER)), Ok(Some(GroupStep::Added(MEMBER, next))));
    let left = after(&group, &GroupStep::Left(MEMBER, epoch));
    assert!(decide(&left, OTHER, admit(1)).is_ok(), "who left comes and goes");

    let banned = after(&group, &GroupStep::Banned(MEMBER));
    assert_eq!(decide(&banned, OTHER, admit(99)), Err(SendError::Banned));
    assert_eq!(decide(&banned, OWNER, GroupAction::Add(MEMBER)), Err(SendError::Banned));
    let lifted = after(&banned, &GroupStep::Unbanned(MEMBER));
    assert_eq!(decide(&lifted, OTHER, admit(50)), Err(SendError::RemovedSince));
    assert!(decide(&lifted, OTHER, admit(51)).is_ok());
}

#[test]
fn names_and_topics_are_visible_and_short() {
    let group = group();
    for topic in ["x".repeat(301), "two\nlines".to_owned(), "a\u{200d}b".to_owned()] {
        assert_eq!(
            decide(&group, OWNER, GroupAction::Set(GroupSetting::Topic(topic))),
            Err(SendError::GroupTopic)
        );
    }
    for name in [String::new(), "x".repeat(81)] {
        assert_eq!(
            decide(&group, OWNER, GroupAction::Set(GroupSetting::Name(name))),
            Err(SendError::GroupName)
        );
    }
}

#[test]
fn the_list_of_bans_is_bounded() {
    let mut group = group();
    for uid in 0..u32::try_from(MOST_BANNED).expect("few") {
        group = after(&group, &GroupStep::Banned(Uid(1_000 + uid)));
    }
    assert_eq!(decide(&group, OWNER, GroupAction::Ban(MEMBER)), Err(SendError::TooManyBans(MOST_BANNED)));
}

#[test]
fn a_longer_time_for_messages_brings_none_back() {
    let set = |seconds| GroupAction::Set(GroupSetting::Keep(Keep { seconds, gone_before: 0 }));
    let group = after(&group(), &GroupStep::Set(GroupSetting::Keep(Keep { seconds: 0, gone_before: 9 })));
    assert_eq!(decide(&group, ADMINISTRATOR, set(0)), Ok(None), "it is so already");
    assert_eq!(decide(&group, MEMBER, set(60)), Err(SendError::AdministratorsOnly));
    let keep = Keep { seconds: 60, gone_before: 9 };
    assert_eq!(decide(&group, ADMINISTRATOR, set(60)), Ok(Some(GroupStep::Set(GroupSetting::Keep(keep)))));
}
