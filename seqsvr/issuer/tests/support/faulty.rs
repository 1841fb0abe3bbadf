//! The repository in memory. It can be made unavailable or slow, as a database can be.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use seqsvr_issuer::Tag;
use seqsvr_issuer::repository::{Extension, MemoryRepository, Repository, RepositoryError, TagRow, Values};

/// A database that may be away.
#[derive(Default)]
pub(crate) struct FaultyRepository {
    pub(crate) behind: MemoryRepository,
    shut: AtomicBool,
    delay_ms: AtomicU64,
    before_next: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl FaultyRepository {
    pub(crate) fn shut(&self, shut: bool) {
        self.shut.store(shut, Ordering::SeqCst);
    }

    /// From now on each call takes this long.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn slow(&self, delay: Duration) {
        self.delay_ms.store(delay.as_millis() as u64, Ordering::SeqCst);
    }

    /// Does this when the next call arrives.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn before_next(&self, action: impl FnOnce() + Send + 'static) {
        *self.before_next.lock().unwrap() = Some(Box::new(action));
    }

    async fn pass(&self) -> Result<&MemoryRepository, RepositoryError> {
        if let Some(action) = self.before_next.lock().unwrap().take() {
            action();
        }
        let delay = Duration::from_millis(self.delay_ms.load(Ordering::SeqCst));
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        match self.shut.load(Ordering::SeqCst) {
            true => Err(RepositoryError::Unavailable("away".to_owned())),
            false => Ok(&self.behind),
        }
    }
}

#[async_trait]
impl Repository for FaultyRepository {
    async fn get(&self, tag: &Tag) -> Result<Option<TagRow>, RepositoryError> {
        self.pass().await?.get(tag).await
    }

    async fn list(&self) -> Result<Vec<TagRow>, RepositoryError> {
        self.pass().await?.list().await
    }

    async fn create(&self, tag: &Tag, values: Values) -> Result<bool, RepositoryError> {
        self.pass().await?.create(tag, values).await
    }

    async fn take(&self, tag: &Tag, expected: u64, values: Values) -> Result<bool, RepositoryError> {
        self.pass().await?.take(tag, expected, values).await
    }

    async fn remove(&self, tag: &Tag) -> Result<bool, RepositoryError> {
        self.pass().await?.remove(tag).await
    }

    async fn reconcile(&self, extension: &Extension) -> Result<bool, RepositoryError> {
        self.pass().await?.reconcile(extension).await
    }

    async fn extensions(&self, tag: &Tag) -> Result<Vec<Extension>, RepositoryError> {
        self.pass().await?.extensions(tag).await
    }
}
