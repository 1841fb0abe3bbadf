//! Names of people in a bounded memory. A name never changes and its uid is never given again, so what is there is
//! right on every server; that somebody does not exist is not kept, since another server may make the account a moment
//! later.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use quick_cache::sync::Cache;

use crate::domain::{Uid, name_key};

/// See the module. Cheap to clone; clones share the memory.
#[derive(Clone)]
pub(super) struct Names(Arc<Cache<Uid, Arc<str>>>);

impl Names {
    /// A memory of about `most` names.
    pub(super) fn new(most: usize) -> Names {
        Names(Arc::new(Cache::new(most)))
    }

    /// Keeps a name.
    pub(super) fn keep(&self, uid: Uid, name: &str) {
        self.0.insert(uid, name.into());
    }

    /// Those of `uids` that are in memory, and the others, each once.
    pub(super) fn look(&self, uids: &[Uid]) -> (Found, Vec<Uid>) {
        let mut found = Found(HashMap::with_capacity(uids.len()));
        let mut missing = Vec::new();
        for &uid in uids {
            match self.0.get(&uid) {
                Some(name) => drop(found.0.insert(uid, name)),
                None => missing.push(uid),
            }
        }
        missing.sort_unstable();
        missing.dedup();
        (found, missing)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Names that were found.
pub(super) struct Found(HashMap<Uid, Arc<str>>);

impl Found {
    /// One more, which is kept in memory, too.
    pub(super) fn add(&mut self, names: &Names, uid: Uid, name: String) {
        let name: Arc<str> = name.into();
        names.0.insert(uid, Arc::clone(&name));
        self.0.insert(uid, name);
    }

    /// The names of `uids`, in order.
    pub(super) fn in_order(&self, uids: &[Uid]) -> Vec<Option<String>> {
        uids.iter().map(|uid| self.0.get(uid).map(|name| name.as_ref().to_owned())).collect()
    }
}

/// A search for part of a name.
pub(super) struct Search {
    /// The part as names are compared.
    pub(super) part: String,
    /// What stands behind everything that begins with it.
    pub(super) beyond: String,
    /// How many are wanted.
    pub(super) limit: usize,
}

impl Search {
    /// For at most `limit` names with `part`.
    pub(super) fn new(part: &str, limit: usize) -> Search {
        let part = name_key(part);
        let beyond = format!("{part}{}", char::MAX);
        Search { part, beyond, limit }
    }

    /// How many endings of names to look at, when `found` have the part at their beginning: a name may have several with the part.
    pub(super) fn endings(&self, found: usize) -> usize {
        match self.part.chars().nth(1) {
            Some(_) if found < self.limit => self.limit.saturating_mul(4),
            _ => 0,
        }
    }

    /// Those that begin with the part, and then those that have it elsewhere, each once and by name.
    pub(super) fn together(
        &self,
        beginning: Vec<(Uid, String)>,
        mut elsewhere: Vec<(Uid, String)>,
    ) -> Vec<(Uid, String)> {
        elsewhere.sort_by_cached_key(|(_, name)| name_key(name));
        let mut seen = HashSet::new();
        let all = beginning.into_iter().chain(elsewhere);
        all.filter(|(uid, _)| seen.insert(*uid)).take(self.limit).collect()
    }
}
