//! Chance from a seed: the same seed draws the same values on every machine. Each world owns one and everything in it draws
//! from that, in the order of its events.

use std::ops::Range;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt, SeedableRng};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Chance(Xoshiro256PlusPlus);

impl Chance {
    /// Everything that is drawn follows from `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Any number.
    pub(crate) fn number(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number of `range`, which is not empty.
    pub(crate) fn between(&mut self, range: Range<u64>) -> u64 {
        self.0.random_range(range)
    }

    /// An index below `count`, which is not 0.
    pub(crate) fn index(&mut self, count: usize) -> usize {
        self.0.random_range(0..count as u64) as usize
    }

    /// True `share` times in a thousand.
    pub(crate) fn permille(&mut self, share: u64) -> bool {
        self.0.random_range(0..1000u64) < share
    }

    /// One of `choices`, which are not none.
    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.index(choices.len())]
    }

    /// Any order.
    pub(crate) fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.index(last + 1));
        }
    }
}
