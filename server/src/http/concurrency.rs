//! How much may go on at a time, in all and for each client network or account: connections, passwords that wait to be hashed.
//! Owns the counts; whoever holds a [`Permit`] frees its place by dropping it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::limits::ClientNetwork;
use crate::domain::Uid;

/// Counts the permits that are held, in all and by whose they are. Cheap to clone.
#[derive(Debug)]
pub(super) struct ConcurrencyLimiter<K: LimiterKey = ClientNetwork>(Arc<LimiterState<K>>);

/// By what permits are counted.
pub(super) trait LimiterKey: Copy + Eq + Hash {}

impl LimiterKey for ClientNetwork {}

impl LimiterKey for Uid {}

#[derive(Debug)]
struct LimiterState<K> {
    most: usize,
    most_each: usize,
    taken: Mutex<Taken<K>>,
}

#[derive(Debug)]
struct Taken<K> {
    all: usize,
    each: HashMap<K, usize>,
}

/// One place among those of a limiter; dropping it frees the place.
#[derive(Debug)]
pub(super) struct Permit<K: LimiterKey = ClientNetwork> {
    limiter: ConcurrencyLimiter<K>,
    /// Whether it counts among all, and for whom.
    counted: (bool, Option<K>),
}

impl<K: LimiterKey> Clone for ConcurrencyLimiter<K> {
    fn clone(&self) -> ConcurrencyLimiter<K> {
        ConcurrencyLimiter(Arc::clone(&self.0))
    }
}

impl<K: LimiterKey> ConcurrencyLimiter<K> {
    /// At most `most` permits at a time, and at most `most_each` of one client network or account.
    pub(super) fn new(most: usize, most_each: usize) -> ConcurrencyLimiter<K> {
        let taken = Mutex::new(Taken { all: 0, each: HashMap::new() });
        ConcurrencyLimiter(Arc::new(LimiterState { most, most_each, taken }))
    }

    fn taken(&self) -> MutexGuard<'_, Taken<K>> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A permit, counted among all and, where it is known whose it is, among theirs. `None` when there is no room.
    pub(super) fn take(&self, of: Option<K>) -> Option<Permit<K>> {
        let mut taken = self.taken();
        if taken.all >= self.0.most {
            return None;
        }
        taken.count(of, self.0.most_each)?;
        taken.all += 1;
        Some(Permit { limiter: self.clone(), counted: (true, of) })
    }

    /// A permit among theirs, for what is counted among all already: a connection that came through a proxy.
    pub(super) fn take_beside(&self, of: K) -> Option<Permit<K>> {
        self.taken().count(Some(of), self.0.most_each)?;
        Some(Permit { limiter: self.clone(), counted: (false, Some(of)) })
    }
}

impl<K: LimiterKey> Taken<K> {
    fn count(&mut self, of: Option<K>, most: usize) -> Option<()> {
        let Some(of) = of else { return Some(()) };
        let theirs = self.each.entry(of).or_default();
        if *theirs >= most {
            return None;
        }
        *theirs += 1;
        Some(())
    }
}

impl<K: LimiterKey> Drop for Permit<K> {
    fn drop(&mut self) {
        let mut taken = self.limiter.taken();
        let (among_all, of) = self.counted;
        taken.all -= usize::from(among_all);
        if let Some(Entry::Occupied(mut theirs)) = of.map(|of| taken.each.entry(of)) {
            *theirs.get_mut() -= 1;
            if *theirs.get() == 0 {
                theirs.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn network(last: u8) -> ClientNetwork {
        ClientNetwork::of(IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn permits_are_counted_in_all_and_by_address() {
        let limiter = ConcurrencyLimiter::new(3, 2);
        let (one, other) = (Some(network(1)), Some(network(2)));
        let first = limiter.take(one).expect("room");
        let _second = limiter.take(one).expect("room");
        assert!(limiter.take(one).is_none(), "two of one address");
        let _third = limiter.take(other).expect("room");
        assert!(limiter.take(other).is_none(), "three in all");
        drop(first);
        assert!(limiter.take(one).is_some());
    }

    #[test]
    fn people_behind_a_proxy_are_counted_by_their_own_address() {
        let limiter = ConcurrencyLimiter::new(10, 1);
        let _proxy = [limiter.take(None).expect("room"), limiter.take(None).expect("room")];
        let held = limiter.take_beside(network(1)).expect("room");
        assert!(limiter.take_beside(network(1)).is_none());
        drop(held);
        assert!(limiter.take_beside(network(1)).is_some());
        assert!(limiter.taken().each.is_empty());
    }
}
