//! All counters in memory, by name, and which of them ask for a higher ceiling. Any number of threads take numbers; one,
//! the raiser, writes ceilings. Bounded: so many counters, names so long, and each counter asks once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seqsvr_resp::{Refused, TryTake};
use tokio::sync::watch;
use tokio::time::Instant;

use super::counter::{Counter, LARGEST, Outcome};

/// Counters at most: each takes some 100 bytes of memory beside its name.
pub(super) const MOST_COUNTERS: usize = 4_000_000;
/// Bytes of a name at most.
pub(super) const LONGEST_NAME: usize = 256;

/// Parts, each with a lock of its own.
const SHARDS: usize = 64;

/// The wish of a caller.
#[derive(Clone, Copy, Debug)]
pub(super) enum Want {
    /// So many numbers, 1 or more.
    Next(u64),
    /// To go on above this number.
    To(u64),
}

/// A name with a ceiling.
pub(super) type NamedCeiling = (Box<[u8]>, u64);

#[derive(Debug)]
struct Held {
    counter: Counter,
    /// When its ceiling was raised last.
    raised: Option<Instant>,
}

/// Names whose ceilings must be raised.
#[derive(Debug, Default)]
struct Due {
    names: Vec<Box<[u8]>>,
    closed: bool,
}

/// See the module.
pub(super) struct Book {
    shards: [Mutex<HashMap<Box<[u8]>, Held>>; SHARDS],
    count: AtomicUsize,
    due: Mutex<Due>,
    asked: Condvar,
    closed: AtomicBool,
    /// Changes after each commit, and when the book is closed.
    rounds: watch::Sender<u64>,
    trouble: Mutex<Option<String>>,
}

impl Book {
    /// Counters that stand at these ceilings.
    pub(super) fn new(stored: Vec<NamedCeiling>) -> Self {
        let count = AtomicUsize::new(stored.len());
        let shards: [Mutex<HashMap<Box<[u8]>, Held>>; SHARDS] = std::array::from_fn(|_| Mutex::default());
        for (name, ceiling) in stored {
            let held = Held { counter: Counter::at(ceiling), raised: None };
            locked(&shards[shard(&name)]).insert(name, held);
        }
        Self {
            shards,
            count,
            due: Mutex::default(),
            asked: Condvar::new(),
            closed: AtomicBool::new(false),
            rounds: watch::Sender::new(0),
            trouble: Mutex::new(None),
        }
    }

    /// Takes what is wanted without waiting, and answers with the last number.
    pub(super) fn attempt(&self, name: &[u8], want: Want) -> Result<u64, TryTake> {
        let ever = |why: String| TryTake::Refused(Refused::ever(why));
        let mut shard = locked(&self.shards[shard(name)]);
        // Under the lock: whoever closes the book looks at the counters afterwards.
        if self.closed.load(Ordering::Acquire) {
            return Err(TryTake::Refused(Refused::now("this server is stopping: connect again")));
        }
        let Some(held) = shard.get_mut(name) else {
            if let Want::To(0) = want {
                return Ok(0);
            }
            let mut counter = self.admit(name).map_err(TryTake::Refused)?;
            let count = match want {
                Want::Next(count) | Want::To(count) => count,
            };
            if counter.take(count) == Outcome::Exhausted {
                return Err(ever(format!("numbers end at {LARGEST}, and this request would pass it")));
            }
            counter.asked = true;
            shard.insert(name.into(), Held { counter, raised: None });
            self.count.fetch_add(1, Ordering::Relaxed);
            drop(shard);
            self.ask(name);
            return Err(TryTake::Later);
        };
        let counter = &mut held.counter;
        let count = match want {
            Want::Next(count) => count,
            Want::To(at_least) if at_least < counter.last => {
                let last = counter.last;
                return Err(ever(format!(
                    "the counter stands at {last} and never goes back: INCR takes the next"
                )));
            }
            Want::To(at_least) => at_least - counter.last,
        };
        let (answer, ask) = match counter.take(count) {
            Outcome::Given { last, ahead } => (Ok(last), ahead),
            Outcome::Wait => (Err(TryTake::Later), true),
            Outcome::Exhausted => {
                return Err(ever(format!("numbers end at {LARGEST}, and this request would pass it")));
            }
        };
        let ask = ask && !std::mem::replace(&mut counter.asked, true);
        drop(shard);
        if ask {
            self.ask(name);
        }
        answer
    }

    /// Asks for the ceiling that these numbers will need.
    pub(super) fn expect(&self, name: &[u8], count: u64) {
        let mut shard = locked(&self.shards[shard(name)]);
        let held = match shard.get_mut(name) {
            Some(held) => held,
            None => {
                let Ok(counter) = self.admit(name) else { return };
                self.count.fetch_add(1, Ordering::Relaxed);
                shard.entry(name.into()).or_insert(Held { counter, raised: None })
            }
        };
        let ask = held.counter.expect(count) && !std::mem::replace(&mut held.counter.asked, true);
        drop(shard);
        if ask {
            self.ask(name);
        }
    }

    /// A new counter, if there may be one of this name.
    fn admit(&self, name: &[u8]) -> Result<Counter, Refused> {
        if name.is_empty() || name.len() > LONGEST_NAME {
            let long = name.len();
            return Err(Refused::ever(format!("a key has 1 to {LONGEST_NAME} bytes, and this one {long}")));
        }
        if self.count.load(Ordering::Relaxed) >= MOST_COUNTERS {
            return Err(Refused::ever(format!(
                "there are {MOST_COUNTERS} counters, the most: use a key that is there, or a second `seqsvr embedded`"
            )));
        }
        Ok(Counter::at(0))
    }

    fn ask(&self, name: &[u8]) {
        locked(&self.due).names.push(name.into());
        self.asked.notify_one();
    }

    /// The last number of a counter that has given one, or where it stands after a kill.
    pub(super) fn last(&self, name: &[u8]) -> Option<u64> {
        let shard = locked(&self.shards[shard(name)]);
        shard.get(name).map(|held| held.counter.last).filter(|&last| last > 0)
    }

    /// How many counters there are.
    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Changes after each commit.
    pub(super) fn rounds(&self) -> watch::Receiver<u64> {
        self.rounds.subscribe()
    }

    /// Why the last commit failed, if it did.
    pub(super) fn trouble(&self) -> Option<String> {
        locked(&self.trouble).clone()
    }

    /// Waits for counters that ask, and answers with their next ceilings, at most `most`; nothing once the book is closed.
    pub(super) fn due(&self, most: usize) -> Option<Vec<NamedCeiling>> {
        let mut due = locked(&self.due);
        while due.names.is_empty() && !due.closed {
            due = self.asked.wait(due).unwrap_or_else(PoisonError::into_inner);
        }
        if due.closed {
            return None;
        }
        let rest = due.names.len().min(most);
        let names: Vec<_> = due.names.drain(..rest).collect();
        drop(due);
        let now = Instant::now();
        let target = |name: Box<[u8]>| {
            let mut shard = locked(&self.shards[shard(&name)]);
            let held = shard.get_mut(&name)?;
            let target = held.counter.target(held.raised.map(|raised| now.duration_since(raised)));
            held.raised = Some(now);
            drop(shard);
            Some((name, target))
        };
        Some(names.into_iter().filter_map(target).collect())
    }

    /// These ceilings are on the disk.
    pub(super) fn confirm(&self, written: &[NamedCeiling]) {
        for (name, ceiling) in written {
            if let Some(held) = locked(&self.shards[shard(name)]).get_mut(name) {
                held.counter.confirm(*ceiling);
            }
        }
        *locked(&self.trouble) = None;
        self.rounds.send_modify(|round| *round += 1);
    }

    /// These ceilings may be on the disk or not: they are asked for again.
    pub(super) fn failed(&self, unwritten: Vec<NamedCeiling>, why: String) {
        *locked(&self.trouble) = Some(why);
        locked(&self.due).names.extend(unwritten.into_iter().map(|(name, _)| name));
    }

    /// Waits for so long, or until the book is closed.
    pub(super) fn pause(&self, time: Duration) {
        let due = locked(&self.due);
        drop(self.asked.wait_timeout_while(due, time, |due| !due.closed));
    }

    /// Hands out nothing more.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        locked(&self.due).closed = true;
        self.asked.notify_all();
        self.rounds.send_modify(|round| *round += 1);
    }

    /// Where the counters stand that do not stand at their ceilings. Only once the book is closed.
    pub(super) fn standing(&self) -> Vec<NamedCeiling> {
        let mut standing = Vec::new();
        for shard in &self.shards {
            let shard = locked(shard);
            let moved = shard.iter().filter(|(_, held)| held.counter.last < held.counter.ceiling);
            standing.extend(moved.map(|(name, held)| (name.clone(), held.counter.last)));
        }
        standing
    }
}

/// The shard of a name (FNV-1a): which one is no secret, and within it names are spread by a secret.
fn shard(name: &[u8]) -> usize {
    let mix = |hash: u32, &byte: &u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    name.iter().fold(0x811c_9dc5, mix) as usize % SHARDS
}

/// Nothing panics with a lock held in this folder; if it did, the counters in it would still be whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
