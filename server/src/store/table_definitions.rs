//! Definitions of tables, on both databases: plain transactions, written rarely. Called by the stores of tables, which
//! delete them each in its own way.

use super::StoreError;
use super::sql::{SqlDb, SqlRow, Statement, sql};
use super::tables::{TableId, TableMade, TableRecord};
use crate::domain::Timestamp;

const TABLES: &str = "SELECT id, instance, name, definition, created_at FROM tables WHERE deleted IS NULL";

/// Makes a table, of an instance, with a name and a definition.
pub(super) async fn create(
    db: &SqlDb,
    (instance, name, definition): (&str, &str, &str),
    now: Timestamp,
    most: usize,
) -> Result<TableMade, StoreError> {
    let create = async {
        let mut writer = db.writer().await?;
        let mut tx = writer.begin().await?;
        // One at a time; reads go on.
        tx.write_alone("tables").await?;
        let count = sql("SELECT count(*) AS tables FROM tables WHERE instance = $1 AND deleted IS NULL");
        let made = match tx.row(of_name(instance, name)).await? {
            Some(table) => TableMade::Exists(record(&table)?),
            None => match tx.row(count.bind(instance)).await? {
                Some(count) if count.number("tables")? >= most as u64 => TableMade::TooMany,
                _ => {
                    let insert = sql(
                        "INSERT INTO tables (instance, name, definition, created_at) VALUES ($1, $2, $3, $4)
                         RETURNING id, instance, name, definition, created_at",
                    );
                    let insert = insert.bind(instance).bind(name).bind(definition).bind(now);
                    let table = tx.row(insert).await?;
                    TableMade::Made(record(&table.expect("an insert returns its row"))?)
                }
            },
        };
        tx.commit().await?;
        Ok(made)
    };
    db.limited(create).await
}

fn of_name(instance: &str, name: &str) -> Statement {
    sql(format!("{TABLES} AND instance = $1 AND name = $2")).bind(instance).bind(name)
}

/// The table of this name.
pub(super) async fn table(db: &SqlDb, instance: &str, name: &str) -> Result<Option<TableRecord>, StoreError> {
    db.row(of_name(instance, name)).await?.as_ref().map(record).transpose()
}

/// Those of an instance, by name.
pub(super) async fn tables(db: &SqlDb, instance: &str) -> Result<Vec<TableRecord>, StoreError> {
    let tables = sql(format!("{TABLES} AND instance = $1 ORDER BY name")).bind(instance);
    db.rows(tables).await?.iter().map(record).collect()
}

/// Those with larger numbers than `after`.
pub(super) async fn tables_after(
    db: &SqlDb,
    after: TableId,
    limit: usize,
) -> Result<Vec<TableRecord>, StoreError> {
    db.rows(larger(after, limit)).await?.iter().map(record).collect()
}

/// The question for them.
pub(super) fn larger(after: TableId, limit: usize) -> Statement {
    sql(format!("{TABLES} AND id > $1 ORDER BY id LIMIT $2")).bind(after.0).bind(limit)
}

/// Replaces a definition. Whether it was `from`.
pub(super) async fn redefine(db: &SqlDb, table: TableId, from: &str, to: &str) -> Result<bool, StoreError> {
    let done = sql("UPDATE tables SET definition = $3 WHERE id = $1 AND definition = $2 AND deleted IS NULL");
    Ok(db.change(done.bind(table.0).bind(from).bind(to)).await? > 0)
}

/// Reads a table from a row.
pub(super) fn record(row: &SqlRow) -> Result<TableRecord, StoreError> {
    Ok(TableRecord {
        id: TableId(row.number("id")?),
        instance: row.get("instance")?,
        name: row.get("name")?,
        definition: row.get("definition")?,
        created_at: row.time("created_at")?,
    })
}
