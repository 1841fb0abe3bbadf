//! GetRange: rows in the order of their keys (S20).

use tidemark_table::operations::range::{self, MAX_BYTES, MAX_ROWS, Range};
use tidemark_table::rows::age::live;
use tidemark_table::rows::capacity::{Consumed, of_cell};
use tidemark_table::rows::key::{after, before, decode, encode_bound};
use tidemark_table::rows::select::Selected;
use tidemark_table::rows::stored::Columns;
use tidemark_table::{PrimaryKey, Row, TableError};

use super::catalog::Table;
use super::error::{unread, unreadable};
use super::job::partition_of;
use super::{Caller, TableService};
use crate::domain::Direction;
use crate::store::tables::{StoredRow, TableScan};
use crate::workers::{ROW, aside};

/// The most rows of one scan where a filter may leave few of them.
const MOST_AT_ONCE: usize = 1_000;

/// Bytes that the meter counts for a row beside its own.
const EACH_ROW: usize = 32;

/// The rows found in a range.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeRows {
    /// Its rows, in the range's direction.
    pub rows: Vec<Row>,
    /// The key of the first one that was not looked at; `None`: the whole range was.
    pub next: Option<PrimaryKey>,
    /// The units that looking consumed.
    pub consumed: Consumed,
}

/// A page as it fills.
#[derive(Default)]
struct FillingPage {
    rows: Vec<Row>,
    /// Rows that were looked at, shown or not.
    scanned: usize,
    /// Bytes of them as they are stored, by which a page ends.
    weight: usize,
    /// Bytes of what was asked for of them, by which units are counted.
    bytes: u64,
}

impl TableService {
    pub(super) async fn get_range(&self, caller: &Caller, body: &[u8]) -> Result<Vec<u8>, TableError> {
        let (name, request) = range::decode(body)?;
        let table = self.catalog.find(caller, &name).await?;
        let range = request.checked(&table.definition)?;
        let (page, next) = self.page(caller, &table, &range).await?;
        let work = page.work();
        let answer = move || range::answer(Consumed::reading(page.bytes), &page.rows, next.as_ref());
        Ok(aside(work, answer).await)
    }

    /// The rows of a range, as many as one answer has.
    pub(super) async fn read_range(
        &self,
        caller: &Caller,
        table: &Table,
        range: &Range,
    ) -> Result<RangeRows, TableError> {
        let (page, next) = self.page(caller, table, range).await?;
        Ok(RangeRows { rows: page.rows, next, consumed: Consumed::reading(page.bytes) })
    }

    /// The rows of a range, and the key of the first one that was not looked at.
    async fn page(
        &self,
        caller: &Caller,
        table: &Table,
        range: &Range,
    ) -> Result<(FillingPage, Option<PrimaryKey>), TableError> {
        let mut page = FillingPage::default();
        let mut scan = TableScan {
            table: table.id,
            partition_key: range.first().map(partition_of),
            start: encode_bound(&range.start),
            end: encode_bound(&range.end),
            direction: if range.forward { Direction::Forward } else { Direction::Backward },
            rows: 0,
            bytes: 0,
        };
        let shows_all = range.selection.filter.is_none() && range.selection.columns.is_empty();
        let mut at_once = range.limit;
        loop {
            // One row more, whose key says where the next page begins.
            (scan.rows, scan.bytes) = match page.is_full(range) {
                true => (1, 1),
                false if shows_all => (range.limit - page.rows.len() + 1, MAX_BYTES - page.weight),
                false => (at_once.min(MAX_ROWS - page.scanned) + 1, MAX_BYTES - page.weight),
            };
            at_once = (at_once * 2).clamp(1, MOST_AT_ONCE.max(range.limit));
            let (rows, has_more) = self.store.scan(&scan).await.map_err(|error| unread(&error))?;
            let Some(last) = rows.last() else { return Ok((page, None)) };
            scan.start = if range.forward { after(&last.key) } else { before(&last.key) };
            let bytes: usize = rows.iter().map(|row| row.key.len() + row.row.len()).sum();
            self.meter.count(&caller.key, bytes + rows.len() * EACH_ROW);
            let work = bytes + rows.len() * ROW;
            let next = aside(work, || self.look_at(&mut page, table, range, rows)).await?;
            if next.is_some() {
                return Ok((page, next));
            }
            let is_at_end = if range.forward { scan.start >= scan.end } else { scan.start <= scan.end };
            if !has_more || is_at_end {
                return Ok((page, None));
            }
        }
    }

    /// Puts rows into a page. The key of the first one that has no room.
    fn look_at(
        &self,
        page: &mut FillingPage,
        table: &Table,
        range: &Range,
        rows: Vec<StoredRow>,
    ) -> Result<Option<PrimaryKey>, TableError> {
        for row in rows {
            let key = decode(&table.definition, &row.key).map_err(|error| unreadable(&error))?;
            if page.is_full(range) {
                return Ok(Some(key));
            }
            self.look(page, table, range, key, &row)?;
        }
        Ok(None)
    }

    fn look(
        &self,
        page: &mut FillingPage,
        table: &Table,
        range: &Range,
        key: PrimaryKey,
        row: &StoredRow,
    ) -> Result<(), TableError> {
        page.scanned += 1;
        page.weight += row.key.len();
        let columns = Columns::decode(&row.row).map_err(|error| unreadable(&error))?;
        let size: u64 = columns.cells.iter().map(of_cell).sum();
        page.weight += usize::try_from(size).unwrap_or(usize::MAX).max(row.row.len());
        if let Some(columns) = live(columns, &table.definition.options, self.clock.now().0) {
            let Selected { row, bytes } = range.selection.of(key, columns);
            page.rows.extend(row);
            page.bytes += bytes;
        }
        Ok(())
    }
}

impl FillingPage {
    /// How much work it is to write it, in bytes.
    fn work(&self) -> usize {
        self.weight + self.scanned * ROW
    }

    fn is_full(&self, range: &Range) -> bool {
        self.rows.len() >= range.limit || self.scanned >= MAX_ROWS || self.weight >= MAX_BYTES
    }
}
