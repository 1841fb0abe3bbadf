//! Times polls: how long a task kept the thread that polled it.
//!
//! A thread that the system took from its work for a while would count as one that works on. So what takes long is counted by the time
//! that the thread used of a processor. To ask for that costs as much as a short poll does, and is done [a few thousand times a
//! second](STALE) at most.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::times::Times;

/// A poll that took less is counted by the time that passed.
const LONG: Duration = Duration::from_millis(1);

/// By how much a poll that took longer may be overrated: the time used is read again before a poll when it was read so long ago.
const STALE: Duration = Duration::from_micros(250);

thread_local! {
    static WATCH: Stopwatch<Thread> = const { Stopwatch::new(Thread) };
}

/// A future whose polls are timed.
#[derive(Debug)]
#[must_use]
pub(crate) struct Watched<F> {
    // Boxed, so that it lies in no task twice while it is handed on.
    future: Pin<Box<F>>,
    times: &'static Times,
}

/// Times the polls of `future` as those of `name`, which is one of few.
pub(crate) fn watched<F: Future>(name: &str, future: F) -> Watched<F> {
    Watched { future: Box::pin(future), times: Times::of(name) }
}

impl<F: Future> Future for Watched<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Watched { future, times } = &mut *self;
        WATCH.with(|watch| watch.time(times, || future.as_mut().poll(cx)))
    }
}

/// Carries out what keeps no worker: it does not count for the poll in which it is done.
pub(super) fn excused<T>(work: impl FnOnce() -> T) -> T {
    WATCH.with(|watch| watch.excused(work))
}

/// Tells the time.
trait Clocks {
    /// The time now.
    fn now(&self) -> Duration;
    /// The time that the thread has used of a processor.
    fn used(&self) -> Duration;
}

/// The clocks of the calling thread.
struct Thread;

impl Clocks for Thread {
    fn now(&self) -> Duration {
        told(ClockId::Monotonic)
    }

    fn used(&self) -> Duration {
        told(ClockId::ThreadCPUTime)
    }
}

fn told(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.try_into().unwrap_or_default(), time.tv_nsec.try_into().unwrap_or_default())
}

/// Times the polls of one thread, one within the other.
struct Stopwatch<C> {
    clocks: C,
    /// When the time used was read, and what it was.
    read: Cell<(Duration, Duration)>,
    /// The time that passed, and that was used, for what counts for no poll.
    excused: Cell<(Duration, Duration)>,
}

impl<C> Stopwatch<C> {
    const fn new(clocks: C) -> Stopwatch<C> {
        let none = (Duration::ZERO, Duration::ZERO);
        Stopwatch { clocks, read: Cell::new(none), excused: Cell::new(none) }
    }
}

impl<C: Clocks> Stopwatch<C> {
    fn time<T>(&self, times: &Times, poll: impl FnOnce() -> T) -> T {
        let began = self.clocks.now();
        if began.saturating_sub(self.read.get().0) > STALE {
            self.read.set((began, self.clocks.used()));
        }
        let ((_, used), excused) = (self.read.get(), self.excused.get());
        let done = poll();
        let now_excused = self.excused.get();
        let passed = (self.clocks.now() - began).saturating_sub(now_excused.0 - excused.0);
        times.add(if passed < LONG {
            passed
        } else {
            passed.min((self.clocks.used() - used).saturating_sub(now_excused.1 - excused.1))
        });
        done
    }

    fn excused<T>(&self, work: impl FnOnce() -> T) -> T {
        let began = (self.clocks.now(), self.clocks.used());
        let done = work();
        let (passed, used) = self.excused.get();
        self.excused.set((passed + self.clocks.now() - began.0, used + self.clocks.used() - began.1));
        done
    }
}

#[cfg(test)]
mod tests {
    use super::super::times::BOUNDS;
    use super::*;

    /// Clocks that tests move.
    #[derive(Default)]
    struct Moved {
        now: Cell<Duration>,
        used: Cell<Duration>,
    }

    impl Moved {
        fn work(&self, microseconds: u64) {
            self.used.set(self.used.get() + Duration::from_micros(microseconds));
            self.wait(microseconds);
        }

        fn wait(&self, microseconds: u64) {
            self.now.set(self.now.get() + Duration::from_micros(microseconds));
        }
    }

    impl Clocks for Moved {
        fn now(&self) -> Duration {
            self.now.get()
        }

        fn used(&self) -> Duration {
            self.used.get()
        }
    }

    /// A watch of a thread that has worked for an hour.
    fn watch() -> Stopwatch<Moved> {
        let watch = Stopwatch::new(Moved::default());
        watch.clocks.work(3_600_000_000);
        watch
    }

    /// The place of `microseconds` among the counts.
    fn place(microseconds: u64) -> usize {
        BOUNDS.partition_point(|bound| *bound < microseconds as f64 / 1e6)
    }

    /// Which polls were counted, by place.
    fn counted(times: &Times) -> Vec<(usize, u64)> {
        times.counts().into_iter().enumerate().filter(|(_, count)| *count > 0).collect()
    }

    #[test]
    fn a_poll_that_works_long_is_counted_by_what_it_used() {
        let (watch, times) = (watch(), Times::default());
        watch.time(&times, || watch.clocks.work(5_000));
        assert_eq!((counted(&times), times.sum()), (vec![(place(5_000), 1)], Duration::from_millis(5)));
    }

    #[test]
    fn a_thread_that_was_taken_from_its_work_did_not_work() {
        let (watch, times) = (watch(), Times::default());
        watch.time(&times, || {
            watch.clocks.work(300);
            watch.clocks.wait(50_000);
        });
        assert_eq!(counted(&times), [(place(300), 1)]);
    }

    #[test]
    fn what_the_thread_used_shortly_before_overrates_a_long_poll_by_little() {
        let (watch, times) = (watch(), Times::default());
        for _ in 0..100 {
            watch.time(&times, || watch.clocks.work(100));
        }
        watch.time(&times, || {
            watch.clocks.work(2_500);
            watch.clocks.wait(50_000);
        });
        let longest = times.sum() - Duration::from_micros(100 * 100);
        assert!((2_500..=2_500 + 250).contains(&longest.as_micros()), "{longest:?}");
    }

    #[test]
    fn a_poll_within_another_counts_for_both_and_what_is_done_aside_for_none() {
        let (watch, outer, inner) = (watch(), Times::default(), Times::default());
        watch.time(&outer, || {
            watch.clocks.work(1_000);
            watch.time(&inner, || {
                watch.excused(|| watch.clocks.work(90_000));
                watch.clocks.work(2_000);
            });
        });
        assert_eq!((inner.sum(), outer.sum()), (Duration::from_millis(2), Duration::from_millis(3)));
    }

    #[tokio::test]
    async fn each_poll_of_a_watched_future_is_counted_under_its_name() {
        let polled_twice = watched("a test of watched futures", tokio::task::yield_now());
        polled_twice.await;
        assert_eq!(Times::of("a test of watched futures").counts().iter().sum::<u64>(), 2);
    }
}
