//! Who owns which sections: the fencing rule as plain data, shared by the stores that keep claims themselves.

use std::ops::RangeInclusive;

use super::{Owner, RaiseError, StoreError};
use crate::ids::{Epoch, SectionId};

/// One range of sections taken by one owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) sections: RangeInclusive<SectionId>,
    pub(super) owner: Owner,
}

/// The newest epoch of any claim, 0.0 without one.
pub(super) fn newest(claims: &[Claim]) -> Epoch {
    claims.iter().map(|claim| claim.owner.epoch).max().unwrap_or_default()
}

/// Records `owner` for `sections`, or refuses and changes nothing. Claims that are wholly covered by a new
/// one are forgotten, which bounds the list.
pub(super) fn accept(
    claims: &mut Vec<Claim>,
    sections: &[RangeInclusive<SectionId>],
    owner: Owner,
) -> Result<(), StoreError> {
    let overlaps = |claim: &&Claim, range: &RangeInclusive<SectionId>| {
        claim.sections.start() <= range.end() && range.start() <= claim.sections.end()
    };
    let blocks = |claim: &&Claim| claim.owner != owner && claim.owner.epoch >= owner.epoch;
    for range in sections {
        let blocker = claims.iter().filter(|claim| overlaps(claim, range)).find(blocks);
        if let Some(claim) = blocker {
            return Err(StoreError::Claimed { newest: claim.owner.epoch });
        }
    }
    for range in sections {
        let covered =
            |claim: &Claim| range.contains(claim.sections.start()) && range.contains(claim.sections.end());
        claims.retain(|claim| !covered(claim));
        claims.push(Claim { sections: range.clone(), owner });
    }
    Ok(())
}

/// Whether `owner` holds the newest claim of `section`.
pub(super) fn check(claims: &[Claim], section: SectionId, owner: Owner) -> Result<(), RaiseError> {
    let of_section = claims.iter().filter(|claim| claim.sections.contains(&section));
    match of_section.map(|claim| claim.owner).max_by_key(|holder| holder.epoch) {
        Some(holder) if holder == owner => Ok(()),
        holder => Err(RaiseError::NotOwner { newest: holder.map(|holder| holder.epoch).unwrap_or_default() }),
    }
}
