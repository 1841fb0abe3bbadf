//! Invitations when the way into the group fails or is cut off: no use is lost, none is counted twice.

use std::sync::Arc;

use tidemark::app::{InviteError, Invites};
use tidemark::domain::{Clock, GroupId, Timestamp, Uid};
use tidemark::store::faulty::Fault;

use crate::ordering::world::{Process, World, options, person};

fn invites(world: &World, process: &Process) -> Invites {
    let directory = Arc::clone(&world.directory);
    Invites::new(directory, process.groups.clone(), world.ids.clone(), Clock::new(|| Timestamp(7)))
}

/// A group of Ann's, and the code of an invitation of hers that lets `uses` people in.
async fn invited(world: &World, process: &Process, uses: u32) -> (GroupId, String) {
    let gid = process.groups.create(person(0), "walkers".into(), Vec::new(), None).await.expect("made");
    let made = invites(world, process).create(person(0), gid, None, Some(uses), None).await.expect("made");
    (gid, made.code)
}

async fn members(process: &Process, gid: GroupId) -> Vec<Uid> {
    let group = process.groups.get(person(0), gid).await.expect("there");
    group.members.into_iter().map(|(person, _)| person.uid).collect()
}

#[tokio::test(start_paused = true)]
async fn a_use_taken_before_a_crash_lets_its_guest_in_afterwards_and_nobody_else() {
    let world = World::new().await;
    let before = world.start(options(1)).await;
    let (gid, code) = invited(&world, &before, 1).await;
    let (bob, eve) = (person(1), person(2));
    // The use is taken; the process dies before the group has changed.
    before.store.script([Fault::Stall]);
    let cut_off = tokio::spawn({
        let (invites, code) = (invites(&world, &before), code.clone());
        async move { invites.accept(bob, &code).await }
    });
    before.store.until_stalled(1).await;
    cut_off.abort();

    let after = world.start(options(1)).await;
    let invites = invites(&world, &after);
    assert!(matches!(invites.accept(eve, &code).await, Err(InviteError::UsedUp)));
    assert_eq!(invites.accept(bob, &code).await.expect("the same use"), gid);
    assert_eq!(members(&after, gid).await, [person(0), bob]);
    assert!(matches!(invites.accept(eve, &code).await, Err(InviteError::UsedUp)), "used, once");
}

#[tokio::test(start_paused = true)]
async fn a_guest_who_came_in_at_the_moment_of_the_crash_has_used_one_use() {
    for comes_back in [true, false] {
        let world = World::new().await;
        let before = world.start(options(1)).await;
        let (gid, code) = invited(&world, &before, 2).await;
        let (bob, eve) = (person(1), person(2));
        // The group has changed; whoever should have heard of it is dead.
        before.store.script([Fault::PanicAfter]);
        let cut_off = invites(&world, &before).accept(bob, &code).await;
        assert!(cut_off.is_err(), "{cut_off:?}");

        let after = world.start(options(1)).await;
        let invites = invites(&world, &after);
        if comes_back {
            assert_eq!(invites.accept(bob, &code).await.expect("in already"), gid);
        }
        // The next membership by this link is another use.
        after.groups.remove(bob, gid, bob).await.expect("left");
        assert_eq!(invites.accept(bob, &code).await.expect("by the second use"), gid);
        assert!(matches!(invites.accept(eve, &code).await, Err(InviteError::UsedUp)));
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_becomes_of_the_change_a_guest_who_insists_takes_one_use() {
    for fault in [Fault::Refuse, Fault::LoseAnswer, Fault::LoseWrite, Fault::Panic, Fault::PanicAfter] {
        let world = World::new().await;
        let process = world.start(options(1)).await;
        let (gid, code) = invited(&world, &process, 2).await;
        let invites = invites(&world, &process);
        process.store.script([fault]);
        while let Err(error) = invites.accept(person(1), &code).await {
            assert!(matches!(&error, InviteError::Group(refused) if refused.is_retryable()), "{error}");
            process.pause().await;
        }
        invites.accept(person(2), &code).await.expect("the second use");
        let third = invites.accept(person(3), &code).await;
        assert!(matches!(third, Err(InviteError::UsedUp)), "{fault:?}: {third:?}");
        assert_eq!(members(&process, gid).await.len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_use_that_is_not_needed_any_more_is_given_back() {
    let world = World::new().await;
    let process = world.start(options(1)).await;
    let (gid, code) = invited(&world, &process, 1).await;
    let invites = invites(&world, &process);
    let (bob, eve) = (person(1), person(2));
    process.store.script([Fault::Refuse]);
    assert!(invites.accept(bob, &code).await.is_err());
    process.groups.add(person(0), gid, bob, None).await.expect("by other means");
    assert_eq!(invites.accept(bob, &code).await.expect("in already"), gid);
    assert_eq!(invites.accept(eve, &code).await.expect("by the use that came back"), gid);
}
