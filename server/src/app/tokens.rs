//! Secrets that stand for a person: made at random, handed out once, kept only as a hash.

use std::fmt;

use rand::CryptoRng;
use sha2::{Digest as _, Sha256};

/// 256 random bits in hexadecimal: a session's token, or a ticket.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// SHA-256 of a token: memory and storage keep only this.
pub(super) type TokenHash = [u8; 32];

impl Token {
    /// A new one from `rng`.
    pub fn random(rng: &mut impl CryptoRng) -> Token {
        let mut bits = [0; 32];
        rng.fill_bytes(&mut bits);
        Token::of(bits)
    }

    /// A token of these bits. Nobody else may be able to guess them.
    pub fn of(bits: [u8; 32]) -> Token {
        Token(bits.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The text that its holder shows.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its hash, under which it is stored.
    pub fn hash(&self) -> TokenHash {
        hash_of(&self.0)
    }
}

/// The hash by which the token `text` would be known.
pub(super) fn hash_of(text: &str) -> TokenHash {
    Sha256::digest(text.as_bytes()).into()
}

/// Tokens stay out of logs.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_safe_in_an_address_and_does_not_show_itself() {
        let token = Token::random(&mut rand::rng());
        assert_eq!(token.as_str().len(), 64);
        assert!(token.as_str().bytes().all(|b| b.is_ascii_hexdigit()));
        assert!(!format!("{token:?}").contains(&token.as_str()[..8]));
        assert_ne!(token.as_str(), Token::random(&mut rand::rng()).as_str());
        assert_eq!(token.hash(), hash_of(token.as_str()));
    }
}
