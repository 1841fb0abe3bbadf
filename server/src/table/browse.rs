//! Reads for pages: those of programs, with plain values in and out. None of them writes, and none counts among the operations on tables
//! that an instance has each second.

use tidemark_table::operations::check::table_name;
use tidemark_table::operations::no_table;
use tidemark_table::operations::range::Range;
use tidemark_table::rows::capacity::Consumed;
use tidemark_table::rows::select::Selection;
use tidemark_table::{PrimaryKey, Row, TableDefinition, TableError};

use super::catalog::Table;
use super::error::unread;
use super::meter::RowAccess;
use super::range::RangeRows;
use super::{Caller, TableService};
use crate::domain::Timestamp;

/// A table as it is described.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// Its key and its options.
    pub definition: TableDefinition,
    /// When it was made; `None`: it belongs to the chat.
    pub created_at: Option<Timestamp>,
}

impl Described {
    fn of(table: &Table) -> Described {
        let created_at = (!table.is_inbox()).then_some(table.created_at);
        Described { definition: table.definition.clone(), created_at }
    }

    /// Whether it is the table of the chat's inboxes.
    pub fn is_inbox(&self) -> bool {
        self.created_at.is_none()
    }
}

impl TableService {
    /// All tables that the caller's key opens, by name.
    ///
    /// # Errors
    ///
    /// The store does not answer, or holds something unreadable.
    pub async fn tables(&self, caller: &Caller) -> Result<Vec<Described>, TableError> {
        let records = self.store.tables(&caller.instance).await.map_err(|error| unread(&error))?;
        let tables = records.into_iter().map(|record| Table::read(record).map(|table| Described::of(&table)));
        let mut tables = tables.collect::<Result<Vec<_>, _>>()?;
        if caller.inbox.is_some() {
            tables.push(Described::of(&Table::of_inboxes()));
        }
        tables.sort_by(|a, b| a.definition.name.cmp(&b.definition.name));
        Ok(tables)
    }

    /// The table of this name.
    ///
    /// # Errors
    ///
    /// There is none; or as for [`tables`](TableService::tables).
    pub async fn table(&self, caller: &Caller, name: &str) -> Result<Described, TableError> {
        table_name(name).map_err(|_| no_table())?;
        Ok(Described::of(&*self.catalog.find(caller, name).await?))
    }

    /// The rows of a range of the table, as many as an answer to GetRange has.
    ///
    /// # Errors
    ///
    /// As for [`table`](TableService::table).
    pub async fn rows(&self, caller: &Caller, table: &str, range: &Range) -> Result<RangeRows, TableError> {
        let _turn = self.meter.enter(&caller.key, RowAccess::Read, 0).await?;
        let table = self.catalog.find(caller, table).await?;
        self.read_range(caller, &table, range).await
    }

    /// The row of the table with this key, and what looking cost.
    ///
    /// # Errors
    ///
    /// As for [`table`](TableService::table).
    pub async fn row(
        &self,
        caller: &Caller,
        table: &str,
        key: PrimaryKey,
        selection: &Selection,
    ) -> Result<(Option<Row>, Consumed), TableError> {
        let _turn = self.meter.enter(&caller.key, RowAccess::Read, 0).await?;
        let table = self.catalog.find(caller, table).await?;
        self.read_row(caller, &table, key, selection).await
    }
}
