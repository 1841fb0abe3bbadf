//! The values in the fields of a record: each is read from its written form, or refused in one line.

use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::domain::{Body, Conversation, Kind, MessageId, Timestamp};

/// Reads JSON; the error is one line.
pub(super) fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

pub(super) fn kind(word: &str) -> Result<Kind, String> {
    Kind::ALL
        .into_iter()
        .find(|kind| kind.as_str() == word)
        .ok_or_else(|| format!("`{word}` is not a kind of row"))
}

pub(super) fn conversation(text: &str) -> Result<Conversation, String> {
    text.parse().map_err(|error| format!("`{text}`: {error}"))
}

pub(super) fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::from_rfc3339(text).ok_or_else(|| format!("`{text}` is not a time; expected RFC 3339"))
}

pub(super) fn message_id(value: u64) -> Result<MessageId, String> {
    let within = MessageId::new(value).filter(|id| *id > MessageId::ZERO);
    within.ok_or_else(|| format!("message_id {value} is not between 1 and {}", MessageId::MAX))
}

pub(super) fn body(raw: &RawValue) -> Result<Body, String> {
    if !raw.get().starts_with('{') {
        return Err("body: expected a JSON object".to_owned());
    }
    Ok(Body::from_stored(raw.get()))
}

/// Bytes as lower-case hex digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn unhex(text: &str) -> Option<[u8; 16]> {
    let canonical = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let value = canonical.then(|| u128::from_str_radix(text, 16).ok()).flatten()?;
    Some(value.to_be_bytes())
}

/// The SHA-256 of bytes, in hex.
pub(super) fn sum(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
