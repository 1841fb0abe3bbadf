//! How often a field occurs in a request, counted before the request is decoded: an element of two bytes can become hundreds of them.

use crate::TableError;
use crate::wire::fields::{Field, FieldValue, WireFields};

/// The contents of the fields of this number, which are messages, texts or bytes.
fn contents(message: &[u8], number: u32) -> impl Iterator<Item = Result<&[u8], TableError>> {
    WireFields::of(message).filter_map(move |field| match field {
        Ok(field) if field.number != number => None,
        Ok(Field { value: FieldValue::Bytes(inner), .. }) => Some(Ok(inner)),
        Ok(_) => Some(Err(TableError::invalid("The request is malformed: a field has the wrong type."))),
        Err(error) => Some(Err(error)),
    })
}

/// How often the field at `path` occurs: the last number within messages of those before it.
pub(super) fn count(message: &[u8], path: &[u32]) -> Result<usize, TableError> {
    let Some((number, below)) = path.split_first() else { return Ok(1) };
    contents(message, *number).map(|inner| count(inner?, below)).sum()
}

/// The most names in `columns_to_get`, or in `return_column_names`; in a batch each table that is read, and each row that is written, has
/// so many.
const MAX_COLUMNS: usize = 1_024;

/// Refuses a request that names more than [`MAX_COLUMNS`] columns at `path`.
pub(super) fn check_columns(message: &[u8], path: &[u32]) -> Result<(), TableError> {
    match count(message, path)? {
        columns if columns > MAX_COLUMNS => Err(TableError::invalid(format!(
            "The number of columns from the request exceeds the limit, limit count: {MAX_COLUMNS}, column count: {columns}."
        ))),
        _ => Ok(()),
    }
}

/// The same for each message at `each` by itself. The caller has bounded their number before; that bounds all names together.
pub(super) fn check_columns_of_each(message: &[u8], each: &[u32], path: &[u32]) -> Result<(), TableError> {
    let Some((number, below)) = each.split_first() else { return check_columns(message, path) };
    contents(message, *number).try_for_each(|inner| check_columns_of_each(inner?, below, path))
}
