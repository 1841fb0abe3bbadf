//! An index in memory, for tests and as the model of the real ones.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::*;

type InboxSegments = BTreeMap<u64, NewSegment>;

/// A [`SearchIndex`] that forgets everything when it is dropped.
#[derive(Default)]
pub struct MemoryIndex {
    state: Mutex<(BTreeMap<Uid, InboxSegments>, Rebuild)>,
}

impl MemoryIndex {
    fn state(&self) -> MutexGuard<'_, (BTreeMap<Uid, InboxSegments>, Rebuild)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SearchIndex for MemoryIndex {
    async fn segments(&self, uid: Uid) -> Result<Vec<SegmentHead>, StoreError> {
        let state = self.state();
        let of = state.0.get(&uid).into_iter().flat_map(|segments| segments.values().rev());
        Ok(of.map(|segment| segment.head.clone()).collect())
    }

    async fn parts(&self, uid: Uid, segment: u64, parts: &[u32]) -> Result<Option<Vec<Vec<u8>>>, StoreError> {
        let state = self.state();
        let segments = state.0.get(&uid);
        let found =
            segments.and_then(|segments| segments.values().find(|found| found.head.number == segment));
        Ok(found
            .and_then(|found| parts.iter().map(|part| found.parts.get(*part as usize).cloned()).collect()))
    }

    async fn indexed(&self, uids: &[Uid]) -> Result<Vec<Indexed>, StoreError> {
        let state = self.state();
        let newest = |uid| state.0.get(uid).and_then(|segments| segments.values().next_back());
        Ok(uids
            .iter()
            .map(|uid| newest(uid).map_or(Indexed::default(), |segment| segment.head.indexed()))
            .collect())
    }

    async fn replace(&self, uid: Uid, old: &[u64], new: Option<NewSegment>) -> Result<bool, StoreError> {
        let mut state = self.state();
        let segments = state.0.entry(uid).or_default();
        let mut after = segments.clone();
        after.retain(|_, segment| !old.contains(&segment.head.number));
        let free = new.as_ref().is_none_or(|new| !after.contains_key(&new.head.first_id));
        if after.len() + old.len() != segments.len() || !free {
            return Ok(false);
        }
        after.extend(new.map(|new| (new.head.first_id, new)));
        *segments = after;
        Ok(true)
    }

    async fn forget(&self, uid: Uid) -> Result<(), StoreError> {
        self.state().0.remove(&uid);
        Ok(())
    }

    async fn renew(&self, uid: Uid) -> Result<(), StoreError> {
        self.forget(uid).await
    }

    async fn rebuild(&self) -> Result<Rebuild, StoreError> {
        Ok(self.state().1)
    }

    async fn ask_rebuild(&self) -> Result<u64, StoreError> {
        let mut state = self.state();
        state.1.wanted += 1;
        Ok(state.1.wanted)
    }

    async fn note_walk(&self, walked: u64, share: u32) -> Result<(), StoreError> {
        let mut state = self.state();
        (state.1.walked, state.1.share) = (walked, share);
        Ok(())
    }

    async fn close(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::search::conformance;

    #[tokio::test]
    async fn it_keeps_the_contract() {
        conformance::run(&MemoryIndex::default()).await;
    }
}
