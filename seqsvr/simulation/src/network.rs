//! The network between the processes: each packet by itself may be late, lost, doubled and overtaken, and whole ways may be cut,
//! each direction for itself.

use std::collections::{BTreeMap, BTreeSet};

use super::chance::Chance;
use super::{At, MICRO, MILLI, Place};

/// How the network treats packets.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    /// How many of a thousand are lost.
    pub(crate) lost: u64,
    /// How many of a thousand arrive twice.
    pub(crate) doubled: u64,
    /// How many of a thousand take up to `late` instead of a millisecond.
    pub(crate) delayed: u64,
    /// The longest way, nanoseconds.
    pub(crate) late: At,
    cuts: BTreeSet<(Place, Place)>,
    /// How much longer single ways take, at most.
    slow: BTreeMap<(Place, Place), At>,
}

impl Network {
    /// Nothing but short ways of different length.
    pub(crate) fn calm() -> Self {
        Self { lost: 0, doubled: 0, delayed: 0, late: MILLI, cuts: BTreeSet::new(), slow: BTreeMap::new() }
    }

    /// Nothing goes from `from` to `to` any more.
    pub(crate) fn cut(&mut self, from: Place, to: Place) {
        self.cuts.insert((from, to));
    }

    /// Packets from `from` to `to` take up to `longer` more.
    pub(crate) fn slow(&mut self, from: Place, to: Place, longer: At) {
        self.slow.insert((from, to), longer);
    }

    /// Everything goes there again, as fast as elsewhere.
    pub(crate) fn mend(&mut self, from: Place, to: Place) {
        self.cuts.remove(&(from, to));
        self.slow.remove(&(from, to));
    }

    /// How long each copy of a packet is on its way: none if it is lost.
    pub(crate) fn ways(&self, chance: &mut Chance, from: Place, to: Place) -> Vec<At> {
        if self.cuts.contains(&(from, to)) || chance.permille(self.lost) {
            return Vec::new();
        }
        let copies = if chance.permille(self.doubled) { 2 } else { 1 };
        let longer = self.slow.get(&(from, to)).copied();
        let longer = |chance: &mut Chance| longer.map_or(0, |longer| chance.between(0..longer));
        (0..copies).map(|_| self.way(chance) + longer(chance)).collect()
    }

    fn way(&self, chance: &mut Chance) -> At {
        let longest = if chance.permille(self.delayed) { self.late.max(MILLI) } else { MILLI };
        chance.between(50 * MICRO..longest)
    }
}
