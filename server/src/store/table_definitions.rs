//! Definitions of tables, on both databases: plain statements, written rarely. Called by the stores of tables, which
//! delete them each in its own way.

use super::StoreError;
use super::sql::{SqlConnection, SqlRow, Statement, sql};
use super::tables::{TableId, TableMade, TableRecord};
use crate::domain::Timestamp;

const TABLES: &str = "SELECT id, instance, name, definition, created_at FROM tables WHERE deleted IS NULL";

/// Makes a table, of an instance, with a name and a definition, in the caller's transaction.
pub(super) async fn create(
    mut tx: SqlConnection<'_>,
    (instance, name, definition): (&str, &str, &str),
    now: Timestamp,
    most: usize,
) -> Result<TableMade, StoreError> {
    // One at a time; reads go on.
    tx.write_alone("tables").await?;
    if let Some(table) = tx.row(of_name(instance, name)).await? {
        return Ok(TableMade::Exists(record(&table)?));
    }
    let count = sql("SELECT count(*) AS tables FROM tables WHERE instance = $1 AND deleted IS NULL");
    if let Some(count) = tx.row(count.bind(instance)).await?
        && count.number("tables")? >= most as u64
    {
        return Ok(TableMade::TooMany);
    }
    let insert = sql("INSERT INTO tables (instance, name, definition, created_at) VALUES ($1, $2, $3, $4)
         RETURNING id, instance, name, definition, created_at");
    let insert = insert.bind(instance).bind(name).bind(definition).bind(now);
    let table = tx.row(insert).await?;
    Ok(TableMade::Made(record(&table.expect("an insert returns its row"))?))
}

fn of_name(instance: &str, name: &str) -> Statement {
    sql(format!("{TABLES} AND instance = $1 AND name = $2")).bind(instance).bind(name)
}

/// The table of this name.
pub(super) async fn table(
    mut connection: SqlConnection<'_>,
    instance: &str,
    name: &str,
) -> Result<Option<TableRecord>, StoreError> {
    connection.row(of_name(instance, name)).await?.as_ref().map(record).transpose()
}

/// Those of an instance, by name.
pub(super) async fn tables(
    mut connection: SqlConnection<'_>,
    instance: &str,
) -> Result<Vec<TableRecord>, StoreError> {
    let tables = sql(format!("{TABLES} AND instance = $1 ORDER BY name")).bind(instance);
    connection.rows(tables).await?.iter().map(record).collect()
}

/// Those with larger numbers than `after`.
pub(super) async fn tables_after(
    mut connection: SqlConnection<'_>,
    after: TableId,
    limit: usize,
) -> Result<Vec<TableRecord>, StoreError> {
    let larger = sql(format!("{TABLES} AND id > $1 ORDER BY id LIMIT $2")).bind(after.0).bind(limit);
    connection.rows(larger).await?.iter().map(record).collect()
}

/// Replaces a definition. Whether it was `from`.
pub(super) async fn redefine(
    mut connection: SqlConnection<'_>,
    table: TableId,
    from: &str,
    to: &str,
) -> Result<bool, StoreError> {
    let done = sql("UPDATE tables SET definition = $3 WHERE id = $1 AND definition = $2 AND deleted IS NULL");
    Ok(connection.change(done.bind(table.0).bind(from).bind(to)).await? > 0)
}

fn record(row: &SqlRow) -> Result<TableRecord, StoreError> {
    Ok(TableRecord {
        id: TableId(row.number("id")?),
        instance: row.get("instance")?,
        name: row.get("name")?,
        definition: row.get("definition")?,
        created_at: row.time("created_at")?,
    })
}
