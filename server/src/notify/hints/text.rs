//! Hints as the payloads of PostgreSQL notifications: text of fewer than 8,000 bytes.
//!
//! A payload is `SERVER WORD…`: who says it, and what. Words: `r` and pairs `UID:ID,…` in base 36; `s` and a hash in
//! hexadecimal; `u` and a uid; `o`, such a hash and a uid; `n` and a uid; `*`. A payload without words is a sign of life. Words that are not understood come from
//! a newer program and mean `*`.

use std::fmt::Write as _;

use super::Hint;
use crate::domain::{MessageId, Uid};

/// PostgreSQL refuses 8,000 bytes and more.
pub(super) const LONGEST: usize = 7_900;
/// More than one pair of a uid and an id has.
const PAIR: usize = 32;
/// Hexadecimal digits of a hash.
const HASH: usize = 64;

/// The number of a server, drawn when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ServerNumber(pub u64);

/// A sign of life of `server`.
pub fn sign_of_life(server: ServerNumber) -> String {
    format!("{:016x}", server.0)
}

/// The payloads that carry `hint`, as few as can be.
pub fn encode(server: ServerNumber, hint: &Hint) -> Vec<String> {
    let head = sign_of_life(server);
    match hint {
        Hint::Rows(rows) => {
            let mut payloads = Vec::new();
            let mut payload = String::new();
            for (uid, id) in rows {
                if payload.len() + PAIR > LONGEST {
                    payloads.push(std::mem::take(&mut payload));
                }
                payload.push_str(if payload.is_empty() { "" } else { "," });
                if payload.is_empty() {
                    _ = write!(payload, "{head} r");
                }
                base_36(&mut payload, uid.0.into());
                payload.push(':');
                base_36(&mut payload, id.get());
            }
            payloads.extend(Some(payload).filter(|payload| !payload.is_empty()));
            payloads
        }
        Hint::SessionEnded(hash) => vec![format!("{head} s{}", base_16(hash))],
        Hint::SessionsEnded(uid) => vec![format!("{head} u{}", uid.0)],
        Hint::OtherSessionsEnded(uid, kept) => vec![format!("{head} o{}{}", base_16(kept), uid.0)],
        Hint::Renamed(uid) => vec![format!("{head} n{}", uid.0)],
        Hint::Everything => vec![format!("{head} *")],
    }
}

/// Reads a payload: the server that sent it, and its hint; without a hint it is a sign of life. `None`: it is no payload of ours.
pub fn decode(payload: &str) -> Option<(ServerNumber, Option<Hint>)> {
    let (server, word) = match payload.split_once(' ') {
        Some((server, word)) => (server, Some(word)),
        None => (payload, None),
    };
    if server.len() != 16 {
        return None;
    }
    let server = ServerNumber(u64::from_str_radix(server, 16).ok()?);
    Some((server, word.map(|word| hint(word).unwrap_or(Hint::Everything))))
}

fn hint(word: &str) -> Option<Hint> {
    let (kind, rest) = word.split_at_checked(1)?;
    match kind {
        "r" => rest.split(',').map(pair).collect::<Option<_>>().map(Hint::Rows),
        "s" => hash(rest).map(Hint::SessionEnded),
        "u" => rest.parse().ok().map(Hint::SessionsEnded),
        "n" => rest.parse().ok().map(Hint::Renamed),
        "o" => {
            let (kept, uid) = rest.split_at_checked(HASH)?;
            Some(Hint::OtherSessionsEnded(uid.parse().ok()?, hash(kept)?))
        }
        _ => None,
    }
}

fn hash(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if text.len() != HASH || !text.is_ascii() {
        return None;
    }
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(hash)
}

fn pair(text: &str) -> Option<(Uid, MessageId)> {
    let (uid, id) = text.split_once(':')?;
    let uid = u32::from_str_radix(uid, 36).ok()?;
    Some((Uid(uid), MessageId::new(u64::from_str_radix(id, 36).ok()?)?))
}

fn base_16(hash: &[u8; 32]) -> String {
    let mut text = String::with_capacity(HASH);
    hash.iter().for_each(|byte| _ = write!(text, "{byte:02x}"));
    text
}

pub(super) fn base_36(text: &mut String, mut number: u64) {
    let mut digits = [0; 13];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = char::from_digit((number % 36) as u32, 36).unwrap_or('0') as u8;
        number /= 36;
        if number == 0 {
            break;
        }
    }
    text.extend(digits[at..].iter().map(|digit| *digit as char));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SERVER: ServerNumber = ServerNumber(0x1234);

    fn a_hint() -> impl Strategy<Value = Hint> {
        let id = (0..=MessageId::MAX.get()).prop_map(|id| MessageId::new(id).expect("in range"));
        let rows = proptest::collection::vec((any::<u32>().prop_map(Uid), id), 1..2_000);
        prop_oneof![
            rows.prop_map(Hint::Rows),
            any::<[u8; 32]>().prop_map(Hint::SessionEnded),
            any::<u32>().prop_map(|uid| Hint::SessionsEnded(Uid(uid))),
            any::<u32>().prop_map(|uid| Hint::Renamed(Uid(uid))),
            any::<(u32, [u8; 32])>().prop_map(|(uid, kept)| Hint::OtherSessionsEnded(Uid(uid), kept)),
            Just(Hint::Everything),
        ]
    }

    proptest! {
        #[test]
        fn what_is_told_is_what_is_heard(hint in a_hint()) {
            let payloads = encode(SERVER, &hint);
            prop_assert!(payloads.iter().all(|payload| payload.len() <= LONGEST));
            let mut rows = Vec::new();
            for payload in &payloads {
                let (server, heard) = decode(payload).expect("ours");
                prop_assert_eq!(server, SERVER);
                match heard {
                    Some(Hint::Rows(some)) => rows.extend(some),
                    heard => prop_assert_eq!(heard.as_ref(), Some(&hint)),
                }
            }
            if let Hint::Rows(all) = &hint {
                prop_assert_eq!(&rows, all);
            }
        }

        #[test]
        fn no_text_harms(text in ".*") {
            _ = decode(&text);
            _ = decode(&format!("{} {text}", sign_of_life(SERVER)));
        }
    }

    #[test]
    fn a_word_of_a_newer_program_means_everything() {
        for word in ["x", "", "r", "r1", "s12", "u-1", "o12", "rzzzzzzzz:1"] {
            let payload = format!("{} {word}", sign_of_life(SERVER));
            assert_eq!(decode(&payload), Some((SERVER, Some(Hint::Everything))), "{word}");
        }
        assert_eq!(decode(&sign_of_life(SERVER)), Some((SERVER, None)));
        assert_eq!(decode("other"), None);
    }

    #[test]
    fn a_thousand_rows_take_few_payloads() {
        let rows = (0..1_000).map(|n| (Uid(10_001 + n), MessageId::new(40_000).expect("small"))).collect();
        assert_eq!(encode(SERVER, &Hint::Rows(rows)).len(), 2);
    }
}
