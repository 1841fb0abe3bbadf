//! Threads for pictures: a few at a time, each for one picture, behind all else that the machine has to do.

use std::num::NonZero;
use std::sync::{Arc, LazyLock};
use std::thread::{self, available_parallelism};

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// How much later than others these threads get a processor.
const NICE: i32 = 10;

/// Memory of all pictures that are decoded at a time, in KiB: two of the largest.
const MEMORY_KIB: u32 = 512 << 10;

/// One for two processors.
static PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let processors = available_parallelism().map_or(1, NonZero::get);
    Arc::new(Semaphore::new((processors / 2).max(1)))
});

static MEMORY: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(MEMORY_KIB as usize)));

/// The memory that the works share.
pub(super) struct Memory(Handle);

/// So much of it, until it is dropped.
pub(super) struct Held {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Memory {
    /// Waits until so many bytes are there.
    pub(super) fn take(&self, bytes: u64) -> Held {
        let kib = u32::try_from(bytes >> 10).unwrap_or(u32::MAX).min(MEMORY_KIB);
        let permit = self.0.block_on(Arc::clone(&MEMORY).acquire_many_owned(kib));
        Held { _permit: permit.ok() }
    }
}

/// One of the places for a thread.
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
}

impl Place {
    /// Waits for one.
    pub(super) async fn wait() -> Place {
        Place { _permit: Arc::clone(&PLACES).acquire_owned().await.expect("never closed") }
    }

    /// Carries out `work` in a thread of its own. `None`: it panicked, or there is no thread to be had.
    pub(super) async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce(&Memory) -> T + Send + 'static,
    ) -> Option<T> {
        let memory = Memory(Handle::current());
        let (done, told) = oneshot::channel();
        let thread = move || {
            // Where that is not allowed it has the rank of others.
            _ = rustix::process::nice(NICE);
            // Nobody waits any more, if the server stops.
            _ = done.send(work(&memory));
            drop(self);
        };
        thread::Builder::new().name("picture".to_owned()).spawn(thread).ok()?;
        told.await.ok()
    }
}
