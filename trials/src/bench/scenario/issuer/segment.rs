//! `segment`: numbers of one tag from memory, while its segments come and go, against a bare `fetch_add` on one atomic
//! that the same threads share.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use seqsvr_issuer::{Counter, Issuer, SegmentOptions};

use super::TAG;
use crate::Result;
use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;

/// Numbers taken by each thread in a run.
const EACH: usize = 50_000_000;

pub(in crate::bench::scenario) struct Segment {
    _issuer: Issuer,
    counter: Counter,
}

impl Measured for Segment {
    const NAME: &'static str = "segment";
    const ABOUT: &'static str = "issuer: numbers of one tag from memory, on 1 and 2 threads";

    async fn prepare(_: &Context) -> Result<Self> {
        let default = SegmentOptions::default();
        // A tag as busy as this one has come to its largest step long ago.
        let options = SegmentOptions { step: default.step_max, ..default };
        let issuer = Issuer::builder().segment(TAG, options)?.open().await?;
        let counter = issuer.counter(TAG)?;
        counter.next(1).await?;
        Ok(Segment { _issuer: issuer, counter })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let each = context.scaled(EACH) as u64;
        let bare = AtomicU64::new(0);
        let mut samples = Vec::new();
        for threads in [1, 2] {
            let added = rate(threads, each, || bare.fetch_add(1, Ordering::Relaxed) + 1);
            let taken = rate(threads, each, || take(&self.counter));
            samples.push(
                Sample::new(format!("numbers of one tag, threads: {threads}"), taken, "numbers/s")
                    .against("fetch_add on one atomic", added)
                    .target(Target::RatioAtLeast(0.5)),
            );
        }
        Ok(samples)
    }
}

/// Takes one number. A segment that is not there yet is waited for, as a caller would.
fn take(counter: &Counter) -> u64 {
    loop {
        match counter.try_next() {
            Ok(number) => return number,
            Err(_) => thread::yield_now(),
        }
    }
}

/// Numbers a second over `threads` threads, `each` of them a thread, which sees its own grow.
fn rate(threads: u64, each: u64, next: impl Fn() -> u64 + Sync) -> f64 {
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut last = 0;
                for _ in 0..each {
                    let number = black_box(next());
                    assert!(number > last, "{number} came after {last}");
                    last = number;
                }
            });
        }
    });
    (each * threads) as f64 / began.elapsed().as_secs_f64()
}
