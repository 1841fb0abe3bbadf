//! PutRow, UpdateRow, DeleteRow: one row each.

use std::collections::HashSet;

use prost::Message;

use super::bounds::check_columns;
use super::{check, consumed, decoded};
use crate::rows::capacity::Consumed;
use crate::rows::write::{ColumnChange, Existence, PutColumn, Returns, RowWrite, WriteChange, WrittenKey};
use crate::wire::plain_buffer::{CellOperation, KeyPart, ReceivedCell, ReceivedRow, decode_row, encode_rows};
use crate::wire::proto;
use crate::{Row, TableDefinition, TableError, Value};

/// The most bytes of an attribute column's value.
const MAX_VALUE: usize = 2 << 20;

/// The operation on the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// PutRow.
    Put,
    /// UpdateRow.
    Update,
    /// DeleteRow.
    Delete,
}

/// A write of one row, not yet checked against its table.
#[derive(Clone, Debug)]
pub struct WriteRequest {
    kind: WriteKind,
    row: Vec<u8>,
    condition: Option<proto::Condition>,
    returns: Option<proto::ReturnContent>,
}

/// The table, and the write of one of its rows.
pub fn decode(kind: WriteKind, body: &[u8]) -> Result<(String, WriteRequest), TableError> {
    check_columns(body, &[4, 2])?;
    // The three messages have the same fields.
    let request: proto::PutRowRequest = decoded(body)?;
    check::table_name(&request.table_name)?;
    check::no_transaction(request.transaction_id.as_deref())?;
    let row = request.row.unwrap_or_default();
    let write = WriteRequest { kind, row, condition: request.condition, returns: request.return_content };
    Ok((request.table_name, write))
}

/// The answer to a write; `row` where one is asked for.
pub fn answer(units: Consumed, row: Option<&Row>) -> Vec<u8> {
    let row = row.map(|row| encode_rows([row]));
    proto::WriteRowResponse { consumed: consumed(units), row }.encode_to_vec()
}

impl WriteRequest {
    /// One row of a batch.
    pub(super) fn of_batch(row: proto::RowInBatchWrite) -> Result<WriteRequest, TableError> {
        let kind = match row.r#type.map(proto::WriteType::try_from) {
            Some(Ok(proto::WriteType::Put)) => WriteKind::Put,
            Some(Ok(proto::WriteType::Update)) => WriteKind::Update,
            Some(Ok(proto::WriteType::Delete)) => WriteKind::Delete,
            _ => return Err(TableError::invalid("The type of a row of BatchWriteRow is not known.")),
        };
        let returns = row.return_content;
        Ok(WriteRequest { kind, row: row.row_change.unwrap_or_default(), condition: row.condition, returns })
    }

    /// How many bytes the row came as.
    pub fn size(&self) -> usize {
        self.row.len()
    }

    /// The write, if it is right for this table.
    pub fn checked(&self, definition: &TableDefinition) -> Result<RowWrite, TableError> {
        let ReceivedRow { key, cells, delete } = decode_row(&self.row)?;
        if delete && self.kind != WriteKind::Delete {
            return Err(TableError::invalid(
                "The row is marked for deletion, but the operation is another one.",
            ));
        }
        let condition = check::condition(self.condition.as_ref())?;
        for cell in &cells {
            check_cell(definition, cell)?;
        }
        let change = match self.kind {
            WriteKind::Put => WriteChange::Put(cells.into_iter().map(put).collect::<Result<_, _>>()?),
            WriteKind::Update if cells.is_empty() => {
                return Err(TableError::invalid("Attribute column is missing."));
            }
            WriteKind::Update => {
                WriteChange::Update(cells.into_iter().map(change).collect::<Result<_, _>>()?)
            }
            WriteKind::Delete if cells.is_empty() => WriteChange::Delete,
            WriteKind::Delete => {
                return Err(TableError::invalid("A row to delete has no attribute columns."));
            }
        };
        let key = self.key(definition, key)?;
        let write = RowWrite { key, returns: self.returns(&change)?, change, condition };
        check_auto_increment(definition, &write)?;
        Ok(write)
    }

    fn key(
        &self,
        definition: &TableDefinition,
        parts: Vec<(String, KeyPart)>,
    ) -> Result<WrittenKey, TableError> {
        let mut key = Vec::with_capacity(parts.len());
        for (column, part) in check::key_parts(definition, parts)? {
            let value = match part {
                KeyPart::Value(value) => Some(value),
                KeyPart::AutoIncrement if column.auto_increment => None,
                KeyPart::AutoIncrement => return Err(check::wrong_type("VT_AUTO_INCREMENT", column)),
                KeyPart::InfMin => return Err(check::no_bound("VT_INF_MIN")),
                KeyPart::InfMax => return Err(check::no_bound("VT_INF_MAX")),
            };
            key.push((column.name.clone(), value));
        }
        WrittenKey::new(key).ok_or_else(|| {
            TableError::invalid(format!(
                "First primary key can't be auto increment, table: {}.",
                definition.name
            ))
        })
    }

    fn returns(&self, change: &WriteChange) -> Result<Returns, TableError> {
        let Some(returns) = &self.returns else { return Ok(Returns::Nothing) };
        match returns.return_type.map(proto::ReturnType::try_from) {
            None | Some(Ok(proto::ReturnType::None)) => Ok(Returns::Nothing),
            Some(Ok(proto::ReturnType::PrimaryKey)) => Ok(Returns::Key),
            Some(Ok(proto::ReturnType::AfterModify)) => {
                let WriteChange::Update(changes) = change else {
                    return Err(TableError::invalid("Only UpdateRow can return columns after modify."));
                };
                after_modify(changes, returns.return_column_names.clone())
            }
            Some(Err(_)) => Err(TableError::invalid("The return type is not known.")),
        }
    }
}

/// The columns that are asked for: each once and in the order of bytes, as every row that is answered has them.
fn after_modify(changes: &[ColumnChange], mut columns: Vec<String>) -> Result<Returns, TableError> {
    let incremented = changes.iter().filter_map(|change| match change {
        ColumnChange::Increment { name, .. } => Some(name),
        _ => None,
    });
    let incremented: HashSet<&String> = incremented.collect();
    if let Some(column) = columns.iter().find(|column| !incremented.contains(column)) {
        return Err(TableError::invalid(format!(
            "Column '{column}' can't be returned after modify: the request does not increment it."
        )));
    }
    columns.sort_unstable();
    columns.dedup();
    Ok(Returns::AfterModify(columns))
}

fn check_cell(definition: &TableDefinition, cell: &ReceivedCell) -> Result<(), TableError> {
    check::column_name(&cell.name)?;
    if definition.key.iter().any(|column| column.name == cell.name) {
        return Err(TableError::invalid(format!(
            "Attribute column '{}' has the name of a primary key column.",
            cell.name
        )));
    }
    let length = match &cell.value {
        Some(Value::String(text)) => text.len(),
        Some(Value::Blob(blob)) => blob.len(),
        _ => 0,
    };
    if length > MAX_VALUE {
        return Err(TableError::invalid(format!(
            "The length of attribute column: '{}' exceeds the MaxLength:{MAX_VALUE} with CurrentLength:{length}.",
            cell.name
        )));
    }
    Ok(())
}

fn put(cell: ReceivedCell) -> Result<PutColumn, TableError> {
    match cell {
        ReceivedCell { name, value: Some(value), operation: None, timestamp } => {
            Ok(PutColumn { name, value, timestamp })
        }
        cell => Err(wrong_parts(&cell)),
    }
}

fn change(cell: ReceivedCell) -> Result<ColumnChange, TableError> {
    match cell {
        ReceivedCell { operation: None, .. } => put(cell).map(ColumnChange::Put),
        ReceivedCell { name, value: None, operation: Some(CellOperation::DeleteAll), timestamp: None } => {
            Ok(ColumnChange::DeleteAll { name })
        }
        ReceivedCell {
            name,
            value: None,
            operation: Some(CellOperation::DeleteOne),
            timestamp: Some(timestamp),
        } => Ok(ColumnChange::DeleteVersion { name, timestamp }),
        ReceivedCell {
            name,
            value: Some(Value::Integer(by)),
            operation: Some(CellOperation::Increment),
            timestamp: None,
        } => Ok(ColumnChange::Increment { name, by }),
        cell => Err(wrong_parts(&cell)),
    }
}

fn wrong_parts(cell: &ReceivedCell) -> TableError {
    let what = match cell.operation {
        None => "has no value to put",
        Some(CellOperation::DeleteAll) => "can be deleted only by UpdateRow, without value and timestamp",
        Some(CellOperation::DeleteOne) => {
            "can lose a version only by UpdateRow, with its timestamp and without value"
        }
        Some(CellOperation::Increment) => {
            "can be incremented only by UpdateRow, with an integer and without timestamp"
        }
    };
    TableError::invalid(format!("Column '{}' {what}.", cell.name))
}

/// The rules of the placeholder (S19), and of rows that only it can make.
fn check_auto_increment(definition: &TableDefinition, write: &RowWrite) -> Result<(), TableError> {
    let existence = write.condition.existence;
    let is_assigned = write.key.is_assigned();
    if is_assigned && write.change == WriteChange::Delete {
        return Err(TableError::invalid("Invalid row to delete which with pk auto increment."));
    }
    if is_assigned && write.condition.column.is_some() {
        return Err(TableError::invalid("Can't set condition when modify row with pk auto increment."));
    }
    let wrong = match existence {
        Existence::Ignore => None,
        Existence::ExpectExist => is_assigned.then_some("EXPECT_EXIST"),
        Existence::ExpectNotExist => definition.auto_increment().is_some().then_some("EXPECT_NOT_EXIST"),
    };
    if let Some(wrong) = wrong {
        let message = format!("Invalid expect:{wrong} when modify row with pk auto increment.");
        return Err(TableError::invalid(message));
    }
    let is_delete = |change: &ColumnChange| {
        matches!(change, ColumnChange::DeleteAll { .. } | ColumnChange::DeleteVersion { .. })
    };
    if let (true, WriteChange::Update(changes)) = (is_assigned, &write.change)
        && changes.iter().all(is_delete)
    {
        let message = "A new row with pk auto increment needs a column to put or to increment.";
        return Err(TableError::invalid(message));
    }
    Ok(())
}
