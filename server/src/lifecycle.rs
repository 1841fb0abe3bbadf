//! From start to stop: the runtime, and the signals that end it.

use std::io;

pub use tidemark_process::{Signals, allow_many_files};
use tokio::runtime::{Builder, Runtime};

/// Threads for work that blocks: hashing, files, rows of tables in SQLite. Each limit above them is smaller.
const BLOCKING_THREADS: usize = 64;

/// The runtime that everything runs on.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().max_blocking_threads(BLOCKING_THREADS).build()
}
