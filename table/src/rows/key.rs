//! Keys as bytes: their order, byte by byte, is that of the keys, column by column. Stored, must stay stable.
//!
//! An integer is [`INTEGER_TAG`] and 8 bytes, big-endian, the sign bit turned. A text or a blob is its tag, its bytes, each 0 followed by
//! 255, and `0 1` at the end: what is shorter comes first. No key's bytes begin another's. [`INF_MIN`] and [`INF_MAX`] stand in bounds
//! alone, below and above every value.

use std::borrow::Cow;

use crate::{KeyType, KeyValue, PrimaryKey, TableDefinition};

/// The first byte of an integer.
pub const INTEGER_TAG: u8 = 0x10;
/// The first byte of a text.
const STRING_TAG: u8 = 0x20;
/// The first byte of a blob.
const BINARY_TAG: u8 = 0x30;
/// A column of a bound that comes before every value.
pub const INF_MIN: u8 = 0x01;
/// A column of a bound that comes after every value.
pub const INF_MAX: u8 = 0xff;
/// The byte after a 0 that belongs to the value.
const ESCAPED: u8 = 0xff;
/// The byte after the 0 at the end.
const END: u8 = 0x01;

/// A column of a bound of a range.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoundValue {
    /// Before every value.
    InfMin,
    /// This value.
    Value(KeyValue),
    /// After every value.
    InfMax,
}

/// Bytes that are no key of this table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these bytes are not a key of the table")]
pub struct Unreadable;

/// The bytes of a key, or of some of its columns.
pub fn encode<'a>(values: impl IntoIterator<Item = &'a KeyValue>) -> Vec<u8> {
    let mut bytes = Vec::new();
    values.into_iter().for_each(|value| append(&mut bytes, value));
    bytes
}

/// The bytes of a bound of a range.
pub fn encode_bound<'a>(values: impl IntoIterator<Item = &'a BoundValue>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        match value {
            BoundValue::InfMin => bytes.push(INF_MIN),
            BoundValue::Value(value) => append(&mut bytes, value),
            BoundValue::InfMax => bytes.push(INF_MAX),
        }
    }
    bytes
}

fn append(bytes: &mut Vec<u8>, value: &KeyValue) {
    match value {
        KeyValue::Integer(number) => {
            bytes.push(INTEGER_TAG);
            bytes.extend((number.cast_unsigned() ^ (1 << 63)).to_be_bytes());
        }
        KeyValue::String(text) => append_escaped(bytes, STRING_TAG, text.as_bytes()),
        KeyValue::Binary(blob) => append_escaped(bytes, BINARY_TAG, blob),
    }
}

fn append_escaped(bytes: &mut Vec<u8>, tag: u8, value: &[u8]) {
    bytes.reserve(value.len() + 3);
    bytes.push(tag);
    for &byte in value {
        bytes.push(byte);
        if byte == 0 {
            bytes.push(ESCAPED);
        }
    }
    bytes.extend([0, END]);
}

/// Above a key's bytes, and not above those of any larger key.
pub fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// Below a key's bytes, and not below those of any smaller key of the same table.
pub fn before(key: &[u8]) -> Vec<u8> {
    // One less, as a number: a text's end becomes what no text holds, an integer the one before it.
    let mut bytes = key.to_vec();
    for byte in bytes.iter_mut().rev() {
        let (less, borrows) = byte.overflowing_sub(1);
        *byte = less;
        if !borrows {
            break;
        }
    }
    bytes
}

/// The key that has these bytes.
pub fn decode(definition: &TableDefinition, bytes: &[u8]) -> Result<PrimaryKey, Unreadable> {
    let mut rest = bytes;
    let mut key = Vec::with_capacity(definition.key.len());
    for column in &definition.key {
        key.push((column.name.clone(), take(column.kind, &mut rest)?));
    }
    if rest.is_empty() { Ok(key) } else { Err(Unreadable) }
}

fn take(kind: KeyType, rest: &mut &[u8]) -> Result<KeyValue, Unreadable> {
    let tag = rest.split_off_first().ok_or(Unreadable)?;
    match (kind, *tag) {
        (KeyType::Integer, INTEGER_TAG) => {
            let number = rest.split_off(..8).ok_or(Unreadable)?;
            let number = u64::from_be_bytes(number.try_into().map_err(|_| Unreadable)?);
            Ok(KeyValue::Integer((number ^ (1 << 63)).cast_signed()))
        }
        (KeyType::String, STRING_TAG) => {
            String::from_utf8(unescaped(rest)?).map(KeyValue::String).map_err(|_| Unreadable)
        }
        (KeyType::Binary, BINARY_TAG) => unescaped(rest).map(KeyValue::Binary),
        _ => Err(Unreadable),
    }
}

fn unescaped(rest: &mut &[u8]) -> Result<Vec<u8>, Unreadable> {
    let mut value = Vec::new();
    loop {
        let zero = rest.iter().position(|byte| *byte == 0).ok_or(Unreadable)?;
        value.extend(&rest[..zero]);
        let after = rest.get(zero + 1).ok_or(Unreadable)?;
        *rest = &rest[zero + 2..];
        match *after {
            ESCAPED => value.push(0),
            END => return Ok(value),
            _ => return Err(Unreadable),
        }
    }
}

/// The bytes that the partition of a first key column is computed from: a text's or blob's bytes, an integer in decimal ASCII.
pub fn partition_bytes(first: &KeyValue) -> Cow<'_, [u8]> {
    match first {
        KeyValue::Integer(number) => Cow::Owned(number.to_string().into_bytes()),
        KeyValue::String(text) => Cow::Borrowed(text.as_bytes()),
        KeyValue::Binary(blob) => Cow::Borrowed(blob),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn table(kinds: &[KeyType]) -> TableDefinition {
        let columns: Vec<_> = kinds.iter().map(|kind| ("k", *kind)).collect();
        TableDefinition::of_test(&columns, false)
    }

    fn of_kind(kind: KeyType) -> BoxedStrategy<KeyValue> {
        // Few different bytes, so that one value often begins another.
        let byte = prop_oneof![Just(0), Just(1), Just(0xff), Just(b'a'), any::<u8>()];
        match kind {
            KeyType::Integer => {
                let near = prop_oneof![any::<i64>(), -3..3_i64, Just(i64::MIN), Just(i64::MAX)];
                near.prop_map(KeyValue::Integer).boxed()
            }
            KeyType::String => {
                let char = prop_oneof![Just('\0'), Just('\u{1}'), Just('a'), any::<char>()];
                vec(char, 0..5).prop_map(|text| KeyValue::String(text.into_iter().collect())).boxed()
            }
            KeyType::Binary => vec(byte, 0..5).prop_map(KeyValue::Binary).boxed(),
        }
    }

    fn kinds() -> impl Strategy<Value = Vec<KeyType>> {
        let kind = prop_oneof![Just(KeyType::Integer), Just(KeyType::String), Just(KeyType::Binary)];
        vec(kind, 1..=4)
    }

    fn keys(kinds: &[KeyType]) -> Vec<BoxedStrategy<KeyValue>> {
        kinds.iter().map(|kind| of_kind(*kind)).collect()
    }

    fn bounds(kinds: &[KeyType]) -> Vec<BoxedStrategy<BoundValue>> {
        let value = |kind: &KeyType| {
            let value = of_kind(*kind).prop_map(BoundValue::Value);
            prop_oneof![1 => Just(BoundValue::InfMin), 3 => value, 1 => Just(BoundValue::InfMax)].boxed()
        };
        kinds.iter().map(value).collect()
    }

    proptest! {
        #[test]
        fn a_key_survives_the_way_in_and_out(
            (kinds, key) in kinds().prop_flat_map(|kinds| { let keys = keys(&kinds); (Just(kinds), keys) })
        ) {
            let decoded = decode(&table(&kinds), &encode(&key)).expect("a key");
            let values: Vec<_> = decoded.into_iter().map(|(_, value)| value).collect();
            prop_assert_eq!(values, key);
        }

        #[test]
        fn bytes_come_in_the_order_of_the_bounds(
            (a, b) in kinds().prop_flat_map(|kinds| (bounds(&kinds), bounds(&kinds)))
        ) {
            prop_assert_eq!(encode_bound(&a).cmp(&encode_bound(&b)), a.cmp(&b));
        }

        #[test]
        fn between_a_key_and_the_bounds_next_to_it_lies_none(
            (a, b) in kinds().prop_flat_map(|kinds| (keys(&kinds), keys(&kinds)))
        ) {
            let (a, b) = (encode(&a), encode(&b));
            prop_assert!(before(&a) < a && a < after(&a));
            prop_assert_eq!(b < a, b <= before(&a));
            prop_assert_eq!(b > a, b >= after(&a));
        }

        #[test]
        fn any_bytes_are_a_key_or_refused(kinds in kinds(), bytes in vec(any::<u8>(), 0..40)) {
            let table = table(&kinds);
            if let Ok(key) = decode(&table, &bytes) {
                prop_assert_eq!(encode(key.iter().map(|(_, value)| value)), bytes);
            }
        }
    }

    #[test]
    fn the_bytes_stay_as_they_are() {
        let key = [
            KeyValue::String("a\0b".to_owned()),
            KeyValue::Integer(5),
            KeyValue::Integer(-1),
            KeyValue::Binary(vec![0, 0xff]),
        ];
        let bytes = [
            &[0x20, b'a', 0, 0xff, b'b', 0, 1][..],
            &[0x10, 0x80, 0, 0, 0, 0, 0, 0, 5],
            &[0x10, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0x30, 0, 0xff, 0xff, 0, 1],
        ];
        assert_eq!(encode(&key), bytes.concat());
        assert_eq!(encode_bound(&[BoundValue::InfMin, BoundValue::InfMax]), [1, 0xff]);
    }

    #[test]
    fn the_partition_is_that_of_a_text_an_integer_or_bytes() {
        assert_eq!(*partition_bytes(&KeyValue::String("é".to_owned())), [0xc3, 0xa9]);
        assert_eq!(*partition_bytes(&KeyValue::Integer(-12)), *b"-12");
        assert_eq!(*partition_bytes(&KeyValue::Binary(vec![0, 1])), [0, 1]);
    }
}
