//! Writing what clients are answered.

use super::{HEADER, kind, tag};
use crate::value::{KeyValue, Row, Value};
use crate::wire::crc::Crc8;

/// Rows, in one message. No rows: no bytes, which is how an absent row is answered.
pub fn encode_rows<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<u8> {
    let mut out = Vec::new();
    for row in rows {
        if out.is_empty() {
            out.extend(HEADER.to_le_bytes());
        }
        let mut checksum = write_key(&mut out, &row.key);
        if !row.cells.is_empty() {
            out.push(tag::ATTRIBUTES);
        }
        for cell in &row.cells {
            let crc = begin_cell(&mut out, &cell.name);
            let crc = match &cell.value {
                Value::Integer(value) => fixed(&mut out, crc, kind::INTEGER, &value.to_le_bytes()),
                Value::Double(value) => fixed(&mut out, crc, kind::DOUBLE, &value.to_le_bytes()),
                Value::Boolean(value) => fixed(&mut out, crc, kind::BOOLEAN, &[u8::from(*value)]),
                Value::String(value) => sized(&mut out, crc, kind::STRING, value.as_bytes()),
                Value::Blob(value) => sized(&mut out, crc, kind::BLOB, value),
            };
            let timestamp = cell.timestamp.to_le_bytes();
            out.push(tag::TIMESTAMP);
            out.extend(timestamp);
            checksum = end_cell(&mut out, crc.bytes(&timestamp), checksum);
        }
        end_row(&mut out, checksum);
    }
    out
}

/// A key, as a message of one row without cells.
pub fn encode_key(key: &[(String, KeyValue)]) -> Vec<u8> {
    let mut out = HEADER.to_le_bytes().to_vec();
    let checksum = write_key(&mut out, key);
    end_row(&mut out, checksum);
    out
}

/// The section of the key; its part of the row's checksum.
fn write_key(out: &mut Vec<u8>, key: &[(String, KeyValue)]) -> Crc8 {
    out.push(tag::KEY);
    let mut checksum = Crc8::default();
    for (name, value) in key {
        let crc = begin_cell(out, name);
        let crc = match value {
            KeyValue::Integer(value) => fixed(out, crc, kind::INTEGER, &value.to_le_bytes()),
            KeyValue::String(value) => sized(out, crc, kind::STRING, value.as_bytes()),
            KeyValue::Binary(value) => sized(out, crc, kind::BLOB, value),
        };
        checksum = end_cell(out, crc, checksum);
    }
    checksum
}

fn begin_cell(out: &mut Vec<u8>, name: &str) -> Crc8 {
    out.extend([tag::CELL, tag::NAME]);
    out.extend(length(name.as_bytes()));
    out.extend(name.as_bytes());
    Crc8::default().bytes(name.as_bytes())
}

/// A value of a type whose length is known.
fn fixed(out: &mut Vec<u8>, crc: Crc8, kind: u8, data: &[u8]) -> Crc8 {
    out.push(tag::VALUE);
    out.extend((1 + data.len() as u32).to_le_bytes());
    out.push(kind);
    out.extend(data);
    crc.byte(kind).bytes(data)
}

/// A value that says its length.
fn sized(out: &mut Vec<u8>, crc: Crc8, kind: u8, data: &[u8]) -> Crc8 {
    let length = length(data);
    out.push(tag::VALUE);
    out.extend((1 + 4 + data.len() as u32).to_le_bytes());
    out.push(kind);
    out.extend(length);
    out.extend(data);
    crc.byte(kind).bytes(&length).bytes(data)
}

fn end_cell(out: &mut Vec<u8>, cell: Crc8, row: Crc8) -> Crc8 {
    out.extend([tag::CELL_CHECKSUM, cell.value()]);
    row.byte(cell.value())
}

/// Rows that are answered are never marked as to be deleted: the checksum ends with a zero.
fn end_row(out: &mut Vec<u8>, row: Crc8) {
    out.extend([tag::ROW_CHECKSUM, row.byte(0).value()]);
}

/// Values have at most 2 MiB.
fn length(data: &[u8]) -> [u8; 4] {
    (data.len() as u32).to_le_bytes()
}
