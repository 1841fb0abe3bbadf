//! The history of a run as one number: equal for equal runs, so that a replay can be compared. Stable across machines and
//! compilers (FNV-1a), unlike the standard library's hashers. Keeps the last lines of the history in words, if asked to.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct RunHistory {
    hash: Fnv,
    events: u64,
    lines: VecDeque<String>,
    kept: usize,
}

impl RunHistory {
    /// Keeps the last `kept` lines.
    pub(crate) fn new(kept: usize) -> Self {
        Self { hash: Fnv::default(), events: 0, lines: VecDeque::new(), kept }
    }

    /// Something happened.
    pub(crate) fn add(&mut self, event: &impl Hash, line: impl FnOnce() -> String) {
        event.hash(&mut self.hash);
        self.events += 1;
        if self.kept > 0 {
            if self.lines.len() == self.kept {
                self.lines.pop_front();
            }
            self.lines.push_back(line());
        }
    }

    /// The same for the same history.
    pub(crate) fn hash(&self) -> u64 {
        self.hash.finish()
    }

    /// How many events there were.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// The last lines.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }
}

/// The 64-bit FNV-1a hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
