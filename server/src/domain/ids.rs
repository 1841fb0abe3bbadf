//! The numbers and names by which things are known. All are small copies; none can be confused with another.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A user. The sequence space has room for 2^32 of them (S1); accounts start at [`Uid::FIRST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(pub u32);

impl Uid {
    /// The first uid given to an account; those below are reserved.
    pub const FIRST: Uid = Uid(10_001);

    /// Where this user's rows lie (S15).
    pub fn partition_key(self) -> PartitionKey {
        PartitionKey::of(self)
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Uid {
    type Err = std::num::ParseIntError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        s.parse().map(Uid)
    }
}

/// A value of a user's sequence: the number with which a row is stamped.
///
/// Ranges over 0 ..= [`MessageId::MAX`]; 0 is "nothing yet" and never a row's id. Gaps mean nothing (I11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(u64);

impl MessageId {
    /// Before every row.
    pub const ZERO: MessageId = MessageId(0);
    /// The largest id that a browser reads without losing digits: 2^53 − 1.
    pub const MAX: MessageId = MessageId((1 << 53) - 1);

    /// The id, unless it is beyond [`MessageId::MAX`].
    pub fn new(value: u64) -> Option<MessageId> {
        (value <= Self::MAX.0).then_some(MessageId(value))
    }

    /// The bare number.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A group, numbered from 1 up to 2^53 − 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u64);

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The sender's own name for a message, so that a repeated send is known again (I4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub Uuid);

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names one unbroken life of the data (I14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HistoryId(pub Uuid);

impl fmt::Display for HistoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The first column of every key: the first 4 hex digits, lower case, of md5 over the uid in decimal ASCII (S15).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionKey([u8; 4]);

impl PartitionKey {
    /// The partition of `uid`.
    pub fn of(uid: Uid) -> PartitionKey {
        let mut digits = [0u8; 10];
        PartitionKey::of_bytes(decimal(uid.0, &mut digits))
    }

    /// The partition of a first key column with this value: a text's or blob's bytes, an integer in decimal ASCII.
    pub fn of_bytes(value: &[u8]) -> PartitionKey {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let digest = md5::compute(value);
        let digit = |byte: u8, shift: u8| HEX[usize::from(byte >> shift & 0xf)];
        PartitionKey([digit(digest[0], 4), digit(digest[0], 0), digit(digest[1], 4), digit(digest[1], 0)])
    }

    /// Parses 4 hex digits in lower case; `None` for anything else.
    pub fn parse(text: &str) -> Option<PartitionKey> {
        let digits: [u8; 4] = text.as_bytes().try_into().ok()?;
        let is_digit = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        digits.iter().all(is_digit).then_some(PartitionKey(digits))
    }

    /// The four digits as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("hex digits are ASCII")
    }
}

/// Writes `n` into `buffer` without allocating; the key is computed for every row of a fan-out.
fn decimal(mut n: u32, buffer: &mut [u8; 10]) -> &[u8] {
    let mut at = buffer.len();
    loop {
        at -= 1;
        buffer[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            return &buffer[at..];
        }
    }
}

impl fmt::Display for PartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for PartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A file. Nobody guesses one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileId(pub Uuid);

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for FileId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<FileId, &'static str> {
        Uuid::try_parse(text).map(FileId).map_err(|_| "is the id of no file: that is a UUID")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_key_is_md5_of_the_decimal_uid() {
        for uid in [0, 7, 10_001, u32::MAX] {
            let whole = format!("{:x}", md5::compute(uid.to_string()));
            assert_eq!(Uid(uid).partition_key().as_str(), &whole[..4]);
        }
    }

    #[test]
    fn message_ids_stop_where_a_browser_would_lose_digits() {
        assert_eq!(MessageId::new((1 << 53) - 1), Some(MessageId::MAX));
        assert_eq!(MessageId::new(1 << 53), None);
    }
}
