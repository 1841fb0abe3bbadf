//! Writing what clients are answered, and what they send.

use super::{CellOperation, HEADER, KeyPart, ReceivedRow, kind, tag};
use crate::value::{KeyValue, Row, Value};
use crate::wire::crc::Crc8;

/// Rows, in one message. No rows: no bytes, which is how an absent row is answered.
pub fn encode_rows<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<u8> {
    let mut out = Vec::new();
    for row in rows {
        if out.is_empty() {
            // Room for a key, which is the whole answer to most writes.
            out.reserve(128);
            out.extend(HEADER.to_le_bytes());
        }
        let mut checksum = write_key(&mut out, &row.key);
        if !row.cells.is_empty() {
            out.push(tag::ATTRIBUTES);
        }
        for cell in &row.cells {
            let crc = begin_cell(&mut out, &cell.name);
            let crc = attribute_value(&mut out, crc, &cell.value);
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
        let crc = key_value(out, crc, value);
        checksum = end_cell(out, crc, checksum);
    }
    checksum
}

/// A row, a key or a bound as a client sends it: what [`decode_row`](super::decode_row) reads.
pub fn encode_sent(row: &ReceivedRow) -> Vec<u8> {
    let mut out = HEADER.to_le_bytes().to_vec();
    out.push(tag::KEY);
    let mut checksum = Crc8::default();
    for (name, part) in &row.key {
        let crc = begin_cell(&mut out, name);
        let crc = match part {
            KeyPart::Value(value) => key_value(&mut out, crc, value),
            KeyPart::InfMin => fixed(&mut out, crc, kind::INF_MIN, &[]),
            KeyPart::InfMax => fixed(&mut out, crc, kind::INF_MAX, &[]),
            KeyPart::AutoIncrement => fixed(&mut out, crc, kind::AUTO_INCREMENT, &[]),
        };
        checksum = end_cell(&mut out, crc, checksum);
    }
    if !row.cells.is_empty() {
        out.push(tag::ATTRIBUTES);
    }
    for cell in &row.cells {
        let mut crc = begin_cell(&mut out, &cell.name);
        if let Some(value) = &cell.value {
            crc = attribute_value(&mut out, crc, value);
        }
        let operation = cell.operation.map(CellOperation::code);
        if let Some(operation) = operation {
            out.extend([tag::OPERATION, operation]);
        }
        if let Some(timestamp) = cell.timestamp {
            out.push(tag::TIMESTAMP);
            out.extend(timestamp.to_le_bytes());
            crc = crc.bytes(&timestamp.to_le_bytes());
        }
        if let Some(operation) = operation {
            crc = crc.byte(operation);
        }
        checksum = end_cell(&mut out, crc, checksum);
    }
    if row.delete {
        out.push(tag::DELETE);
    }
    out.extend([tag::ROW_CHECKSUM, checksum.byte(u8::from(row.delete)).value()]);
    out
}

fn key_value(out: &mut Vec<u8>, crc: Crc8, value: &KeyValue) -> Crc8 {
    match value {
        KeyValue::Integer(value) => fixed(out, crc, kind::INTEGER, &value.to_le_bytes()),
        KeyValue::String(value) => sized(out, crc, kind::STRING, value.as_bytes()),
        KeyValue::Binary(value) => sized(out, crc, kind::BLOB, value),
    }
}

fn attribute_value(out: &mut Vec<u8>, crc: Crc8, value: &Value) -> Crc8 {
    match value {
        Value::Integer(value) => fixed(out, crc, kind::INTEGER, &value.to_le_bytes()),
        Value::Double(value) => fixed(out, crc, kind::DOUBLE, &value.to_le_bytes()),
        Value::Boolean(value) => fixed(out, crc, kind::BOOLEAN, &[u8::from(*value)]),
        Value::String(value) => sized(out, crc, kind::STRING, value.as_bytes()),
        Value::Blob(value) => sized(out, crc, kind::BLOB, value),
    }
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
