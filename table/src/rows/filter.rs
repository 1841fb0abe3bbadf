//! Whether a row satisfies a filter, or a column condition.

use std::cmp::Ordering;

use crate::wire::filter::{Combination, Comparison, Filter};
use crate::{Cell, KeyValue, PrimaryKey, Value};

/// Whether a row passes. Key columns count like others. A value of another type than the one it is compared with does not satisfy,
/// whatever is asked. A pagination lets every row pass.
pub fn passes(filter: &Filter, key: &PrimaryKey, cells: &[Cell]) -> bool {
    match filter {
        Filter::Single { column, comparison, value, filter_if_missing, latest_version_only } => {
            let holds = |found: Option<Ordering>| found.is_some_and(|order| satisfies(*comparison, order));
            let (is_there, satisfied) = match key.iter().find(|(name, _)| name == column) {
                Some((_, found)) => {
                    (true, value.as_ref().is_some_and(|value| holds(compare_key(found, value))))
                }
                None => {
                    let versions = versions(cells, column);
                    let counted =
                        if *latest_version_only { &versions[..versions.len().min(1)] } else { versions };
                    let holds =
                        |cell: &Cell| value.as_ref().is_some_and(|value| holds(compare(&cell.value, value)));
                    (!versions.is_empty(), counted.iter().any(holds))
                }
            };
            match comparison {
                Comparison::Exist => is_there,
                Comparison::NotExist => !is_there,
                _ if !is_there => !filter_if_missing,
                _ => satisfied,
            }
        }
        Filter::Composite { combination, filters } => {
            let mut passed = filters.iter().map(|filter| passes(filter, key, cells));
            match combination {
                Combination::Not => !passed.any(|passed| passed),
                Combination::And => passed.all(|passed| passed),
                Combination::Or => passed.any(|passed| passed),
            }
        }
        Filter::Pagination { .. } => true,
    }
}

/// The versions of a column, newest first.
pub(super) fn versions<'a>(cells: &'a [Cell], column: &str) -> &'a [Cell] {
    let start = cells.partition_point(|cell| cell.name.as_str() < column);
    let count = cells[start..].iter().take_while(|cell| cell.name == column).count();
    &cells[start..start + count]
}

fn satisfies(comparison: Comparison, order: Ordering) -> bool {
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::GreaterThan => order.is_gt(),
        Comparison::GreaterEqual => order.is_ge(),
        Comparison::LessThan => order.is_lt(),
        Comparison::LessEqual => order.is_le(),
        Comparison::Exist | Comparison::NotExist => false,
    }
}

fn compare(found: &Value, with: &Value) -> Option<Ordering> {
    match (found, with) {
        (Value::Integer(a), Value::Integer(b)) => Some(a.cmp(b)),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Boolean(a), Value::Boolean(b)) => Some(a.cmp(b)),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Blob(a), Value::Blob(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn compare_key(found: &KeyValue, with: &Value) -> Option<Ordering> {
    match (found, with) {
        (KeyValue::Integer(a), Value::Integer(b)) => Some(a.cmp(b)),
        (KeyValue::String(a), Value::String(b)) => Some(a.cmp(b)),
        (KeyValue::Binary(a), Value::Blob(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single(column: &str, comparison: Comparison, value: Value) -> Filter {
        Filter::Single {
            column: column.to_owned(),
            comparison,
            value: Some(value),
            filter_if_missing: true,
            latest_version_only: true,
        }
    }

    fn row() -> (PrimaryKey, Vec<Cell>) {
        let cell = |name: &str, timestamp, value| Cell { name: name.to_owned(), value, timestamp };
        let cells = vec![
            cell("a", 9, Value::Integer(5)),
            cell("a", 3, Value::Integer(1)),
            cell("s", 9, Value::String("m".to_owned())),
        ];
        (vec![("k".to_owned(), KeyValue::Integer(7))], cells)
    }

    fn passed(filter: &Filter) -> bool {
        let (key, cells) = row();
        passes(filter, &key, &cells)
    }

    #[test]
    fn each_comparison_compares_the_column_with_the_value() {
        use Comparison::{Equal, GreaterEqual, GreaterThan, LessEqual, LessThan, NotEqual};
        for (comparison, expected) in [
            (Equal, [false, true, false]),
            (NotEqual, [true, false, true]),
            (GreaterThan, [true, false, false]),
            (GreaterEqual, [true, true, false]),
            (LessThan, [false, false, true]),
            (LessEqual, [false, true, true]),
        ] {
            let with = |value| passed(&single("a", comparison, Value::Integer(value)));
            assert_eq!([with(4), with(5), with(6)], expected, "{comparison:?}");
            let with = |value: &str| passed(&single("s", comparison, Value::String(value.to_owned())));
            assert_eq!([with("l"), with("m"), with("ma")], expected, "{comparison:?}");
        }
    }

    #[test]
    fn another_type_never_satisfies_and_a_key_column_counts_like_others() {
        assert!(!passed(&single("a", Comparison::NotEqual, Value::Double(5.0))));
        assert!(!passed(&single("a", Comparison::Equal, Value::Double(5.0))));
        assert!(passed(&single("k", Comparison::Equal, Value::Integer(7))));
        assert!(!passed(&single("k", Comparison::NotEqual, Value::String("7".to_owned()))));
    }

    #[test]
    fn a_missing_column_passes_unless_the_filter_says_otherwise() {
        let missing = |filter_if_missing| Filter::Single {
            column: "z".to_owned(),
            comparison: Comparison::Equal,
            value: Some(Value::Integer(1)),
            filter_if_missing,
            latest_version_only: true,
        };
        assert!(passed(&missing(false)));
        assert!(!passed(&missing(true)));
    }

    #[test]
    fn any_version_satisfies_unless_only_the_latest_counts() {
        let one = |latest_version_only| Filter::Single {
            column: "a".to_owned(),
            comparison: Comparison::Equal,
            value: Some(Value::Integer(1)),
            filter_if_missing: true,
            latest_version_only,
        };
        assert!(passed(&one(false)));
        assert!(!passed(&one(true)));
    }

    #[test]
    fn whether_a_column_is_there_needs_no_value() {
        let asked = |column: &str, comparison| {
            passed(&Filter::Single {
                column: column.to_owned(),
                comparison,
                value: None,
                filter_if_missing: false,
                latest_version_only: true,
            })
        };
        assert!(asked("a", Comparison::Exist) && asked("k", Comparison::Exist));
        assert!(!asked("z", Comparison::Exist) && asked("z", Comparison::NotExist));
        assert!(!asked("a", Comparison::NotExist));
    }

    #[test]
    fn conditions_go_together() {
        let (yes, no) = (
            || single("a", Comparison::Equal, Value::Integer(5)),
            || single("a", Comparison::Equal, Value::Integer(6)),
        );
        let all = |combination, filters| passed(&Filter::Composite { combination, filters });
        assert!(all(Combination::And, vec![yes(), yes()]) && !all(Combination::And, vec![yes(), no()]));
        assert!(all(Combination::Or, vec![no(), yes()]) && !all(Combination::Or, vec![no(), no()]));
        assert!(all(Combination::Not, vec![no()]) && !all(Combination::Not, vec![yes()]));
    }
}
