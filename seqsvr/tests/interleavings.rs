//! Every interleaving of a few threads on the memory of the allocator. The very sources of the crate are
//! compiled here against a model checker's types, with pages of two uids and leaves of two pages.

#[path = "../src/alloc/pages.rs"]
#[allow(dead_code, reason = "compiled for the interleavings alone")]
mod pages;
#[path = "../src/alloc/section.rs"]
#[allow(dead_code, reason = "compiled for the interleavings alone")]
mod section;
#[path = "../src/alloc/space.rs"]
#[allow(dead_code, reason = "compiled for the interleavings alone")]
mod space;
#[path = "../src/alloc/split.rs"]
#[allow(dead_code, reason = "compiled for the interleavings alone")]
mod split;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
    pub(crate) use loom::sync::{Mutex, MutexGuard};

    pub(crate) const PAGE_UIDS: usize = 2;
    pub(crate) const LEAF_PAGES: usize = 2;

    /// The distances of a leaf, without huge pages.
    pub(crate) struct Slots([AtomicU32; PAGE_UIDS * LEAF_PAGES]);

    impl Slots {
        pub(crate) fn new() -> Self {
            Self(std::array::from_fn(|_| AtomicU32::new(0)))
        }

        pub(crate) fn all(&self) -> &[AtomicU32; PAGE_UIDS * LEAF_PAGES] {
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

use pages::WIDE;
use section::Rules;
use space::{Advance, Space, Take};
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

/// Takes as callers do: within the room of the page, else with care.
fn take(space: &Space, uid: u32, count: u32) -> Take {
    match space.take_within_room(uid, count) {
        Some(last) => Take::Granted { last, ahead: None },
        None => space.take(uid, count),
    }
}

fn last(take: Take) -> Option<u64> {
    match take {
        Take::Granted { last, .. } => Some(last),
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
            (Take::Granted { last: 102, .. }, Some(103)) => {}
            (Take::Raise { to: 105 }, None | Some(102)) => {}
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
fn a_closed_section_gives_no_room_again_even_to_a_late_taker() {
    loom::model(|| {
        let space = space(110);
        let taker = spawn(&space, |space| last(take(space, 0, 1)));
        space.close(0..=0);
        assert!(matches!(taker.join().unwrap(), None | Some(101)));
        assert_eq!(take(&space, 0, 1), Take::Closed);
        assert_eq!(take(&space, 1, 1), Take::Closed);
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

#[test]
fn two_takers_that_outgrow_32_bits_together_never_share_a_number() {
    bounded(2, || {
        let far = 100 + u64::from(WIDE);
        let space = space(far + 10);
        assert_eq!(space.advance(0, far - 2), Advance::Done);
        let other = spawn(&space, |space| [0; 2].map(|_| last(take(space, 0, 1)).unwrap()));
        let mine = [0; 2].map(|_| last(take(&space, 0, 1)).unwrap());
        let theirs = other.join().unwrap();
        assert!(mine.is_sorted_by(|a, b| a < b) && theirs.is_sorted_by(|a, b| a < b));
        assert!(mine.iter().all(|number| !theirs.contains(number) && *number > far - 2));
        assert_eq!(space.allocated(), 4);
    });
}
