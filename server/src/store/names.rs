//! Names of people in a bounded memory. A uid is never given again, so what is there is right on every server until the
//! name is changed or the account is deleted: then it is dropped here, and on the other servers as they hear of it. That
//! somebody does not exist is not kept, since another server may make the account a moment later.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::sync::Cache;

use super::ShownName;
use crate::domain::{Uid, name_key};

/// See the module. Cheap to clone; clones share the memory.
#[derive(Clone)]
pub(super) struct Names(Arc<NameCache>);

struct NameCache {
    /// `None`: the account is deleted.
    known: Cache<Uid, Option<Arc<str>>>,
    /// Counts what was dropped: a name that was read before that is not kept after it.
    dropped: AtomicU64,
}

impl Names {
    /// A memory of about `most` names.
    pub(super) fn new(most: usize) -> Names {
        Names(Arc::new(NameCache { known: Cache::new(most), dropped: AtomicU64::new(0) }))
    }

    /// Keeps the name of a new account.
    pub(super) fn keep(&self, uid: Uid, name: &str) {
        self.0.known.insert(uid, Some(name.into()));
    }

    /// Drops a name; without a uid, all.
    pub(super) fn forget(&self, of: Option<Uid>) {
        self.0.dropped.fetch_add(1, Ordering::AcqRel);
        match of {
            Some(uid) => drop(self.0.known.remove(&uid)),
            None => self.0.known.clear(),
        }
    }

    /// Those of `uids` that are in memory, and the others, each once.
    pub(super) fn look(&self, uids: &[Uid]) -> (FoundNames, Vec<Uid>) {
        let since = self.0.dropped.load(Ordering::Acquire);
        let mut found = FoundNames { names: HashMap::with_capacity(uids.len()), since };
        let mut missing = Vec::new();
        for &uid in uids {
            match self.0.known.get(&uid) {
                Some(name) => drop(found.names.insert(uid, name)),
                None => missing.push(uid),
            }
        }
        missing.sort_unstable();
        missing.dedup();
        (found, missing)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.known.len()
    }
}

/// Names that were found.
pub(super) struct FoundNames {
    names: HashMap<Uid, Option<Arc<str>>>,
    since: u64,
}

impl FoundNames {
    /// One more, which is kept in memory, too; `None`: of a deleted account.
    pub(super) fn add(&mut self, names: &Names, uid: Uid, name: Option<String>) {
        let name: Option<Arc<str>> = name.map(Into::into);
        names.0.known.insert(uid, name.clone());
        if names.0.dropped.load(Ordering::Acquire) != self.since {
            names.0.known.remove(&uid);
        }
        self.names.insert(uid, name);
    }

    /// The names of `uids`, in order.
    pub(super) fn in_order(&self, uids: &[Uid]) -> Vec<Option<ShownName>> {
        let shown = |name: &Option<Arc<str>>| match name {
            Some(name) => ShownName::Of(name.as_ref().to_owned()),
            None => ShownName::Deleted,
        };
        uids.iter().map(|uid| self.names.get(uid).map(shown)).collect()
    }
}

/// A search for part of a name.
pub(super) struct Search {
    /// The part as names are compared.
    pub(super) part: String,
    /// A string that comes after everything that begins with the part.
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
