//! The addresses of one installation: several equal servers, or one.
//!
//! It owns the list and which of its addresses is in use. [`crate::Http`] and the task of a [`crate::Client`] share it,
//! so that what one of them learns of an address that does not answer saves the other the attempt.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::Url;

use crate::error::Error;

/// Clones follow each other from one address to the next.
#[derive(Clone, Debug)]
pub(crate) struct Servers {
    bases: Arc<[Url]>,
    in_use: Arc<AtomicUsize>,
}

impl Servers {
    /// These addresses, one of them at random first: the users of equal servers spread over them.
    ///
    /// # Errors
    /// [`Error::Usage`] when there is none, or one is not an address of HTTP.
    pub(crate) fn new(bases: &[&str]) -> Result<Servers, Error> {
        if bases.is_empty() {
            return Err(Error::Usage("no server address: give at least one".to_owned()));
        }
        let bases: Arc<[Url]> = bases.iter().map(|base| address(base)).collect::<Result<_, _>>()?;
        Ok(Servers::of(bases))
    }

    /// The same addresses for another user, who begins at an address of their own.
    pub(crate) fn for_another_user(&self) -> Servers {
        Servers::of(Arc::clone(&self.bases))
    }

    fn of(bases: Arc<[Url]>) -> Servers {
        let first = rand::random_range(0..bases.len());
        Servers { bases, in_use: Arc::new(AtomicUsize::new(first)) }
    }

    pub(crate) fn count(&self) -> usize {
        self.bases.len()
    }

    /// The place in the list of the address that is in use.
    pub(crate) fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }

    /// The address at a place in the list; beyond its end it begins anew.
    pub(crate) fn base(&self, place: usize) -> &Url {
        &self.bases[place % self.bases.len()]
    }

    /// Where `path` is at that address.
    pub(crate) fn at(&self, place: usize, path: &str) -> Url {
        self.base(place).join(path).expect("a fixed path, or numbers in one, always joins")
    }

    /// The server at this place failed: the next one is in use, unless another has moved on from it already.
    pub(crate) fn failed(&self, place: usize) {
        let (place, next) = (place % self.count(), (place + 1) % self.count());
        // A faster caller has done the same, or moved on to a later one.
        let _ = self.in_use.compare_exchange(place, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

fn address(base: &str) -> Result<Url, Error> {
    let mut base: Url = base.parse().map_err(|e| Error::Usage(format!("{base:?} is not an address: {e}")))?;
    if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() {
        return Err(Error::Usage(format!("{base} is not an HTTP address: begin it with http://")));
    }
    if !base.path().ends_with('/') {
        let path = format!("{}/", base.path());
        base.set_path(&path);
    }
    Ok(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Servers {
        Servers::new(&["http://a", "http://b:8080/chat", "https://c"]).expect("addresses")
    }

    #[test]
    fn those_who_failed_at_the_same_address_move_on_once() {
        let servers = three();
        let first = servers.in_use();
        servers.failed(first);
        servers.clone().failed(first);
        assert_eq!(servers.in_use(), (first + 1) % 3);
        servers.failed(servers.in_use());
        servers.failed(servers.in_use());
        assert_eq!(servers.in_use(), first, "after the last comes the first");
    }

    #[test]
    fn users_begin_at_different_addresses() {
        let servers = three();
        let begun: std::collections::HashSet<usize> =
            (0..200).map(|_| servers.for_another_user().in_use()).collect();
        assert_eq!(begun.len(), 3);
    }

    #[test]
    fn paths_lie_below_the_path_of_an_address() {
        assert_eq!(three().at(1, "api/v1/me").as_str(), "http://b:8080/chat/api/v1/me");
    }

    #[test]
    fn an_address_of_something_else_and_none_at_all_are_refused_with_advice() {
        for wrong in ["", "127.0.0.1:8080", "ftp://x/", "mailto:ann"] {
            assert!(matches!(Servers::new(&["http://a", wrong]), Err(Error::Usage(_))), "{wrong}");
        }
        assert!(matches!(Servers::new(&[]), Err(Error::Usage(_))));
    }
}
