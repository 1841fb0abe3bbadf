//! What tables are compared with: a bare server of their protocol, loops that store the same rows in the same databases, and loops that
//! read them.

mod append;
pub(crate) mod http;
pub(crate) mod pages;
pub(crate) mod postgres;
pub(crate) mod sqlite;

use super::sqlite::partition_key_of;
use crate::bench::tables;

/// The number of a table, where there is one alone.
const TABLE_ID: i64 = 1;
/// When rows were written: any moment.
const WRITTEN_AT: i64 = 1_795_261_438_042;

/// A value of the first key column, as it is stored, with the latest number under it.
struct First {
    name: String,
    partition_key: String,
    encoded: Vec<u8>,
    last_id: i64,
}

impl First {
    /// The `n`th one.
    fn new(n: usize) -> First {
        let name = tables::first(n);
        First {
            partition_key: partition_key_of(&name),
            encoded: tables::stored_first(&name),
            name,
            last_id: 0,
        }
    }

    /// The key of its next row.
    fn next_key(&mut self) -> Vec<u8> {
        self.last_id += 1;
        tables::stored_key(&self.name, self.last_id)
    }
}
