//! From start to stop: the runtime, and the signals that end it.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Threads for work that blocks: hashing, files. Each limit above them is smaller.
const BLOCKING_THREADS: usize = 64;

/// The runtime that everything runs on.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().max_blocking_threads(BLOCKING_THREADS).build()
}

/// Lets the process hold as many files, and so connections, as the system allows it; the usual first limit is 1,024.
/// Says how many that are. `None`: as many as there are.
pub fn allow_many_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit { current: limit.maximum, ..limit };
    // Where it is refused the old limit stays, and connections beyond it wait.
    let _ = setrlimit(Resource::Nofile, most);
    getrlimit(Resource::Nofile).current
}

/// SIGTERM and SIGINT: both ask for a stop in good order.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Takes the signals from the system: from now on they no longer end the process by themselves.
    pub fn listen() -> io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for one of them.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
