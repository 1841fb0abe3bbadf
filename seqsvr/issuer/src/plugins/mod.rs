//! Plugins around the issue of numbers (S26): checks that can veto, records, statistics, other spellings of the numbers. They act only
//! where they are registered; the issuer's service calls them, in order.

mod history;
mod rate;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use history::{CallHistory, CallRecord};
pub use rate::{Rate, RateOf};

use super::error::NextError;
use super::strategy::Issued;
use super::tag::Tag;

/// The answer of `before` to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing speaks against it.
    GoOn,
    /// No number may be issued, for this reason: the rest of the chain and the issue stop.
    Veto(String),
}

/// Something that acts around the issue of numbers.
///
/// Calls come from many threads at once, within the caller's request, so they must be quick and not block.
pub trait Plugin: Send + Sync {
    /// A name, unique within an issuer.
    fn name(&self) -> &str;

    /// Its place in a chain: lower comes first; equal ones keep the order in which they were registered.
    fn order(&self) -> i32 {
        0
    }

    /// Called before numbers are issued.
    fn before(&self, _tag: &Tag, _count: u32) -> Verdict {
        Verdict::GoOn
    }

    /// Called with the issued numbers, which it may spell in another way ([`Issued::codes`](super::Issued::codes)).
    ///
    /// # Errors
    ///
    /// Why the numbers must not reach the caller; they become a gap.
    fn after(&self, _tag: &Tag, _issued: &mut Issued) -> Result<(), String> {
        Ok(())
    }

    /// Called when nothing was issued, also after a veto.
    fn on_error(&self, _tag: &Tag, _error: &NextError) {}

    /// The number that a code of its own stands for; `None`: it spells no codes.
    fn decode(&self, _tag: &Tag, _code: &str) -> Option<Result<u64, String>> {
        None
    }
}

/// Which plugins act for which tags: many to many.
#[derive(Clone, Default)]
pub struct Registry {
    entries: Vec<(Arc<dyn Plugin>, BTreeSet<Tag>)>,
}

impl Registry {
    /// Nothing is registered.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets `plugin` act for these tags, besides those it was registered for before.
    pub fn register(&mut self, plugin: Arc<dyn Plugin>, tags: impl IntoIterator<Item = Tag>) {
        let known = self.entries.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &plugin));
        match known {
            Some((_, registered)) => registered.extend(tags),
            None => self.entries.push((plugin, tags.into_iter().collect())),
        }
    }

    /// The plugins that act for `tag`, in their order.
    pub fn chain(&self, tag: &Tag) -> Vec<Arc<dyn Plugin>> {
        let acting = self.entries.iter().filter(|(_, tags)| tags.contains(tag));
        let mut chain: Vec<_> = acting.map(|(plugin, _)| Arc::clone(plugin)).collect();
        chain.sort_by_key(|plugin| plugin.order());
        chain
    }

    /// The tags that the plugin of this name acts for.
    pub fn tags_of(&self, plugin: &str) -> Vec<Tag> {
        let named = self.entries.iter().filter(|(known, _)| known.name() == plugin);
        named.flat_map(|(_, tags)| tags.iter().cloned()).collect()
    }

    /// Every plugin with its tags, in the order of registration.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &BTreeSet<Tag>)> {
        self.entries.iter().map(|(plugin, tags)| (plugin.name(), tags))
    }

    /// Two different plugins of one name, if there are any.
    pub(super) fn ambiguous(&self) -> Option<&str> {
        let names = |upto: usize| self.entries[..upto].iter().map(|(plugin, _)| plugin.name());
        (0..self.entries.len())
            .map(|at| (at, self.entries[at].0.name()))
            .find_map(|(at, name)| names(at).any(|earlier| earlier == name).then_some(name))
    }
}
