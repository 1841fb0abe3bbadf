//! Sessions in memory: the tokens that are known to be good, and the means to end the sessions and their sockets.
//!
//! A bounded cache over the directory. Its promise is exactness: once [`SessionCache::end`] has returned, no
//! caller gets that session again, and everything that watches it has been told.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use super::tokens::TokenHash;
use crate::domain::{Timestamp, Uid};
use crate::store::Session;

/// A session that somebody uses now. Sockets hold it for as long as they are open.
#[derive(Debug)]
pub struct LiveSession {
    /// Its user.
    pub uid: Uid,
    /// From when on it is worth nothing.
    pub expires_at: Timestamp,
    pub(super) token_hash: TokenHash,
    /// Tickets given out within a ticket's lifetime.
    pub(super) tickets: AtomicU32,
    ended: CancellationToken,
}

impl LiveSession {
    /// Its id.
    pub fn id(&self) -> SessionId {
        SessionId::of(&self.token_hash)
    }

    /// Resolves when the session ends by logging out or by the account being locked.
    pub fn ended(&self) -> WaitForCancellationFuture<'_> {
        self.ended.cancelled()
    }

    /// Whether it has ended or expired.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.ended.is_cancelled() || self.expires_at <= now
    }
}

/// The id of a session: the first half of its token's hash, which leads to no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionId(pub(super) [u8; 16]);

impl SessionId {
    pub(super) fn of(token_hash: &TokenHash) -> SessionId {
        SessionId(*token_hash.first_chunk().expect("a hash has 32 bytes"))
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The text is no id of a session.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the id of a session has 32 hexadecimal digits")]
pub struct NoSessionId;

impl FromStr for SessionId {
    type Err = NoSessionId;

    fn from_str(text: &str) -> Result<SessionId, NoSessionId> {
        let is_id = text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let id = u128::from_str_radix(text, 16).ok().filter(|_| is_id);
        id.map(|id| SessionId(id.to_be_bytes())).ok_or(NoSessionId)
    }
}

/// A session as the owner of the account sees it.
#[derive(Clone, Debug)]
pub struct OpenSession {
    /// The argument of [`Accounts::end_session`](super::Accounts::end_session).
    pub id: SessionId,
    /// When it began.
    pub created_at: Timestamp,
    /// From when on it is worth nothing.
    pub expires_at: Timestamp,
    /// Whether it is the one that asks.
    pub is_current: bool,
    /// The device's label; empty where nothing is known of it.
    pub label: String,
}

impl OpenSession {
    /// As an operator sees it.
    pub(super) fn of_another(session: Session) -> OpenSession {
        OpenSession {
            id: SessionId::of(&session.token_hash),
            created_at: session.created_at,
            expires_at: session.expires_at,
            is_current: false,
            label: session.label,
        }
    }

    pub(super) fn seen_from(current: &LiveSession, session: Session) -> OpenSession {
        let is_current = session.token_hash == current.token_hash;
        OpenSession { is_current, ..OpenSession::of_another(session) }
    }
}

#[derive(Debug)]
pub(super) struct SessionCache {
    known: Mutex<CachedSessions>,
    capacity: usize,
}

#[derive(Debug, Default)]
struct CachedSessions {
    sessions: HashMap<TokenHash, Arc<LiveSession>>,
    /// Every kept hash, oldest first, and some that are gone since.
    order: VecDeque<TokenHash>,
    /// Counts the endings, so that a load that overlaps one is not believed.
    endings: u64,
}

impl SessionCache {
    pub(super) fn new(capacity: usize) -> SessionCache {
        SessionCache { known: Mutex::default(), capacity }
    }

    fn known(&self) -> MutexGuard<'_, CachedSessions> {
        // Each change below is complete before anything can panic.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session, if it is known and good.
    pub(super) fn get(&self, hash: &TokenHash, now: Timestamp) -> Option<Arc<LiveSession>> {
        let mut known = self.known();
        let session = known.sessions.get(hash)?;
        if session.is_over(now) {
            session.ended.cancel();
            known.sessions.remove(hash);
            return None;
        }
        Some(Arc::clone(session))
    }

    /// How many endings there were; to be read before the directory is asked.
    pub(super) fn endings(&self) -> u64 {
        self.known().endings
    }

    /// Keeps what the directory said, unless some session ended since `endings` was read: then ask again.
    pub(super) fn keep(&self, session: Session, endings: u64) -> Option<Arc<LiveSession>> {
        let mut known = self.known();
        if known.endings != endings {
            return None;
        }
        if let Some(already) = known.sessions.get(&session.token_hash) {
            return Some(Arc::clone(already));
        }
        known.make_room(self.capacity);
        let live = Arc::new(LiveSession {
            uid: session.uid,
            expires_at: session.expires_at,
            token_hash: session.token_hash,
            tickets: AtomicU32::new(0),
            ended: CancellationToken::new(),
        });
        known.sessions.insert(session.token_hash, Arc::clone(&live));
        known.order.push_back(session.token_hash);
        Some(live)
    }

    /// Sessions may have ended in the directory: what is being loaded now is asked for again.
    pub(super) fn doubt(&self) {
        self.known().endings += 1;
    }

    /// Ends one session.
    pub(super) fn end(&self, hash: &TokenHash) {
        let mut known = self.known();
        known.endings += 1;
        if let Some(session) = known.sessions.remove(hash) {
            session.ended.cancel();
        }
    }

    /// The hashes of all that are known.
    pub(super) fn hashes(&self) -> Vec<TokenHash> {
        self.known().sessions.keys().copied().collect()
    }

    /// Ends all sessions of `uid`.
    pub(super) fn end_all(&self, uid: Uid) {
        self.end_but(uid, None);
    }

    /// Ends all sessions of `uid` but one.
    pub(super) fn end_others(&self, uid: Uid, kept: &TokenHash) {
        self.end_but(uid, Some(kept));
    }

    fn end_but(&self, uid: Uid, kept: Option<&TokenHash>) {
        let mut known = self.known();
        known.endings += 1;
        known.sessions.retain(|hash, session| {
            let ends = session.uid == uid && Some(hash) != kept;
            if ends {
                session.ended.cancel();
            }
            !ends
        });
    }
}

impl CachedSessions {
    /// Forgets the oldest until there is room. One that is in use stays, since its ending must reach its user;
    /// the number of those is bounded by the number of connections.
    fn make_room(&mut self, capacity: usize) {
        for _ in 0..self.order.len() {
            if self.order.len() < capacity {
                return;
            }
            let Some(oldest) = self.order.pop_front() else { return };
            match self.sessions.get(&oldest) {
                Some(session) if Arc::strong_count(session) > 1 => self.order.push_back(oldest),
                Some(_) => drop(self.sessions.remove(&oldest)),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000);

    fn session(n: u8) -> Session {
        Session {
            token_hash: [n; 32],
            uid: Uid(u32::from(n % 10)),
            created_at: NOW,
            expires_at: Timestamp(2_000),
            label: String::new(),
        }
    }

    fn keep(cache: &SessionCache, n: u8) -> Arc<LiveSession> {
        cache.keep(session(n), cache.endings()).expect("nothing ended")
    }

    #[test]
    fn an_id_is_half_a_hash_and_reads_back_as_written() {
        let id = SessionId::of(&std::array::from_fn(|at| at as u8));
        assert_eq!(id.to_string(), "000102030405060708090a0b0c0d0e0f");
        assert_eq!(id.to_string().parse::<SessionId>().ok(), Some(id));
        for bad in ["", "00", "+00102030405060708090a0b0c0d0e0f", &"0".repeat(33), &"é".repeat(16)] {
            assert!(bad.parse::<SessionId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_ended_session_is_unknown_and_its_holders_are_notified() {
        let cache = SessionCache::new(10);
        let (one, other) = (keep(&cache, 1), keep(&cache, 11));
        cache.end(&[1; 32]);
        assert!(cache.get(&[1; 32], NOW).is_none());
        assert!(one.is_over(NOW));
        assert!(!other.is_over(NOW));
        let third = keep(&cache, 21);
        cache.end_others(Uid(1), &[11; 32]);
        assert!(third.is_over(NOW) && !other.is_over(NOW));
        cache.end_all(Uid(1));
        assert!(other.is_over(NOW));
    }

    #[test]
    fn a_load_that_overlaps_an_ending_is_not_kept() {
        let cache = SessionCache::new(10);
        let before = cache.endings();
        cache.end(&[1; 32]);
        assert!(cache.keep(session(1), before).is_none());
        assert!(cache.get(&[1; 32], NOW).is_none());
        // One that ended in the directory, by another process, while it was loaded.
        let before = cache.endings();
        cache.doubt();
        assert!(cache.keep(session(2), before).is_none());
        assert!(cache.keep(session(2), cache.endings()).is_some());
    }

    #[test]
    fn an_expired_session_is_unknown() {
        let cache = SessionCache::new(10);
        let held = keep(&cache, 1);
        assert!(cache.get(&[1; 32], Timestamp(2_000)).is_none());
        assert!(held.is_over(NOW), "its sockets are told");
    }

    #[test]
    fn the_oldest_unused_go_when_there_is_no_room() {
        let cache = SessionCache::new(3);
        let held = keep(&cache, 1);
        for n in 2..=20 {
            drop(keep(&cache, n));
        }
        let known = cache.known();
        assert!(known.sessions.len() <= 4 && known.order.len() <= 4, "{known:?}");
        drop(known);
        assert!(cache.get(&[1; 32], NOW).is_some_and(|same| Arc::ptr_eq(&same, &held)));
        assert!(cache.get(&[2; 32], NOW).is_none());
        assert!(cache.get(&[20; 32], NOW).is_some());
    }
}
