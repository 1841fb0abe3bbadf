//! One step of a tag's hash: pure, over what the hash holds. The script in `hash` does the same inside Redis; this one
//! decides where scripts are forbidden, and says what the fields mean.

use std::time::Duration;

use crate::range::Range;

/// The fields, in the order in which they are read. Stored, must stay stable.
pub(super) const FIELDS: [&str; 9] =
    ["life", "cur", "max", "mark", "next_life", "next_cur", "next_max", "since", "lasted"];

/// The names of a tag's keys, and how long a claim lasts.
#[derive(Clone)]
pub(super) struct Keys {
    pub(super) hash: String,
    /// In the same slot of a Redis cluster.
    pub(super) claim: String,
    pub(super) claim_ms: u64,
}

/// The contents of the hash. Numbers up to `cur` are taken, those up to `max` may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StoredHash {
    /// The life of Redis that it belongs to; in another one it counts as empty.
    pub(super) life: Option<String>,
    pub(super) cur: u64,
    pub(super) max: u64,
    /// From here on the next segment is prepared.
    pub(super) mark: u64,
    /// The segment that follows: the life in which it was asked for, the number before its first, and its last.
    pub(super) next: Option<(String, u64, u64)>,
    /// When this segment was begun, and how long the one before it lasted: ms of Redis's clock.
    pub(super) since: Option<u64>,
    pub(super) lasted: Option<u64>,
}

/// A caller's request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    /// How many numbers, 1 or more.
    pub(super) count: u64,
    /// All above this one.
    pub(super) floor: u64,
    /// The percent of a segment that is used when the next is prepared.
    pub(super) prepare_at: u8,
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// The caller's numbers; `None`: there are none that it may have.
    pub(super) taken: Option<Range>,
    /// The next segment must be prepared, by the process that gets the claim.
    pub(super) wants: bool,
}

/// The result of a step in Redis, for its caller.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HashStep {
    /// The caller's numbers, at most as many as were asked for; `None`: there are none that it may have.
    pub(super) taken: Option<Range>,
    /// How many numbers are left of the segment.
    pub(super) left: u64,
    /// How many numbers the one that follows has; 0: none is there.
    pub(super) ahead: u64,
    /// The caller alone takes a segment, and installs it.
    pub(super) claim: Option<Claim>,
}

/// Leave to prepare the next segment, for as long as the claim lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    /// The life of Redis in which it was given.
    pub(super) life: String,
    /// How long the segment before this one lasted.
    pub(super) lasted: Option<Duration>,
}

impl StoredHash {
    /// Reads the answer to HMGET of [`FIELDS`]; a field that is no number counts as absent.
    pub(super) fn read(fields: [Option<String>; 9]) -> Self {
        let [life, cur, max, mark, next_life, next_cur, next_max, since, lasted] = fields;
        let number = |field: Option<String>| field.and_then(|text| text.parse::<u64>().ok());
        let max = number(max).unwrap_or_default();
        let next = next_life.zip(number(next_cur)).zip(number(next_max));
        Self {
            life,
            cur: number(cur).unwrap_or_default(),
            max,
            mark: number(mark).unwrap_or(max),
            next: next.map(|((life, cur), max)| (life, cur, max)),
            since: number(since),
            lasted: number(lasted),
        }
    }

    /// The fields that HSET must write into an empty hash.
    pub(super) fn fields(&self) -> Vec<(&'static str, String)> {
        let (life, next) = (self.life.clone(), self.next.clone());
        let (next_life, next_range) =
            next.map_or((None, None), |(life, cur, max)| (Some(life), Some((cur, max))));
        let number = |number: u64| Some(number.to_string());
        let values = [
            life,
            number(self.cur),
            number(self.max),
            number(self.mark),
            next_life,
            next_range.and_then(|(cur, _)| number(cur)),
            next_range.and_then(|(_, max)| number(max)),
            self.since.and_then(number),
            self.lasted.and_then(number),
        ];
        FIELDS.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// Whether the next segment is one that may follow: asked for in this life, and still above.
    pub(super) fn next_is_good(&self, floor: u64) -> bool {
        let good = |(life, cur, _): &(String, u64, u64)| {
            self.life.as_ref() == Some(life) && *cur >= self.max && *cur >= floor
        };
        self.next.as_ref().is_some_and(good)
    }

    /// Numbers of the segment that follows.
    pub(super) fn ahead(&self, floor: u64) -> u64 {
        let next = self.next.as_ref().filter(|_| self.next_is_good(floor));
        next.map_or(0, |(_, cur, max)| max.saturating_sub(*cur))
    }

    /// Takes a step, in this life of Redis, at this time of its clock.
    pub(super) fn turn(&mut self, life: &str, ask: &Ask, now: u64) -> Turn {
        if self.life.as_deref() != Some(life) {
            *self = Self { life: Some(life.to_owned()), ..Self::default() };
        }
        if (self.cur >= self.max || self.cur < ask.floor)
            && self.next_is_good(ask.floor)
            && let Some((_, cur, max)) = self.next.take()
        {
            let before_mark = u128::from(max - cur) * u128::from(ask.prepare_at) / 100;
            self.lasted = self.since.map(|since| now.saturating_sub(since));
            (self.cur, self.max, self.since) = (cur, max, Some(now));
            self.mark = cur + u64::try_from(before_mark).unwrap_or_default();
        }
        let usable = if self.cur >= ask.floor { self.max.saturating_sub(self.cur) } else { 0 };
        let count = ask.count.min(usable);
        let taken = (count > 0).then(|| Range { first: self.cur + 1, last: self.cur + count });
        self.cur += count;
        Turn { taken, wants: self.wants(taken, ask.floor) }
    }

    /// Whether the next segment must be prepared, now that these numbers were taken.
    pub(super) fn wants(&self, taken: Option<Range>, floor: u64) -> bool {
        taken.is_none_or(|taken| taken.last >= self.mark) && !self.next_is_good(floor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ask(count: u64, floor: u64) -> Ask {
        Ask { count, floor, prepare_at: 20 }
    }

    fn with_next(life: &str, first: u64, last: u64) -> StoredHash {
        StoredHash { next: Some((life.to_owned(), first - 1, last)), ..stored() }
    }

    /// 1 to 100, of which 30 are taken.
    fn stored() -> StoredHash {
        StoredHash {
            life: Some("a".to_owned()),
            cur: 30,
            max: 100,
            mark: 20,
            since: Some(5),
            ..StoredHash::default()
        }
    }

    #[test]
    fn a_used_up_segment_is_followed_by_the_next_one_that_is_above() {
        let mut hash = StoredHash { cur: 100, ..with_next("a", 101, 200) };
        let turn = hash.turn("a", &ask(7, 100), 65);
        assert_eq!(turn, Turn { taken: Some(Range { first: 101, last: 107 }), wants: false });
        assert_eq!((hash.cur, hash.max, hash.mark), (107, 200, 120));
        assert_eq!((hash.since, hash.lasted, hash.next), (Some(65), Some(60), None));
        for (life, first) in [("a", 51), ("old", 101)] {
            let mut hash = StoredHash { cur: 100, ..with_next(life, first, 200) };
            assert_eq!(hash.turn("a", &ask(7, 0), 65), Turn { taken: None, wants: true });
        }
    }

    #[test]
    fn beyond_the_mark_a_next_segment_is_wanted_until_there_is_one() {
        assert!(stored().turn("a", &ask(1, 30), 65).wants);
        assert!(!with_next("a", 101, 200).turn("a", &ask(1, 30), 65).wants);
        assert!(!StoredHash { mark: 90, ..stored() }.turn("a", &ask(1, 30), 65).wants);
    }

    #[test]
    fn a_hash_of_another_life_or_behind_the_caller_gives_nothing() {
        let none = Turn { taken: None, wants: true };
        let mut other = with_next("a", 101, 200);
        assert_eq!(other.turn("b", &ask(1, 0), 65), none);
        assert_eq!(other, StoredHash { life: Some("b".to_owned()), ..StoredHash::default() });
        assert_eq!(stored().turn("a", &ask(1, 31), 65), none);
        assert_eq!(
            with_next("a", 101, 200).turn("a", &ask(1, 50), 65).taken,
            Some(Range::one(101)),
            "the rest of the segment is behind, the next one is not"
        );
    }

    prop_compose! {
        fn any_stored()(
            life in prop::option::of("[ab]"), cur in 0_u64..120, max in 0_u64..100, mark in 0_u64..100,
            next in prop::option::of(("[ab]", 0_u64..150, 1_u64..50)), since in prop::option::of(0_u64..9),
            lasted in prop::option::of(0_u64..9),
        ) -> StoredHash {
            let next = next.map(|(life, cur, count)| (life, cur, cur + count));
            StoredHash { life, cur, max, mark, next, since, lasted }
        }
    }

    proptest! {
        #[test]
        fn numbers_are_above_all_that_were_taken_in_this_life(
            mut hash in any_stored(), floor in 0_u64..120, count in 1_u64..40,
        ) {
            let before = hash.clone();
            let turn = hash.turn("a", &ask(count, floor), 10);
            if let Some(taken) = turn.taken {
                prop_assert!(taken.first > floor && taken.count() <= count && taken.last <= hash.max);
                prop_assert!(before.life.as_deref() == Some("a"));
                prop_assert!(taken.first > before.cur.min(before.max), "{:?}", taken);
                prop_assert_eq!(hash.cur, taken.last);
            }
            prop_assert!(turn.taken.is_some() || turn.wants, "who gets nothing may bring something");
        }

        #[test]
        fn what_is_written_reads_the_same(hash in any_stored()) {
            let written = hash.fields();
            let field = |name| written.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
            prop_assert_eq!(StoredHash::read(FIELDS.map(field)), hash);
        }
    }
}
