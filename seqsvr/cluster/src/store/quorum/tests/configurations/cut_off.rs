//! Changes whose coordinator ended before their last step, and stores that are lost meanwhile.

use super::*;
use seqsvr_core::store::{Configuration, Member};

/// The change is cut off after each step: nothing is served by halves, and the same change completes it.
#[tokio::test]
async fn a_change_that_was_cut_off_is_completed_by_the_next() {
    for (steps, arbiter_completes) in (1..=3).flat_map(|steps| [(steps, false), (steps, true)]) {
        let stage = stage().await;
        let role = stage.role();
        role.establish(&terms()).await.unwrap();
        claim(&role, 1).await.unwrap();
        raise(&role, 1, 500).await;
        let current = role.configuration().unwrap();
        let next = Arc::new(current.replacing("s3", member(&stage, 3).await));
        let mut copy = Copy::default();
        for index in 0..2 {
            let to = Address::default();
            let remote = stage.remote(index);
            let seal = Question::Seal { number: 1, ballot: 7 };
            match remote.call(to, seal).await {
                Ok(Answer::Sealed { copy: sealed, .. }) => copy = sealed,
                other => panic!("{other:?}"),
            }
            let accept = Question::Accept { number: 1, ballot: 7, next: Arc::clone(&next) };
            if steps > 1 {
                assert_eq!(remote.call(to, accept).await, Ok(Answer::Accepted));
            }
        }
        if steps > 2 {
            let install = Question::Install { next: Arc::clone(&next), copy: Arc::new(copy) };
            assert_eq!(stage.remote(3).ask(install).await, Ok(Answer::Installed));
        }
        let halted = claim(&role, 2).await.unwrap_err().to_string();
        assert!(halted.contains("or the same command run again"), "{halted}");
        // An arbiter that finds the stores halted completes a change that was decided, and ends one that was only begun.
        let mut number = 2;
        if arbiter_completes {
            let reported = stage.role().report_unfinished().await.unwrap();
            assert!(reported.contains("the change of configuration"), "{reported}");
            let completed = stage.role().complete_halted().await.unwrap();
            assert_eq!((completed.number, completed == next), (2, steps > 1), "after {steps} steps");
            assert_eq!(stage.role().report_unfinished().await, None);
            let _ = claim(&role, 2).await;
            assert_eq!(claim(&role, 2).await.unwrap(), [500]);
            number += u64::from(steps == 1);
        }
        let replaced = role.replace("s3", &stage.addrs[3]).await.unwrap();
        assert_eq!(replaced.configuration.number, number, "after {steps} steps");
        assert_eq!(replaced.configuration.members, next.members, "after {steps} steps");
        assert_eq!(claim(&role, 2).await.unwrap(), [500]);
    }
}

/// The one store that had come to the next configuration is lost. A process that heard of it from that store completes it all the same.
#[tokio::test]
async fn a_change_whose_only_store_is_lost_is_completed_by_one_that_heard_of_it() {
    let stage = stage().await;
    let (role, arbiter) = (stage.role(), stage.role());
    role.establish(&terms()).await.unwrap();
    claim(&role, 1).await.unwrap();
    raise(&role, 1, 500).await;
    let current = role.configuration().unwrap();
    let next = Arc::new(current.replacing("s2", member(&stage, 3).await));
    decided(&stage, [0, 2], &next, &[3]).await;
    arbiter.follow(Arc::clone(&next));
    stage.handles[3].abort();
    assert_eq!(arbiter.complete_halted().await.unwrap(), next);
    let _ = claim(&role, 2).await;
    assert_eq!(claim(&role, 2).await.unwrap(), [500]);
}

/// The same, and one of those that accepted it is lost: a store is needed that has not come to the configuration before.
#[tokio::test]
async fn a_store_that_missed_two_changes_is_brought_up_where_the_second_needs_it() {
    for is_new in [false, true] {
        let stage = stage().await;
        let (role, arbiter) = (stage.role(), stage.role());
        role.establish(&terms()).await.unwrap();
        let first = role.configuration().unwrap();
        let install = Question::Install { next: Arc::clone(&first), copy: Arc::default() };
        assert_eq!(stage.remote(2).ask(install).await, Ok(Answer::Installed));
        claim(&role, 1).await.unwrap();
        raise(&role, 1, 500).await;
        let second = if is_new { first.replacing("s3", member(&stage, 3).await) } else { first.next() };
        let third = Arc::new(second.next());
        decided(&stage, [0, 1], &Arc::new(second), &[0, 1]).await;
        decided(&stage, [0, 1], &third, &[1]).await;
        arbiter.follow(Arc::clone(&third));
        stage.handles[1].abort();
        assert_eq!(arbiter.complete_halted().await.unwrap(), third);
        let _ = claim(&role, 2).await;
        assert_eq!(claim(&role, 2).await.unwrap(), [500]);
    }
}

/// The change to `next` is accepted by two stores, and some come to it; then its coordinator ends.
async fn decided(stage: &Stage, accept: [usize; 2], next: &Arc<Configuration>, come: &[usize]) {
    let (number, mut copy) = (next.number - 1, Copy::default());
    for remote in accept.map(|index| stage.remote(index)) {
        match remote.call(Address::default(), Question::Seal { number, ballot: 7 }).await {
            Ok(Answer::Sealed { copy: sealed, .. }) => copy = sealed,
            other => panic!("{other:?}"),
        }
        let accept = Question::Accept { number, ballot: 7, next: Arc::clone(next) };
        assert_eq!(remote.call(Address::default(), accept).await, Ok(Answer::Accepted));
    }
    let copy = Arc::new(copy);
    for &index in come {
        let install = Question::Install { next: Arc::clone(next), copy: Arc::clone(&copy) };
        assert_eq!(stage.remote(index).ask(install).await, Ok(Answer::Installed));
    }
}

/// The store of this index as a member.
async fn member(stage: &Stage, index: usize) -> Member {
    let Ok(Answer::Described(what)) = stage.remote(index).ask(Question::Describe).await else {
        panic!("it describes itself")
    };
    Member { id: what.id, name: what.name, addr: stage.addrs[index].clone() }
}
