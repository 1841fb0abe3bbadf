//! The table follows the uids of the stored configuration.

use super::*;

#[test]
fn uids_that_the_set_gives_up_leave_the_table_and_those_that_it_takes_in_are_given_out() {
    let mut world = World::new(2);
    world.run(300);
    let epochs = |table: &Table| {
        (0..20).map(|one| table.owner(SectionId::new(one)).unwrap().epoch).collect::<Vec<_>>()
    };
    let before = Arc::clone(world.tables.last().unwrap());
    for index in 0..2 {
        world.tell(index, Event::Uids(0..=20 * SIZE - 1));
    }
    world.run(300);
    let less = Arc::clone(world.tables.last().unwrap());
    assert_eq!((less.uids.clone(), less.check()), (0..=20 * SIZE - 1, Ok(())));
    assert!(
        less.version > before.version && epochs(&less) == epochs(&before),
        "the others stay where they are"
    );
    for index in 0..2 {
        world.tell(index, Event::Uids(0..=40 * SIZE - 1));
    }
    world.run(300);
    let more = world.tables.last().unwrap();
    assert_eq!((more.uids.clone(), epochs(more)), (0..=40 * SIZE - 1, epochs(&before)));
    for section in (20..40).map(SectionId::new) {
        assert!(more.owner(section).is_some_and(|one| one.epoch > less.version), "{section} is given anew");
    }
    // The one that stands by has read other uids than it was configured with, and goes on.
    assert_eq!(world.misfits, Vec::<String>::new());
    world.arbiters[0] = None;
    world.run(10_000);
    assert_eq!(world.tables.last().unwrap().uids, 0..=40 * SIZE - 1);
}
