//! Checks that every request must pass: names, keys, conditions.

use crate::rows::key::BoundValue;
use crate::rows::write::{Existence, WriteCondition};
use crate::wire::filter::{Filter, decode_filter};
use crate::wire::plain_buffer::KeyPart;
use crate::wire::proto;
use crate::{ErrorCode, KeyColumnDefinition, KeyType, KeyValue, PrimaryKey, TableDefinition, TableError};

/// The most bytes of a name.
const MAX_NAME: usize = 255;
/// The most bytes of a key column's value.
pub const MAX_KEY_VALUE: usize = 1_024;

/// The name of a table: letters, digits and underscores, no digit first.
pub fn table_name(name: &str) -> Result<(), TableError> {
    let is_good = (1..=MAX_NAME).contains(&name.len())
        && !name.as_bytes()[0].is_ascii_digit()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_good { Ok(()) } else { Err(TableError::invalid(format!("Invalid table name: '{}'.", shown(name)))) }
}

/// The name of a column.
pub(super) fn column_name(name: &str) -> Result<(), TableError> {
    let is_good = (1..=MAX_NAME).contains(&name.len()) && !name.starts_with('#');
    if is_good {
        Ok(())
    } else {
        Err(TableError::invalid(format!("Invalid column name: '{}'.", shown(name))))
    }
}

/// As much of a name as an error repeats.
fn shown(name: &str) -> String {
    name.chars().take(MAX_NAME + 1).collect()
}

/// Key parts by the columns of the table: as many, of these names, in this order.
pub(super) fn key_parts(
    definition: &TableDefinition,
    parts: Vec<(String, KeyPart)>,
) -> Result<impl Iterator<Item = (&KeyColumnDefinition, KeyPart)>, TableError> {
    let (input, meta) = (parts.len(), definition.key.len());
    if input != meta {
        let message = format!("Validate PK size fail. Input: {input}, Meta: {meta}.");
        return Err(TableError::new(ErrorCode::InvalidPK, message));
    }
    for (column, (name, part)) in definition.key.iter().zip(&parts) {
        if *name != column.name {
            let message = format!("Validate PK name fail. Input: {}, Meta: {}.", shown(name), column.name);
            return Err(TableError::new(ErrorCode::InvalidPK, message));
        }
        if let KeyPart::Value(value) = part {
            key_value(column, value)?;
        }
    }
    Ok(definition.key.iter().zip(parts.into_iter().map(|(_, part)| part)))
}

fn key_value(column: &KeyColumnDefinition, value: &KeyValue) -> Result<(), TableError> {
    let (kind, length) = match value {
        KeyValue::Integer(_) => (KeyType::Integer, 0),
        KeyValue::String(text) => (KeyType::String, text.len()),
        KeyValue::Binary(blob) => (KeyType::Binary, blob.len()),
    };
    if kind != column.kind {
        return Err(wrong_type(type_name(kind), column));
    }
    if length > MAX_KEY_VALUE {
        return Err(TableError::invalid(format!(
            "The length of primary key column: '{}' exceeds the MaxLength:{MAX_KEY_VALUE} with CurrentLength:{length}.",
            column.name
        )));
    }
    Ok(())
}

/// A value of another type than the column's.
pub(super) fn wrong_type(input: &str, column: &KeyColumnDefinition) -> TableError {
    let message = format!("Validate PK type fail. Input: {input}, Meta: {}.", type_name(column.kind));
    TableError::new(ErrorCode::InvalidPK, message)
}

fn type_name(kind: KeyType) -> &'static str {
    match kind {
        KeyType::Integer => "VT_INTEGER",
        KeyType::String => "VT_STRING",
        KeyType::Binary => "VT_BLOB",
    }
}

/// A bound where a whole key is asked for.
pub(super) fn no_bound(name: &str) -> TableError {
    let message = format!("{name} is an invalid type for the primary key.");
    TableError::new(ErrorCode::InvalidPK, message)
}

fn no_placeholder() -> TableError {
    TableError::invalid("PKAutoIncr can't be used for read operations.")
}

/// The key of a row that is read.
pub(super) fn whole_key(
    definition: &TableDefinition,
    parts: Vec<(String, KeyPart)>,
) -> Result<PrimaryKey, TableError> {
    let mut key = Vec::with_capacity(parts.len());
    for (column, part) in key_parts(definition, parts)? {
        match part {
            KeyPart::Value(value) => key.push((column.name.clone(), value)),
            KeyPart::InfMin => return Err(no_bound("VT_INF_MIN")),
            KeyPart::InfMax => return Err(no_bound("VT_INF_MAX")),
            KeyPart::AutoIncrement => return Err(no_placeholder()),
        }
    }
    Ok(key)
}

/// A bound of a range.
pub(super) fn bound(
    definition: &TableDefinition,
    parts: Vec<(String, KeyPart)>,
) -> Result<Vec<BoundValue>, TableError> {
    let mut bound = Vec::with_capacity(parts.len());
    for (_, part) in key_parts(definition, parts)? {
        bound.push(match part {
            KeyPart::Value(value) => BoundValue::Value(value),
            KeyPart::InfMin => BoundValue::InfMin,
            KeyPart::InfMax => BoundValue::InfMax,
            KeyPart::AutoIncrement => return Err(no_placeholder()),
        });
    }
    Ok(bound)
}

/// The condition of a write.
pub(super) fn condition(condition: Option<&proto::Condition>) -> Result<WriteCondition, TableError> {
    let missing = || TableError::invalid("The condition of the row is missing.");
    let condition = condition.ok_or_else(missing)?;
    let existence = match condition.row_existence.map(proto::RowExistence::try_from) {
        Some(Ok(proto::RowExistence::Ignore)) => Existence::Ignore,
        Some(Ok(proto::RowExistence::ExpectExist)) => Existence::ExpectExist,
        Some(Ok(proto::RowExistence::ExpectNotExist)) => Existence::ExpectNotExist,
        Some(Err(_)) => {
            return Err(TableError::invalid("The expectation of the row's existence is not known."));
        }
        None => return Err(missing()),
    };
    let column = filter(condition.column_condition.as_deref())?;
    if let Some(Filter::Pagination { .. }) = column {
        return Err(TableError::invalid("A column pagination can't be a condition."));
    }
    Ok(WriteCondition { existence, column })
}

/// A filter; no bytes are none.
pub(super) fn filter(bytes: Option<&[u8]>) -> Result<Option<Filter>, TableError> {
    bytes.filter(|bytes| !bytes.is_empty()).map(decode_filter).transpose()
}

/// Refuses a transaction: there are none.
pub(super) fn no_transaction(id: Option<&str>) -> Result<(), TableError> {
    match id {
        None | Some("") => Ok(()),
        Some(_) => Err(TableError::invalid("TransactionID is invalid.")),
    }
}
