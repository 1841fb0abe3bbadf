//! Every interleaving of a few threads on the memory of the allocator. The very sources of the crate are
//! compiled here against a model checker's types, with blocks of four numbers, pages of two
//! uids and leaves of two pages.

#[path = "../src/alloc/pages.rs"]
#[allow(dead_code, unreachable_pub, reason = "compiled for the interleavings alone")]
mod pages;
#[path = "../src/alloc/section.rs"]
#[allow(dead_code, unreachable_pub, reason = "compiled for the interleavings alone")]
mod section;
#[path = "../src/alloc/space.rs"]
#[allow(dead_code, unreachable_pub, reason = "compiled for the interleavings alone")]
mod space;
#[path = "../src/alloc/split.rs"]
#[allow(dead_code, unreachable_pub, reason = "compiled for the interleavings alone")]
mod split;

mod sync {
    use loom::sync::atomic::AtomicPtr;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(crate) use loom::sync::{Mutex, MutexGuard};

    pub(crate) const BLOCK: u64 = 4;
    pub(crate) const PAGE_UIDS: usize = 2;
    pub(crate) const LEAF_PAGES: usize = 2;
    pub(crate) const LEAVES: usize = 2;

    /// The pointers to all leaves.
    pub(crate) struct Pointers<T>(Box<[AtomicPtr<T>; LEAVES]>);

    impl<T> Pointers<T> {
        pub(crate) fn new() -> Self {
            Self(Box::new(std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut()))))
        }

        pub(crate) fn all(&self) -> &[AtomicPtr<T>; LEAVES] {
            &self.0
        }
    }

    /// The slots of a leaf, without huge pages. Boxed: they do not move when it does.
    pub(crate) struct Slots(Box<[AtomicU64; PAGE_UIDS * LEAF_PAGES]>);

    impl Slots {
        pub(crate) fn new() -> Self {
            Self(Box::new(std::array::from_fn(|_| AtomicU64::new(0))))
        }

        pub(crate) fn all(&self) -> &[AtomicU64; PAGE_UIDS * LEAF_PAGES] {
            &self.0
        }

        pub(crate) fn page_touched(&self) {}
    }

    /// The standard one, whose promise is kept by a lock that the model checker sees.
    #[derive(Debug)]
    pub(crate) struct OnceLock<T> {
        gate: Mutex<()>,
        value: std::sync::OnceLock<T>,
    }

    impl<T> OnceLock<T> {
        pub(crate) fn new() -> Self {
            Self { gate: Mutex::new(()), value: std::sync::OnceLock::new() }
        }

        pub(crate) fn get(&self) -> Option<&T> {
            let _held = self.gate.lock().expect("no thread panics in the model");
            self.value.get()
        }

        pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
            let _held = self.gate.lock().expect("no thread panics in the model");
            self.value.get_or_init(make)
        }
    }
}

use loom::sync::Arc;
use loom::thread;

use section::Rules;
use space::{Advance, Space, SpaceTake};
use split::{Places, Split};

const RULES: Rules = Rules { step: 4, limit: 1 << 53 };

/// One section of four uids, loaded at 100 and raised to `ceiling`.
fn space(ceiling: u64) -> Arc<Space> {
    let space = Space::new(Split::new(4), RULES, Places::new([0..=0]), vec![100]);
    if ceiling > 100 {
        space.confirm(0, ceiling);
    }
    Arc::new(space)
}

/// Two sections of two uids in one leaf, loaded at 100 and raised to 110.
fn neighbours() -> Arc<Space> {
    let space = Space::new(Split::new(2), RULES, Places::new([0..=1]), vec![100; 2]);
    space.confirm(0, 110);
    space.confirm(1, 110);
    Arc::new(space)
}

/// Takes as callers do: within an open block, else with care.
fn take(space: &Space, uid: u32, count: u32) -> SpaceTake {
    match space.take_open(uid, count) {
        Some(last) => SpaceTake::Granted { last, ahead: None },
        None => space.take(uid, count),
    }
}

fn last(take: SpaceTake) -> Option<u64> {
    match take {
        SpaceTake::Granted { last, .. } => Some(last),
        _ => None,
    }
}

/// Runs `work` in a thread of the model.
fn spawn<T: 'static>(space: &Arc<Space>, work: impl FnOnce(&Space) -> T + 'static) -> thread::JoinHandle<T> {
    let space = Arc::clone(space);
    thread::spawn(move || work(&space))
}

/// Explores all interleavings with up to `preemptions` switches that no thread asked for: where all of them
/// would take hours.
fn bounded(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

#[test]
fn two_first_touches_of_a_page_lose_nothing() {
    loom::model(|| {
        let space = space(110);
        let other = spawn(&space, |space| [last(take(space, 0, 1)), last(take(space, 1, 1))]);
        let mine = last(take(&space, 0, 1));
        let [theirs, neighbour] = other.join().unwrap();
        let mut both = [mine, theirs];
        both.sort();
        assert_eq!(both, [Some(101), Some(102)]);
        assert_eq!(neighbour, Some(101));
        assert_eq!([0, 1, 2].map(|uid| space.current(uid)), [Some(102), Some(101), Some(100)]);
    });
}

#[test]
fn two_takers_at_the_edge_get_exactly_what_is_left() {
    loom::model(|| {
        let space = space(103);
        assert_eq!(last(take(&space, 0, 1)), Some(101));
        let other = spawn(&space, |space| take(space, 0, 2));
        let mine = take(&space, 0, 1);
        let theirs = other.join().unwrap();
        match (last(mine), last(theirs)) {
            (Some(102), None) | (None, Some(103)) => {}
            outcome => panic!("{outcome:?}"),
        }
        assert!(space.current(0) <= Some(103));
    });
}

#[test]
fn three_takers_of_one_uid_never_share_a_number() {
    bounded(2, || {
        let space = space(110);
        take(&space, 0, 1);
        let others = [0, 1].map(|_| spawn(&space, |space| last(take(space, 0, 1))));
        let mut all = vec![last(take(&space, 0, 1))];
        all.extend(others.map(|other| other.join().unwrap()));
        all.sort();
        assert_eq!(all, [Some(102), Some(103), Some(104)]);
    });
}

#[test]
fn a_take_while_a_raise_is_confirmed_sees_the_old_ceiling_or_the_new() {
    loom::model(|| {
        let space = space(101);
        assert_eq!(last(take(&space, 0, 1)), Some(101));
        let taker = spawn(&space, |space| {
            let first = take(space, 0, 1);
            (first, take(space, 0, 1))
        });
        // As the raiser: what was asked for by then, else what was due anyway.
        let to = space.due(0).unwrap_or(105);
        space.confirm(0, to);
        let (first, second) = taker.join().unwrap();
        match (first, last(second)) {
            (SpaceTake::Granted { last: 102, .. }, Some(103)) => {}
            (SpaceTake::Raise { to: 105 }, None | Some(102)) => {}
            outcome => panic!("{outcome:?}"),
        }
        assert!(space.current(0) <= Some(to));
    });
}

#[test]
fn a_section_asked_for_twice_is_announced_once() {
    loom::model(|| {
        let space = space(0);
        let other = spawn(&space, |space| space.want(0, 105));
        let mine = space.want(0, 105);
        assert!(mine != other.join().unwrap());
        assert_eq!(space.due(0), Some(105));
    });
}

#[test]
fn a_closed_section_gives_nothing_even_where_a_block_was_opened_late() {
    loom::model(|| {
        let space = space(110);
        let taker = spawn(&space, |space| last(take(space, 0, 1)));
        space.close(0..=0);
        assert!(matches!(taker.join().unwrap(), None | Some(101)));
        assert_eq!(take(&space, 0, 1), SpaceTake::Closed);
        assert_eq!(take(&space, 1, 1), SpaceTake::Closed);
    });
}

#[test]
fn a_closed_section_gives_nothing_though_a_neighbour_makes_its_leaf() {
    bounded(3, || {
        let space = neighbours();
        let neighbour = spawn(&space, |space| last(take(space, 2, 1)));
        let taker = spawn(&space, |space| last(take(space, 0, 1)));
        space.close(0..=0);
        assert_eq!(take(&space, 0, 1), SpaceTake::Closed);
        assert!(matches!(taker.join().unwrap(), None | Some(101)));
        assert_eq!(take(&space, 0, 1), SpaceTake::Closed);
        assert_eq!(neighbour.join().unwrap(), Some(101));
        assert_eq!([0; 5].map(|_| last(take(&space, 2, 1))), [102, 103, 104, 105, 106].map(Some));
    });
}

#[test]
fn a_ceiling_confirmed_while_its_section_is_closed_gives_nothing() {
    loom::model(|| {
        let space = space(0);
        let raiser = spawn(&space, |space| space.confirm(0, 110));
        space.close(0..=0);
        assert_eq!(take(&space, 0, 1), SpaceTake::Closed);
        raiser.join().unwrap();
        assert_eq!(take(&space, 0, 1), SpaceTake::Closed);
    });
}

#[test]
fn takers_that_leave_a_block_together_get_each_number_once() {
    bounded(3, || {
        let space = space(120);
        assert_eq!(last(take(&space, 0, 2)), Some(102));
        let other = spawn(&space, |space| [2, 1].map(|count| last(take(space, 0, count)).unwrap()));
        let mine = last(take(&space, 0, 1)).unwrap();
        let [pair, single] = other.join().unwrap();
        let mut all = vec![mine, pair - 1, pair, single];
        all.sort();
        assert_eq!(all, [103, 104, 105, 106]);
        assert_eq!(space.allocated(), 6);
    });
}

#[test]
fn a_block_that_reaches_beyond_the_ceiling_is_not_opened() {
    loom::model(|| {
        let space = space(105);
        let raiser = spawn(&space, |space| space.confirm(0, 107));
        let taken = [0; 6].map(|_| last(take(&space, 0, 1)));
        raiser.join().unwrap();
        let granted: Vec<u64> = taken.into_iter().flatten().collect();
        assert!(granted.iter().copied().eq(101..101 + granted.len() as u64), "{granted:?}");
        assert!(granted.len() >= 5, "{granted:?}");
        assert!(space.current(0) <= Some(107));
    });
}

#[test]
fn an_advance_beside_a_take_is_never_undone() {
    bounded(3, || {
        let space = space(110);
        let taker = spawn(&space, |space| last(take(space, 0, 1)));
        assert_eq!(space.advance(0, 105), Advance::Done);
        assert_eq!(last(take(&space, 0, 1)).map(|last| last > 105), Some(true));
        let theirs = taker.join().unwrap();
        assert!(matches!(theirs, Some(101 | 106 | 107)), "{theirs:?}");
        assert_eq!(space.allocated(), 2);
    });
}
