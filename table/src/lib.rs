//! Tables with an auto-increment key column (S19): values and rules, without I/O.
//!
//! [`value`] and [`definition`] are what everything here talks about; [`error`] is how a request is refused; [`mod@hex`] is how bytes are read and
//! written by people; [`wire`] turns bytes into
//! plain values and back; [`operations`] checks requests and makes answers; [`rows`] is what operations mean. Nothing here knows a
//! database or a socket: the server calls it between reading a request and writing rows.

pub mod client;
pub mod definition;
pub mod error;
pub mod hex;
pub mod operations;
pub mod rows;
pub mod value;
pub mod wire;

pub use definition::{
    ColumnType, KeyColumnDefinition, KeyType, ReservedThroughput, TableDefinition, TableOptions,
};
pub use error::{ErrorCode, TableError};
pub use value::{Cell, KeyValue, PrimaryKey, Row, Value};
