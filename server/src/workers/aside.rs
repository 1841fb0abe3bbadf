//! Large works, beside the workers.

use std::num::NonZero;
use std::sync::LazyLock;
use std::thread::available_parallelism;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::block_in_place;

use super::watch::excused;

/// Bytes whose work takes some tenths of a millisecond: it is carried out where it is.
const LITTLE: usize = 64 << 10;

/// The cost of a row beside its own bytes, in bytes.
pub(crate) const ROW: usize = 256;

/// One for two processors, so that large works leave some of them to all others.
static PLACES: LazyLock<Semaphore> = LazyLock::new(|| {
    let processors = available_parallelism().map_or(1, NonZero::get);
    Semaphore::new((processors / 2).max(1))
});

/// Carries out `work` on about so many bytes, beside the workers where they are many. Then it waits for its turn: works come in the order
/// of the calls.
pub(crate) async fn aside<T>(bytes: usize, work: impl FnOnce() -> T + Send) -> T {
    if bytes <= LITTLE || !has_workers() {
        return work();
    }
    let _place = PLACES.acquire().await.expect("never closed");
    // The tasks that wait for this worker go to another thread meanwhile.
    excused(|| block_in_place(work))
}

/// The same at once: for a work that others wait for in a line of their own.
pub(crate) fn aside_at_once<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes <= LITTLE || !has_workers() { work() } else { excused(|| block_in_place(work)) }
}

/// Whether the runtime has workers that could stand in. That of most tests has one thread.
fn has_workers() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn on_a_runtime_of_one_thread_all_is_done_where_it_is() {
        assert_eq!(aside(usize::MAX, || 7).await, 7);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn large_works_take_turns_and_keep_no_worker() {
        let (at_once, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (told, heard) = std::sync::mpsc::channel();
        let (begun, begins) = tokio::sync::oneshot::channel();
        // A work that ends only when another task has run, on however few workers.
        let waiting = tokio::spawn(aside(usize::MAX, move || {
            begun.send(()).expect("somebody waits");
            heard.recv_timeout(Duration::from_secs(20)).expect("told by a task")
        }));
        begins.await.expect("it begins");
        let others = (0..8).map(|_| tokio::spawn(async { tokio::task::yield_now().await }));
        join_all(others).await.into_iter().for_each(|done| done.expect("it runs"));
        told.send(5).expect("the work waits");
        assert_eq!(waiting.await.expect("it ends"), 5);
        let works = (0..8).map(|_| {
            aside(usize::MAX, || {
                most.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::yield_now();
                at_once.fetch_sub(1, Ordering::SeqCst);
            })
        });
        join_all(works).await;
        assert!(most.into_inner() <= available_parallelism().map_or(1, NonZero::get).div_ceil(2));
    }
}
