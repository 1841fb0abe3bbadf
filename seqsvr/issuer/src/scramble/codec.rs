//! The codes of one tag: which permutation and which symbols, by version of the key.

use std::fmt;
use std::ops::Deref;

use thiserror::Error;

use super::alphabet::Alphabet;
use super::fingerprint::Fingerprint;
use super::options::{BadCodec, CodeKey, CodecOptions, SHORTEST_SECRET};
use super::permutation::Permutation;
use crate::{Range, Tag};

/// The longest code: a version, 63 digits of base 2 and a check symbol.
const LONGEST: usize = 65;

/// A number is not one of those that have codes.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{number} is outside of {first} to {last}, the range that has codes; widen it under a new tag")]
pub struct EncodeError {
    /// The number.
    pub number: u64,
    /// The first number that has a code.
    pub first: u64,
    /// The last one.
    pub last: u64,
}

/// Why a text is not a code of this tag. The text is not repeated: it may come from anybody.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    /// No code is that long.
    #[error("a code has {expected} symbols, or one more; this has {length}")]
    Length {
        /// Symbols of codes of version 1.
        expected: usize,
        /// Bytes of the text.
        length: usize,
    },
    /// A character that is not in the alphabet.
    #[error("the code holds a character that codes do not use")]
    Symbol,
    /// The check symbol does not match: most likely a typing error.
    #[error("the code is mistyped: its last symbol does not fit the others")]
    Check,
    /// Written with a key that is not configured.
    #[error("the code was written with key version {version}, which is not configured")]
    UnknownVersion {
        /// The version.
        version: usize,
    },
    /// No number has this code.
    #[error("no number has this code")]
    NoNumber,
}

/// A code; lives on the stack and reads as a `str`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code {
    symbols: [u8; LONGEST],
    length: u8,
}

impl Deref for Code {
    type Target = str;

    fn deref(&self) -> &str {
        std::str::from_utf8(&self.symbols[..usize::from(self.length)]).expect("symbols are ASCII")
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &**self)
    }
}

/// One configured version.
struct KeyVersion {
    number: u8,
    /// The symbol in front; version 1 has none.
    symbol: Option<u8>,
    permutation: Permutation,
    fingerprint: Fingerprint,
}

/// Writes and reads the codes of one tag.
pub struct Codec {
    range: Range,
    alphabet: Alphabet,
    check_symbol: bool,
    width: usize,
    /// In ascending order; never empty.
    versions: Vec<KeyVersion>,
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Codec {{ range: {:?}, width: {}, .. }}", self.range, self.width)
    }
}

impl Codec {
    /// Makes the codec of `tag`. The same options for another tag give other codes.
    ///
    /// # Errors
    ///
    /// [`BadCodec`] says what is wrong and what would be right.
    pub fn new(tag: &Tag, options: &CodecOptions) -> Result<Self, BadCodec> {
        let alphabet = Alphabet::new(&options.alphabet)?;
        let Range { first, last } = options.range;
        if first > last || last - first >= 1 << 63 {
            return Err(BadCodec::Range { first, last });
        }
        let size = last - first + 1;
        let mut keys: Vec<&CodeKey> = options.keys.iter().collect();
        keys.sort_by_key(|key| key.version);
        let most = (alphabet.base() as usize + 1).min(usize::from(u8::MAX));
        let twice = keys.windows(2).find(|pair| pair[0].version == pair[1].version).map(|pair| pair[0]);
        let wrong = keys.iter().copied().find(|key| !(1..=most).contains(&usize::from(key.version)));
        if let Some(key) = wrong.or(twice) {
            return Err(BadCodec::Version { version: key.version, most });
        }
        let mut versions = Vec::with_capacity(keys.len());
        for key in keys {
            let (version, length) = (key.version, key.secret.len());
            if length < SHORTEST_SECRET {
                return Err(BadCodec::ShortSecret { version, length });
            }
            versions.push(KeyVersion {
                number: version,
                symbol: usize::from(version).checked_sub(2).and_then(|value| alphabet.symbol(value)),
                permutation: Permutation::new(size, key.secret.as_bytes(), tag.as_str().as_bytes()),
                fingerprint: Fingerprint::of(tag, options, key),
            });
        }
        if versions.is_empty() {
            return Err(BadCodec::NoKey);
        }
        let width = alphabet.width(size);
        let (range, check_symbol) = (options.range, options.check_symbol);
        Ok(Self { range, alphabet, check_symbol, width, versions })
    }

    /// The numbers that have codes.
    pub fn range(&self) -> Range {
        self.range
    }

    /// The fingerprints of the configured versions, to compare with the ones stored when each was first used.
    pub fn fingerprints(&self) -> impl Iterator<Item = (u8, Fingerprint)> + '_ {
        self.versions.iter().map(|version| (version.number, version.fingerprint))
    }

    /// Writes the code of a number.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] for a number outside of the range.
    pub fn encode(&self, number: u64) -> Result<Code, EncodeError> {
        let Range { first, last } = self.range;
        if !(first..=last).contains(&number) {
            return Err(EncodeError { number, first, last });
        }
        let version = self.versions.last().expect("a codec has a version");
        let mut symbols = [0; LONGEST];
        let mut length = 0;
        if let Some(symbol) = version.symbol {
            symbols[length] = symbol;
            length += 1;
        }
        let front = length;
        length += self.width;
        self.alphabet.write(version.permutation.forward(number - first), &mut symbols[front..length]);
        if self.check_symbol {
            symbols[length] = self.alphabet.check(&symbols[..length]);
            length += 1;
        }
        Ok(Code { symbols, length: length as u8 })
    }

    /// Reads a code of any configured version.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] says why the text is none.
    pub fn decode(&self, code: &str) -> Result<u64, DecodeError> {
        let bytes = code.as_bytes();
        let expected = self.width + usize::from(self.check_symbol);
        let Some(front @ (0 | 1)) = bytes.len().checked_sub(expected) else {
            return Err(DecodeError::Length { expected, length: bytes.len() });
        };
        if bytes.iter().any(|&symbol| self.alphabet.value(symbol).is_none()) {
            return Err(DecodeError::Symbol);
        }
        let (text, check) = bytes.split_at(front + self.width);
        if check.first().is_some_and(|&check| check != self.alphabet.check(text)) {
            return Err(DecodeError::Check);
        }
        let (symbol, digits) = text.split_at(front);
        let symbol = symbol.first().copied();
        let Some(version) = self.versions.iter().find(|version| version.symbol == symbol) else {
            let version = symbol.and_then(|symbol| self.alphabet.value(symbol)).map_or(1, |value| value + 2);
            return Err(DecodeError::UnknownVersion { version });
        };
        let place = self.alphabet.read(digits).ok_or(DecodeError::NoNumber)?;
        if place > self.range.last - self.range.first {
            return Err(DecodeError::NoNumber);
        }
        Ok(self.range.first + version.permutation.backward(place))
    }
}
