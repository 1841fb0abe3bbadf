//! One text of SQL for both databases: statements, rows, transactions, and errors in the words of the store.
//!
//! [`Directory`](super::Directory) keeps everything beside the users' rows through it. The texts are PostgreSQL's.
//! SQLite, where one process writes one thing at a time, gets them without the locks of rows.

mod db;
mod error;
#[cfg(any(test, feature = "test-support"))]
mod memory;
mod statement;

pub(super) use db::{SqlDb, SqlTx};
pub(super) use error::NO_ROOM;
pub(super) use statement::{SqlRow, Statement, sql};
