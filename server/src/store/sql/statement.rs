//! A statement with the values of its parameters, and a row of the answer.
//!
//! A list is one parameter: an array of PostgreSQL, or JSON for SQLite. So a text stays the same however long the list
//! is, and both databases keep it prepared. A text names a list as `= ANY($1)`, or as `unnest($1) AS value`.

use std::borrow::Cow;

use rusqlite::types::FromSql;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{AssertSqlSafe, Decode, Postgres, Row as _, Sqlite, Type};
use uuid::Uuid;

use crate::domain::{ClientId, FileId, GroupId, Timestamp, Uid};
use crate::store::StoreError;

/// See the module.
pub(in crate::store) struct Statement {
    text: Cow<'static, str>,
    values: Vec<Value>,
}

/// A statement of this text. Its parameters are `$1`, `$2` …
pub(in crate::store) fn sql(text: impl Into<Cow<'static, str>>) -> Statement {
    Statement { text: text.into(), values: Vec::new() }
}

/// The value of a parameter.
pub(in crate::store) enum Value {
    Number(Option<i64>),
    Flag(bool),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
    List(List),
}

/// Several values in one parameter.
pub(in crate::store) enum List {
    Numbers(Vec<i64>),
    Texts(Vec<String>),
    Hashes(Vec<Vec<u8>>),
}

/// The locks of rows, which SQLite neither has nor needs.
const LOCKS: [&str; 3] = [" FOR UPDATE SKIP LOCKED", " FOR UPDATE", " FOR SHARE"];

impl Statement {
    /// Gives the next parameter its value.
    pub(in crate::store) fn bind(mut self, value: impl Into<Value>) -> Statement {
        self.values.push(value.into());
        self
    }

    pub(in crate::store) fn for_postgres(self) -> Query<'static, Postgres, PgArguments> {
        let query = sqlx::query(AssertSqlSafe(self.text));
        self.values.into_iter().fold(query, |query, value| match value {
            Value::Number(number) => query.bind(number),
            Value::Flag(flag) => query.bind(flag),
            Value::Text(text) => query.bind(text),
            Value::Bytes(bytes) => query.bind(bytes),
            Value::List(List::Numbers(numbers)) => query.bind(numbers),
            Value::List(List::Texts(texts)) => query.bind(texts),
            Value::List(List::Hashes(hashes)) => query.bind(hashes),
        })
    }

    pub(in crate::store) fn for_sqlite(self) -> Query<'static, Sqlite, SqliteArguments> {
        let (text, values) = self.in_sqlite();
        values.into_iter().fold(sqlx::query(AssertSqlSafe(text)), |query, value| match value {
            Value::Number(number) => query.bind(number),
            Value::Flag(flag) => query.bind(flag),
            Value::Text(text) => query.bind(text),
            Value::Bytes(bytes) => query.bind(bytes),
            Value::List(list) => query.bind(list.json()),
        })
    }

    /// The text as SQLite takes it, and the values.
    pub(super) fn in_sqlite(self) -> (String, Vec<Value>) {
        let mut text = self.text.into_owned();
        for lock in LOCKS {
            text = text.replace(lock, "");
        }
        for (place, value) in (1..).zip(&self.values) {
            let Value::List(list) = value else { continue };
            let rows = match list {
                List::Numbers(_) | List::Texts(_) => format!("json_each(${place})"),
                List::Hashes(_) => format!("(SELECT unhex(value) AS value FROM json_each(${place}))"),
            };
            text = text.replace(&format!("= ANY(${place})"), &format!("IN (SELECT value FROM {rows})"));
            text = text.replace(&format!("unnest(${place})"), &rows);
        }
        (text, self.values)
    }
}

impl List {
    pub(super) fn json(&self) -> String {
        let hex = |hash: &Vec<u8>| hash.iter().map(|byte| format!("{byte:02x}")).collect();
        match self {
            List::Numbers(numbers) => serde_json::json!(numbers),
            List::Texts(texts) => serde_json::json!(texts),
            List::Hashes(hashes) => hashes.iter().map(hex).collect::<Vec<String>>().into(),
        }
        .to_string()
    }
}

macro_rules! values {
    ($($value:ident: $from:ty => $into:expr;)*) => {
        $(impl From<$from> for Value {
            fn from($value: $from) -> Value {
                $into
            }
        })*
    };
}

values! {
    number: i64 => Value::Number(Some(number));
    number: u32 => Value::Number(Some(number.into()));
    number: u64 => Value::Number(Some(number.cast_signed()));
    count: usize => Value::Number(Some(i64::try_from(count).unwrap_or(i64::MAX)));
    uid: Uid => Value::Number(Some(uid.0.into()));
    uid: Option<Uid> => Value::Number(uid.map(|uid| uid.0.into()));
    gid: GroupId => Value::Number(Some(gid.0.cast_signed()));
    gid: Option<GroupId> => Value::Number(gid.map(|gid| gid.0.cast_signed()));
    at: Option<Timestamp> => Value::Number(at.map(|at| at.0));
    at: Timestamp => Value::Number(Some(at.0));
    flag: bool => Value::Flag(flag);
    text: &str => Value::Text(Some(text.to_owned()));
    text: String => Value::Text(Some(text));
    text: Option<&str> => Value::Text(text.map(str::to_owned));
    bytes: &[u8] => Value::Bytes(Some(bytes.to_vec()));
    hash: [u8; 32] => Value::Bytes(Some(hash.to_vec()));
    hash: &[u8; 32] => Value::Bytes(Some(hash.to_vec()));
    id: FileId => Value::Bytes(Some(id.0.as_bytes().to_vec()));
    ids: &[FileId] => Value::List(List::Hashes(ids.iter().map(|id| id.0.as_bytes().to_vec()).collect()));
    id: ClientId => Value::Bytes(Some(id.0.as_bytes().to_vec()));
    id: Option<ClientId> => Value::Bytes(id.map(|id| id.0.as_bytes().to_vec()));
    uids: &[Uid] => Value::List(List::Numbers(uids.iter().map(|uid| uid.0.into()).collect()));
    texts: Vec<String> => Value::List(List::Texts(texts));
    hashes: &[[u8; 32]] => Value::List(List::Hashes(hashes.iter().map(|hash| hash.to_vec()).collect()));
}

/// A row of the answer.
pub(in crate::store) enum SqlRow {
    Sqlite(SqliteRow),
    Postgres(PgRow),
    #[cfg(any(test, feature = "test-support"))]
    Memory(MemoryRow),
}

/// A row of SQLite in memory: its columns in order, with their names.
#[cfg(any(test, feature = "test-support"))]
pub(in crate::store) struct MemoryRow(pub(super) Vec<(String, rusqlite::types::Value)>);

#[cfg(any(test, feature = "test-support"))]
impl MemoryRow {
    fn get<T: FromSql>(&self, column: &str) -> Result<T, StoreError> {
        let found = self.0.iter().find(|(name, _)| name == column);
        let (_, value) = found.ok_or_else(|| StoreError::corrupt(format!("there is no column {column}")))?;
        T::column_result(value.into()).map_err(StoreError::corrupt)
    }
}

/// What either database has in a column.
pub(in crate::store) trait Column:
    for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres> + FromSql
{
}

impl<T> Column for T where
    T: for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres> + FromSql
{
}

impl SqlRow {
    /// The value of a column.
    pub(in crate::store) fn get<T: Column>(&self, column: &str) -> Result<T, StoreError> {
        match self {
            SqlRow::Sqlite(row) => Ok(row.try_get(column)?),
            SqlRow::Postgres(row) => Ok(row.try_get(column)?),
            #[cfg(any(test, feature = "test-support"))]
            SqlRow::Memory(row) => row.get(column),
        }
    }

    /// A number that is never negative.
    pub(in crate::store) fn number(&self, column: &str) -> Result<u64, StoreError> {
        Ok(self.get::<i64>(column)?.cast_unsigned())
    }

    /// A number of 32 bits, such as a uid.
    pub(in crate::store) fn small(&self, column: &str) -> Result<u32, StoreError> {
        let number: i64 = self.get(column)?;
        u32::try_from(number).map_err(|_| StoreError::corrupt(format!("{column} is {number}, out of range")))
    }

    /// The user of the column `uid`.
    pub(in crate::store) fn uid(&self) -> Result<Uid, StoreError> {
        self.small("uid").map(Uid)
    }

    /// A time.
    pub(in crate::store) fn time(&self, column: &str) -> Result<Timestamp, StoreError> {
        self.get(column).map(Timestamp)
    }

    /// A SHA-256.
    pub(in crate::store) fn hash(&self, column: &str) -> Result<[u8; 32], StoreError> {
        let bytes: Vec<u8> = self.get(column)?;
        bytes.try_into().map_err(|_| StoreError::corrupt(format!("{column} has no 32 bytes")))
    }

    /// The name of a request, if it has one.
    pub(in crate::store) fn client_id(&self, column: &str) -> Result<Option<ClientId>, StoreError> {
        let id: Option<Vec<u8>> = self.get(column)?;
        let id = id.map(|bytes| Uuid::from_slice(&bytes).map(ClientId)).transpose();
        id.map_err(|_| StoreError::corrupt(format!("{column} has no 16 bytes")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_gets_lists_as_json_and_no_locks() {
        let text = "DELETE FROM t WHERE a = ANY($1) AND b IN (SELECT b FROM t WHERE c = $2 LIMIT 1 FOR UPDATE SKIP LOCKED)";
        let (text, _) = sql(text).bind(&[Uid(1), Uid(2)][..]).bind(true).in_sqlite();
        let wanted = "DELETE FROM t WHERE a IN (SELECT value FROM json_each($1)) AND b IN (SELECT b FROM t WHERE c = $2 LIMIT 1)";
        assert_eq!(text, wanted);
        let (text, values) = sql("SELECT value FROM unnest($1) AS value").bind(&[[0xab; 32]][..]).in_sqlite();
        assert_eq!(text, "SELECT value FROM (SELECT unhex(value) AS value FROM json_each($1)) AS value");
        let [Value::List(list)] = &values[..] else { panic!("a list") };
        assert_eq!(list.json(), format!("[\"{}\"]", "ab".repeat(32)));
        assert_eq!(List::Texts(vec!["a\"b".to_owned()]).json(), r#"["a\"b"]"#);
        assert_eq!(List::Numbers(Vec::new()).json(), "[]");
    }
}
