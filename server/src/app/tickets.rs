//! Tickets: what opens a WebSocket once, for clients that cannot set headers (tokens never stand in URLs).

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::sessions::LiveSession;
use super::tokens::TokenHash;
use crate::domain::Timestamp;

/// How long a ticket opens something, in milliseconds.
pub(super) const LIFETIME_MS: i64 = 30_000;

/// Tickets that one session gets within that time, so that one person cannot use up everyone's.
const PER_SESSION: u32 = 100;

/// Why no ticket is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many tickets are open; use one, or try again in 30 seconds")]
pub struct TooManyTickets;

#[derive(Debug)]
pub(super) struct Tickets {
    open: Mutex<IssuedTickets>,
    capacity: usize,
}

#[derive(Debug, Default)]
struct IssuedTickets {
    tickets: HashMap<TokenHash, (Arc<LiveSession>, Timestamp)>,
    /// In the order of giving, hence of expiry; used ones count until they would have expired.
    order: VecDeque<(Timestamp, TokenHash, Arc<LiveSession>)>,
}

impl Tickets {
    pub(super) fn new(capacity: usize) -> Tickets {
        Tickets { open: Mutex::default(), capacity }
    }

    fn open(&self) -> MutexGuard<'_, IssuedTickets> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers that `ticket` opens a socket of `session`.
    pub(super) fn give(
        &self,
        ticket: TokenHash,
        session: &Arc<LiveSession>,
        now: Timestamp,
    ) -> Result<(), TooManyTickets> {
        let mut open = self.open();
        open.expire(now);
        if open.order.len() >= self.capacity || session.tickets.load(Ordering::Relaxed) >= PER_SESSION {
            return Err(TooManyTickets);
        }
        let expires = Timestamp(now.0 + LIFETIME_MS);
        session.tickets.fetch_add(1, Ordering::Relaxed);
        open.tickets.insert(ticket, (Arc::clone(session), expires));
        open.order.push_back((expires, ticket, Arc::clone(session)));
        Ok(())
    }

    /// The session that `ticket` opens a socket of; the ticket is used up.
    pub(super) fn take(&self, ticket: &TokenHash, now: Timestamp) -> Option<Arc<LiveSession>> {
        let mut open = self.open();
        let (session, expires) = open.tickets.remove(ticket)?;
        (expires > now && !session.is_over(now)).then_some(session)
    }
}

impl IssuedTickets {
    fn expire(&mut self, now: Timestamp) {
        while let Some((_, ticket, session)) = self.order.pop_front_if(|(expires, ..)| *expires <= now) {
            self.tickets.remove(&ticket);
            session.tickets.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sessions::SessionCache;
    use super::*;
    use crate::domain::Uid;
    use crate::store::Session;

    fn session() -> Arc<LiveSession> {
        let stored = Session {
            token_hash: [7; 32],
            uid: Uid(7),
            created_at: Timestamp(0),
            expires_at: Timestamp(1_000_000),
            label: String::new(),
        };
        SessionCache::new(1).keep(stored, 0).expect("nothing ended")
    }

    #[test]
    fn a_ticket_opens_once_and_only_for_its_time() {
        let (tickets, session) = (Tickets::new(10), session());
        tickets.give([1; 32], &session, Timestamp(0)).expect("room");
        tickets.give([2; 32], &session, Timestamp(0)).expect("room");
        assert!(tickets.take(&[1; 32], Timestamp(29_999)).is_some());
        assert!(tickets.take(&[1; 32], Timestamp(29_999)).is_none());
        assert!(tickets.take(&[2; 32], Timestamp(30_000)).is_none());
    }

    #[test]
    fn beyond_the_limits_no_ticket_is_given_until_old_ones_expire() {
        let (tickets, session) = (Tickets::new(PER_SESSION as usize + 1), session());
        for n in 0..PER_SESSION as u8 {
            tickets.give([n; 32], &session, Timestamp(0)).expect("room");
        }
        tickets.take(&[0; 32], Timestamp(1)).expect("good");
        assert_eq!(tickets.give([200; 32], &session, Timestamp(1)), Err(TooManyTickets));
        tickets.give([200; 32], &session, Timestamp(30_000)).expect("the old ones are gone");
    }

    #[test]
    fn a_ticket_of_an_ended_session_opens_nothing() {
        let cache = SessionCache::new(1);
        let stored = Session {
            token_hash: [7; 32],
            uid: Uid(7),
            created_at: Timestamp(0),
            expires_at: Timestamp(1_000_000),
            label: String::new(),
        };
        let session = cache.keep(stored, 0).expect("nothing ended");
        let tickets = Tickets::new(10);
        tickets.give([1; 32], &session, Timestamp(0)).expect("room");
        cache.end_all(Uid(7));
        assert!(tickets.take(&[1; 32], Timestamp(1)).is_none());
    }
}
