//! SQLite: everything in two files of one directory, owned by one process.
//!
//! [`Db`] is the main database with its keyed tables; accounts and messages share it. Reads go through a small
//! pool, writes through one connection, a transaction at a time.

mod db;
mod directory;
mod error;
mod lock;
mod options;

pub use db::{Db, WriteTx};
pub use directory::SqliteDirectory;
pub use error::OpenError;
pub use options::SqliteOptions;
