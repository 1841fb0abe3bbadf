//! Access keys in memory: for tests of what stands above storage.

use std::ops::Bound;

use async_trait::async_trait;

use super::MemoryDirectory;
use crate::store::{AccessKey, AccessKeys, StoreError};

#[async_trait]
impl AccessKeys for MemoryDirectory {
    async fn put_access_key(&self, key: AccessKey) -> Result<(), StoreError> {
        self.keys().insert(key.id.clone(), key);
        Ok(())
    }

    async fn access_key(&self, id: &str) -> Result<Option<AccessKey>, StoreError> {
        Ok(self.keys().get(id).cloned())
    }

    async fn access_keys(&self, after: &str, limit: usize) -> Result<Vec<AccessKey>, StoreError> {
        let later = (Bound::Excluded(after), Bound::Unbounded);
        Ok(self.keys().range::<str, _>(later).take(limit).map(|(_, key)| key.clone()).collect())
    }

    async fn sign_out(&self, id: &str) -> Result<(), StoreError> {
        if let Some(key) = self.keys().get_mut(id) {
            key.sign_outs += 1;
        }
        Ok(())
    }

    async fn remove_access_key(&self, id: &str) -> Result<bool, StoreError> {
        Ok(self.keys().remove(id).is_some())
    }
}
