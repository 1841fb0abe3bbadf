//! A keyed permutation of 0 to n - 1 for any n, pure: a Feistel network over a grid of about √n by √n, walked
//! until it ends inside. The grid has less than √n cells too many, so a second step is rare. Stored in every
//! code: neither the rounds nor the derivation of their keys may ever change.

use sha2::{Digest, Sha256};

/// Half the halves are mixed into the other half this often. Stored, must stay stable.
const ROUNDS: usize = 8;

/// The permutation of one range by one key.
#[derive(Clone)]
pub(super) struct Permutation {
    size: u64,
    /// Cells of the grid: `rows * columns >= size`, both at most 2^32.
    rows: u64,
    columns: u64,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The permutation of `size` numbers (1 to 2^63) by `secret`; `context` makes those of different uses differ.
    pub(super) fn new(size: u64, secret: &[u8], context: &[u8]) -> Self {
        let root = size.isqrt();
        let rows = if root * root == size { root } else { root + 1 };
        let columns = size.div_ceil(rows);
        let mut keys = [0; ROUNDS];
        for (block, keys) in (0_u8..).zip(keys.chunks_mut(4)) {
            let mut hash = Sha256::new();
            hash.update(b"seqsvr scramble 1");
            // Lengths first, so that no two inputs run into the same bytes.
            hash.update((secret.len() as u64).to_be_bytes());
            hash.update(secret);
            hash.update((context.len() as u64).to_be_bytes());
            hash.update(context);
            hash.update(size.to_be_bytes());
            hash.update([block]);
            for (key, bytes) in keys.iter_mut().zip(hash.finalize().chunks_exact(8)) {
                *key = u64::from_be_bytes(bytes.try_into().expect("chunks of eight bytes"));
            }
        }
        Self { size, rows, columns, keys }
    }

    /// Where `number`, below the size, goes.
    pub(super) fn forward(&self, number: u64) -> u64 {
        let mut at = number;
        loop {
            let (mut row, mut column) = (at / self.columns, at % self.columns);
            for pair in self.keys.chunks_exact(2) {
                row = add(row, shift(column, pair[0], self.rows), self.rows);
                column = add(column, shift(row, pair[1], self.columns), self.columns);
            }
            at = row * self.columns + column;
            if at < self.size {
                return at;
            }
        }
    }

    /// Which number goes to `place`, below the size.
    pub(super) fn backward(&self, place: u64) -> u64 {
        let mut at = place;
        loop {
            let (mut row, mut column) = (at / self.columns, at % self.columns);
            for pair in self.keys.chunks_exact(2).rev() {
                column = subtract(column, shift(row, pair[1], self.columns), self.columns);
                row = subtract(row, shift(column, pair[0], self.rows), self.rows);
            }
            at = row * self.columns + column;
            if at < self.size {
                return at;
            }
        }
    }
}

/// By how far one half moves the other, below `modulus` (at most 2^32): a mix of 64 bits, brought into range by its
/// upper half, which costs a multiplication instead of a division.
fn shift(half: u64, key: u64, modulus: u64) -> u64 {
    let mut mixed = (half ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (((mixed ^ (mixed >> 32)) & 0xffff_ffff) * modulus) >> 32
}

fn add(half: u64, by: u64, modulus: u64) -> u64 {
    let sum = half + by;
    if sum >= modulus { sum - modulus } else { sum }
}

fn subtract(half: u64, by: u64, modulus: u64) -> u64 {
    if half >= by { half - by } else { half + modulus - by }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_ranges_are_permuted_exactly() {
        for size in (1..200).chain([1_000, 4_095, 4_096, 4_097, 58 * 58 * 58]) {
            let permutation = Permutation::new(size, b"a key of sixteen", b"t");
            let mut seen = vec![false; size as usize];
            for number in 0..size {
                let place = permutation.forward(number);
                assert!(!std::mem::replace(&mut seen[place as usize], true), "{size}: {place} twice");
                assert_eq!(permutation.backward(place), number);
            }
        }
    }

    #[test]
    fn neighbours_land_far_apart_and_every_part_of_the_range_is_reached() {
        let size = 1_000_000;
        let permutation = Permutation::new(size, b"a key of sixteen", b"t");
        let places: Vec<u64> = (0..10_000).map(|number| permutation.forward(number)).collect();
        let mut tenths = [0; 10];
        places.iter().for_each(|place| tenths[(place / (size / 10)) as usize] += 1);
        // 1,000 expected in each; 5 standard deviations are 150.
        assert!(tenths.iter().all(|&count| (850..1_150).contains(&count)), "{tenths:?}");
        let near = places.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 1_000).count();
        assert!(near < 60, "20 expected: {near}");
        let rising = places.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((4_700..5_300).contains(&rising), "{rising}");
    }

    #[test]
    fn stored_codes_stay_what_they_are() {
        let permutation = Permutation::new(58_u64.pow(6), b"a key of sixteen", b"t");
        let places: Vec<u64> = (0..4).map(|number| permutation.forward(number)).collect();
        assert_eq!(places, STORED);
    }

    /// Written down once; a change of these breaks every code that was ever given away.
    const STORED: [u64; 4] = [14_507_697_072, 2_870_948_762, 1_322_697_447, 23_892_880_865];

    proptest! {
        #[test]
        fn backward_undoes_forward(size in 1_u64..=1 << 63, number: u64, secret: [u8; 16]) {
            let permutation = Permutation::new(size, &secret, b"t");
            let number = number % size;
            let place = permutation.forward(number);
            prop_assert!(place < size);
            prop_assert_eq!(permutation.backward(place), number);
        }

        #[test]
        fn another_key_use_or_size_gives_another_order(secret: [u8; 16], other: [u8; 16]) {
            prop_assume!(secret != other);
            let order = |size, secret: &[u8], context: &[u8]| {
                let permutation = Permutation::new(size, secret, context);
                (0..8).map(|number| permutation.forward(number)).collect::<Vec<_>>()
            };
            let one = order(1 << 40, &secret, b"t");
            prop_assert_ne!(&one, &order(1 << 40, &other, b"t"));
            prop_assert_ne!(&one, &order(1 << 40, &secret, b"u"));
            prop_assert_ne!(&one, &order((1 << 40) + 1, &secret, b"t"));
        }
    }
}
