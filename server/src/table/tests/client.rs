//! A client: it makes requests, and reads answers.

use prost::Message;
use tidemark_table::wire::plain_buffer::{
    CellOperation, KeyPart, ReceivedCell, ReceivedRow, decode_row, encode_sent,
};
use tidemark_table::wire::proto;
use tidemark_table::{ErrorCode, KeyValue, TableError, Value};

use crate::table::{Caller, TableService};

/// See the module.
#[derive(Clone)]
pub(in crate::table) struct Client {
    pub(in crate::table) service: TableService,
    pub(in crate::table) caller: Caller,
}

/// A key as it is sent.
pub(in crate::table) type Key = Vec<(String, KeyPart)>;

/// A cell as it is answered: column, value, timestamp.
pub(in crate::table) type Answered = (String, Value, i64);

pub(in crate::table) fn text(value: &str) -> KeyPart {
    KeyPart::Value(KeyValue::String(value.to_owned()))
}

pub(in crate::table) fn integer(value: i64) -> KeyPart {
    KeyPart::Value(KeyValue::Integer(value))
}

/// The key (g, id).
pub(in crate::table) fn key(group: &str, id: KeyPart) -> Key {
    vec![("g".to_owned(), text(group)), ("id".to_owned(), id)]
}

pub(in crate::table) fn put(name: &str, value: Value) -> ReceivedCell {
    ReceivedCell { name: name.to_owned(), value: Some(value), operation: None, timestamp: None }
}

pub(in crate::table) fn number(name: &str, value: i64) -> ReceivedCell {
    put(name, Value::Integer(value))
}

pub(in crate::table) fn delete_all(name: &str) -> ReceivedCell {
    let operation = Some(CellOperation::DeleteAll);
    ReceivedCell { name: name.to_owned(), value: None, operation, timestamp: None }
}

pub(in crate::table) fn add(name: &str, by: i64) -> ReceivedCell {
    ReceivedCell { operation: Some(CellOperation::Increment), ..number(name, by) }
}

pub(in crate::table) fn sent(key: Key, cells: Vec<ReceivedCell>) -> Vec<u8> {
    encode_sent(&ReceivedRow { key, cells, delete: false })
}

pub(in crate::table) fn condition(existence: proto::RowExistence) -> Option<proto::Condition> {
    Some(proto::Condition { row_existence: Some(existence as i32), column_condition: None })
}

pub(in crate::table) fn ignore() -> Option<proto::Condition> {
    condition(proto::RowExistence::Ignore)
}

pub(in crate::table) fn returning(kind: proto::ReturnType, columns: &[&str]) -> Option<proto::ReturnContent> {
    let return_column_names = columns.iter().map(|name| (*name).to_owned()).collect();
    Some(proto::ReturnContent { return_type: Some(kind as i32), return_column_names })
}

/// The key's values and the cells of a row that was answered.
pub(in crate::table) fn row(bytes: &[u8]) -> Option<(Vec<KeyValue>, Vec<Answered>)> {
    (!bytes.is_empty()).then(|| read(&decode_row(bytes).expect("a row")))
}

/// All rows that were answered together.
pub(in crate::table) fn rows(bytes: &[u8]) -> Vec<(Vec<KeyValue>, Vec<Answered>)> {
    let mut rest = bytes.get(4..).unwrap_or_default();
    let mut rows = Vec::new();
    while !rest.is_empty() {
        let (first, others) = rest.split_at(end_of_row(rest));
        rows.push(read(&decode_row(&[&bytes[..4], first].concat()).expect("a row")));
        rest = others;
    }
    rows
}

/// How many bytes the first row has.
fn end_of_row(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let length = || u32::from_le_bytes(bytes[at + 1..at + 5].try_into().expect("4 bytes")) as usize;
        at += match bytes[at] {
            1..=3 | 8 => 1,
            4 | 5 => 5 + length(),
            7 => 9,
            6 | 10 => 2,
            9 => return at + 2,
            tag => panic!("tag {tag}"),
        };
    }
}

fn read(received: &ReceivedRow) -> (Vec<KeyValue>, Vec<Answered>) {
    let key = received.key.iter().map(|(_, part)| match part {
        KeyPart::Value(value) => value.clone(),
        other => panic!("{other:?} in an answer"),
    });
    let cell = |cell: &ReceivedCell| {
        assert_eq!(cell.operation, None);
        (cell.name.clone(), cell.value.clone().expect("a value"), cell.timestamp.expect("a timestamp"))
    };
    (key.collect(), received.cells.iter().map(cell).collect())
}

impl Client {
    pub(in crate::table) fn of(service: &TableService, instance: &str) -> Client {
        let (key, instance) = ("key".to_owned(), instance.to_owned());
        let caller = Caller { key, instance, may_write: true, inbox: None };
        Client { service: service.clone(), caller }
    }

    pub(in crate::table) async fn call<A: Message + Default>(
        &self,
        operation: &str,
        request: &impl Message,
    ) -> Result<A, TableError> {
        let answer = self.service.call(&self.caller, operation, &request.encode_to_vec()).await?;
        Ok(A::decode(&answer[..]).expect("an answer"))
    }

    /// The code and the text of a refusal.
    pub(in crate::table) async fn refusal(
        &self,
        operation: &str,
        request: &impl Message,
    ) -> (ErrorCode, String) {
        let answer = self.service.call(&self.caller, operation, &request.encode_to_vec()).await;
        let TableError { code, message } = answer.expect_err("refused");
        (code, message)
    }

    /// Makes a table with the key (g STRING, id INTEGER).
    pub(in crate::table) async fn create(&self, name: &str, auto_increment: bool) {
        let request = create_request(name, auto_increment);
        self.call::<proto::CreateTableResponse>("CreateTable", &request).await.expect("made");
    }

    pub(in crate::table) async fn put(
        &self,
        table: &str,
        key: Key,
        cells: Vec<ReceivedCell>,
    ) -> Result<proto::WriteRowResponse, TableError> {
        self.call("PutRow", &put_request(table, key, cells)).await
    }

    /// The number that a row with the placeholder got.
    pub(in crate::table) async fn append(&self, table: &str, group: &str) -> Result<i64, TableError> {
        let request = proto::PutRowRequest {
            return_content: returning(proto::ReturnType::PrimaryKey, &[]),
            ..put_request(table, key(group, KeyPart::AutoIncrement), vec![number("n", 1)])
        };
        let answer: proto::WriteRowResponse = self.call("PutRow", &request).await?;
        match row(&answer.row.expect("a row")).expect("a key").0[..] {
            [_, KeyValue::Integer(id)] => Ok(id),
            ref other => panic!("{other:?}"),
        }
    }

    /// The cells of a row; all versions.
    pub(in crate::table) async fn get(&self, table: &str, key: Key) -> Option<Vec<Answered>> {
        let answer: proto::GetRowResponse =
            self.call("GetRow", &get_request(table, key)).await.expect("read");
        row(&answer.row).map(|(_, cells)| cells)
    }
}

pub(in crate::table) fn create_request(name: &str, auto_increment: bool) -> proto::CreateTableRequest {
    let column =
        |name: &str, kind: proto::KeyColumnType, option: Option<proto::KeyColumnOption>| proto::KeyColumn {
            name: name.to_owned(),
            r#type: Some(kind as i32),
            option: option.map(|option| option as i32),
        };
    let option = auto_increment.then_some(proto::KeyColumnOption::AutoIncrement);
    proto::CreateTableRequest {
        table_meta: Some(proto::TableMeta {
            table_name: name.to_owned(),
            key_columns: vec![
                column("g", proto::KeyColumnType::String, None),
                column("id", proto::KeyColumnType::Integer, option),
            ],
            ..proto::TableMeta::default()
        }),
        reserved_throughput: Some(proto::ReservedThroughput::default()),
        table_options: Some(proto::Options::default()),
        ..proto::CreateTableRequest::default()
    }
}

pub(in crate::table) fn put_request(table: &str, key: Key, cells: Vec<ReceivedCell>) -> proto::PutRowRequest {
    proto::PutRowRequest {
        table_name: table.to_owned(),
        row: Some(sent(key, cells)),
        condition: ignore(),
        return_content: None,
        transaction_id: None,
    }
}

pub(in crate::table) fn get_request(table: &str, key: Key) -> proto::GetRowRequest {
    proto::GetRowRequest {
        table_name: table.to_owned(),
        primary_key: Some(sent(key, Vec::new())),
        max_versions: Some(i32::MAX),
        ..proto::GetRowRequest::default()
    }
}

pub(in crate::table) fn range_request(
    table: &str,
    forward: bool,
    start: Key,
    end: Key,
) -> proto::GetRangeRequest {
    let direction = if forward { proto::RangeDirection::Forward } else { proto::RangeDirection::Backward };
    proto::GetRangeRequest {
        table_name: table.to_owned(),
        direction: Some(direction as i32),
        max_versions: Some(i32::MAX),
        inclusive_start_primary_key: Some(sent(start, Vec::new())),
        exclusive_end_primary_key: Some(sent(end, Vec::new())),
        ..proto::GetRangeRequest::default()
    }
}
