//! The settings of an allocator, each with its default, checked once when it is opened.

use std::time::Duration;

use crate::error::OpenAllocatorError;
use crate::store::{Layout, MAX_CEILING};

/// Settings of [`Embedded`](crate::alloc::Embedded). `section_size` and `step` belong to the stored data: a store
/// refuses other values than those it was first used with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Adjacent uids that share one ceiling: 10,000 to 2^31. Default 100,000 (S4).
    pub section_size: u32,
    /// By how much the ceiling is raised at a time: 2 to 2^32 - 1. Default 10,000 (S3).
    pub step: u32,
    /// The largest number ever handed out: 1 to 2^63 - 1, which is the default.
    pub limit: u64,
    /// The most numbers that one call may take. All uids of a section share the raise that a large call
    /// causes. Default 100,000.
    pub max_count: u32,
    /// How long `next` and `advance` wait for a raise before they give a retryable error. Default 2 s.
    pub raise_wait: Duration,
    /// How long one call of the store may take before its outcome counts as unknown. Default 5 s.
    pub store_timeout: Duration,
    /// The pause after a first failed raise, doubled with each further failure. Default 10 ms.
    pub retry_first: Duration,
    /// The longest pause between two attempts to raise. Default 1 s.
    pub retry_longest: Duration,
    /// The most sections that are raised in one call of the store: 1 and up. Default 1,000.
    pub raise_batch: usize,
    /// Tells this process's claim from any other's. Drawn at random by default; must not repeat.
    pub incarnation: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            section_size: 100_000,
            step: 10_000,
            limit: MAX_CEILING,
            max_count: 100_000,
            raise_wait: Duration::from_secs(2),
            store_timeout: Duration::from_secs(5),
            retry_first: Duration::from_millis(10),
            retry_longest: Duration::from_secs(1),
            raise_batch: 1_000,
            incarnation: rand::random(),
        }
    }
}

impl Options {
    /// The meaning of stored section numbers under these options.
    pub fn layout(&self) -> Layout {
        Layout { section_size: self.section_size, step: self.step }
    }

    /// Whether the options can be used together.
    ///
    /// # Errors
    ///
    /// The first that cannot.
    pub fn check(&self) -> Result<(), OpenAllocatorError> {
        let bad = |name, problem: String| Err(OpenAllocatorError::BadOption { name, problem });
        if !(10_000..=1 << 31).contains(&self.section_size) {
            return bad("section_size", format!("{} is not between 10,000 and 2^31", self.section_size));
        }
        if self.step < 2 {
            return bad("step", format!("{} is less than 2", self.step));
        }
        if !(1..=MAX_CEILING).contains(&self.limit) {
            return bad("limit", format!("{} is not between 1 and 2^63 - 1", self.limit));
        }
        if self.max_count == 0 {
            return bad("max_count", "0 would refuse every call; set 1 or more".to_owned());
        }
        if self.raise_batch == 0 {
            return bad("raise_batch", "0 would never raise; set 1 or more".to_owned());
        }
        if self.retry_first.is_zero() || self.retry_first > self.retry_longest {
            return bad("retry_first", "set more than zero and at most retry_longest".to_owned());
        }
        Ok(())
    }
}
