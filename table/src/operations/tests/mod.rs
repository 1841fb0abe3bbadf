//! Every refusal of the catalogue, by its text, and that what is right passes.

mod definitions;
mod reads;
mod writes;

use prost::Message;

use super::*;
use crate::rows::write::WriteChange;
use crate::wire::plain_buffer::{CellOperation, KeyPart, ReceivedCell, ReceivedRow, encode_sent};
use crate::{KeyType, KeyValue, ReservedThroughput, TableDefinition, TableOptions, Value};

fn table(auto_increment: bool) -> TableDefinition {
    TableDefinition::of_test(&[("PK1", KeyType::String), ("PK2", KeyType::Integer)], auto_increment)
}

type KeyParts = Vec<(String, KeyPart)>;

fn text(value: &str) -> KeyPart {
    KeyPart::Value(KeyValue::String(value.to_owned()))
}

fn number(value: i64) -> KeyPart {
    KeyPart::Value(KeyValue::Integer(value))
}

fn key(id: KeyPart) -> KeyParts {
    vec![("PK1".to_owned(), text("x")), ("PK2".to_owned(), id)]
}

fn cell(name: &str, value: Value) -> ReceivedCell {
    ReceivedCell { name: name.to_owned(), value: Some(value), operation: None, timestamp: None }
}

fn one() -> Vec<ReceivedCell> {
    vec![cell("a", Value::Integer(1))]
}

fn sent(key: KeyParts, cells: Vec<ReceivedCell>) -> Vec<u8> {
    encode_sent(&ReceivedRow { key, cells, delete: false })
}

fn condition(existence: proto::RowExistence) -> Option<proto::Condition> {
    Some(proto::Condition { row_existence: Some(existence as i32), column_condition: None })
}

fn put(key: KeyParts, cells: Vec<ReceivedCell>) -> proto::PutRowRequest {
    proto::PutRowRequest {
        table_name: "t".to_owned(),
        row: Some(sent(key, cells)),
        condition: condition(proto::RowExistence::Ignore),
        ..proto::PutRowRequest::default()
    }
}

fn written(
    kind: write::WriteKind,
    request: &proto::PutRowRequest,
    numbered: bool,
) -> Result<WriteChange, TableError> {
    let (_, request) = write::decode(kind, &request.encode_to_vec())?;
    Ok(request.checked(&table(numbered))?.change)
}

fn wrong<T: std::fmt::Debug>(answer: Result<T, TableError>) -> (ErrorCode, String) {
    let TableError { code, message } = answer.expect_err("refused");
    (code, message)
}

fn invalid(text: &str) -> (ErrorCode, String) {
    (ErrorCode::ParameterInvalid, text.to_owned())
}

fn get(key: KeyParts) -> proto::GetRowRequest {
    proto::GetRowRequest {
        table_name: "t".to_owned(),
        primary_key: Some(sent(key, Vec::new())),
        max_versions: Some(1),
        ..proto::GetRowRequest::default()
    }
}

fn read_row(request: &proto::GetRowRequest) -> Result<crate::PrimaryKey, TableError> {
    let (_, request) = read::decode(&request.encode_to_vec())?;
    Ok(request.checked(&table(true))?.0)
}

fn range(forward: bool, start: KeyParts, end: KeyParts) -> proto::GetRangeRequest {
    proto::GetRangeRequest {
        table_name: "t".to_owned(),
        direction: Some(i32::from(!forward)),
        max_versions: Some(1),
        inclusive_start_primary_key: Some(sent(start, Vec::new())),
        exclusive_end_primary_key: Some(sent(end, Vec::new())),
        ..proto::GetRangeRequest::default()
    }
}

fn read_range(request: &proto::GetRangeRequest) -> Result<range::Range, TableError> {
    range::decode(&request.encode_to_vec())?.1.checked(&table(true))
}

fn column(name: &str, kind: proto::KeyColumnType) -> proto::KeyColumn {
    proto::KeyColumn { name: name.to_owned(), r#type: Some(kind as i32), option: None }
}

fn assigned(name: &str, kind: proto::KeyColumnType) -> proto::KeyColumn {
    let option = Some(proto::KeyColumnOption::AutoIncrement as i32);
    proto::KeyColumn { option, ..column(name, kind) }
}

fn create(key_columns: Vec<proto::KeyColumn>) -> proto::CreateTableRequest {
    let meta = proto::TableMeta { table_name: "t".to_owned(), key_columns, ..proto::TableMeta::default() };
    proto::CreateTableRequest { table_meta: Some(meta), ..proto::CreateTableRequest::default() }
}

fn made(request: &proto::CreateTableRequest) -> Result<TableDefinition, TableError> {
    tables::decode_create(&request.encode_to_vec())
}

const STRING: proto::KeyColumnType = proto::KeyColumnType::String;
const INTEGER: proto::KeyColumnType = proto::KeyColumnType::Integer;
