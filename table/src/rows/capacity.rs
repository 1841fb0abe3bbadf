//! Capacity units: 4 KiB each, rounded up (S20). Names and values count.

use crate::{Cell, KeyValue, PrimaryKey, Value};

/// The bytes of one unit.
const UNIT: u64 = 4_096;

/// The units that an operation consumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Consumed {
    /// Units of reading.
    pub read: i32,
    /// Units of writing.
    pub write: i32,
}

impl Consumed {
    /// A read of this number of bytes, at least one unit.
    pub fn reading(bytes: u64) -> Consumed {
        Consumed { read: units(bytes).max(1), write: 0 }
    }

    /// The cost of a failed check, or of a row of a batch that is refused.
    pub const FAILED_CHECK: Consumed = Consumed { read: 1, write: 1 };
}

/// Bytes in units, rounded up.
pub fn units(bytes: u64) -> i32 {
    i32::try_from(bytes.div_ceil(UNIT)).unwrap_or(i32::MAX)
}

/// The bytes of a key.
pub fn of_key(key: &PrimaryKey) -> u64 {
    key.iter().map(|(name, value)| name.len() as u64 + of_key_value(value)).sum()
}

/// The bytes of a key column's value.
pub fn of_key_value(value: &KeyValue) -> u64 {
    match value {
        KeyValue::Integer(_) => 8,
        KeyValue::String(text) => text.len() as u64,
        KeyValue::Binary(blob) => blob.len() as u64,
    }
}

/// The bytes of one version of a column.
pub fn of_cell(cell: &Cell) -> u64 {
    of_column(&cell.name, &cell.value)
}

/// The bytes of a column.
pub fn of_column(name: &str, value: &Value) -> u64 {
    let value = match value {
        Value::Integer(_) | Value::Double(_) => 8,
        Value::Boolean(_) => 1,
        Value::String(text) => text.len(),
        Value::Blob(blob) => blob.len(),
    };
    (name.len() + value) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_documentation_counts_194_bytes() {
        let columns = [
            ("name", Value::String("12345678".to_owned())),
            ("length", Value::Integer(1)),
            ("comments", Value::Blob(vec![0; 150])),
        ];
        let columns: u64 = columns.iter().map(|(name, value)| of_column(name, value)).sum();
        assert_eq!(of_key(&vec![("id".to_owned(), KeyValue::Integer(1))]) + columns, 194);
    }

    #[test]
    fn units_are_4_kib_rounded_up_and_a_read_is_at_least_one() {
        assert_eq!([units(0), units(1), units(4_096), units(4_097), units(u64::MAX)], [0, 1, 1, 2, i32::MAX]);
        assert_eq!(Consumed::reading(0), Consumed { read: 1, write: 0 });
        assert_eq!(Consumed::reading(8_193), Consumed { read: 3, write: 0 });
    }
}
