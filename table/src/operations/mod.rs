//! Requests as they come off the wire into checked, plain ones, and plain answers into bytes.
//!
//! [`tables`] has what makes and changes tables; [`mod@write`] and [`read`] have rows; [`batch`] has many of them. A request is decoded first,
//! which tells its tables; with their definitions it is then checked against them. Everything in a request came from a stranger.

pub mod batch;
mod bounds;
pub mod check;
pub mod range;
pub mod read;
pub mod tables;
#[cfg(test)]
mod tests;
pub mod write;

use prost::Message;

use crate::rows::capacity::Consumed;
use crate::wire::proto;
use crate::{ErrorCode, TableError};

/// An operation that is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Makes a table.
    CreateTable,
    /// The names of all tables.
    ListTable,
    /// The definition of a table.
    DescribeTable,
    /// Changes a table's options.
    UpdateTable,
    /// Deletes a table with its rows.
    DeleteTable,
    /// Where a table could be split into parts of one size.
    ComputeSplitPointsBySize,
    /// Replaces a row.
    PutRow,
    /// One row.
    GetRow,
    /// Changes columns of a row.
    UpdateRow,
    /// Deletes a row.
    DeleteRow,
    /// Several rows by their keys.
    BatchGetRow,
    /// Writes several rows.
    BatchWriteRow,
    /// Rows in the order of their keys.
    GetRange,
    /// The search indexes of a table: there are none.
    ListSearchIndex,
}

impl Operation {
    /// The operation of this name; every other one is refused.
    pub fn named(name: &str) -> Result<Operation, TableError> {
        Ok(match name {
            "CreateTable" => Operation::CreateTable,
            "ListTable" => Operation::ListTable,
            "DescribeTable" => Operation::DescribeTable,
            "UpdateTable" => Operation::UpdateTable,
            "DeleteTable" => Operation::DeleteTable,
            "ComputeSplitPointsBySize" => Operation::ComputeSplitPointsBySize,
            "PutRow" => Operation::PutRow,
            "GetRow" => Operation::GetRow,
            "UpdateRow" => Operation::UpdateRow,
            "DeleteRow" => Operation::DeleteRow,
            "BatchGetRow" => Operation::BatchGetRow,
            "BatchWriteRow" => Operation::BatchWriteRow,
            "GetRange" => Operation::GetRange,
            "ListSearchIndex" => Operation::ListSearchIndex,
            _ => return Err(unsupported(&name.chars().take(64).collect::<String>())),
        })
    }

    /// Whether it changes a table or rows.
    pub fn writes(self) -> bool {
        use Operation::{BatchWriteRow, CreateTable, DeleteRow, DeleteTable, PutRow, UpdateRow, UpdateTable};
        matches!(
            self,
            CreateTable | UpdateTable | DeleteTable | PutRow | UpdateRow | DeleteRow | BatchWriteRow
        )
    }

    /// Whether it is about tables rather than rows.
    pub fn is_of_tables(self) -> bool {
        use Operation::{
            ComputeSplitPointsBySize, CreateTable, DeleteTable, DescribeTable, ListTable, UpdateTable,
        };
        matches!(
            self,
            CreateTable | ListTable | DescribeTable | UpdateTable | DeleteTable | ComputeSplitPointsBySize
        )
    }
}

/// A refusal of what Tablestore knows and this server does not carry out.
pub fn unsupported(what: &str) -> TableError {
    TableError::new(ErrorCode::UnsupportedOperation, format!("Unsupported operation: {what}."))
}

/// A table that is not there.
pub fn no_table() -> TableError {
    TableError::new(ErrorCode::ObjectNotExist, "Requested table does not exist.")
}

fn decoded<M: Message + Default>(body: &[u8]) -> Result<M, TableError> {
    M::decode(body).map_err(|error| TableError::invalid(format!("The request is malformed: {error}.")))
}

fn consumed(units: Consumed) -> proto::ConsumedCapacity {
    let Consumed { read, write } = units;
    proto::ConsumedCapacity { capacity_unit: proto::CapacityUnit { read, write } }
}

/// No answer to ListSearchIndex holds an index.
pub fn no_search_indexes() -> Vec<u8> {
    proto::ListSearchIndexResponse::default().encode_to_vec()
}
