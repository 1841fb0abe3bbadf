//! Rows in memory: for issuers without a database, and for tests. It outlives the issuers that use it, so opening
//! another one over the same value is a restart.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{Extension, Repository, RepositoryError, TagRow, Values, check_forward};
use crate::tag::Tag;

/// A [`Repository`] whose data lives as long as the value. Its clock stands still: `updated_at` is 0.
#[derive(Debug, Default)]
pub struct MemoryRepository {
    state: Mutex<RepositoryState>,
}

#[derive(Debug, Default)]
struct RepositoryState {
    rows: BTreeMap<Tag, Values>,
    extensions: BTreeMap<(Tag, u64), Extension>,
}

impl MemoryRepository {
    /// An empty repository.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, RepositoryState> {
        // No method panics half-way through a change, so a poisoned state is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn row((tag, &values): (&Tag, &Values)) -> TagRow {
    TagRow { tag: tag.clone(), values, updated_at: 0 }
}

#[async_trait]
impl Repository for MemoryRepository {
    async fn get(&self, tag: &Tag) -> Result<Option<TagRow>, RepositoryError> {
        Ok(self.lock().rows.get_key_value(tag).map(row))
    }

    async fn list(&self) -> Result<Vec<TagRow>, RepositoryError> {
        Ok(self.lock().rows.iter().map(row).collect())
    }

    async fn create(&self, tag: &Tag, values: Values) -> Result<bool, RepositoryError> {
        let mut state = self.lock();
        let absent = !state.rows.contains_key(tag);
        if absent {
            state.rows.insert(tag.clone(), values);
        }
        Ok(absent)
    }

    async fn take(&self, tag: &Tag, expected: u64, values: Values) -> Result<bool, RepositoryError> {
        check_forward(tag, expected, values)?;
        match self.lock().rows.get_mut(tag) {
            Some(stored) if stored.max == expected => {
                *stored = values;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    async fn remove(&self, tag: &Tag) -> Result<bool, RepositoryError> {
        Ok(self.lock().rows.remove(tag).is_some())
    }

    async fn reconcile(&self, extension: &Extension) -> Result<bool, RepositoryError> {
        let mut state = self.lock();
        let Extension { tag, range, .. } = extension;
        let step = range.count();
        let stored =
            state.rows.entry(tag.clone()).or_insert(Values { start: range.first, max: range.last, step });
        stored.max = stored.max.max(range.last);
        let key = (tag.clone(), range.first);
        let first = !state.extensions.contains_key(&key);
        if first {
            state.extensions.insert(key, extension.clone());
        }
        Ok(first)
    }

    async fn extensions(&self, tag: &Tag) -> Result<Vec<Extension>, RepositoryError> {
        let state = self.lock();
        Ok(state.extensions.values().filter(|extension| extension.tag == *tag).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::MemoryRepository;

    async fn fresh() -> (MemoryRepository, ()) {
        (MemoryRepository::new(), ())
    }

    super::super::conformance::conformance!(fresh);
}
