//! SQLite in memory, for tests of what stands above storage. Each statement is done at once, on the thread that asks: a
//! paused clock stands still meanwhile.

use std::sync::Arc;

use rusqlite::{Connection, Statement as Prepared};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::statement::{MemoryRow, SqlRow, Statement, Value};
use crate::store::{StoreError, migrations};

/// One connection, for one after the other.
pub(in crate::store) type MemoryDb = Arc<Mutex<Connection>>;

/// It, in a transaction.
pub(in crate::store) type MemoryTx = OwnedMutexGuard<Connection>;

/// A database with all tables and no rows.
pub(in crate::store) fn open() -> Result<MemoryDb, StoreError> {
    let connection = Connection::open_in_memory()?;
    connection.pragma_update(None, "foreign_keys", true)?;
    for migration in migrations::SQLITE.iter() {
        connection.execute_batch(migration.sql.as_str())?;
    }
    Ok(Arc::new(Mutex::new(connection)))
}

pub(in crate::store) async fn begin(db: &MemoryDb) -> Result<MemoryTx, StoreError> {
    let tx = Arc::clone(db).lock_owned().await;
    // One that was dropped.
    if !tx.is_autocommit() {
        tx.execute_batch("ROLLBACK")?;
    }
    tx.execute_batch("BEGIN IMMEDIATE")?;
    Ok(tx)
}

pub(super) fn rows(connection: &Connection, sql: Statement) -> Result<Vec<SqlRow>, StoreError> {
    let mut prepared = prepare(connection, sql)?;
    let names: Vec<String> = prepared.column_names().into_iter().map(str::to_owned).collect();
    let (mut asked, mut found) = (prepared.raw_query(), Vec::new());
    while let Some(row) = asked.next()? {
        let column = |(at, name): (usize, &String)| Ok((name.clone(), row.get(at)?));
        let columns = names.iter().enumerate().map(column).collect::<Result<_, rusqlite::Error>>()?;
        found.push(SqlRow::Memory(MemoryRow(columns)));
    }
    Ok(found)
}

pub(super) fn change(connection: &Connection, sql: Statement) -> Result<u64, StoreError> {
    Ok(prepare(connection, sql)?.raw_execute()? as u64)
}

fn prepare(connection: &Connection, sql: Statement) -> Result<Prepared<'_>, StoreError> {
    let (text, values) = sql.in_sqlite();
    let mut prepared = connection.prepare(&text)?;
    for (place, value) in (1..).zip(values) {
        // By its name: SQLite counts parameters in the order in which they come.
        let Some(at) = prepared.parameter_index(&format!("${place}"))? else { continue };
        match value {
            Value::Number(number) => prepared.raw_bind_parameter(at, number),
            Value::Flag(flag) => prepared.raw_bind_parameter(at, flag),
            Value::Text(text) => prepared.raw_bind_parameter(at, text),
            Value::Bytes(bytes) => prepared.raw_bind_parameter(at, bytes),
            Value::List(list) => prepared.raw_bind_parameter(at, list.json()),
        }?;
    }
    Ok(prepared)
}
