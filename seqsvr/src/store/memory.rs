//! Ceilings in memory: the simplest correct store, for tests and for callers that need no durability. It
//! outlives the allocators that use it, so opening another one over the same `Memory` is a restart.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{Ceiling, Claimed, Layout, Owner, RaiseError, SectionStore, StoreError, claims};
use crate::ids::{Epoch, SectionId};

/// A [`SectionStore`] whose data lives as long as the value.
#[derive(Debug, Default)]
pub struct Memory {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    layout: Option<Layout>,
    claims: Vec<claims::Claim>,
    ceilings: BTreeMap<SectionId, u64>,
}

impl Memory {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No method panics half-way through a change, so a poisoned state is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SectionStore for Memory {
    async fn newest_epoch(&self) -> Result<Epoch, StoreError> {
        Ok(claims::newest(&self.lock().claims))
    }

    async fn claim(
        &self,
        sections: &[RangeInclusive<SectionId>],
        owner: Owner,
        layout: Layout,
    ) -> Result<Claimed, StoreError> {
        let mut state = self.lock();
        let stored = *state.layout.get_or_insert(layout);
        if stored != layout {
            return Err(StoreError::Layout { stored, configured: layout });
        }
        claims::accept(&mut state.claims, sections, owner)?;
        let of = |range: &RangeInclusive<SectionId>| {
            state.ceilings.range(range.clone()).map(|(&section, &max)| Ceiling { section, max })
        };
        Ok(Claimed { ceilings: sections.iter().flat_map(of).collect(), ..Claimed::default() })
    }

    async fn raise(&self, owner: Owner, raises: &[Ceiling]) -> Vec<Result<u64, RaiseError>> {
        let mut state = self.lock();
        let mut raise_one = |raise: &Ceiling| {
            claims::check(&state.claims, raise.section, owner)?;
            let stored = state.ceilings.entry(raise.section).or_default();
            if *stored > raise.max {
                return Err(RaiseError::Smaller { stored: *stored });
            }
            *stored = raise.max;
            Ok(raise.max)
        };
        raises.iter().map(&mut raise_one).collect()
    }

    async fn release(&self, _: &[RangeInclusive<SectionId>], _: Owner) -> Result<(), StoreError> {
        Err(StoreError::Unavailable("this store keeps no releases".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::Memory;

    async fn fresh() -> (Memory, ()) {
        (Memory::new(), ())
    }

    super::super::conformance::conformance!(fresh);
}
