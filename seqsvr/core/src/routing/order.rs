//! The order in which the AllocSvrs of a standby Set serve (S10): clients and the arbiter work it out alike, each from the names that it is
//! configured with, so that a client finds the serving node with at most one wasted request after a switch. Pure; the numbers that it
//! yields must stay stable, since the two ends may be of different releases.

use std::ops::RangeInclusive;

use crate::ids::SectionId;

/// The most slices that the sections of a Set are cut into; bounds the table of a Set that is ordered by hash.
pub const SLICES: u32 = 256;

/// The order of the nodes of a standby Set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// As the configuration lists them: the whole Set on one node.
    List,
    /// By consistent hash of the slice and the name: each slice has its own order, and a node that comes or goes
    /// changes nothing in the order of the others.
    Hash,
}

impl Order {
    /// In which slice `section` of a Set of `sections` lies: adjacent sections share one, and with it their order.
    pub fn slice(sections: &RangeInclusive<SectionId>, section: SectionId) -> u32 {
        let count = u64::from(sections.end().get() - sections.start().get()) + 1;
        let index = u64::from(section.get().saturating_sub(sections.start().get())).min(count - 1);
        let slices = count.min(u64::from(SLICES));
        (index * slices / count) as u32
    }

    /// The indexes of `names`, the one that should serve `slice` first at the front. When a node dies, the one behind it takes
    /// over; behind the last comes the first.
    pub fn of(self, slice: u32, names: &[&str]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..names.len()).collect();
        if self == Order::Hash {
            order.sort_by_key(|&index| (std::cmp::Reverse(weight(slice, names[index])), names[index]));
        }
        order
    }
}

/// Rendezvous hashing: FNV-1a over the slice and the name, then the finaliser of SplitMix64, since FNV alone leaves the high bits
/// of short inputs alike.
fn weight(slice: u32, name: &str) -> u64 {
    let bytes = slice.to_le_bytes().into_iter().chain(name.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(first: u32, last: u32) -> RangeInclusive<SectionId> {
        SectionId::new(first)..=SectionId::new(last)
    }

    #[test]
    fn the_hash_stays_what_it_is() {
        assert_eq!(weight(0, "alloc-0"), 0xa47e_7285_2d66_a59b);
        assert_eq!(Order::Hash.of(7, &["a", "b", "c"]).len(), 3);
    }

    #[test]
    fn a_list_keeps_its_order() {
        assert_eq!(Order::List.of(3, &["z", "a", "m"]), [0, 1, 2]);
    }

    #[test]
    fn slices_are_even_and_in_order() {
        let sections = set(100, 100 + 42_949);
        let mut sizes = vec![0_u32; SLICES as usize];
        let mut before = 0;
        for section in 100..=100 + 42_949 {
            let slice = Order::slice(&sections, SectionId::new(section));
            assert!(slice == before || slice == before + 1);
            before = slice;
            sizes[slice as usize] += 1;
        }
        assert!(sizes.iter().all(|&size| size == 167 || size == 168), "{sizes:?}");
    }

    #[test]
    fn the_first_places_are_spread_over_the_nodes() {
        let names = ["alloc-0", "alloc-1", "alloc-2"];
        let mut firsts = [0_u32; 3];
        (0..SLICES).for_each(|slice| firsts[Order::Hash.of(slice, &names)[0]] += 1);
        assert!(firsts.iter().all(|&count| (60..=110).contains(&count)), "{firsts:?}");
    }

    proptest! {
        #[test]
        fn a_node_that_goes_changes_nothing_among_the_others(slice in 0..SLICES, gone in 0_usize..5) {
            let names = ["a", "b", "c", "d", "e"];
            let full = Order::Hash.of(slice, &names).into_iter().map(|index| names[index]);
            let without: Vec<&str> = full.filter(|&name| name != names[gone]).collect();
            let left: Vec<&str> = names.into_iter().filter(|&name| name != names[gone]).collect();
            let order: Vec<&str> = Order::Hash.of(slice, &left).into_iter().map(|index| left[index]).collect();
            prop_assert_eq!(order, without);
        }
    }
}
