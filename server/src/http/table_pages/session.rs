//! With which access key a browser looks at tables: a token in a cookie, which names the key and an end and is signed with the key's
//! secret. Of a sign-in nothing is stored; who signs out is counted with the key, and the count is signed, too. So that ends all that was
//! signed with the key before, and a revoked key ends it all. Pure.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use tidemark_table::hex::{hex, unhex};

use crate::domain::Timestamp;

/// How long a browser is signed in.
pub(super) const LIFETIME_SECONDS: u32 = 8 * 60 * 60;

/// The beginning of the signed text: no signature of another text passes for a token's.
const PURPOSE: &str = "tidemark tables page 1";

/// The longest id of an access key.
const LONGEST_ID: usize = 64;

/// A token that somebody shows. Nothing is known of it until [`is_signed_by`](Token::is_signed_by) says so.
pub(super) struct Token<'a> {
    pub(super) key_id: &'a str,
    /// In milliseconds since 1970.
    ends_at: i64,
    signature: Vec<u8>,
}

/// A token for who knows `secret`. It counts while the key has as many sign-outs as these. The id must be one ([`is_key_id`]).
pub(super) fn issue(key_id: &str, secret: &str, sign_outs: i64, now: Timestamp) -> String {
    let ends_at = now.0.saturating_add(i64::from(LIFETIME_SECONDS) * 1_000);
    let signature = signing(key_id, ends_at, secret, sign_outs).finalize().into_bytes();
    format!("{key_id}.{ends_at}.{}", hex(&signature))
}

/// Whether a text can be the id of an access key.
pub(super) fn is_key_id(text: &str) -> bool {
    (1..=LONGEST_ID).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

impl<'a> Token<'a> {
    /// The token in `text`, if it is one that has not ended.
    pub(super) fn read(text: &'a str, now: Timestamp) -> Option<Token<'a>> {
        let mut parts = text.split('.');
        let (Some(key_id), Some(ends_at), Some(digits), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        let ends_at = ends_at.parse().ok().filter(|ends_at| now.0 < *ends_at)?;
        let signature = unhex(digits).filter(|_| digits.len() == 64)?;
        is_key_id(key_id).then_some(Token { key_id, ends_at, signature })
    }

    /// Whether it was signed with `secret` and this count of sign-outs. Takes as long for a wrong signature, wherever it differs.
    pub(super) fn is_signed_by(&self, secret: &str, sign_outs: i64) -> bool {
        signing(self.key_id, self.ends_at, secret, sign_outs).verify_slice(&self.signature).is_ok()
    }
}

fn signing(key_id: &str, ends_at: i64, secret: &str, sign_outs: i64) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any length is a key");
    mac.update(format!("{PURPOSE}\n{key_id}\n{ends_at}\n{sign_outs}").as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_795_309_323_000);
    const LIFETIME: i64 = 8 * 60 * 60 * 1_000;

    #[test]
    fn a_token_counts_for_its_key_its_secret_and_its_time() {
        let text = issue("TIDE1", "secret", 3, NOW);
        let token = Token::read(&text, Timestamp(NOW.0 + LIFETIME - 1)).expect("a token");
        assert_eq!(token.key_id, "TIDE1");
        assert!(token.is_signed_by("secret", 3) && !token.is_signed_by("secret", 4));
        assert!(!token.is_signed_by("Secret", 3) && !token.is_signed_by("", 3));
        assert!(Token::read(&text, Timestamp(NOW.0 + LIFETIME)).is_none(), "ended");
        assert!(!text.contains("secret"));
    }

    #[test]
    fn what_was_changed_is_not_signed() {
        let text = issue("TIDE1", "secret", 3, NOW);
        let later = text.replacen(&format!("{}", NOW.0 + LIFETIME), &format!("{}", NOW.0 + LIFETIME + 1), 1);
        let other = text.replacen("TIDE1", "TIDE2", 1);
        for changed in [later, other] {
            assert!(changed != text);
            assert!(!Token::read(&changed, NOW).expect("well-formed").is_signed_by("secret", 3), "{changed}");
        }
        let long = format!("{}.{}.{}", "x".repeat(65), i64::MAX, "0".repeat(64));
        for wrong in ["", ".", "..", "a.b.c", "TIDE1.9999999999999.00", &text[1..].replace('.', ""), &long] {
            assert!(Token::read(wrong, NOW).is_none(), "{wrong}");
        }
        assert!(Token::read(&format!("{text}.x"), NOW).is_none());
        assert!(Token::read(&format!("é{text}"), NOW).is_none());
    }
}
