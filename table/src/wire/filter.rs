//! Filters and column conditions: bytes, read into [`Filter`].
//!
//! A filter may hold filters. They are counted while they are read, and nothing is stored beyond the limits.

use super::fields::{FieldValue, WireFields};
use super::plain_buffer::bare_value;
use crate::error::{ErrorCode, TableError};
use crate::value::Value;

/// The most conditions on a column that one filter may have, and the most levels of filters within filters.
pub const MAX_FILTERS: usize = 32;

/// A filter that a row, or the columns of a row, must satisfy.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// A condition on one column.
    Single {
        /// Which column.
        column: String,
        /// The test on it.
        comparison: Comparison,
        /// The value to compare it with. `None` for the two tests that only ask whether it is there.
        value: Option<Value>,
        /// Whether a row without the column fails; else it passes.
        filter_if_missing: bool,
        /// Whether only the newest version counts; else any version may satisfy.
        latest_version_only: bool,
    },
    /// Several conditions: one for `Not`, two or more for the others.
    Composite {
        /// How they go together.
        combination: Combination,
        /// The conditions.
        filters: Vec<Filter>,
    },
    /// Not a condition: which columns of each row are answered. Neither number is negative.
    Pagination {
        /// How many columns are passed over.
        offset: i32,
        /// At most so many follow.
        limit: i32,
    },
}

/// A test on a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// It equals the value.
    Equal,
    /// It does not.
    NotEqual,
    /// It is greater.
    GreaterThan,
    /// It is greater or equal.
    GreaterEqual,
    /// It is less.
    LessThan,
    /// It is less or equal.
    LessEqual,
    /// It is there.
    Exist,
    /// It is not there.
    NotExist,
}

/// How conditions go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combination {
    /// The one does not hold.
    Not,
    /// All hold.
    And,
    /// One holds, or several.
    Or,
}

/// A filter.
///
/// # Errors
///
/// It cannot be read; it has more than [`MAX_FILTERS`] conditions or levels; a combination has too few; a pagination is negative or
/// within another filter; or it transforms values by a regular expression, which is not supported.
pub fn decode_filter(bytes: &[u8]) -> Result<Filter, TableError> {
    let mut conditions = 0;
    filter(bytes, 1, &mut conditions)
}

fn filter(bytes: &[u8], level: usize, conditions: &mut usize) -> Result<Filter, TableError> {
    let (mut kind, mut inner) = (None, None);
    for field in WireFields::of(bytes) {
        let field = field?;
        match (field.number, field.value) {
            (1, FieldValue::Varint(value)) => kind = Some(value),
            (2, FieldValue::Bytes(value)) => inner = Some(value),
            (1 | 2, _) => return Err(malformed("a field has the wrong type")),
            _ => {}
        }
    }
    let Some(inner) = inner else {
        return Err(malformed("it is empty"));
    };
    match kind {
        Some(1) => {
            *conditions += 1;
            if *conditions > MAX_FILTERS {
                return Err(too_many());
            }
            single(inner)
        }
        Some(2) if level < MAX_FILTERS => composite(inner, level, conditions),
        Some(2) => Err(too_many()),
        Some(3) if level == 1 => pagination(inner),
        Some(3) => Err(malformed("a column pagination stands within another filter")),
        _ => Err(malformed("its type is not known")),
    }
}

fn single(bytes: &[u8]) -> Result<Filter, TableError> {
    let (mut comparison, mut column, mut value) = (None, None, None);
    let (mut filter_if_missing, mut latest_version_only) = (None, None);
    for field in WireFields::of(bytes) {
        let field = field?;
        match (field.number, field.value) {
            (1, FieldValue::Varint(number)) => comparison = Some(number),
            (2, FieldValue::Bytes(bytes)) => column = Some(bytes),
            (3, FieldValue::Bytes(bytes)) => value = Some(bytes),
            (4, FieldValue::Varint(flag)) => filter_if_missing = Some(flag != 0),
            (5, FieldValue::Varint(flag)) => latest_version_only = Some(flag != 0),
            (6, _) => {
                let message = "Filters that transform values by a regular expression are not supported.";
                return Err(TableError::new(ErrorCode::UnsupportedOperation, message));
            }
            (1..=5, _) => return Err(malformed("a field has the wrong type")),
            _ => {}
        }
    }
    let comparison = match comparison {
        Some(1) => Comparison::Equal,
        Some(2) => Comparison::NotEqual,
        Some(3) => Comparison::GreaterThan,
        Some(4) => Comparison::GreaterEqual,
        Some(5) => Comparison::LessThan,
        Some(6) => Comparison::LessEqual,
        Some(7) => Comparison::Exist,
        Some(8) => Comparison::NotExist,
        _ => return Err(malformed("a comparison is not known")),
    };
    let column = column.map(str::from_utf8).and_then(Result::ok).filter(|column| !column.is_empty());
    let Some(column) = column else {
        return Err(malformed("a condition names no column, or one that is not UTF-8"));
    };
    let value = match (comparison, value) {
        (Comparison::Exist | Comparison::NotExist, _) => None,
        (_, Some(value)) => Some(bare_value(value, column)?),
        (_, None) => return Err(malformed("a comparison has no value")),
    };
    let (Some(filter_if_missing), Some(latest_version_only)) = (filter_if_missing, latest_version_only)
    else {
        return Err(malformed("a condition lacks a field that is required"));
    };
    Ok(Filter::Single {
        column: column.to_owned(),
        comparison,
        value,
        filter_if_missing,
        latest_version_only,
    })
}

fn composite(bytes: &[u8], level: usize, conditions: &mut usize) -> Result<Filter, TableError> {
    let mut combination = None;
    let mut filters = Vec::new();
    for field in WireFields::of(bytes) {
        let field = field?;
        match (field.number, field.value) {
            (1, FieldValue::Varint(value)) => combination = Some(value),
            (2, FieldValue::Bytes(bytes)) => filters.push(filter(bytes, level + 1, conditions)?),
            (1 | 2, _) => return Err(malformed("a field has the wrong type")),
            _ => {}
        }
    }
    let combination = match combination {
        Some(1) if filters.len() != 1 => {
            return Err(TableError::invalid("Invalid NOT operator: the number of sub-filters must be 1."));
        }
        Some(2) if filters.len() < 2 => {
            return Err(TableError::invalid(
                "Invalid AND operator: the number of sub-filters must be more than 1.",
            ));
        }
        Some(3) if filters.len() < 2 => {
            return Err(TableError::invalid(
                "Invalid OR operator: the number of sub-filters must be more than 1.",
            ));
        }
        Some(1) => Combination::Not,
        Some(2) => Combination::And,
        Some(3) => Combination::Or,
        _ => return Err(malformed("a combination is not known")),
    };
    Ok(Filter::Composite { combination, filters })
}

fn pagination(bytes: &[u8]) -> Result<Filter, TableError> {
    let (mut offset, mut limit) = (None, None);
    for field in WireFields::of(bytes) {
        let field = field?;
        match (field.number, field.value) {
            (1, FieldValue::Varint(value)) => offset = Some(value),
            (2, FieldValue::Varint(value)) => limit = Some(value),
            (1 | 2, _) => return Err(malformed("a field has the wrong type")),
            _ => {}
        }
    }
    match (offset.map(i32::try_from), limit.map(i32::try_from)) {
        (Some(Ok(offset)), Some(Ok(limit))) => Ok(Filter::Pagination { offset, limit }),
        _ => Err(malformed("offset and limit of a column pagination must be in range: [0, 2147483647]")),
    }
}

fn malformed(what: &str) -> TableError {
    TableError::invalid(format!("The filter is malformed: {what}."))
}

fn too_many() -> TableError {
    TableError::invalid(format!("The count of filter exceeds the max: {MAX_FILTERS}."))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::*;
    use crate::wire::proto;

    fn wrapped(kind: proto::FilterType, inner: &impl Message) -> proto::Filter {
        proto::Filter { r#type: Some(kind as i32), filter: Some(inner.encode_to_vec()) }
    }

    fn on_column(comparison: proto::Comparison, value: &[u8]) -> proto::Filter {
        wrapped(
            proto::FilterType::SingleColumnValue,
            &proto::SingleColumnFilter {
                comparison: Some(comparison as i32),
                column_name: "c".to_owned(),
                column_value: value.to_vec(),
                filter_if_missing: true,
                latest_version_only: false,
                value_transfer_rule: None,
            },
        )
    }

    fn five() -> proto::Filter {
        on_column(proto::Comparison::Equal, &[0, 5, 0, 0, 0, 0, 0, 0, 0])
    }

    fn combined(combination: proto::Combination, sub_filters: Vec<proto::Filter>) -> proto::Filter {
        let inner = proto::CompositeFilter { combination: Some(combination as i32), sub_filters };
        wrapped(proto::FilterType::Composite, &inner)
    }

    fn decode(filter: &proto::Filter) -> Result<Filter, TableError> {
        decode_filter(&filter.encode_to_vec())
    }

    fn message(filter: &proto::Filter) -> String {
        decode(filter).unwrap_err().message
    }

    #[test]
    fn a_condition_is_read_with_its_value() {
        let single = |value| Filter::Single {
            column: "c".to_owned(),
            comparison: Comparison::Equal,
            value: Some(value),
            filter_if_missing: true,
            latest_version_only: false,
        };
        assert_eq!(decode(&five()), Ok(single(Value::Integer(5))));
        let text = on_column(proto::Comparison::Equal, &[3, 2, 0, 0, 0, b'a', b'b']);
        assert_eq!(decode(&text), Ok(single(Value::String("ab".to_owned()))));
    }

    #[test]
    fn who_asks_only_whether_a_column_is_there_compares_with_nothing() {
        for comparison in [proto::Comparison::Exist, proto::Comparison::NotExist] {
            let Ok(Filter::Single { value: None, .. }) = decode(&on_column(comparison, &[])) else {
                panic!("{comparison:?}")
            };
        }
    }

    #[test]
    fn combinations_say_how_many_they_need() {
        use proto::Combination::{And, Not, Or};
        assert!(decode(&combined(Not, vec![five()])).is_ok());
        assert!(decode(&combined(And, vec![five(), combined(Or, vec![five(), five()])])).is_ok());
        assert_eq!(
            message(&combined(Not, vec![five(), five()])),
            "Invalid NOT operator: the number of sub-filters must be 1."
        );
        assert_eq!(
            message(&combined(And, vec![five()])),
            "Invalid AND operator: the number of sub-filters must be more than 1."
        );
        assert_eq!(
            message(&combined(Or, vec![])),
            "Invalid OR operator: the number of sub-filters must be more than 1."
        );
    }

    #[test]
    fn thirty_two_conditions_and_levels_are_the_limit() {
        let many = |count| combined(proto::Combination::And, vec![five(); count]);
        assert!(decode(&many(32)).is_ok());
        assert_eq!(message(&many(33)), "The count of filter exceeds the max: 32.");
        let nested =
            |levels| (1..levels).fold(five(), |inner, _| combined(proto::Combination::Not, vec![inner]));
        assert!(decode(&nested(32)).is_ok());
        assert_eq!(message(&nested(33)), "The count of filter exceeds the max: 32.");
    }

    #[test]
    fn a_pagination_stands_alone_and_is_not_negative() {
        let page = |offset, limit| {
            let inner = proto::PaginationFilter { offset: Some(offset), limit: Some(limit) };
            wrapped(proto::FilterType::ColumnPagination, &inner)
        };
        assert_eq!(decode(&page(0, 3)), Ok(Filter::Pagination { offset: 0, limit: 3 }));
        assert!(decode(&page(-1, 3)).is_err());
        assert!(decode(&combined(proto::Combination::Not, vec![page(0, 3)])).is_err());
    }

    #[test]
    fn a_regular_expression_is_refused_rather_than_ignored() {
        let inner = proto::SingleColumnFilter {
            comparison: Some(1),
            column_name: "c".to_owned(),
            column_value: vec![2, 1],
            filter_if_missing: true,
            latest_version_only: true,
            value_transfer_rule: Some(proto::ValueTransferRule { regex: "a".to_owned(), cast_type: None }),
        };
        let refused = decode(&wrapped(proto::FilterType::SingleColumnValue, &inner)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::UnsupportedOperation);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = decode_filter(&bytes);
        }

        /// Bytes that are wrong at one place reach further into the decoder than any.
        #[test]
        fn a_damaged_filter_is_read_or_refused(at: prop::sample::Index, byte: u8) {
            let whole = combined(proto::Combination::And, vec![five(), combined(proto::Combination::Not, vec![five()])]);
            let mut bytes = whole.encode_to_vec();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = decode_filter(&bytes);
        }
    }
}
