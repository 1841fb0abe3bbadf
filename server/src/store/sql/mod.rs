//! One text of SQL for both databases: statements, connections, rows, and errors in the words of the store.
//!
//! [`Directory`](super::Directory) keeps everything beside the users' rows through it, and the stores of tables their
//! definitions. The texts are PostgreSQL's. SQLite, where one process writes one thing at a time, gets them without the
//! locks of rows.

mod connection;
mod error;
#[cfg(any(test, feature = "test-support"))]
pub(super) mod memory;
mod statement;

pub(super) use connection::SqlConnection;
pub(super) use error::NO_ROOM;
pub(super) use statement::{SqlRow, Statement, sql};
