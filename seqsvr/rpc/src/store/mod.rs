//! The questions to a replica and its answers, to the wire and back. A replica reads the questions of callers that may
//! be faulty or hostile, callers read its answers: both are checked as far as the rules of the plain values go, and
//! sizes are bounded.

use std::ops::RangeInclusive;

use super::convert::WireError;
use super::v1;
use seqsvr_core::ids::SectionId;
use seqsvr_core::store::{Ceiling, Layout, MAX_CEILING};

mod answer;
mod configuration;
pub mod question;

/// The most ranges or sections in one message: all sections of the whole uid space at the usual size (S4), each by itself, and
/// some to spare.
pub const MOST_SECTIONS: usize = 65_536;
/// The smallest section: 2^32 uids are then at most 429,497 sections.
const SMALLEST_SECTION: u32 = 10_000;
/// The largest message that a replica accepts, in bytes: a question about [`MOST_SECTIONS`] sections is below 1 MiB, but an
/// installation brings a copy. Only callers with the token are heard at all.
pub const LARGEST_QUESTION: usize = LARGEST_ANSWER;
/// The largest message that a caller has to accept, in bytes: a copy of 429,497 sections in as many states.
pub const LARGEST_ANSWER: usize = 64 << 20;

impl From<Layout> for v1::Layout {
    fn from(layout: Layout) -> v1::Layout {
        v1::Layout { section_size: layout.section_size, step: layout.step }
    }
}

impl TryFrom<v1::Layout> for Layout {
    type Error = WireError;

    fn try_from(layout: v1::Layout) -> Result<Layout, WireError> {
        let v1::Layout { section_size, step } = layout;
        if !(SMALLEST_SECTION..=1 << 31).contains(&section_size) || step < 2 {
            return Err(WireError::Wrong("layout"));
        }
        Ok(Layout { section_size, step })
    }
}

/// A run of sections as it travels.
pub fn to_range(sections: &RangeInclusive<SectionId>) -> v1::SectionRange {
    v1::SectionRange { first: sections.start().get(), last: sections.end().get() }
}

/// A run of sections from the wire.
///
/// # Errors
///
/// It ends before it begins.
pub fn range(range: v1::SectionRange) -> Result<RangeInclusive<SectionId>, WireError> {
    if range.first > range.last {
        return Err(WireError::Wrong("range of sections"));
    }
    Ok(SectionId::new(range.first)..=SectionId::new(range.last))
}

/// Disjoint ranges, in any order.
fn ranges(all: Vec<v1::SectionRange>) -> Result<Vec<RangeInclusive<SectionId>>, WireError> {
    if all.len() > MOST_SECTIONS {
        return Err(WireError::Wrong("number of ranges"));
    }
    let all: Vec<_> = all.into_iter().map(range).collect::<Result<_, _>>()?;
    let mut sorted: Vec<_> = all.iter().map(|range| (*range.start(), *range.end())).collect();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0].1 >= pair[1].0) {
        return Err(WireError::Wrong("range of sections: it overlaps another"));
    }
    Ok(all)
}

/// Ceilings as they travel: sections and maxima side by side.
pub fn to_ceilings(ceilings: &[Ceiling]) -> (Vec<u32>, Vec<u64>) {
    ceilings.iter().map(|one| (one.section.get(), one.max)).unzip()
}

/// Ceilings from the wire.
///
/// # Errors
///
/// There are more than `most`, a maximum is missing or too large.
pub fn ceilings(sections: &[u32], ceilings: &[u64], most: usize) -> Result<Vec<Ceiling>, WireError> {
    if sections.len() != ceilings.len() || sections.len() > most {
        return Err(WireError::Wrong("number of ceilings"));
    }
    let pairs = sections.iter().zip(ceilings);
    let one = |(&section, &max): (&u32, &u64)| {
        if max > MAX_CEILING {
            return Err(WireError::Wrong("ceiling"));
        }
        Ok(Ceiling { section: SectionId::new(section), max })
    };
    pairs.map(one).collect()
}

#[cfg(test)]
mod tests;
