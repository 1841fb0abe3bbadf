//! The client's memory of the numbers that it was given, to notice a service that goes back. One table for each Set, of fixed size; the
//! peers' streams look into it when a question leaves and when its answer comes.

/// Uids that share a bucket.
const WAYS: usize = 4;

#[derive(Clone, Copy, Default)]
struct BucketEntry {
    uid: u32,
    /// 0: the entry is free.
    last: u64,
}

/// The largest known number of each of the uids asked for lately. Within a bucket of four the one that was longest not
/// given a number is forgotten first; a forgotten uid is not checked until it gets its next number.
pub struct SeenNumbers {
    buckets: Box<[[BucketEntry; WAYS]]>,
    shift: u32,
}

impl SeenNumbers {
    /// Room for `uids`, rounded up to a power of two, 16 bytes each.
    pub fn new(uids: usize) -> Self {
        let buckets = uids.div_ceil(WAYS).max(2).next_power_of_two();
        let shift = 32 - buckets.trailing_zeros().min(32);
        Self { buckets: vec![[BucketEntry::default(); WAYS]; buckets].into(), shift }
    }

    /// The largest number known for `uid`; 0 when none is.
    #[inline]
    pub(crate) fn last(&self, uid: u32) -> u64 {
        let bucket = &self.buckets[self.bucket(uid)];
        bucket.iter().find(|entry| entry.uid == uid && entry.last != 0).map_or(0, |entry| entry.last)
    }

    /// Notes that `number` arrived for `uid`.
    #[inline]
    pub(crate) fn note(&mut self, uid: u32, number: u64) {
        let bucket = &mut self.buckets[self.bucket(uid)];
        let found = bucket.iter().position(|entry| entry.uid == uid && entry.last != 0);
        let known = found.map_or(0, |at| bucket[at].last);
        bucket[..=found.unwrap_or(WAYS - 1)].rotate_right(1);
        bucket[0] = BucketEntry { uid, last: number.max(known) };
    }

    fn bucket(&self, uid: u32) -> usize {
        // Multiplying by an odd number spreads adjacent uids over the upper bits.
        (uid.wrapping_mul(0x9E37_79B1) >> self.shift) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_number_is_remembered_whatever_the_order_of_arrival() {
        let mut seen = SeenNumbers::new(1_000);
        assert_eq!(seen.last(7), 0);
        seen.note(7, 12);
        seen.note(7, 11);
        assert_eq!((seen.last(7), seen.last(8), seen.last(0)), (12, 0, 0));
    }

    #[test]
    fn a_full_bucket_forgets_who_was_quiet_longest() {
        let mut seen = SeenNumbers::new(8);
        let together: Vec<u32> = (0..).filter(|&uid| seen.bucket(uid) == 0).take(5).collect();
        for &uid in &together[..4] {
            seen.note(uid, 1);
        }
        seen.note(together[0], 2);
        seen.note(together[4], 3);
        let left: Vec<u64> = together.iter().map(|&uid| seen.last(uid)).collect();
        assert_eq!(left, [2, 0, 1, 1, 3]);
    }

    #[test]
    fn every_uid_finds_its_bucket() {
        for uids in [1, 8, 1 << 18] {
            let mut seen = SeenNumbers::new(uids);
            for uid in [0, 1, 99_999, u32::MAX] {
                seen.note(uid, 5);
                assert_eq!(seen.last(uid), 5);
            }
        }
    }
}
