//! After a move of uids the arbiters are restarted with the uids that the Set has now, and the table follows.

use super::*;
use seqsvr_core::store::configuration::Bounds;

impl ArbiterWorld {
    /// The lease and the uids that a read tells, where a configuration is stored.
    pub(super) fn bounds(&self) -> Option<Bounds> {
        let uids = self.uids.clone()?;
        Some(Bounds { lease: TAKEOVER, uids })
    }
}

/// All arbiters are restarted with these uids, the Set's own, in their files.
fn restart(world: &mut ArbiterWorld, uids: RangeInclusive<u32>) {
    world.uids = Some(uids.clone());
    for number in 0..2 {
        let mut rules = rules(number);
        rules.seed.uids = uids.clone();
        world.arbiters[usize::from(number)] = Some(Arbiter::new(rules));
        world.tell(number.into(), ArbiterEvent::Start);
    }
    world.run(10_000);
}

#[test]
fn uids_that_the_set_gave_away_leave_the_table_and_those_that_it_took_in_are_given_out() {
    let mut world = ArbiterWorld::new(2);
    world.run(300);
    let epochs = |table: &Table| {
        (0..20).map(|one| table.owner(SectionId::new(one)).unwrap().epoch).collect::<Vec<_>>()
    };
    let before = Arc::clone(world.tables.last().unwrap());
    restart(&mut world, 0..=20 * SIZE - 1);
    let less = Arc::clone(world.tables.last().unwrap());
    assert_eq!((less.uids.clone(), less.check()), (0..=20 * SIZE - 1, Ok(())));
    assert!(
        less.version > before.version && epochs(&less) == epochs(&before),
        "the others stay where they are"
    );
    restart(&mut world, 0..=40 * SIZE - 1);
    let more = world.tables.last().unwrap();
    assert_eq!((more.uids.clone(), epochs(more)), (0..=40 * SIZE - 1, epochs(&before)));
    for section in (20..40).map(SectionId::new) {
        assert!(more.owner(section).is_some_and(|one| one.epoch > less.version), "{section} is given anew");
    }
    assert_eq!(world.misfits, Vec::<String>::new());
}

#[test]
fn an_arbiter_whose_file_has_other_uids_than_the_set_says_so() {
    let mut world = ArbiterWorld::new(1);
    world.run(300);
    world.uids = Some(0..=20 * SIZE - 1);
    world.arbiters[0] = Some(Arbiter::new(rules(0)));
    world.tell(0, ArbiterEvent::Start);
    world.run(300);
    assert!(world.misfits[0].contains("uids 0 to 199999"), "{:?}", world.misfits);
}
