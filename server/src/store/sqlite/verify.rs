//! Reads a file whole and says what in it is not as it was written.

use std::io;
use std::path::Path;

use rusqlite::OptionalExtension as _;
use seqsvr_core::page_sums;

use super::SqliteOptions;
use super::scan::open;
use super::stamp::{self, Found};

/// The damaged places of the database at `path`, each with the table or index of which it is a page, if that can still be told. `each` is
/// called with how many bytes were read. Others may have it open.
///
/// # Errors
/// When it cannot be read, or is no database with sums.
pub fn verify_database(path: &Path, each: impl FnMut(u64)) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    if let Some(Found::Damaged(why)) = stamp::look(path) {
        found.push(format!("{}: {why}", path.file_name().unwrap_or_default().display()));
    }
    let damaged = page_sums::verify(path, each)?;
    let with_its_table = damaged.into_iter().map(|damaged| match table_of(path, damaged.page) {
        Some(table) => format!("{damaged}: it is of `{table}`"),
        None => damaged.to_string(),
    });
    found.extend(with_its_table);
    Ok(found)
}

/// Damage may be in the way, and then nobody knows.
fn table_of(path: &Path, page: u32) -> Option<String> {
    let connection = open(path, &SqliteOptions::default()).ok()?;
    let named = "SELECT name FROM dbstat WHERE pageno = ?";
    connection.query_row(named, [page], |row| row.get(0)).optional().ok()?
}
