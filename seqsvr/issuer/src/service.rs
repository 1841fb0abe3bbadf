//! The issuer as callers see it: tags by name, each with its strategy, its plugins and its rejected handler. Owns the strategies; opened
//! once by the program that embeds it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;

use super::error::NextError;
use super::plugins::{Plugin, Registry, Verdict};
use super::rejected::{Instead, Rejected};
use super::strategy::{Issued, Part, Status, Strategy, TryIssueError};
use super::tag::Tag;

/// How many tags the error about an unknown one names.
const NAMED: usize = 20;

/// Numbers for every configured tag. Cheap to clone.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use seqsvr_issuer::{Issuer, SegmentOptions};
///
/// let issuer = Issuer::builder().segment("order", SegmentOptions::default())?.open().await?;
/// let number = issuer.next("order", 1).await?.first();
/// assert_eq!(number, 1);
/// # Ok::<_, Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Issuer {
    tags: Arc<BTreeMap<Tag, Counter>>,
    registry: Arc<Registry>,
}

/// The numbers of one tag, for callers that take many: found once, then without a look-up. Cheap to clone.
#[derive(Clone)]
pub struct Counter {
    tag: Tag,
    setup: Arc<Setup>,
    chain: Arc<[Arc<dyn Plugin>]>,
}

/// The strategy and the settings of one tag.
pub(super) struct Setup {
    pub(super) strategy: Arc<dyn Strategy>,
    pub(super) kind: String,
    pub(super) max_count: u32,
    pub(super) rejected: Arc<dyn Rejected>,
}

/// A tag as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagInfo {
    /// The tag.
    pub tag: Tag,
    /// The kind of its strategy: `segment`, `redis`, `snowflake` or a name of the program's own.
    pub strategy: String,
    /// The most numbers that one call may take.
    pub max_count: u32,
    /// The plugins that act for it, in their order.
    pub plugins: Vec<String>,
    /// How its strategy stands.
    pub status: Status,
}

/// A number, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The number.
    pub number: u64,
    /// Its parts, where its strategy can tell them: of a snowflake the time, the machine and the sequence.
    pub parts: Vec<Part>,
}

impl Issuer {
    pub(super) fn new(setups: BTreeMap<Tag, Setup>, registry: Registry) -> Self {
        let counter = |(tag, setup): (Tag, Setup)| {
            let chain = registry.chain(&tag).into();
            (tag.clone(), Counter { tag, setup: Arc::new(setup), chain })
        };
        Self { tags: Arc::new(setups.into_iter().map(counter).collect()), registry: Arc::new(registry) }
    }

    /// Takes `count` numbers of a tag.
    ///
    /// # Errors
    ///
    /// [`NextError`]: a wrong name or count, a veto, or no number at hand.
    pub async fn next(&self, tag: &str, count: u32) -> Result<Issued, NextError> {
        let counter = self.find(tag)?;
        let error = match counter.next(count).await {
            Err(error @ NextError::Issue(_)) => error,
            done => return done,
        };
        match counter.setup.rejected.rejected(&counter.tag, &error) {
            // Opening has made sure that the other tag exists.
            Instead::Tag(other) => {
                let mut issued = self.find(other.as_str())?.next(count).await?;
                issued.set_instead(other);
                Ok(issued)
            }
            Instead::Error => Err(error),
        }
    }

    /// As [`next`](Self::next), with the size of the next segment: the call's `step` takes the place of the stored one, which
    /// then adapts from it to the rate of issue. It counts for the next segment that this process takes from storage, also
    /// when these numbers come from memory; of several calls before that the last one counts.
    ///
    /// # Errors
    ///
    /// [`NextError::BadStep`] for a step out of the tag's `step_min` to `step_max`, and for tags without segments; and as
    /// [`next`](Self::next).
    pub async fn next_with_step(&self, tag: &str, count: u32, step: u64) -> Result<Issued, NextError> {
        let bad = |problem| NextError::BadStep { tag: tag.to_owned(), step, problem };
        self.find(tag)?.setup.strategy.ask_step(step).map_err(bad)?;
        self.next(tag, count).await
    }

    /// The numbers of one tag.
    ///
    /// # Errors
    ///
    /// [`NextError::BadTag`], [`NextError::UnknownTag`].
    pub fn counter(&self, tag: &str) -> Result<Counter, NextError> {
        self.find(tag).cloned()
    }

    /// Takes apart a number, or a code that a plugin made of one.
    ///
    /// # Errors
    ///
    /// [`NextError::BadCode`], and as for [`counter`](Self::counter).
    pub fn decode(&self, tag: &str, code: &str) -> Result<Decoded, NextError> {
        let counter = self.find(tag)?;
        let bad = |problem| NextError::BadCode { tag: tag.to_owned(), code: shortened(code), problem };
        let decoded = counter.chain.iter().rev().find_map(|plugin| plugin.decode(&counter.tag, code));
        let number = match decoded {
            Some(decoded) => decoded.map_err(bad)?,
            None => code.parse().map_err(|_| bad("give a whole number from 0 to 2^64 - 1".to_owned()))?,
        };
        Ok(Decoded { number, parts: counter.setup.strategy.parts(number) })
    }

    /// Every tag as it stands, by name.
    pub fn tags(&self) -> Vec<TagInfo> {
        self.tags.values().map(Counter::info).collect()
    }

    /// Which plugins act for which tags.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Ends all background work. Numbers that are at hand may still be taken.
    pub async fn shutdown(&self) {
        join_all(self.tags.values().map(|counter| counter.setup.strategy.shutdown())).await;
    }

    fn find(&self, tag: &str) -> Result<&Counter, NextError> {
        if let Some(counter) = self.tags.get(tag) {
            return Ok(counter);
        }
        Tag::new(tag)?;
        let mut known: Vec<_> = self.tags.keys().take(NAMED).map(Tag::as_str).collect();
        if self.tags.len() > NAMED {
            known.push("…");
        }
        Err(NextError::UnknownTag { tag: tag.to_owned(), known: known.join(", ") })
    }
}

impl Counter {
    /// The tag.
    pub fn tag(&self) -> &Tag {
        &self.tag
    }

    /// Takes one number from memory, without waiting: the hot path. Where plugins act there is none.
    ///
    /// # Errors
    ///
    /// [`TryIssueError::WouldWait`]: call [`next`](Self::next).
    #[inline]
    pub fn try_next(&self) -> Result<u64, TryIssueError> {
        if self.chain.is_empty() { self.setup.strategy.try_issue() } else { Err(TryIssueError::WouldWait) }
    }

    /// Takes `count` numbers. The rejected handler is not asked: that is [`Issuer::next`]'s.
    ///
    /// # Errors
    ///
    /// [`NextError`].
    pub async fn next(&self, count: u32) -> Result<Issued, NextError> {
        let max = self.setup.max_count;
        if count == 0 || count > max {
            return Err(NextError::BadCount { tag: self.tag.to_string(), count, max });
        }
        if count == 1
            && let Ok(number) = self.try_next()
        {
            return Ok(Issued::one(number));
        }
        let issued = self.issue(count).await;
        if let Err(error) = &issued {
            self.chain.iter().for_each(|plugin| plugin.on_error(&self.tag, error));
        }
        issued
    }

    async fn issue(&self, count: u32) -> Result<Issued, NextError> {
        let vetoed = |plugin: &Arc<dyn Plugin>, reason| NextError::Vetoed {
            tag: self.tag.to_string(),
            plugin: plugin.name().to_owned(),
            reason,
        };
        for plugin in self.chain.iter() {
            if let Verdict::Veto(reason) = plugin.before(&self.tag, count) {
                return Err(vetoed(plugin, reason));
            }
        }
        let mut issued = self.setup.strategy.issue(count).await?;
        for plugin in self.chain.iter() {
            plugin.after(&self.tag, &mut issued).map_err(|reason| vetoed(plugin, reason))?;
        }
        Ok(issued)
    }

    fn info(&self) -> TagInfo {
        TagInfo {
            tag: self.tag.clone(),
            strategy: self.setup.kind.clone(),
            max_count: self.setup.max_count,
            plugins: self.chain.iter().map(|plugin| plugin.name().to_owned()).collect(),
            status: self.setup.strategy.status(),
        }
    }
}

fn shortened(code: &str) -> String {
    code.chars().take(100).collect()
}

#[cfg(test)]
mod tests;
