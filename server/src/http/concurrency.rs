//! How much may go on at a time, in all and for each client network: connections, passwords that wait to be hashed.
//! Owns the counts; whoever holds a [`Permit`] frees its place by dropping it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::limits::ClientNetwork;

/// Counts the permits that are held, in all and by address. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct ConcurrencyLimiter(Arc<LimiterState>);

#[derive(Debug)]
struct LimiterState {
    most: usize,
    most_per_address: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_address: HashMap<ClientNetwork, usize>,
}

/// One place among those of a limiter; dropping it frees the place.
#[derive(Debug)]
pub(super) struct Permit {
    limiter: ConcurrencyLimiter,
    /// Whether it counts among all, and for which address.
    counted: (bool, Option<ClientNetwork>),
}

impl ConcurrencyLimiter {
    /// At most `most` permits at a time, and at most `most_per_address` of one client network.
    pub(super) fn new(most: usize, most_per_address: usize) -> ConcurrencyLimiter {
        ConcurrencyLimiter(Arc::new(LimiterState { most, most_per_address, taken: Mutex::default() }))
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A permit, counted among all and, where it tells callers apart, by `address`. `None` when there is no room.
    pub(super) fn take(&self, address: Option<IpAddr>) -> Option<Permit> {
        let mut taken = self.taken();
        if taken.all >= self.0.most {
            return None;
        }
        let network = address.map(ClientNetwork::of);
        taken.count(network, self.0.most_per_address)?;
        taken.all += 1;
        Some(Permit { limiter: self.clone(), counted: (true, network) })
    }

    /// A permit among those of `address`, for a connection that came through a proxy and is counted among all already.
    pub(super) fn take_behind_proxy(&self, address: IpAddr) -> Option<Permit> {
        let network = Some(ClientNetwork::of(address));
        self.taken().count(network, self.0.most_per_address)?;
        Some(Permit { limiter: self.clone(), counted: (false, network) })
    }
}

impl Taken {
    fn count(&mut self, network: Option<ClientNetwork>, most: usize) -> Option<()> {
        let Some(network) = network else { return Some(()) };
        let of_address = self.by_address.entry(network).or_default();
        if *of_address >= most {
            return None;
        }
        *of_address += 1;
        Some(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = self.limiter.taken();
        let (among_all, network) = self.counted;
        taken.all -= usize::from(among_all);
        if let Some(Entry::Occupied(mut of_address)) = network.map(|network| taken.by_address.entry(network))
        {
            *of_address.get_mut() -= 1;
            if *of_address.get() == 0 {
                of_address.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_counted_in_all_and_by_address() {
        let limiter = ConcurrencyLimiter::new(3, 2);
        let (one, other) = (Some(IpAddr::from([10, 0, 0, 1])), Some(IpAddr::from([10, 0, 0, 2])));
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
        let address = IpAddr::from([198, 51, 100, 1]);
        let held = limiter.take_behind_proxy(address).expect("room");
        assert!(limiter.take_behind_proxy(address).is_none());
        drop(held);
        assert!(limiter.take_behind_proxy(address).is_some());
        assert!(limiter.taken().by_address.is_empty());
    }
}
