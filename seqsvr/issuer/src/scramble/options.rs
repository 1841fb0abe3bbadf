//! The settings of a codec, and what is wrong with those that are refused.

use std::fmt;

use thiserror::Error;

use super::alphabet::BadAlphabet;
use crate::Range;

/// The shortest secret in bytes; shorter ones could be found by trying, from a fingerprint or a few codes.
pub(crate) const SHORTEST_SECRET: usize = 16;

/// A secret and its place in the order of rotations.
#[derive(Clone, PartialEq, Eq)]
pub struct CodeKey {
    /// 1 for the first, then upwards; at most the alphabet's size + 1.
    pub version: u8,
    /// At least 16 bytes, best drawn at random.
    pub secret: String,
}

impl fmt::Debug for CodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CodeKey {{ version: {}, .. }}", self.version)
    }
}

/// The settings of a [`Codec`](super::Codec). All but the list of keys are part of every code: they must stay as they are.
#[derive(Clone, Debug)]
pub struct CodecOptions {
    /// The numbers that have codes: at most 2^63 of them.
    pub range: Range,
    /// The symbols; [`BASE_58`](super::BASE_58) if nothing speaks against it.
    pub alphabet: String,
    /// Whether codes end in a symbol that shows typing errors.
    pub check_symbol: bool,
    /// The keys that are in use, 1 and more; the highest version writes.
    pub keys: Vec<CodeKey>,
}

/// Why a codec cannot be made.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BadCodec {
    /// The alphabet cannot be used.
    #[error(transparent)]
    Alphabet(#[from] BadAlphabet),
    /// The range is empty or too large.
    #[error("the range {first} to {last} is empty or holds more than 2^63 numbers")]
    Range {
        /// Its first number.
        first: u64,
        /// Its last number.
        last: u64,
    },
    /// No key is configured.
    #[error("no key is configured; add one with version 1 and a secret of 16 bytes or more")]
    NoKey,
    /// A secret is too short.
    #[error("the secret of key version {version} has {length} bytes; use at least 16, drawn at random")]
    ShortSecret {
        /// The version.
        version: u8,
        /// Bytes.
        length: usize,
    },
    /// A version stands twice or is out of range.
    #[error("key version {version} is there twice or is not between 1 and {most}")]
    Version {
        /// The version.
        version: u8,
        /// The largest possible.
        most: usize,
    },
}
