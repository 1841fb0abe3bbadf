//! Irregular-looking, short codes for numbers (S21): a keyed permutation of exactly the tag's range, written in an
//! alphabet. Each number has one code and each code one number, so codes never collide and need no storage;
//! decoding needs the key. A [`Codec`] owns the keys of one tag; [`Scramble`] is the plugin that uses it.
//!
//! It is not encryption. It hides order and count from people that look at codes, not from an attacker that can ask for the codes of chosen
//! numbers, and in a short range codes can simply be tried. A code that must not be guessed needs a large, sparsely used range and a limit
//! on attempts.
//!
//! Rotation: the newest version's key writes, all configured ones read. Version 1 writes bare codes, as short as the
//! range allows; later versions put one symbol in front, so codes of different versions differ in
//! length or in that symbol, and old ones stay valid.

mod alphabet;
mod codec;
mod fingerprint;
mod ledger;
mod options;
mod permutation;
mod plugin;
#[cfg(test)]
mod tests;

pub use alphabet::{Alphabet, BASE_58, BadAlphabet};
pub use codec::{Code, Codec, DecodeError, EncodeError};
pub use fingerprint::{BadFingerprint, CodecChanged, Fingerprint};
#[cfg(feature = "service")]
pub use ledger::PostgresLedger;
pub use ledger::{CodeLedger, LedgerError, MemoryLedger, SqliteLedger};
#[cfg(feature = "service")]
pub(crate) use options::SHORTEST_SECRET;
pub use options::{BadCodec, CodeKey, CodecOptions};
pub use plugin::{OpenScrambleError, Scramble};
