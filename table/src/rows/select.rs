//! The parts of a row that a read returns: first the columns that are asked for, then the versions, then the filter.

use super::capacity::{of_cell, of_key};
use super::filter::passes;
use super::stored::Columns;
use crate::wire::filter::Filter;
use crate::{Cell, PrimaryKey, Row};

/// Which versions are asked for by their timestamps, milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// All.
    All,
    /// From `start`, inclusive, to `end`, exclusive.
    Between {
        /// The first.
        start: i64,
        /// After the last.
        end: i64,
    },
    /// This one.
    At(i64),
}

impl Times {
    fn contains(self, timestamp: i64) -> bool {
        match self {
            Times::All => true,
            Times::Between { start, end } => (start..end).contains(&timestamp),
            Times::At(time) => timestamp == time,
        }
    }
}

/// The rows, columns and versions that a read asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// The columns, in the order of bytes; empty: all.
    pub columns: Vec<String>,
    /// Attribute columns from this one on.
    pub start_column: Option<String>,
    /// Attribute columns before this one.
    pub end_column: Option<String>,
    /// Which versions.
    pub times: Times,
    /// At most this number of versions of a column, the newest; `None`: as many as the table keeps.
    pub max_versions: Option<usize>,
    /// Which rows, or which of the columns that are left.
    pub filter: Option<Filter>,
    /// Whether a row has its whole key although `columns` names some columns; else only the key columns among them.
    pub entire_keys: bool,
}

/// The part of a row that is returned.
#[derive(Clone, Debug, PartialEq)]
pub struct Selected {
    /// `None`: nothing.
    pub row: Option<Row>,
    /// Bytes that were read for it: of its key, and of the columns that were asked for.
    pub bytes: u64,
}

impl Selection {
    /// The part to return of a row that is still there ([`live`](super::age::live)).
    pub fn of(&self, mut key: PrimaryKey, columns: Columns) -> Selected {
        let mut cells = columns.cells;
        cells.retain(|cell| self.asks_for(&cell.name) && self.times.contains(cell.timestamp));
        if let Some(most) = self.max_versions {
            super::age::keep_versions(&mut cells, most);
        }
        let bytes = of_key(&key) + cells.iter().map(of_cell).sum::<u64>();
        let names_key = key.iter().any(|(name, _)| self.names(name));
        let is_shown = !cells.is_empty() || self.columns.is_empty() || names_key;
        if !is_shown || self.filter.as_ref().is_some_and(|filter| !passes(filter, &key, &cells)) {
            return Selected { row: None, bytes };
        }
        if let Some(Filter::Pagination { offset, limit }) = &self.filter {
            paginate(&mut cells, *offset, *limit);
        }
        if !self.entire_keys && !self.columns.is_empty() {
            key.retain(|(name, _)| self.names(name));
        }
        Selected { row: Some(Row { key, cells }), bytes }
    }

    fn names(&self, column: &str) -> bool {
        self.columns.binary_search_by(|name| name.as_str().cmp(column)).is_ok()
    }

    fn asks_for(&self, column: &str) -> bool {
        (self.columns.is_empty() || self.names(column))
            && self.start_column.as_deref().is_none_or(|start| start <= column)
            && self.end_column.as_deref().is_none_or(|end| column < end)
    }
}

/// Leaves the columns from place `offset` on, `limit` of them, with all their versions.
fn paginate(cells: &mut Vec<Cell>, offset: i32, limit: i32) {
    let (offset, limit) = (i64::from(offset), i64::from(limit));
    let (mut column, mut before) = (-1_i64, None);
    let mut is_kept = Vec::with_capacity(cells.len());
    for cell in cells.iter() {
        if before != Some(&cell.name) {
            column += 1;
            before = Some(&cell.name);
        }
        is_kept.push((offset..offset + limit).contains(&column));
    }
    let mut is_kept = is_kept.into_iter();
    cells.retain(|_| is_kept.next().unwrap_or(false));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::filter::Comparison;
    use crate::{KeyValue, Value};

    fn all() -> Selection {
        Selection {
            columns: Vec::new(),
            start_column: None,
            end_column: None,
            times: Times::All,
            max_versions: None,
            filter: None,
            entire_keys: true,
        }
    }

    fn only(columns: &[&str]) -> Selection {
        Selection { columns: columns.iter().map(|name| (*name).to_owned()).collect(), ..all() }
    }

    fn key() -> PrimaryKey {
        vec![("g".to_owned(), KeyValue::String("x".to_owned())), ("id".to_owned(), KeyValue::Integer(7))]
    }

    fn stored() -> Columns {
        let cell = |name: &str, timestamp, value| Cell { name: name.to_owned(), value, timestamp };
        let cells = vec![
            cell("a", 30, Value::Integer(3)),
            cell("a", 20, Value::Integer(2)),
            cell("a", 10, Value::Integer(1)),
            cell("b", 30, Value::Boolean(true)),
            cell("c", 10, Value::String("xy".to_owned())),
        ];
        Columns { written_at: 30, cells }
    }

    fn shown(selection: &Selection) -> Option<Vec<(String, i64)>> {
        let row = selection.of(key(), stored()).row?;
        Some(row.cells.into_iter().map(|cell| (cell.name, cell.timestamp)).collect())
    }

    fn cells(cells: &[(&str, i64)]) -> Option<Vec<(String, i64)>> {
        Some(cells.iter().map(|(name, timestamp)| ((*name).to_owned(), *timestamp)).collect())
    }

    #[test]
    fn columns_are_chosen_by_name_and_by_their_order() {
        assert_eq!(shown(&only(&["b", "z"])), cells(&[("b", 30)]));
        let from = Selection { start_column: Some("b".to_owned()), ..all() };
        assert_eq!(shown(&from), cells(&[("b", 30), ("c", 10)]));
        let to = Selection { end_column: Some("c".to_owned()), ..from };
        assert_eq!(shown(&to), cells(&[("b", 30)]));
    }

    #[test]
    fn a_row_without_the_columns_is_not_shown_unless_a_key_column_is_asked_for() {
        assert_eq!(shown(&only(&["z"])), None);
        assert_eq!(shown(&only(&["id", "z"])), cells(&[]));
        let nothing = Selection { times: Times::At(5), ..all() };
        assert_eq!(shown(&nothing), cells(&[]));
        let row = Selection { entire_keys: false, ..only(&["id"]) }.of(key(), stored()).row;
        assert_eq!(row.map(|row| row.key), Some(vec![("id".to_owned(), KeyValue::Integer(7))]));
    }

    #[test]
    fn versions_are_chosen_by_time_and_then_the_newest_of_them() {
        let newest = |most| Selection { max_versions: Some(most), ..only(&["a"]) };
        assert_eq!(shown(&newest(2)), cells(&[("a", 30), ("a", 20)]));
        let between = Selection { times: Times::Between { start: 10, end: 30 }, ..newest(1) };
        assert_eq!(shown(&between), cells(&[("a", 20)]));
        assert_eq!(shown(&Selection { times: Times::At(10), ..all() }), cells(&[("a", 10), ("c", 10)]));
    }

    #[test]
    fn the_filter_sees_what_was_chosen() {
        let filter = |filter_if_missing| Filter::Single {
            column: "a".to_owned(),
            comparison: Comparison::Equal,
            value: Some(Value::Integer(9)),
            filter_if_missing,
            latest_version_only: true,
        };
        let with = |filter, selection| Selection { filter: Some(filter), ..selection };
        assert_eq!(shown(&with(filter(false), all())), None);
        assert_eq!(shown(&with(filter(false), only(&["b"]))), cells(&[("b", 30)]));
        assert_eq!(shown(&with(filter(true), only(&["b"]))), None);
    }

    #[test]
    fn a_pagination_counts_columns_after_the_first_one_asked_for() {
        let page = |offset, limit, start: Option<&str>| Selection {
            filter: Some(Filter::Pagination { offset, limit }),
            start_column: start.map(str::to_owned),
            ..all()
        };
        assert_eq!(shown(&page(0, 1, None)), cells(&[("a", 30), ("a", 20), ("a", 10)]));
        assert_eq!(shown(&page(1, 9, Some("b"))), cells(&[("c", 10)]));
        assert_eq!(shown(&page(i32::MAX, i32::MAX, None)), cells(&[]));
    }

    #[test]
    fn bytes_are_those_of_what_was_asked_for_also_where_the_filter_hides_it() {
        let key_bytes = 1 + 1 + 2 + 8;
        assert_eq!(only(&["c"]).of(key(), stored()).bytes, key_bytes + 3);
        assert_eq!(all().of(key(), stored()).bytes, key_bytes + 3 * 9 + 2 + 3);
    }
}
