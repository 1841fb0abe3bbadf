//! Known devices. A log-in leaves a token with the device. Later attempts that show it are counted apart from strangers'
//! attempts, so an attacker that guesses passwords does not lock the owner out.
//!
//! Nothing is stored: a token is signed with the salt of the password that was right, so it counts for that account, until its time is
//! over or the password is another one. It opens nothing by itself.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use tidemark_table::hex::{hex, unhex};

use super::{Accounts, DAY_MS};
use crate::app::tokens::Token;
use crate::domain::{Timestamp, Uid};
use crate::store::{Account, StoreError};

/// How long a device is known after a log-in, in days.
const KNOWN_DAYS: i64 = 365;

/// The prefix of the signed text, so that a signature of something else is not valid for a token.
const PURPOSE: &str = "tidemark device 1";

/// A device on which the account was logged in to before.
#[derive(Clone, Debug)]
pub struct KnownDevice {
    /// By what its attempts are counted.
    pub name: String,
    /// The token that it keeps. A log-in gives it no other, because attempts under a new one would be counted anew.
    pub token: Option<DeviceToken>,
}

/// The token that such a device sends with its next log-in.
#[derive(Clone)]
pub struct DeviceToken {
    /// The text; letters, digits and points.
    pub text: String,
    /// For how long it counts, in seconds.
    pub lifetime_seconds: u64,
}

/// Tokens stay out of logs.
impl std::fmt::Debug for DeviceToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DeviceToken(…)")
    }
}

impl DeviceToken {
    /// A new token for a device that sent the password behind `password_hash`.
    pub(super) fn issue(uid: Uid, password_hash: &str, now: Timestamp) -> DeviceToken {
        let nonce = &Token::random(&mut rand::rng()).as_str()[..32].to_owned();
        let lifetime = KNOWN_DAYS * DAY_MS;
        let ends_at = now.0.saturating_add(lifetime);
        let signature = hex(&signing(uid, nonce, ends_at, password_hash).finalize().into_bytes());
        let text = format!("{nonce}.{ends_at}.{signature}");
        DeviceToken { text, lifetime_seconds: lifetime.unsigned_abs() / 1_000 }
    }
}

/// A token that somebody shows. Nothing is known of it until [`is_of`](Shown::is_of) says so.
struct Shown<'a> {
    nonce: &'a str,
    ends_at: i64,
    signature: Vec<u8>,
}

impl<'a> Shown<'a> {
    /// The token in `text`, if it has the form of one that has not ended.
    fn read(text: &'a str, now: Timestamp) -> Option<Shown<'a>> {
        let mut parts = text.split('.');
        let (Some(nonce), Some(ends_at), Some(digits), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        let is_nonce = nonce.len() == 32 && nonce.bytes().all(|byte| byte.is_ascii_hexdigit());
        let ends_at = ends_at.parse().ok().filter(|ends_at| is_nonce && now.0 < *ends_at)?;
        let signature = unhex(digits).filter(|_| digits.len() == 64)?;
        Some(Shown { nonce, ends_at, signature })
    }

    /// Whether it was left with a device of this account, which still has the password of that time.
    fn is_of(&self, account: &Account) -> bool {
        let signing = signing(account.uid, self.nonce, self.ends_at, &account.password_hash);
        signing.verify_slice(&self.signature).is_ok()
    }
}

/// By the salt of the password, which is as secret as its hash, and stays when the same password is hashed at another cost.
fn signing(uid: Uid, nonce: &str, ends_at: i64, password_hash: &str) -> Hmac<Sha256> {
    let salt = password_hash.rsplit('$').nth(1).unwrap_or(password_hash);
    let mut mac = Hmac::<Sha256>::new_from_slice(salt.as_bytes()).expect("any length is a key");
    mac.update(format!("{PURPOSE}\n{uid}\n{nonce}\n{ends_at}").as_bytes());
    mac
}

impl Accounts {
    /// Whether `text` has the form of a token of a device; else nothing needs to be looked up.
    pub fn may_be_known(&self, text: &str) -> bool {
        Shown::read(text, self.0.clock.now()).is_some()
    }

    /// The device that shows the token `text`, if somebody has logged in on it as `name` before.
    pub async fn known_device(&self, name: &str, text: &str) -> Result<Option<KnownDevice>, StoreError> {
        let Some(shown) = Shown::read(text, self.0.clock.now()) else { return Ok(None) };
        let account = self.account_called(name).await?;
        let left = shown.ends_at.saturating_sub(self.0.clock.now().0).max(0).unsigned_abs() / 1_000;
        let token = DeviceToken { text: text.to_owned(), lifetime_seconds: left };
        let known = KnownDevice { name: shown.nonce.to_owned(), token: Some(token) };
        Ok(account.filter(|account| shown.is_of(account)).map(|_| known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_795_309_323_000);

    fn account(uid: u32, password_hash: &str) -> Account {
        let (name, password_hash) = ("ann".into(), password_hash.into());
        Account { uid: Uid(uid), name, password_hash, disabled: false, deleted_at: None }
    }

    #[test]
    fn a_token_counts_for_its_account_its_password_and_its_time() {
        let token = DeviceToken::issue(Uid(10_001), "a hash", NOW);
        let end = NOW.0 + KNOWN_DAYS * DAY_MS;
        let shown = Shown::read(&token.text, Timestamp(end - 1)).expect("a token");
        assert!(shown.is_of(&account(10_001, "a hash")));
        assert!(!shown.is_of(&account(10_002, "a hash")) && !shown.is_of(&account(10_001, "another")));
        assert!(Shown::read(&token.text, Timestamp(end)).is_none(), "ended");
        assert!(!format!("{token:?}").contains(&token.text[..8]));
    }

    #[test]
    fn what_was_not_issued_is_no_token() {
        let token = DeviceToken::issue(Uid(10_001), "a hash", NOW).text;
        let later = token.replacen(&(NOW.0 + KNOWN_DAYS * DAY_MS).to_string(), "1999999999999999", 1);
        let shown = Shown::read(&later, NOW).expect("has the form of one");
        assert!(!shown.is_of(&account(10_001, "a hash")), "its end is signed");
        for wrong in ["", ".", "..", "a.b.c", &token[1..], &format!("{token}0"), &format!("{token}.x")] {
            assert!(Shown::read(wrong, NOW).is_none(), "{wrong}");
        }
    }
}
