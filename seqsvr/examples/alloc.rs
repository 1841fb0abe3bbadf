//! Measures the hot path as callers take it, through `dyn Sequencer`: the next number for random uids among
//! many touched ones, against a bare random `fetch_add` on an array of as many numbers, in the same run.
//!
//! `cargo run --release -p seqsvr --example alloc [UIDS] [RUNS]`

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use seqsvr::store::Memory;
use seqsvr::{Embedded, Options, Sequencer, TryNextError, Uid};

/// Operations a thread in one measurement.
const OPERATIONS: u32 = 8_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let uids = arguments.next().map_or(Ok(10_000_000), |text| text.parse())?;
    let runs = arguments.next().map_or(Ok(5), |text| text.parse::<usize>())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let sequencer = runtime.block_on(touched(uids))?;
    let array: Vec<AtomicU64> = (0..uids).map(|_| AtomicU64::new(1)).collect();
    for threads in [1, 2] {
        let mut ratios = Vec::new();
        for _ in 0..runs {
            let bare = rate(threads, uids, |uid| {
                array[uid as usize].fetch_add(1, Ordering::Relaxed);
            });
            let ours = rate(threads, uids, |uid| take(&sequencer, Uid::new(uid)));
            ratios.push(ours / bare);
            println!(
                "{threads} threads: {:.1} M/s, bare {:.1} M/s, ratio {:.2}",
                ours / 1e6,
                bare / 1e6,
                ours / bare
            );
        }
        ratios.sort_by(f64::total_cmp);
        println!("{threads} threads: median ratio {:.2}", ratios[runs / 2]);
    }
    println!("{:?}", sequencer.metrics());
    runtime.block_on(sequencer.shutdown());
    Ok(())
}

/// An allocator whose first `uids` uids have all been touched.
async fn touched(uids: u32) -> Result<Embedded, Box<dyn Error>> {
    let sequencer = Embedded::open(Arc::new(Memory::new()), Options::default()).await?;
    for uid in 0..uids {
        sequencer.next(Uid::new(uid), 1).await?;
    }
    Ok(sequencer)
}

/// Takes one number; a window that is not raised yet is waited for, as a caller would.
fn take(sequencer: &dyn Sequencer, uid: Uid) {
    while let Err(error) = sequencer.try_next(uid, 1) {
        assert_eq!(error, TryNextError::WouldWait);
        thread::yield_now();
    }
}

/// Operations a second over `threads` threads, each on its own series of random uids.
fn rate(threads: u32, uids: u32, operation: impl Fn(u32) + Sync) -> f64 {
    let began = Instant::now();
    thread::scope(|scope| {
        for thread in 0..threads {
            let operation = &operation;
            scope.spawn(move || {
                let mut state = 0x9E37_79B9_7F4A_7C15_u64 ^ (u64::from(thread) << 40);
                for _ in 0..OPERATIONS {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    operation(((u128::from(state) * u128::from(uids)) >> 64) as u32);
                }
            });
        }
    });
    f64::from(OPERATIONS * threads) / began.elapsed().as_secs_f64()
}
