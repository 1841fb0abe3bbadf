//! BatchGetRow and BatchWriteRow: many rows, each with an answer of its own.

use prost::Message;

use super::bounds::{check_columns_of_each, count};
use super::read::{Asked, no_token};
use super::write::WriteRequest;
use super::{check, consumed, decoded};
use crate::rows::capacity::Consumed;
use crate::rows::select::Selection;
use crate::wire::plain_buffer::{decode_key, encode_rows};
use crate::wire::proto;
use crate::{PrimaryKey, Row, TableDefinition, TableError};

/// The most rows of a BatchGetRow.
const MAX_READS: usize = 100;
/// The most rows of a BatchWriteRow.
const MAX_WRITES: usize = 200;
/// The most bytes of the rows of a BatchWriteRow.
const MAX_WRITTEN_BYTES: usize = 4 << 20;

/// The reads of one table within a batch.
#[derive(Clone, Debug)]
pub struct TableReads {
    /// Which table.
    pub table: String,
    /// The parts of each row to return.
    pub selection: Selection,
    keys: Vec<Vec<u8>>,
}

/// The writes to one table within a batch.
#[derive(Clone, Debug)]
pub struct TableWrites {
    /// Which table.
    pub table: String,
    /// The rows, in order.
    pub rows: Vec<WriteRequest>,
}

/// A BatchWriteRow.
#[derive(Clone, Debug)]
pub struct WriteBatch {
    /// By table, in order.
    pub tables: Vec<TableWrites>,
    /// Whether the rows of each table are written all or none; each table stands by itself.
    pub is_atomic: bool,
}

/// The outcome of one row of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct RowAnswer {
    /// The units that it consumed.
    pub consumed: Consumed,
    /// The row, where one is there or asked for; or why it is refused.
    pub outcome: Result<Option<Row>, TableError>,
}

/// A BatchGetRow, table by table.
pub fn decode_reads(body: &[u8]) -> Result<Vec<TableReads>, TableError> {
    if count(body, &[1])? == 0 {
        return Err(TableError::invalid("No row specified in the request of BatchGetRow."));
    }
    check_rows(body, &[&[1], &[1, 2], &[1, 3]], MAX_READS)?;
    check_columns_of_each(body, &[1], &[4])?;
    let request: proto::BatchGetRowRequest = decoded(body)?;
    request.tables.into_iter().map(reads).collect()
}

fn reads(table: proto::TableInBatchGet) -> Result<TableReads, TableError> {
    check::table_name(&table.table_name)?;
    table.tokens.iter().try_for_each(|token| no_token(Some(token)))?;
    let asked = Asked {
        columns: table.columns_to_get,
        times: table.time_range,
        max_versions: table.max_versions,
        filter: table.filter,
        start_column: table.start_column,
        end_column: table.end_column,
    };
    Ok(TableReads { table: table.table_name, selection: asked.checked()?, keys: table.primary_keys })
}

impl TableReads {
    /// How many rows are read.
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// The keys of the rows, each if it is right for this table.
    pub fn keys(&self, definition: &TableDefinition) -> Vec<Result<PrimaryKey, TableError>> {
        let key = |bytes: &Vec<u8>| check::whole_key(definition, decode_key(bytes)?);
        self.keys.iter().map(key).collect()
    }
}

/// A BatchWriteRow.
pub fn decode_writes(body: &[u8]) -> Result<WriteBatch, TableError> {
    if count(body, &[1])? == 0 {
        return Err(TableError::invalid("No row is specified in BatchWriteRow."));
    }
    check_rows(body, &[&[1], &[1, 2]], MAX_WRITES)?;
    check_columns_of_each(body, &[1, 2], &[4, 2])?;
    let request: proto::BatchWriteRowRequest = decoded(body)?;
    check::no_transaction(request.transaction_id.as_deref())?;
    let is_atomic = request.is_atomic.unwrap_or(false);
    if is_atomic {
        once_each(&request.tables)?;
    }
    let tables = request.tables.into_iter().map(writes).collect::<Result<Vec<_>, _>>()?;
    let size: usize = tables.iter().flat_map(|table| &table.rows).map(WriteRequest::size).sum();
    if size > MAX_WRITTEN_BYTES {
        return Err(TableError::invalid(format!(
            "The total data size of BatchWriteRow request exceeds the limit, limit size: {MAX_WRITTEN_BYTES}, \
             data size: {size}."
        )));
    }
    Ok(WriteBatch { tables, is_atomic })
}

/// The rows of a table are one unit of an atomic batch, so they must stand together.
fn once_each(tables: &[proto::TableInBatchWrite]) -> Result<(), TableError> {
    let mut names: Vec<&str> = tables.iter().map(|table| &*table.table_name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(TableError::invalid(format!(
            "The table '{}' is there twice in an atomic BatchWriteRow; its rows must stand together.",
            pair[0]
        ))),
        None => Ok(()),
    }
}

fn writes(table: proto::TableInBatchWrite) -> Result<TableWrites, TableError> {
    check::table_name(&table.table_name)?;
    if table.rows.is_empty() {
        let message = format!("No operation is specified for table: '{}'.", table.table_name);
        return Err(TableError::invalid(message));
    }
    let rows = table.rows.into_iter().map(WriteRequest::of_batch).collect::<Result<_, _>>()?;
    Ok(TableWrites { table: table.table_name, rows })
}

fn check_rows(body: &[u8], paths: &[&[u32]], most: usize) -> Result<(), TableError> {
    for path in paths {
        if count(body, path)? > most {
            return Err(TableError::invalid(format!("Rows count exceeds the upper limit: {most}.")));
        }
    }
    Ok(())
}

/// The answer to BatchGetRow: a row that is not there is no bytes.
pub fn answer_reads(tables: impl IntoIterator<Item = (String, Vec<RowAnswer>)>) -> Vec<u8> {
    let tables = tables.into_iter().map(|(name, rows)| of_batch(name, rows, |row| Some(encode_rows(row))));
    proto::BatchGetRowResponse { tables: tables.collect() }.encode_to_vec()
}

/// The answer to BatchWriteRow: a row that is not asked for is left out.
pub fn answer_writes(tables: impl IntoIterator<Item = (String, Vec<RowAnswer>)>) -> Vec<u8> {
    let tables =
        tables.into_iter().map(|(name, rows)| of_batch(name, rows, |row| row.map(|row| encode_rows([row]))));
    proto::BatchWriteRowResponse { tables: tables.collect() }.encode_to_vec()
}

fn of_batch(
    table_name: String,
    rows: Vec<RowAnswer>,
    encoded: impl Fn(Option<&Row>) -> Option<Vec<u8>>,
) -> proto::TableOfBatch {
    let row = |RowAnswer { consumed: units, outcome }| {
        let (is_ok, error, row) = match outcome {
            Ok(row) => (true, None, encoded(row.as_ref())),
            Err(TableError { code, message }) => {
                (false, Some(proto::Error { code: code.as_str().to_owned(), message }), None)
            }
        };
        proto::RowOfBatch { is_ok, error, consumed: Some(consumed(units)), row, next_token: None }
    };
    proto::TableOfBatch { table_name, rows: rows.into_iter().map(row).collect() }
}
