//! Vectors that an SDK made, and rows of chance.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::error::ErrorCode;
use crate::value::{Cell, Row};

fn hex(text: &str) -> Vec<u8> {
    crate::hex::unhex(&text.replace(' ', "")).unwrap()
}

fn integer(name: &str, value: i64) -> (String, KeyPart) {
    (name.to_owned(), KeyPart::Value(KeyValue::Integer(value)))
}

fn text(name: &str, value: &str) -> (String, KeyPart) {
    (name.to_owned(), KeyPart::Value(KeyValue::String(value.to_owned())))
}

fn put(name: &str, value: Value, timestamp: Option<i64>) -> ReceivedCell {
    ReceivedCell { name: name.to_owned(), value: Some(value), operation: None, timestamp }
}

const PUT_WITH_PLACEHOLDER: &str = "75000000 01 0304010000006705060000000301000000610ace \
    030402000000696405010000000b0a6f 02 0304010000007805090000000001000000000000000aad 091d";
const PUT_ALL_TYPES: &str = "750000000103040100000070050900000000fbffffffffffffff0a6c0304010000006205070000000702\
    00000001020ace0203040100000073050700000003020000006869070068e5cf8b0100000aed03040100000064050900000001\
    000000000000f83f0aba03040100000074050200000002010ae103040100000066050200000002000a920304010000007a0506\
    0000000701000000ff0a2a09d1";
const UPDATE: &str = "75000000010304010000007005090000000001000000000000000ae402030401000000610509000000000200\
    0000000000000a2b030401000000620603070068e5cf8b0100000a660304010000006306010acd0304010000006e0509000000\
    00030000000000000006040a1109a1";
const DELETE: &str = "75000000010304010000007005090000000001000000000000000ae4080910";
const KEY_TO_INF_MIN: &str =
    "75000000010304010000006705060000000301000000610ace03040200000069640501000000090a610941";
const KEY_TO_INF_MAX: &str =
    "75000000010304010000006705060000000301000000610ace030402000000696405010000000a0a6809fc";

#[test]
fn a_row_with_the_placeholder_is_read() {
    let row = decode_row(&hex(PUT_WITH_PLACEHOLDER)).unwrap();
    assert_eq!(row.key, [text("g", "a"), ("id".to_owned(), KeyPart::AutoIncrement)]);
    assert_eq!(row.cells, [put("x", Value::Integer(1), None)]);
    assert!(!row.delete);
}

#[test]
fn every_type_of_value_is_read() {
    let row = decode_row(&hex(PUT_ALL_TYPES)).unwrap();
    assert_eq!(row.key, [integer("p", -5), ("b".to_owned(), KeyPart::Value(KeyValue::Binary(vec![1, 2])))]);
    assert_eq!(
        row.cells,
        [
            put("s", Value::String("hi".to_owned()), Some(1_700_000_000_000)),
            put("d", Value::Double(1.5), None),
            put("t", Value::Boolean(true), None),
            put("f", Value::Boolean(false), None),
            put("z", Value::Blob(vec![0xFF]), None),
        ]
    );
}

#[test]
fn every_operation_of_a_cell_is_read() {
    let cell = |name: &str, value, operation, timestamp| ReceivedCell {
        name: name.to_owned(),
        value,
        operation: Some(operation),
        timestamp,
    };
    let row = decode_row(&hex(UPDATE)).unwrap();
    assert_eq!(row.key, [integer("p", 1)]);
    assert_eq!(
        row.cells,
        [
            put("a", Value::Integer(2), None),
            cell("b", None, CellOperation::DeleteOne, Some(1_700_000_000_000)),
            cell("c", None, CellOperation::DeleteAll, None),
            cell("n", Some(Value::Integer(3)), CellOperation::Increment, None),
        ]
    );
}

/// The vectors of other clients, byte for byte.
#[test]
fn what_clients_send_is_written_as_they_do() {
    for sent in [PUT_WITH_PLACEHOLDER, PUT_ALL_TYPES, UPDATE, DELETE, KEY_TO_INF_MIN, KEY_TO_INF_MAX] {
        assert_eq!(encode_sent(&decode_row(&hex(sent)).unwrap()), hex(sent));
    }
}

#[test]
fn the_marker_of_a_row_to_delete_is_read() {
    let row = decode_row(&hex(DELETE)).unwrap();
    assert_eq!(row, ReceivedRow { key: vec![integer("p", 1)], cells: Vec::new(), delete: true });
    assert!(decode_key(&hex(DELETE)).is_err());
}

#[test]
fn bounds_of_ranges_are_read() {
    let key = |part| vec![text("g", "a"), ("id".to_owned(), part)];
    assert_eq!(decode_key(&hex(KEY_TO_INF_MIN)), Ok(key(KeyPart::InfMin)));
    assert_eq!(decode_key(&hex(KEY_TO_INF_MAX)), Ok(key(KeyPart::InfMax)));
}

#[test]
fn zero_bytes_after_the_row_are_tolerated_and_another_row_is_not() {
    let mut bytes = hex(DELETE);
    bytes.extend([0; 12]);
    assert!(decode_row(&bytes).is_ok());
    let mut bytes = hex(DELETE);
    bytes.extend(&hex(DELETE)[4..]);
    assert_eq!(decode_row(&bytes).unwrap_err().message, "The row is malformed: another row follows it.");
}

#[test]
fn any_bit_that_turned_is_noticed() {
    for vector in [PUT_WITH_PLACEHOLDER, PUT_ALL_TYPES, UPDATE, KEY_TO_INF_MAX] {
        let whole = hex(vector);
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_row(&bytes).is_err(), "bit {bit} of {vector}");
        }
    }
}

#[test]
fn every_row_that_is_cut_off_is_refused() {
    for vector in [PUT_WITH_PLACEHOLDER, PUT_ALL_TYPES, UPDATE, DELETE] {
        let whole = hex(vector);
        for length in 0..whole.len() {
            assert!(decode_row(&whole[..length]).is_err(), "{length} bytes of {vector}");
        }
    }
}

/// A row with one key column, and one cell that has these bytes as type and data.
fn with_cell_value(value: &[u8]) -> Vec<u8> {
    let crc = crate::wire::crc::Crc8::default();
    let key = encode_key(&[("p".to_owned(), KeyValue::Integer(1))]);
    let (row, _) = key.split_at(key.len() - 2);
    let mut bytes = row.to_vec();
    bytes.extend([tag::ATTRIBUTES, tag::CELL, tag::NAME, 1, 0, 0, 0, b'c', tag::VALUE]);
    bytes.extend((value.len() as u32).to_le_bytes());
    bytes.extend(value);
    let cell = crc.bytes(b"c").bytes(value).value();
    let key_cell = row[row.len() - 1];
    let checksum = crc.byte(key_cell).byte(cell).byte(0).value();
    bytes.extend([tag::CELL_CHECKSUM, cell, tag::ROW_CHECKSUM, checksum]);
    bytes
}

#[test]
fn values_that_no_column_can_have_are_refused() {
    assert!(decode_row(&with_cell_value(&[kind::BOOLEAN, 1])).is_ok());
    let refused = |value: &[u8]| decode_row(&with_cell_value(value)).unwrap_err().message;
    let double = |value: f64| [&[kind::DOUBLE][..], &value.to_le_bytes()].concat();
    assert_eq!(refused(&double(f64::NAN)), "The value of column 'c' is NaN; doubles must be finite.");
    assert_eq!(refused(&double(f64::INFINITY)), "The value of column 'c' is inf; doubles must be finite.");
    assert_eq!(
        refused(&[kind::STRING, 1, 0, 0, 0, 0xFF]),
        "The value of column 'c' is a string that is not UTF-8."
    );
    assert_eq!(refused(&[kind::BOOLEAN, 2]), "The value of column 'c' is a boolean that is neither 0 nor 1.");
    assert_eq!(refused(&[kind::INF_MIN]), "VT_INF_MIN is an invalid type for the attribute column 'c'.");
    assert_eq!(refused(&[kind::NULL]), "VT_NULL is an invalid type for the attribute column 'c'.");
}

#[test]
fn a_length_that_is_only_claimed_is_refused() {
    let mut bytes = with_cell_value(&[kind::BLOB, 1, 0, 0, 0, 7]);
    let at = bytes.len() - 9;
    bytes[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(decode_row(&bytes).unwrap_err().message.contains("4294967295 bytes should follow"));
}

#[test]
fn a_key_column_of_a_type_that_keys_do_not_have_is_refused_by_its_name() {
    let crc = crate::wire::crc::Crc8::default();
    let mut bytes = hex("75000000 01 03 04 01000000 70 05 02000000 02 01 0A");
    let cell = crc.bytes(b"p").bytes(&[2, 1]).value();
    bytes.extend([cell, tag::ROW_CHECKSUM, crc.byte(cell).byte(0).value()]);
    let refused = decode_key(&bytes).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidPK);
    assert_eq!(refused.message, "VT_BOOLEAN is an invalid type for the primary key.");
}

#[test]
fn more_cells_than_a_row_may_have_are_counted_and_not_kept() {
    let row = |count: i64| Row {
        key: vec![("p".to_owned(), KeyValue::Integer(1))],
        cells: (0..count)
            .map(|i| Cell { name: format!("c{i}"), value: Value::Integer(i), timestamp: i })
            .collect(),
    };
    assert_eq!(decode_row(&encode_rows([&row(1024)])).unwrap().cells.len(), 1024);
    assert_eq!(
        decode_row(&encode_rows([&row(1030)])).unwrap_err().message,
        "The number of attribute columns exceeds the limit, limit count: 1024, column count: 1030."
    );
}

#[test]
fn no_rows_are_no_bytes() {
    assert_eq!(encode_rows([]), Vec::<u8>::new());
}

#[test]
fn rows_that_are_answered_share_one_header() {
    let row = |p| Row { key: vec![("p".to_owned(), KeyValue::Integer(p))], cells: Vec::new() };
    let both = encode_rows([&row(1), &row(2)]);
    assert_eq!(both, [&encode_rows([&row(1)])[..], &encode_rows([&row(2)])[4..]].concat());
}

fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::Integer),
        any::<f64>().prop_filter("finite", |value| value.is_finite()).prop_map(Value::Double),
        any::<bool>().prop_map(Value::Boolean),
        any::<String>().prop_map(Value::String),
        any::<Vec<u8>>().prop_map(Value::Blob),
    ]
}

fn keys() -> impl Strategy<Value = Vec<(String, KeyValue)>> {
    let value = prop_oneof![
        any::<i64>().prop_map(KeyValue::Integer),
        any::<String>().prop_map(KeyValue::String),
        any::<Vec<u8>>().prop_map(KeyValue::Binary),
    ];
    vec((any::<String>(), value), 1..=4)
}

fn rows() -> impl Strategy<Value = Row> {
    let cell = (any::<String>(), values(), any::<i64>()).prop_map(|(name, value, timestamp)| Cell {
        name,
        value,
        timestamp,
    });
    (keys(), vec(cell, 0..8)).prop_map(|(key, cells)| Row { key, cells })
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_it_was(row in rows()) {
        let received = decode_row(&encode_rows([&row])).unwrap();
        let key: Vec<_> = row.key.iter().map(|(name, value)| (name.clone(), KeyPart::Value(value.clone()))).collect();
        let cells: Vec<_> =
            row.cells.iter().map(|cell| put(&cell.name, cell.value.clone(), Some(cell.timestamp))).collect();
        prop_assert_eq!(&received, &ReceivedRow { key: key.clone(), cells, delete: false });
        prop_assert_eq!(&decode_row(&encode_sent(&received)).unwrap(), &received);
        let two = decode_rows(&encode_rows([&row, &row])).unwrap();
        prop_assert_eq!(two, [received.clone(), received]);
        prop_assert_eq!(decode_rows(&[]).unwrap(), []);
        prop_assert_eq!(decode_key(&encode_key(&row.key)).unwrap(), key);
    }

    #[test]
    fn what_a_client_sends_is_read_as_it_was(row in rows(), operations in vec(0..8_usize, 8), delete: bool) {
        let parts = [KeyPart::InfMin, KeyPart::InfMax, KeyPart::AutoIncrement];
        let value = |value: &KeyValue, at: usize| parts.get(at).cloned().unwrap_or(KeyPart::Value(value.clone()));
        let key = row.key.iter().zip(&operations);
        let key = key.map(|((name, found), at)| (name.clone(), value(found, *at))).collect();
        let cells = row.cells.into_iter().zip(&operations).map(|(Cell { name, value, timestamp }, operation)| {
            let (value, operation, timestamp) = match operation {
                0 => (None, Some(CellOperation::DeleteAll), None),
                1 => (None, Some(CellOperation::DeleteOne), Some(timestamp)),
                2 => (Some(Value::Integer(timestamp)), Some(CellOperation::Increment), None),
                3 => (Some(value), None, None),
                _ => (Some(value), None, Some(timestamp)),
            };
            ReceivedCell { name, value, operation, timestamp }
        });
        let sent = ReceivedRow { key, cells: cells.collect(), delete };
        prop_assert_eq!(decode_row(&encode_sent(&sent)), Ok(sent));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let _ = decode_row(&bytes);
        let _ = decode_row(&[&HEADER.to_le_bytes()[..], &[tag::KEY, tag::CELL, tag::NAME], &bytes].concat());
    }

    /// Bytes that are wrong at some places reach further into the decoder than any.
    #[test]
    fn a_damaged_row_is_read_or_refused(damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = hex(UPDATE);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = decode_row(&bytes);
    }
}
