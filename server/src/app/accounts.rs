//! Accounts: signing up, logging in and out, finding people, and what the operator may do to them.
//!
//! Owns the live sessions and counts the tickets, both bounded and in memory; everything durable is the directory's.
//! With several servers tickets are rows of the database, and ends of sessions are told to the others ([`Others`]). The
//! HTTP layer calls it for every request, and so does `tidemark user`, on SQLite while the server is stopped.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use self::rules::{check_password, checked_name, has_length_of_name, is_too_long};
use super::passwords::{PASSWORD_TURNS, Passwords};
use super::sessions::{LiveSession, SessionCache};
use super::tickets::Tickets;
use super::tokens::{Token, hash_of};
use crate::domain::{Clock, Timestamp, Uid, is_official, is_reserved, normal_name};
use crate::notify::{Hint, Hints};
use crate::seq::Ids;
use crate::store::{
    Account, Directory, NewAccount, Session, SharedRates, SignedUp, StoreError, Tickets as SharedTickets,
};

mod deletion;
mod devices;
mod error;
mod invitations;
mod open;
mod operator;
mod recovery;
mod renaming;
mod rules;

pub use devices::{DeviceToken, KnownDevice};
pub use error::AccountError;
pub use invitations::{NewSignUpInvite, OpenSignUpInvite};
pub use open::LABEL_CHARACTERS;
pub use recovery::RecoveryCodes;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Sessions that an account may have at a time: a log-in beyond it ends the oldest.
const MOST_SESSIONS: usize = 100;

/// Sessions kept in memory.
const CACHED_SESSIONS: usize = 100_000;

/// Tickets within 30 seconds, over all sessions.
const MOST_TICKETS: usize = 10_000;

/// The people that may make an account, as it is written in the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignUp {
    /// Everybody who reaches the server.
    #[default]
    Open,
    /// People with an invitation of somebody who has an account, or of the operator.
    Invitation,
    /// The operator alone, by `tidemark user add`.
    Closed,
}

/// The options of accounts.
#[derive(Clone, Copy, Debug)]
pub struct AccountOptions {
    /// The people that may make an account.
    pub sign_up: SignUp,
    /// How many invitations to sign up that are open one account may have.
    pub open_invites: usize,
    /// How many accounts may be made by one of them.
    pub sign_ups_per_invite: u32,
    /// How long a session lasts, in days.
    pub session_days: u32,
    /// argon2id: memory of one hash, in KiB; at least 8.
    pub password_memory_kib: u32,
}

/// A session just begun; the token is shown this once.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// The account's uid.
    pub uid: Uid,
    /// The account's name.
    pub name: String,
    /// The token that the client sends from now on.
    pub token: Token,
    /// How long it is good for, in seconds.
    pub lifetime_seconds: u64,
    /// By what the device is known when it logs in again.
    pub device: DeviceToken,
}

/// An attempt to sign up or to log in, which all servers count together.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The kind of attempt and the caller that a limit counts: the same text on every server.
    pub caller: String,
    /// Between two of them in the long run; zero lifts the limit.
    pub interval: Duration,
    /// By how much a caller may run ahead.
    pub burst: Duration,
}

/// Everything about accounts. Cheap to clone.
#[derive(Clone)]
pub struct Accounts(Arc<AccountParts>);

/// Other servers with the same accounts.
#[derive(Clone)]
pub struct Others {
    /// They are told of sessions that end here.
    pub hints: Arc<dyn Hints>,
    /// They count attempts together with this server.
    pub rates: Arc<dyn SharedRates>,
    /// They redeem tickets that were given here.
    pub tickets: Arc<dyn SharedTickets>,
}

struct AccountParts {
    directory: Arc<Directory>,
    clock: Clock,
    passwords: Passwords,
    sessions: SessionCache,
    tickets: Tickets,
    session_days: u32,
    sign_up: SignUp,
    open_invites: usize,
    sign_ups_per_invite: u32,
    others: Option<Others>,
    /// An account is deleted.
    deleted: Notify,
}

impl Accounts {
    /// Accounts over `directory`.
    pub fn new(directory: Arc<Directory>, options: AccountOptions, clock: Clock) -> Accounts {
        Accounts::beside(directory, options, clock, None)
    }

    /// The same, where `others` have the same accounts.
    pub fn beside(
        directory: Arc<Directory>,
        options: AccountOptions,
        clock: Clock,
        others: Option<Others>,
    ) -> Accounts {
        Accounts(Arc::new(AccountParts {
            directory,
            clock,
            passwords: Passwords::new(options.password_memory_kib, PASSWORD_TURNS),
            sessions: SessionCache::new(CACHED_SESSIONS),
            tickets: Tickets::new(MOST_TICKETS),
            session_days: options.session_days,
            sign_up: options.sign_up,
            open_invites: options.open_invites,
            sign_ups_per_invite: options.sign_ups_per_invite,
            others,
            deleted: Notify::new(),
        }))
    }

    /// Counts an attempt that passed this server's own limits, together with the other servers.
    ///
    /// # Errors
    /// [`AccountError::TooOften`].
    pub async fn count(&self, attempts: &[Attempt]) -> Result<(), AccountError> {
        let Some(others) = &self.0.others else { return Ok(()) };
        for Attempt { caller, interval, burst } in attempts.iter().filter(|one| !one.interval.is_zero()) {
            if let Some(wait) = others.rates.take(&hash_of(caller), *interval, *burst).await? {
                return Err(AccountError::TooOften(wait));
            }
        }
        Ok(())
    }

    /// Makes an account under a uid of `ids`, and logs it in. `invite` is what stands in the link of an invitation, which counts where not
    /// everybody may make an account.
    pub async fn sign_up(
        &self,
        (name, password): (&str, String),
        invite: Option<&str>,
        label: String,
        ids: &Ids,
    ) -> Result<(SignedIn, RecoveryCodes), AccountError> {
        if self.0.sign_up == SignUp::Closed {
            return Err(AccountError::SignUpClosed);
        }
        if !self.may_sign_up(invite).await? {
            return Err(AccountError::NotInvited);
        }
        let invite = invite.filter(|_| self.0.sign_up == SignUp::Invitation).map(hash_of);
        if is_official(name) {
            return Err(AccountError::NameResembles);
        }
        let account = self.new_account(name, password).await?;
        let uid = ids.uid().await?;
        let (signed_in, session) = self.new_session(uid, account.name.clone(), &account.password_hash, label);
        let codes = RecoveryCodes::draw();
        let hashes = codes.hashes(uid);
        match self.0.directory.sign_up(uid, account, session, &hashes, invite.as_ref()).await? {
            SignedUp::Made => Ok((signed_in, codes)),
            SignedUp::NameTaken => Err(self.why_not(name).await?),
            SignedUp::NotInvited => Err(AccountError::NotInvited),
        }
    }

    /// Why `name` is not free.
    async fn why_not(&self, name: &str) -> Result<AccountError, StoreError> {
        Ok(match self.0.directory.account_by_name(&normal_name(name)).await? {
            Some(_) => AccountError::NameTaken,
            None => AccountError::NameResembles,
        })
    }

    /// An account that can be made, unless somebody else takes the name first.
    async fn new_account(&self, name: &str, password: String) -> Result<NewAccount, AccountError> {
        let name = checked_name(name)?;
        check_password(&password, &name)?;
        // Asked before the costly hash; the directory decides.
        if self.0.directory.account_by_name(&name).await?.is_some() {
            return Err(AccountError::NameTaken);
        }
        if is_reserved(&name) || self.0.directory.has_look_alike(&name).await? {
            return Err(AccountError::NameResembles);
        }
        let password_hash = self.0.passwords.hash(password).await?;
        Ok(NewAccount { name, password_hash, created_at: self.0.clock.now() })
    }

    /// The account of this name. Not by the rule for new names: imported accounts keep theirs.
    async fn account_called(&self, name: &str) -> Result<Option<Account>, StoreError> {
        match normal_name(name) {
            name if has_length_of_name(&name) => self.0.directory.account_by_name(&name).await,
            _ => Ok(None),
        }
    }

    /// Begins a session on a device that is called `label`, and keeps `device` if it is known by that. An unknown name costs as much as a
    /// wrong password.
    pub async fn log_in(
        &self,
        name: &str,
        password: String,
        label: String,
        device: Option<DeviceToken>,
    ) -> Result<SignedIn, AccountError> {
        if is_too_long(&password) {
            return Err(AccountError::WrongCredentials);
        }
        // A deleted one costs as much as an unknown one.
        let account = self.account_called(name).await?.filter(|account| account.deleted_at.is_none());
        let stored = account.as_ref().map(|account| account.password_hash.clone());
        let right = self.0.passwords.matches(password.clone(), stored).await?;
        match account {
            Some(account) if right && !account.disabled => {
                let account = self.hashed_anew(account, password.clone()).await;
                let uid = account.uid;
                let signed_in = match self.begin(account, label.clone()).await {
                    // Another log-in may have hashed the same password anew.
                    Err(AccountError::WrongCredentials) => self.begin_again(uid, password, label).await?,
                    begun => begun?,
                };
                Ok(SignedIn { device: device.unwrap_or(signed_in.device), ..signed_in })
            }
            _ => Err(AccountError::WrongCredentials),
        }
    }

    /// The account with a hash of what the configuration says a hash costs; only here the password is known.
    async fn hashed_anew(&self, account: Account, password: String) -> Account {
        if self.0.passwords.is_current(&account.password_hash) {
            return account;
        }
        // Where many wait, or nothing can be stored, another time will do.
        let hashed = self.0.passwords.hash_anew(password, &account.password_hash).await;
        let Ok(password_hash) = hashed else { return account };
        let kept = self.0.directory.replace_hash(account.uid, &account.password_hash, &password_hash).await;
        if kept.is_ok_and(|is_kept| is_kept) { Account { password_hash, ..account } } else { account }
    }

    /// A session of the account as it is by now, if the password is still right.
    async fn begin_again(&self, uid: Uid, password: String, label: String) -> Result<SignedIn, AccountError> {
        let account = self.0.directory.account(uid).await?.filter(|account| !account.disabled);
        let account = account.ok_or(AccountError::WrongCredentials)?;
        match self.0.passwords.matches(password, Some(account.password_hash.clone())).await? {
            true => self.begin(account, label).await,
            false => Err(AccountError::WrongCredentials),
        }
    }

    async fn begin(&self, account: Account, label: String) -> Result<SignedIn, AccountError> {
        let (signed_in, session) = self.new_session(account.uid, account.name, &account.password_hash, label);
        if !self.0.directory.create_session(session, &account.password_hash).await? {
            return Err(AccountError::WrongCredentials);
        }
        self.end_oldest(account.uid).await?;
        Ok(signed_in)
    }

    /// Ends the oldest sessions of `uid` beyond as many as an account may have.
    async fn end_oldest(&self, uid: Uid) -> Result<(), StoreError> {
        let open = self.0.directory.sessions(uid, self.0.clock.now(), MOST_SESSIONS + 1).await?;
        for Session { token_hash, .. } in open.into_iter().skip(MOST_SESSIONS) {
            self.0.directory.end_session(&token_hash).await?;
            self.end_here(&token_hash);
            self.tell(Hint::SessionEnded(token_hash));
        }
        Ok(())
    }

    /// A session, which the caller stores before it tells the token.
    fn new_session(&self, uid: Uid, name: String, password_hash: &str, label: String) -> (SignedIn, Session) {
        let token = Token::random(&mut rand::rng());
        let created_at = self.0.clock.now();
        let lifetime = i64::from(self.0.session_days) * DAY_MS;
        let expires_at = Timestamp(created_at.0 + lifetime);
        let session = Session { token_hash: token.hash(), uid, created_at, expires_at, label };
        let lifetime_seconds = lifetime.unsigned_abs() / 1_000;
        let device = DeviceToken::issue(uid, password_hash, created_at);
        (SignedIn { uid, name, token, lifetime_seconds, device }, session)
    }

    /// Gives the account of `session` another password. All its other sessions end; their sockets close. Other devices are no
    /// longer known; this one is, by the returned token.
    pub async fn change_password(
        &self,
        session: &LiveSession,
        current: String,
        new: String,
    ) -> Result<DeviceToken, AccountError> {
        check_password(&new, &self.name(session.uid).await?.unwrap_or_default())?;
        let checked = self.check_current(session, current).await?;
        let hash = self.0.passwords.hash(new).await?;
        let (uid, kept) = (session.uid, session.token_hash);
        if !self.0.directory.change_password(uid, &checked, &hash, &kept).await? {
            return Err(AccountError::WrongPassword);
        }
        self.end_others_here(uid, &kept);
        self.tell(Hint::OtherSessionsEnded(uid, kept));
        Ok(DeviceToken::issue(uid, &hash, self.0.clock.now()))
    }

    /// The name of `uid`, if there is such an account.
    pub async fn name(&self, uid: Uid) -> Result<Option<String>, StoreError> {
        Ok(self.0.directory.names(&[uid]).await?.pop().flatten())
    }

    /// Takes names that an import stored into the index of names, `limit` at a time. Says how many.
    pub async fn index_names(&self, limit: usize) -> Result<u64, StoreError> {
        self.0.directory.index_names(limit).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> AccountOptions {
        AccountOptions {
            sign_up: SignUp::Open,
            open_invites: 1,
            sign_ups_per_invite: 1,
            session_days: 1,
            password_memory_kib: 8,
        }
    }

    #[tokio::test]
    async fn whose_name_could_not_be_taken_today_logs_in_as_before() {
        let directory = Arc::new(Directory::in_memory());
        let accounts = Accounts::new(directory.clone(), options(), Clock::new(|| Timestamp(7)));
        let name = "An\u{200b}n  Lee";
        let password_hash = accounts.0.passwords.hash("correct horse".to_owned()).await.expect("room");
        let account = NewAccount { name: name.to_owned(), password_hash, created_at: Timestamp(1) };
        assert!(directory.create_account(Uid(10_001), account, None).await.expect("made"));
        let signed_in =
            accounts.log_in(&format!(" {name} "), "correct horse".to_owned(), String::new(), None).await;
        assert_eq!(signed_in.expect("right").uid, Uid(10_001));
        let ids = Ids::in_memory("a secret of the tests").await.expect("opens");
        let bob = ("Bo\u{200b}b", "correct horse".to_owned());
        let taken = accounts.sign_up(bob, None, String::new(), &ids).await;
        assert!(matches!(taken, Err(AccountError::BadName)), "{taken:?}");
    }

    #[tokio::test]
    async fn a_log_in_brings_the_hash_to_the_configured_cost() {
        let directory = Arc::new(Directory::in_memory());
        let open = |password_memory_kib| {
            let options = AccountOptions { password_memory_kib, ..options() };
            Accounts::new(directory.clone(), options, Clock::new(|| Timestamp(7)))
        };
        let (before, after) = (open(8), open(16));
        let password_hash = before.0.passwords.hash("correct horse".to_owned()).await.expect("room");
        let account = NewAccount { name: "ann".to_owned(), password_hash, created_at: Timestamp(1) };
        assert!(directory.create_account(Uid(10_001), account, None).await.expect("made"));
        let log_in = async |accounts: &Accounts, password: &str| {
            accounts.log_in("ann", password.to_owned(), String::new(), None).await.is_ok()
        };
        let stored =
            async || directory.account_by_name("ann").await.expect("asked").expect("there").password_hash;
        assert!(!log_in(&after, "wrong horse").await && stored().await.contains("m=8,"));
        assert!(log_in(&after, "correct horse").await && stored().await.contains("m=16,"));
        let once = stored().await;
        let (one, other) = tokio::join!(log_in(&before, "correct horse"), log_in(&after, "correct horse"));
        assert!(one && other, "two of different costs at a time");
        assert!(log_in(&after, "correct horse").await);
        assert_eq!(stored().await, once, "under the same salt it is the same hash, and devices stay known");
    }

    #[tokio::test]
    async fn the_oldest_session_ends_when_there_are_too_many() {
        let directory = Arc::new(Directory::in_memory());
        let now = Arc::new(std::sync::atomic::AtomicI64::new(1));
        let hands = Arc::clone(&now);
        let clock = Clock::new(move || Timestamp(hands.load(std::sync::atomic::Ordering::Relaxed)));
        let accounts = Accounts::new(directory.clone(), options(), clock);
        let password_hash = accounts.0.passwords.hash("correct horse".to_owned()).await.expect("room");
        let account = NewAccount { name: "ann".to_owned(), password_hash, created_at: Timestamp(1) };
        assert!(directory.create_account(Uid(10_001), account, None).await.expect("made"));
        let mut tokens = Vec::new();
        for _ in 0..=MOST_SESSIONS {
            now.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let log_in = accounts.log_in("ann", "correct horse".to_owned(), String::new(), None).await;
            let token = log_in.expect("right").token;
            assert!(accounts.session(token.as_str()).await.expect("asked").is_some());
            tokens.push(token);
        }
        let mut open = Vec::new();
        for token in &tokens {
            open.push(accounts.session(token.as_str()).await.expect("asked").is_some());
        }
        assert_eq!(open.iter().filter(|open| !**open).count(), 1);
        assert!(!open[0], "the oldest");
    }
}
