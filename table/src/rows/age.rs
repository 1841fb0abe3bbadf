//! The part of a row that is still there: versions past the table's TTL are gone, and so are those beyond its count of versions.

use super::stored::Columns;
use crate::{Cell, TableOptions};

/// Before this time, in milliseconds, everything is past its TTL.
pub fn horizon(options: &TableOptions, now: i64) -> i64 {
    match options.time_to_live {
        seconds if seconds < 0 => i64::MIN,
        seconds => now.saturating_sub(i64::from(seconds) * 1_000),
    }
}

/// The columns of the row that are still there; `None`: all of it is gone. A row without columns goes when its last write is past the
/// TTL, one with columns when all of them are.
pub fn live(mut columns: Columns, options: &TableOptions, now: i64) -> Option<Columns> {
    let horizon = horizon(options, now);
    if columns.cells.is_empty() {
        return (columns.written_at >= horizon).then_some(columns);
    }
    columns.cells.retain(|cell| cell.timestamp >= horizon);
    keep_versions(&mut columns.cells, usize::try_from(options.max_versions).unwrap_or(1));
    (!columns.cells.is_empty()).then_some(columns)
}

/// Leaves the newest `most` versions of each column.
pub fn keep_versions(cells: &mut Vec<Cell>, most: usize) {
    let mut count = 1;
    cells.dedup_by(|cell, before| {
        count = if cell.name == before.name { count + 1 } else { 1 };
        count > most
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    fn columns(cells: &[(&str, i64)]) -> Columns {
        let cell = |(name, timestamp): &(&str, i64)| Cell {
            name: (*name).to_owned(),
            value: Value::Integer(1),
            timestamp: *timestamp,
        };
        Columns { written_at: 5_000, cells: cells.iter().map(cell).collect() }
    }

    fn options(time_to_live: i32, max_versions: i32) -> TableOptions {
        TableOptions { time_to_live, max_versions, ..TableOptions::default() }
    }

    #[test]
    fn versions_past_the_ttl_are_gone_and_the_row_with_the_last_of_them() {
        let row = columns(&[("a", 9_000), ("a", 4_000), ("b", 2_000)]);
        let left = |now| live(row.clone(), &options(3, 9), now).map(|row| row.cells.len());
        assert_eq!(
            [left(5_000), left(5_001), left(7_000), left(7_001)],
            [Some(3), Some(2), Some(2), Some(1)]
        );
        assert_eq!([left(12_000), left(12_001)], [Some(1), None]);
        assert_eq!(live(row.clone(), &options(-1, 9), i64::MAX), Some(row));
    }

    #[test]
    fn a_row_without_columns_goes_when_its_last_write_is_past_the_ttl() {
        let row = columns(&[]);
        assert_eq!(live(row.clone(), &options(3, 1), 8_000), Some(row.clone()));
        assert_eq!(live(row, &options(3, 1), 8_001), None);
    }

    #[test]
    fn a_column_has_as_many_versions_as_the_table_keeps() {
        let row = columns(&[("a", 3), ("a", 2), ("a", 1), ("b", 1)]);
        let left = |most| live(row.clone(), &options(-1, most), 10).expect("a row").cells;
        assert_eq!(left(2), columns(&[("a", 3), ("a", 2), ("b", 1)]).cells);
        assert_eq!(left(9), row.cells);
    }
}
