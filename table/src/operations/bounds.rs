//! How often a field occurs in a request, counted before the request is decoded: an element of two bytes can become hundreds of them.

use crate::TableError;
use crate::wire::fields::{FieldValue, Fields};

/// How often the field at `path` occurs: the last number within messages of those before it.
pub(super) fn count(message: &[u8], path: &[u32]) -> Result<usize, TableError> {
    let Some((number, below)) = path.split_first() else { return Ok(1) };
    let mut counted = 0;
    for field in Fields::of(message) {
        match field? {
            field if field.number != *number => {}
            field => match field.value {
                FieldValue::Bytes(inner) => counted += count(inner, below)?,
                FieldValue::Varint(_) | FieldValue::Fixed => {
                    return Err(TableError::invalid("The request is malformed: a field has the wrong type."));
                }
            },
        }
    }
    Ok(counted)
}

/// The most columns that a request may name.
pub(super) const MAX_COLUMNS: usize = 1_024;

/// Refuses a request that names more than [`MAX_COLUMNS`] columns at `path`.
pub(super) fn check_columns(message: &[u8], path: &[u32]) -> Result<(), TableError> {
    match count(message, path)? {
        columns if columns > MAX_COLUMNS => Err(TableError::invalid(format!(
            "The number of columns from the request exceeds the limit, limit count: {MAX_COLUMNS}, column count: {columns}."
        ))),
        _ => Ok(()),
    }
}
