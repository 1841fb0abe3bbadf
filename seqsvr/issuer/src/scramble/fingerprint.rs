//! The fingerprint of a codec, stored beside the codes that it wrote: enough to notice that a key, an alphabet or a range was changed,
//! nothing from which a key could be found. Pure.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};
use thiserror::Error;

use super::options::{CodeKey, CodecOptions};
use crate::Tag;

/// Identifies everything that decides the codes of one key version; 32 hex digits as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; 16]);

/// The codec would write or read other codes than those that exist.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "tag {tag}: codes of key version {version} exist, but its secret, the alphabet, the range or check_symbol was \
     changed since: restore them, and add a new key version to change the secret"
)]
pub struct CodecChanged {
    /// The tag.
    pub tag: Tag,
    /// The version that does not match.
    pub version: u8,
}

impl Fingerprint {
    pub(super) fn of(tag: &Tag, options: &CodecOptions, key: &CodeKey) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"seqsvr scramble fingerprint 1");
        let CodecOptions { range, alphabet, check_symbol, .. } = options;
        for part in [tag.as_str().as_bytes(), alphabet.as_bytes(), key.secret.as_bytes()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        for number in [range.first, range.last, u64::from(*check_symbol), u64::from(key.version)] {
            hash.update(number.to_be_bytes());
        }
        Self(hash.finalize()[..16].try_into().expect("sixteen of thirty-two bytes"))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A stored text that is no fingerprint.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("a fingerprint has 32 hex digits")]
pub struct BadFingerprint;

impl FromStr for Fingerprint {
    type Err = BadFingerprint;

    fn from_str(text: &str) -> Result<Self, BadFingerprint> {
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(BadFingerprint);
        }
        let number = u128::from_str_radix(text, 16).map_err(|_| BadFingerprint)?;
        Ok(Self(number.to_be_bytes()))
    }
}
