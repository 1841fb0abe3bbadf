//! Append and fdatasync: what a durable write costs on this file system at the very least.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use hdrhistogram::Histogram;

use crate::Result;

/// Appends `count` blocks of `bytes` to a fresh file, syncing each; nanoseconds.
pub(crate) fn append_and_sync(folder: &Path, count: usize, bytes: usize) -> Result<Histogram<u64>> {
    let mut file = File::create(folder.join("appended"))?;
    let block = vec![b'x'; bytes];
    let mut times = Histogram::new(3)?;
    for _ in 0..count {
        let began = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        times.record(began.elapsed().as_nanos() as u64)?;
    }
    Ok(times)
}

/// Messages a second when `each` of 200 bytes share one sync: the disk's own group commit.
pub(crate) fn group_commit(folder: &Path, syncs: usize, each: usize) -> Result<f64> {
    let began = Instant::now();
    append_and_sync(folder, syncs, each * 200)?;
    Ok((syncs * each) as f64 / began.elapsed().as_secs_f64())
}
