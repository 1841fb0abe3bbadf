//! Copies for many inboxes are written in slices while others write, too (I5, I12).

use tidemark::domain::{Entry, Kind};
use tidemark::queue::{Options, Request};
use tidemark::store::faulty::Fault;

use super::world::{PEOPLE, World, client_ids_of, moment, name, options, person, to};

/// Copies are written one by one.
fn in_slices(queues: usize) -> Options {
    Options { slice_rows: 1, ..options(queues) }
}

fn moments(inbox: &[Entry]) -> usize {
    inbox.iter().filter(|entry| entry.content.kind == Kind::Moment).count()
}

#[tokio::test(start_paused = true)]
async fn a_moment_in_slices_comes_once_and_before_what_its_author_sends_next() {
    use Fault::{LoseAnswer, LoseWrite, Pass};
    for queues in [1, 3] {
        for faults in [
            vec![],
            vec![Pass, LoseAnswer],
            vec![Pass, LoseWrite],
            vec![Pass, Pass, LoseAnswer, LoseWrite],
            vec![Pass, Pass, Pass, LoseWrite, Pass, LoseAnswer],
        ] {
            let world = World::new().await;
            let process = world.start(in_slices(queues)).await;
            let (ann, bob, last) = (person(0), person(1), person(PEOPLE - 1));
            process.store.script(faults.clone());
            // Others write, so it is cut.
            process.insist(bob, to(last, 1, "busy")).await;
            process.insist_on(ann, moment(ann, 2)).await;
            process.insist(ann, to(last, 3, "after the moment")).await;
            process.insist(bob, to(last, 4, "from somebody else")).await;
            process.queues.stop().await;
            for n in 0..PEOPLE {
                assert_eq!(
                    moments(&world.inbox(person(n)).await),
                    1,
                    "{queues} queues, {faults:?}, person {n}"
                );
            }
            let told = client_ids_of(&world.inbox(last).await);
            let place = |id| told.iter().position(|told| *told == name(id)).expect("it is there");
            assert!(place(2) < place(3), "{queues} queues, {faults:?}: {told:?}");
            assert_eq!(told.len(), 4);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn others_do_not_wait_for_the_slices_of_a_moment() {
    let world = World::new().await;
    let process = world.start(in_slices(1)).await;
    let (ann, bob, last) = (person(0), person(1), person(PEOPLE - 1));
    process.store.script([Fault::Pass, Fault::Pass, Fault::Stall]);
    process.insist(bob, to(last, 1, "busy")).await;
    process.insist_on(ann, moment(ann, 2)).await;
    process.store.until_stalled(1).await;
    let later = process.queues.submit(ann, Request::Message(to(last, 3, "after the moment")));
    let other = process.queues.submit(bob, Request::Message(to(last, 4, "from somebody else")));
    process.store.release();
    other.await.expect("accepted");
    later.await.expect("accepted");
    process.queues.stop().await;
    let told = client_ids_of(&world.inbox(last).await);
    assert_eq!(told, [1, 4, 2, 3].map(name), "the last of the slices comes after who did not wait");
}

#[tokio::test(start_paused = true)]
async fn slices_owed_at_a_crash_are_written_at_the_next_start_before_anything_new() {
    let world = World::new().await;
    let (ann, bob, last) = (person(0), person(1), person(PEOPLE - 1));
    let before = world.start(in_slices(1)).await;
    before.store.script([Fault::Pass, Fault::Pass, Fault::Stall]);
    before.insist(bob, to(last, 1, "busy")).await;
    before.insist_on(ann, moment(ann, 2)).await;
    before.store.until_stalled(1).await;
    assert_eq!(moments(&world.inbox(last).await), 0);

    let after = world.start(in_slices(1)).await;
    after.insist(ann, to(last, 3, "after the crash")).await;
    after.queues.stop().await;
    assert_eq!(client_ids_of(&world.inbox(last).await), [1, 2, 3].map(name));
    for n in 0..PEOPLE {
        assert_eq!(moments(&world.inbox(person(n)).await), 1, "person {n}");
    }
}
