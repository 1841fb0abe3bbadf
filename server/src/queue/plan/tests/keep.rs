//! For how long messages of a conversation are kept.

use super::*;

/// A repetition is known by its seconds alone: what holds may have changed in between.
#[test]
fn two_people_keep_messages_for_the_time_that_one_of_them_says() {
    let request = |id, other, seconds| {
        let (client_id, target) = (ClientId(Uuid::from_u128(id)), Conversation::User(other));
        let body = Body::of_keep(Keep { seconds, gone_before: 0 });
        Request::Publish(Publish {
            client_id,
            kind: Kind::Keep,
            target,
            body,
            files: Vec::new(),
            others: vec![other],
        })
    };
    let before = Keep { seconds: 0, gone_before: 3 };
    let mut planner = planner(Facts { keeps: HashMap::from([((ANN, BOB), before)]), ..facts() });
    let Ok(plan) = planner.decide(0, ANN, &request(1, BOB, 60)) else { panic!("a write") };
    assert_eq!(plan.content.body.keep(), Some(Keep { seconds: 60, gone_before: 3 }));
    assert_eq!(plan.rows.iter().map(|row| row.receiver).collect::<Vec<_>>(), [ANN, BOB]);
    // Bob's own comes after Ann's in one batch.
    let Ok(plan) = planner.decide(1, BOB, &request(1, ANN, 0)) else { panic!("a write") };
    assert_eq!(plan.content.body.keep(), Some(before));
    assert!(matches!(planner.decide(2, ANN, &request(1, BOB, 60)), Err(NoWrite::SameAs(0))));
    let other = planner.decide(3, ANN, &request(1, BOB, 90));
    assert_eq!(refusal(other), Some(SendError::ClientIdReused));
    planner.facts.permissions.insert((BOB, ANN), WritePermission::Blocked);
    assert_eq!(refusal(planner.decide(4, ANN, &request(2, BOB, 90))), Some(SendError::Blocked));
}

#[test]
fn a_joining_says_for_how_long_the_group_keeps_messages() {
    let keep = Keep { seconds: 60, gone_before: 0 };
    for (facts, expected) in [(facts(), None), (with_settings(&[GroupSetting::Keep(keep)]), Some(keep))] {
        let (client_id, gid) = (ClientId(Uuid::from_u128(1)), WALKERS);
        let request = Request::Group { client_id, gid, action: GroupAction::Add(CAT) };
        let Ok(plan) = planner(facts).decide(0, ANN, &request) else { panic!("a write") };
        assert_eq!(plan.content.body.keep(), expected);
    }
}
