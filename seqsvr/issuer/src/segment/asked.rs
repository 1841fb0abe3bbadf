//! The step that a call brought (S22): how many numbers the next segment must hold. Kept until a segment is taken; shared by callers and
//! the taker of segments.

use std::sync::atomic::{AtomicU64, Ordering};

use super::options::SegmentOptions;

#[derive(Debug)]
pub(crate) struct AskedStep {
    least: u64,
    most: u64,
    /// 0: none was brought since the last segment.
    step: AtomicU64,
}

impl AskedStep {
    pub(super) fn new(options: &SegmentOptions) -> Self {
        Self { least: options.step_min, most: options.step_max, step: AtomicU64::new(0) }
    }

    /// Notes the step of a call; of several calls the last one counts.
    pub(crate) fn set(&self, step: u64) -> Result<(), String> {
        let Self { least, most, .. } = self;
        if !(*least..=*most).contains(&step) {
            return Err(format!("set {least} to {most}, the tag's step_min and step_max"));
        }
        self.step.store(step, Ordering::Release);
        Ok(())
    }

    /// The step that was brought, if one was.
    pub(super) fn get(&self) -> Option<u64> {
        Some(self.step.load(Ordering::Acquire)).filter(|step| *step > 0)
    }

    /// A segment of that step was taken. One that was brought meanwhile stays.
    pub(super) fn done(&self, step: u64) {
        // A failure is that other one.
        let _ = self.step.compare_exchange(step, 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}
