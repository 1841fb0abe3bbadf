//! The parts that the scenarios of tables and their baselines share: one table, its rows, and requests that are made and signed before
//! they are measured, so that the load costs the machine little.

use prost::Message;
use tidemark_table::rows::key;
use tidemark_table::rows::stored::Columns;
use tidemark_table::wire::plain_buffer::{KeyPart, ReceivedCell, ReceivedRow, encode_sent};
use tidemark_table::wire::proto;
use tidemark_table::{
    Cell, KeyColumnDefinition, KeyType, KeyValue, ReservedThroughput, TableDefinition, TableOptions, Value,
};

use crate::table_setup::create_table;

/// The instance.
pub(crate) const INSTANCE: &str = "bench";
/// The table.
pub(crate) const TABLE: &str = "bench";
/// The column that says to which partition a row belongs.
const FIRST: &str = "g";
/// The column that the server assigns.
const ASSIGNED: &str = "id";
/// The column that is no key.
const BODY: &str = "body";

/// The key columns: a text, and a number that the server assigns.
pub(crate) fn definition() -> TableDefinition {
    let column = |name: &str, kind, auto_increment| KeyColumnDefinition {
        name: name.to_owned(),
        kind,
        auto_increment,
    };
    TableDefinition {
        name: TABLE.to_owned(),
        key: vec![column(FIRST, KeyType::String, false), column(ASSIGNED, KeyType::Integer, true)],
        columns: Vec::new(),
        options: TableOptions::default(),
        reserved: ReservedThroughput::default(),
    }
}

/// The body of a CreateTable that makes it.
pub(crate) fn create() -> Vec<u8> {
    create_table(TABLE, FIRST).encode_to_vec()
}

/// The `n`th value of the first key column.
pub(crate) fn first(n: usize) -> String {
    format!("user-{n:06}")
}

/// The body of a PutRow with the placeholder under `first`, answered with the row's key.
pub(crate) fn put(first: &str, bytes: usize) -> Vec<u8> {
    let request = proto::PutRowRequest {
        table_name: TABLE.to_owned(),
        row: Some(placeholder(first, bytes)),
        condition: Some(proto::Condition { row_existence: Some(0), column_condition: None }),
        return_content: Some(returns_key()),
        transaction_id: None,
    };
    request.encode_to_vec()
}

/// The body of a GetRange for `limit` rows under `first`, from the number `from` on.
pub(crate) fn range(first: &str, from: i64, limit: usize) -> Vec<u8> {
    let bound = |part| {
        let key = vec![(FIRST.to_owned(), text(first)), (ASSIGNED.to_owned(), part)];
        encode_sent(&ReceivedRow { key, cells: Vec::new(), delete: false })
    };
    let request = proto::GetRangeRequest {
        table_name: TABLE.to_owned(),
        direction: Some(proto::RangeDirection::Forward as i32),
        max_versions: Some(1),
        limit: i32::try_from(limit).ok(),
        inclusive_start_primary_key: Some(bound(KeyPart::Value(KeyValue::Integer(from)))),
        exclusive_end_primary_key: Some(bound(KeyPart::InfMax)),
        ..proto::GetRangeRequest::default()
    };
    request.encode_to_vec()
}

fn returns_key() -> proto::ReturnContent {
    let key = Some(proto::ReturnType::PrimaryKey as i32);
    proto::ReturnContent { return_type: key, return_column_names: Vec::new() }
}

fn text(value: &str) -> KeyPart {
    KeyPart::Value(KeyValue::String(value.to_owned()))
}

/// A row as clients send it.
fn placeholder(first: &str, bytes: usize) -> Vec<u8> {
    let body = Value::String("x".repeat(bytes));
    let cell = ReceivedCell { name: BODY.to_owned(), value: Some(body), operation: None, timestamp: None };
    let key = vec![(FIRST.to_owned(), text(first)), (ASSIGNED.to_owned(), KeyPart::AutoIncrement)];
    encode_sent(&ReceivedRow { key, cells: vec![cell], delete: false })
}

/// The bytes under which the server stores a row.
pub(crate) fn stored_key(first: &str, id: i64) -> Vec<u8> {
    key::encode([&KeyValue::String(first.to_owned()), &KeyValue::Integer(id)])
}

/// The bytes under which it stores a counter.
pub(crate) fn stored_first(first: &str) -> Vec<u8> {
    key::encode([&KeyValue::String(first.to_owned())])
}

/// The bytes as which the server stores a row that was put at this time, in milliseconds since 1970.
pub(crate) fn stored_row(bytes: usize, at: i64) -> Vec<u8> {
    let body = Value::String("x".repeat(bytes));
    let cells = vec![Cell { name: BODY.to_owned(), value: body, timestamp: at }];
    Columns { written_at: at, cells }.encode()
}
