//! Puts an issuer together: repository, tags, plugins. Checks everything that can be checked before the first number.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::try_join_all;

use super::error::OpenError;
use super::plugins::{Plugin, Registry};
#[cfg(feature = "service")]
use super::redis::{RedisOptions, RedisStrategy};
use super::rejected::{Log, Rejected};
use super::repository::{MemoryRepository, Repository};
use super::segment::{Journal, SegmentOptions, SegmentStrategy};
use super::service::{Issuer, Setup};
use super::strategy::Strategy;
use super::tag::Tag;

/// The most numbers that one call may take, unless configured.
pub const MAX_COUNT: u32 = 10_000;

/// An [`Issuer`] in the making. Later calls for a tag refine the earlier ones.
pub struct Builder {
    repository: Arc<dyn Repository>,
    journal: Option<Arc<Journal>>,
    tags: BTreeMap<Tag, Setup>,
    registry: Registry,
}

impl Issuer {
    /// An issuer without tags, which works from memory alone until it is given a repository.
    pub fn builder() -> Builder {
        Builder {
            repository: Arc::new(MemoryRepository::new()),
            journal: None,
            tags: BTreeMap::new(),
            registry: Registry::new(),
        }
    }
}

impl Builder {
    /// Where the segments of the tags that follow are durable.
    #[must_use]
    pub fn repository(mut self, repository: Arc<dyn Repository>) -> Self {
        self.repository = repository;
        self
    }

    /// Where this process notes the ranges that it took ahead, for the tags that follow with
    /// [`SegmentOptions::ahead`].
    #[must_use]
    pub fn journal(mut self, journal: Arc<Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// A tag whose numbers come in segments.
    ///
    /// # Errors
    ///
    /// [`OpenError`] for a bad name, a second tag of the name, or an option out of its range.
    pub fn segment(self, tag: &str, options: SegmentOptions) -> Result<Self, OpenError> {
        let strategy = SegmentStrategy::new(
            &Tag::new(tag)?,
            Arc::clone(&self.repository),
            self.journal.clone(),
            options,
        )?;
        self.strategy(tag, "segment", Arc::new(strategy))
    }

    /// A tag whose numbers come in segments that all processes take from together, in Redis.
    ///
    /// # Errors
    ///
    /// As for [`segment`](Self::segment).
    #[cfg(feature = "service")]
    pub fn redis(self, tag: &str, options: RedisOptions) -> Result<Self, OpenError> {
        let (repository, journal) = (Arc::clone(&self.repository), self.journal.clone());
        let strategy = RedisStrategy::new(&Tag::new(tag)?, repository, journal, options)?;
        self.strategy(tag, "redis", Arc::new(strategy))
    }

    /// A tag whose numbers are made in another way, which is called `kind`.
    ///
    /// # Errors
    ///
    /// [`OpenError`] for a bad name, or a second tag of the name.
    pub fn strategy(mut self, tag: &str, kind: &str, strategy: Arc<dyn Strategy>) -> Result<Self, OpenError> {
        let tag = Tag::new(tag)?;
        if self.tags.contains_key(&tag) {
            return Err(OpenError::Bad(format!("tag {tag} is configured twice; remove one")));
        }
        let setup = Setup { strategy, kind: kind.to_owned(), max_count: MAX_COUNT, rejected: Arc::new(Log) };
        self.tags.insert(tag, setup);
        Ok(self)
    }

    /// How many numbers of `tag` one call may take at most, instead of [`MAX_COUNT`].
    ///
    /// # Errors
    ///
    /// [`OpenError`] for an unknown tag, or 0.
    pub fn max_count(mut self, tag: &str, max_count: u32) -> Result<Self, OpenError> {
        if max_count == 0 {
            return Err(OpenError::Bad(format!(
                "tag {tag}: max_count = 0 would refuse every call; set 1 or more"
            )));
        }
        self.setup(tag)?.max_count = max_count;
        Ok(self)
    }

    /// Sets the handler for calls that no number of `tag` can answer, instead of [`Log`].
    ///
    /// # Errors
    ///
    /// [`OpenError`] for an unknown tag.
    pub fn rejected(mut self, tag: &str, rejected: Arc<dyn Rejected>) -> Result<Self, OpenError> {
        self.setup(tag)?.rejected = rejected;
        Ok(self)
    }

    /// Lets a plugin act for these tags.
    ///
    /// # Errors
    ///
    /// [`OpenError`] for an unknown tag.
    pub fn plugin(mut self, plugin: Arc<dyn Plugin>, tags: &[&str]) -> Result<Self, OpenError> {
        for tag in tags {
            self.setup(tag)?;
            self.registry.register(Arc::clone(&plugin), [Tag::new(tag)?]);
        }
        Ok(self)
    }

    /// Lets every strategy make ready, and answers the issuer.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: the first thing that is wrong. Storage that is away is not: its tags refuse until it is back.
    pub async fn open(self) -> Result<Issuer, OpenError> {
        if let Some(name) = self.registry.ambiguous() {
            return Err(OpenError::Bad(format!("two plugins are called {name}; give one another name")));
        }
        for (tag, setup) in &self.tags {
            let Some(other) = setup.rejected.falls_back_to() else { continue };
            if other == tag || !self.tags.contains_key(other) {
                return Err(OpenError::Bad(format!(
                    "tag {tag} falls back to {other}: name another, configured tag"
                )));
            }
        }
        // Together, so that storage that is away is waited for once.
        try_join_all(self.tags.values().map(|setup| setup.strategy.init())).await?;
        Ok(Issuer::new(self.tags, self.registry))
    }

    fn setup(&mut self, tag: &str) -> Result<&mut Setup, OpenError> {
        let unknown = || OpenError::Bad(format!("unknown tag {tag:?}: give it a strategy first"));
        self.tags.get_mut(tag).ok_or_else(unknown)
    }
}
