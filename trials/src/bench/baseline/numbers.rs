//! A bare `fetch_add` on random places of an array: what handing out numbers costs at the very least.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// The array.
pub(crate) struct Numbers(Vec<AtomicU64>);

impl Numbers {
    /// One number for each of `uids`, every page touched.
    pub(crate) fn new(uids: u32) -> Numbers {
        Numbers((0..uids).map(|_| AtomicU64::new(1)).collect())
    }

    /// The next number of a uid.
    pub(crate) fn next(&self, uid: u32) -> u64 {
        self.0[uid as usize].fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Numbers a second over `threads` threads, `each` of them a thread, of random uids below `uids`. Each number is used: who asks for
/// one wants it, and where it is dropped the compiler leaves out a part of the work.
pub(crate) fn rate(threads: u32, each: u32, uids: u32, next: impl Fn(u32) -> u64 + Sync) -> f64 {
    let began = Instant::now();
    thread::scope(|scope| {
        for thread in 0..threads {
            let next = &next;
            scope.spawn(move || {
                // xorshift: a generator that costs nothing beside what is measured.
                let mut state = 0x9E37_79B9_7F4A_7C15_u64 ^ (u64::from(thread) << 40);
                for _ in 0..each {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    black_box(next(((u128::from(state) * u128::from(uids)) >> 64) as u32));
                }
            });
        }
    });
    f64::from(each) * f64::from(threads) / began.elapsed().as_secs_f64()
}
