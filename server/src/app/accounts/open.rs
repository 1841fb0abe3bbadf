//! Sessions that are open: who shows a token or a ticket, and how sessions end, here and on other servers.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::{AccountError, Accounts};
use crate::app::sessions::{LiveSession, OpenSession, SessionId};
use crate::app::tickets::LIFETIME_MS as TICKET_LIFETIME_MS;
use crate::app::tokens::{Token, TokenHash, hash_of};
use crate::domain::{Uid, is_visible};
use crate::notify::Hint;
use crate::store::StoreError;

/// Characters of what a device is called.
pub const LABEL_CHARACTERS: usize = 60;

/// How often it is asked whether an operator has ended sessions.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Sessions that one statement compares with the database.
const CONFIRMED_AT_ONCE: usize = 1_000;

impl Accounts {
    /// The session that `token` stands for, if memory has it.
    pub fn known_session(&self, token: &str) -> Option<Arc<LiveSession>> {
        self.0.sessions.get(&hash_of(token), self.0.clock.now())
    }

    /// The session that `token` stands for, from memory where possible.
    pub async fn session(&self, token: &str) -> Result<Option<Arc<LiveSession>>, StoreError> {
        self.session_of(hash_of(token)).await
    }

    async fn session_of(&self, hash: TokenHash) -> Result<Option<Arc<LiveSession>>, StoreError> {
        loop {
            let now = self.0.clock.now();
            if let Some(live) = self.0.sessions.get(&hash, now) {
                return Ok(Some(live));
            }
            let endings = self.0.sessions.endings();
            let Some(stored) = self.0.directory.session(&hash, now).await? else { return Ok(None) };
            if let Some(live) = self.0.sessions.keep(stored, endings) {
                return Ok(Some(live));
            }
        }
    }

    /// Ends one session; its sockets close.
    pub async fn log_out(&self, session: &LiveSession) -> Result<(), StoreError> {
        self.0.directory.end_session(&session.token_hash).await?;
        self.end_here(&session.token_hash);
        self.tell(Hint::SessionEnded(session.token_hash));
        Ok(())
    }

    /// The sessions of the account of `session`, newest first, at most `limit`.
    pub async fn sessions(
        &self,
        session: &LiveSession,
        limit: usize,
    ) -> Result<Vec<OpenSession>, StoreError> {
        let open = self.0.directory.sessions(session.uid, self.0.clock.now(), limit).await?;
        Ok(open.into_iter().map(|open| OpenSession::seen_from(session, open)).collect())
    }

    /// Ends the session of `uid` with this id; its sockets close. `false`: the account has none.
    pub async fn end_session(&self, uid: Uid, id: SessionId) -> Result<bool, StoreError> {
        let Some(ended) = self.0.directory.end_session_of(uid, &id.0).await? else { return Ok(false) };
        self.end_here(&ended);
        self.tell(Hint::SessionEnded(ended));
        Ok(true)
    }

    /// Calls the device of the session of `uid` with this id so. `false`: the account has none.
    pub async fn label_session(&self, uid: Uid, id: SessionId, label: &str) -> Result<bool, AccountError> {
        let label = label.trim();
        if !(1..=LABEL_CHARACTERS).contains(&label.chars().count()) || !is_visible(label) {
            return Err(AccountError::BadLabel);
        }
        Ok(self.0.directory.label_session(uid, &id.0, label).await?)
    }

    /// Ends all sessions of `uid`; their sockets close.
    pub async fn log_out_everywhere(&self, uid: Uid) -> Result<(), StoreError> {
        self.0.directory.end_sessions(uid).await?;
        self.end_all_here(uid);
        self.tell(Hint::SessionsEnded(uid));
        Ok(())
    }

    /// A session has ended in the directory; its sockets here close.
    pub(in crate::app) fn end_here(&self, session: &TokenHash) {
        self.0.sessions.end(session);
    }

    /// All sessions of `uid` but one have ended in the directory; their sockets here close.
    pub(in crate::app) fn end_others_here(&self, uid: Uid, kept: &TokenHash) {
        self.0.sessions.end_others(uid, kept);
    }

    pub(super) fn tell(&self, hint: Hint) {
        if let Some(others) = &self.0.others {
            others.hints.tell(hint);
        }
    }

    /// Ends the sessions in memory that the directory no longer has: they ended on another server.
    async fn confirm_sessions(&self) -> Result<(), StoreError> {
        // One that was read before it ended, and is kept after this look, would stay.
        self.0.sessions.doubt();
        for some in self.0.sessions.hashes().chunks(CONFIRMED_AT_ONCE) {
            let good = self.0.directory.are_good(some, self.0.clock.now()).await?;
            let over = some.iter().zip(good).filter(|(_, good)| !good);
            over.for_each(|(hash, _)| self.end_here(hash));
        }
        Ok(())
    }

    /// Compares what is in memory with the directory. Says who has got another name lately.
    pub(in crate::app) async fn confirm(&self) -> Result<Vec<Uid>, StoreError> {
        self.confirm_sessions().await?;
        self.forget_changed().await
    }

    /// Ends sessions here and drops names, within a second, that another process has ended or changed in the directory: `tidemark user`
    /// beside this server. `renamed` hears of each person with another name, perhaps more than once. Goes on until `stopping` fires.
    pub async fn follow_operator(self, renamed: impl Fn(Uid), stopping: CancellationToken) {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut seen = None;
        while stopping.run_until_cancelled(looks.tick()).await.is_some() {
            // If storage does not answer, the next tick asks again.
            let Ok(endings) = self.0.directory.endings().await else { continue };
            if seen == Some(endings) {
                continue;
            }
            let Ok(changed) = self.confirm().await else { continue };
            changed.into_iter().for_each(&renamed);
            seen = Some(endings);
        }
    }

    /// A ticket that opens one WebSocket of `session` within 30 seconds.
    pub async fn ticket(&self, session: &Arc<LiveSession>) -> Result<Token, AccountError> {
        let ticket = Token::random(&mut rand::rng());
        self.0.tickets.give(ticket.hash(), session, self.0.clock.now())?;
        if let Some(others) = &self.0.others {
            others.tickets.keep_ticket(&ticket.hash(), &session.token_hash, TICKET_LIFETIME_MS).await?;
        }
        Ok(ticket)
    }

    /// The session that `ticket` opens a WebSocket of; it is used up.
    pub async fn redeem(&self, ticket: &str) -> Result<Option<Arc<LiveSession>>, StoreError> {
        let ticket = hash_of(ticket);
        let Some(others) = &self.0.others else {
            return Ok(self.0.tickets.take(&ticket, self.0.clock.now()));
        };
        // Memory only counts them then: what it has may have been redeemed elsewhere.
        match others.tickets.take_ticket(&ticket).await? {
            Some(session) => self.session_of(session).await,
            None => Ok(None),
        }
    }

    /// Whether `session` has ended or expired by now.
    pub fn is_over(&self, session: &LiveSession) -> bool {
        session.is_over(self.0.clock.now())
    }

    /// Forgets expired sessions and invitations of accounts in storage, and names that were given up long enough ago, `limit` of each at a
    /// time. Says how many went.
    pub async fn forget_expired(&self, limit: usize) -> Result<u64, StoreError> {
        let now = self.0.clock.now();
        let invites = self.0.directory.forget_sign_up_invites(now, limit).await?;
        let names = self.free_former_names(limit).await?;
        Ok(invites + names + self.0.directory.forget_expired(now, limit).await?)
    }
}
