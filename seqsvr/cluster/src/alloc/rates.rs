//! The load of each section, by which the arbiter balances. Owned by the shell, which now and then counts, away from the
//! requests, the numbers that the sections have handed out, and remembers the last count.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::runs::Runs;
use seqsvr_core::alloc::section_group::SectionGroup;
use seqsvr_core::ids::SectionId;

/// How often to count.
pub(super) const EVERY: Duration = Duration::from_secs(2);

/// Numbers that sections have handed out since they were loaded, by section; those without any are left out.
pub(super) type Counts = Vec<(SectionId, u64)>;

/// The last count, and when it was.
pub(super) struct SectionRates {
    at: Instant,
    counts: Counts,
}

impl SectionRates {
    pub(super) fn new() -> Self {
        Self { at: Instant::now(), counts: Counts::new() }
    }

    /// The numbers a second since the last count, of the sections that handed out any.
    pub(super) fn note(&mut self, counts: Counts) -> Vec<(SectionId, f32)> {
        let before = std::mem::replace(self, Self { at: Instant::now(), counts });
        let seconds = before.at.elapsed().as_secs_f32().max(f32::EPSILON);
        let rate = |&(section, count): &(SectionId, u64)| {
            let earlier = before.counts.binary_search_by_key(&section, |&(one, _)| one);
            let earlier = earlier.map_or(0, |index| before.counts[index].1);
            // A section that came back counts from the beginning.
            let numbers = count.checked_sub(earlier).unwrap_or(count);
            (numbers > 0).then_some((section, numbers as f32 / seconds))
        };
        self.counts.iter().filter_map(rate).collect()
    }
}

/// Counts. Walks every touched page, so call it where it holds up nobody.
pub(super) fn count(groups: &[(Arc<SectionGroup>, Runs)]) -> Counts {
    let of = |(group, served): &(Arc<SectionGroup>, Runs)| {
        let sections = served.ranges().iter().flat_map(|run| run.start().get()..=run.end().get());
        let counted = sections.map(SectionId::new).map(|one| (one, group.shared().allocated_in(one)));
        counted.filter(|&(_, count)| count > 0).collect::<Counts>()
    };
    let mut counts: Counts = groups.iter().flat_map(of).collect();
    counts.sort_unstable_by_key(|&(section, _)| section);
    counts
}
