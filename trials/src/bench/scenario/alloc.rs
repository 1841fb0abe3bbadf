//! `alloc`: the next number for random uids among ten million touched ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use seqsvr_core::alloc::Embedded;
use seqsvr_core::store::Memory;
use seqsvr_core::{Options, Sequencer, TryNextError, Uid};

use super::Measured;
use crate::Result;
use crate::bench::Context;
use crate::bench::baseline::numbers::{Numbers, rate};
use crate::bench::report::{Sample, Target};

/// Numbers taken by each thread in a run.
const EACH: usize = 8_000_000;
/// Bytes that the processor fetches at a time.
const CACHE_LINE: usize = 64;

pub(super) struct Alloc {
    uids: u32,
    sequencer: Embedded,
    bare: Numbers,
}

impl Measured for Alloc {
    const NAME: &'static str = "alloc";
    const ABOUT: &'static str = "next number for random uids among 10 million, on 1 and 2 threads";

    async fn prepare(context: &Context) -> Result<Self> {
        let uids = context.scaled(10_000_000) as u32;
        let sequencer = Embedded::open(Arc::new(Memory::new()), Options::default()).await?;
        for uid in 0..uids {
            sequencer.next(Uid::new(uid), 1).await?;
        }
        Ok(Alloc { uids, sequencer, bare: Numbers::new(uids) })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let each = context.scaled(EACH) as u32;
        let mut samples = Vec::new();
        for threads in [1, 2] {
            samples.push(self.numbers(threads, each, format!("random uids, threads: {threads}")));
        }
        samples.push(beside_a_walk(context, || {
            self.numbers(1, each, "random uids, beside a walk of 512 MiB".into())
        }));
        Ok(samples)
    }
}

impl Alloc {
    fn numbers(&self, threads: u32, each: u32, metric: String) -> Sample {
        let bare = rate(threads, each, self.uids, |uid| self.bare.next(uid));
        let ours = rate(threads, each, self.uids, |uid| take(&self.sequencer, Uid::new(uid)));
        Sample::new(metric, ours, "numbers/s")
            .against("random fetch_add", bare)
            .target(Target::RatioAtLeast(0.7))
    }
}

/// Measures while another thread writes to a large array from end to end, again and again: what other programs of a busy host do
/// to the shared cache.
fn beside_a_walk(context: &Context, measure: impl FnOnce() -> Sample) -> Sample {
    let mut walked = vec![0_u8; context.scaled(512 << 20)];
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for byte in walked.iter_mut().step_by(CACHE_LINE) {
                    *byte = byte.wrapping_add(1);
                }
                std::hint::black_box(&mut walked);
            }
        });
        let sample = measure();
        done.store(true, Ordering::Relaxed);
        sample
    })
}

/// Takes one number.
#[inline]
fn take(sequencer: &Embedded, uid: Uid) -> u64 {
    match sequencer.try_next(uid, 1) {
        Ok(granted) => granted.last,
        Err(error) => take_later(sequencer, uid, error),
    }
}

/// A window that is not raised yet is waited for, as a caller would.
#[cold]
#[inline(never)]
fn take_later(sequencer: &Embedded, uid: Uid, mut error: TryNextError) -> u64 {
    loop {
        assert_eq!(error, TryNextError::WouldWait, "numbers must not run out");
        thread::yield_now();
        match sequencer.try_next(uid, 1) {
            Ok(granted) => return granted.last,
            Err(again) => error = again,
        }
    }
}
