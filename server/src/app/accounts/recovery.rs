//! Recovery codes: a way back in after a forgotten password. Each is 80 random bits, shown once and kept as SHA-256 alone: to
//! find one from its hash takes 2^79 tries, so a slow hash as for passwords would add nothing.

use std::fmt;

use rand::Rng as _;
use sha2::{Digest as _, Sha256};

use super::rules::{check_password, is_too_long};
use super::{AccountError, Accounts, SignedIn};
use crate::app::sessions::LiveSession;
use crate::domain::Uid;
use crate::notify::Hint;
use crate::store::{CodeHash, StoreError};

/// Codes of an account.
pub(super) const CODES: usize = 8;

/// Digits and letters without I, L, O and U (Crockford's base 32): nobody takes one for another.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Letters and digits of a code; each has five bits.
const LENGTH: usize = 16;

/// The prefix of the hashed text.
const PURPOSE: &str = "tidemark recovery 1";

/// The codes of an account, as their owner keeps them.
#[derive(Clone, Default)]
pub struct RecoveryCodes(Vec<String>);

impl RecoveryCodes {
    /// New ones.
    pub(super) fn draw() -> RecoveryCodes {
        let mut rng = rand::rng();
        let mut code = || {
            let mut bits = [0; LENGTH];
            rng.fill_bytes(&mut bits);
            let letters = bits.map(|byte| char::from(ALPHABET[usize::from(byte % 32)]));
            letters.chunks(4).map(String::from_iter).collect::<Vec<_>>().join("-")
        };
        RecoveryCodes((0..CODES).map(|_| code()).collect())
    }

    /// Each as it is written down: `K7QF-…`.
    pub fn texts(&self) -> &[String] {
        &self.0
    }

    /// By what storage knows them.
    pub(super) fn hashes(&self, uid: Uid) -> Vec<CodeHash> {
        self.0.iter().filter_map(|text| hash_of(uid, text)).collect()
    }
}

/// Codes stay out of logs.
impl fmt::Debug for RecoveryCodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecoveryCodes(…)")
    }
}

/// The hash of a typed code, as storage would have it: in any case, with or without signs between the letters. `None`: it cannot be
/// one.
fn hash_of(uid: Uid, typed: &str) -> Option<CodeHash> {
    let mut letters = String::with_capacity(LENGTH);
    for letter in typed.chars().filter(|letter| !letter.is_whitespace() && *letter != '-') {
        let letter = match letter.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            letter => letter,
        };
        let is_one = u8::try_from(letter).is_ok_and(|letter| ALPHABET.contains(&letter));
        if !is_one || letters.len() == LENGTH {
            return None;
        }
        letters.push(letter);
    }
    let is_whole = letters.len() == LENGTH;
    is_whole.then(|| Sha256::digest(format!("{PURPOSE}\n{uid}\n{letters}")).into())
}

impl Accounts {
    /// Sets another password in exchange for a recovery code, which is used up. All sessions of the account end, and a new one begins.
    pub async fn recover(
        &self,
        name: &str,
        code: &str,
        new: String,
        label: String,
    ) -> Result<SignedIn, AccountError> {
        check_password(&new, name)?;
        let account = self.account_called(name).await?.filter(|account| account.deleted_at.is_none());
        // An unknown name and a wrong code are the same question to storage.
        let uid = account.as_ref().map_or(Uid(0), |account| account.uid);
        let hash = hash_of(uid, code).ok_or(AccountError::WrongRecoveryCode)?;
        let is_right = self.0.directory.has_recovery_code(uid, &hash).await?;
        let Some(account) = account.filter(|_| is_right) else { return Err(AccountError::WrongRecoveryCode) };
        let password_hash = self.0.passwords.hash(new).await?;
        let (signed_in, session) = self.new_session(uid, account.name, &password_hash, label);
        let kept = session.token_hash;
        if !self.0.directory.recover(&hash, &password_hash, session).await? {
            return Err(AccountError::WrongRecoveryCode);
        }
        self.end_others_here(uid, &kept);
        self.tell(Hint::OtherSessionsEnded(uid, kept));
        Ok(signed_in)
    }

    /// How many recovery codes `uid` has left.
    pub async fn recovery_codes_left(&self, uid: Uid) -> Result<u64, StoreError> {
        self.0.directory.recovery_codes(uid).await
    }

    /// New recovery codes for the account of `session`, if `password` is right. The old ones no longer count.
    pub async fn new_recovery_codes(
        &self,
        session: &LiveSession,
        password: String,
    ) -> Result<RecoveryCodes, AccountError> {
        let checked = self.check_current(session, password).await?;
        let codes = RecoveryCodes::draw();
        let hashes = codes.hashes(session.uid);
        match self.0.directory.put_recovery_codes(session.uid, &checked, &hashes).await? {
            true => Ok(codes),
            false => Err(AccountError::WrongPassword),
        }
    }

    /// The hash of the password of the account of `session`, if `password` is that one.
    pub(super) async fn check_current(
        &self,
        session: &LiveSession,
        password: String,
    ) -> Result<String, AccountError> {
        if is_too_long(&password) {
            return Err(AccountError::WrongPassword);
        }
        let stored = self.0.directory.account(session.uid).await?.map(|account| account.password_hash);
        match self.0.passwords.matches(password, stored.clone()).await? {
            true => Ok(stored.unwrap_or_default()),
            false => Err(AccountError::WrongPassword),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_many_long_and_different_and_do_not_show_themselves() {
        let codes = RecoveryCodes::draw();
        assert_eq!(codes.texts().len(), CODES);
        for code in codes.texts() {
            assert_eq!(code.len(), 19, "{code}");
            assert_eq!(codes.texts().iter().filter(|other| *other == code).count(), 1);
        }
        assert_eq!(format!("{codes:?}"), "RecoveryCodes(…)");
        assert_eq!(codes.hashes(Uid(7)).len(), CODES);
    }

    #[test]
    fn a_code_is_read_however_it_is_typed_and_counts_for_one_account() {
        let right = hash_of(Uid(7), "01AB-CDEF-GHJK-MNPQ");
        assert!(right.is_some());
        for typed in ["01abcdefghjkmnpq", " oiAB cdef GHJK mnpq ", "O-L-ab-cd-ef-gh-jk-mn-pq"] {
            assert_eq!(hash_of(Uid(7), typed), right, "{typed}");
        }
        assert_ne!(hash_of(Uid(8), "01AB-CDEF-GHJK-MNPQ"), right);
        for wrong in
            ["", "01AB-CDEF-GHJK-MNP", "01AB-CDEF-GHJK-MNPQ-R", "U1AB-CDEF-GHJK-MNPQ", "é1AB-CDEF-GHJK-MNPQ"]
        {
            assert_eq!(hash_of(Uid(7), wrong), None, "{wrong}");
        }
    }
}
