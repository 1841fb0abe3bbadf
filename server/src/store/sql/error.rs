//! Errors of sqlx and rusqlite in the words of the store, for both databases.

use rusqlite::ErrorCode;
use seqsvr_core::page_sums::DAMAGED_PAGE;
use sqlx::error::DatabaseError;
use sqlx::postgres::PgDatabaseError;

use crate::store::StoreError;

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> StoreError {
        match &error {
            sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::ColumnNotFound(_)
            | sqlx::Error::Decode(_)
            | sqlx::Error::TypeNotFound { .. } => StoreError::corrupt(error),
            sqlx::Error::Database(database) => match database.try_downcast_ref::<PgDatabaseError>() {
                Some(postgres) => of_postgres(postgres),
                None if is_damaged_page(code_of(database.as_ref())) => StoreError::corrupt(NOT_AS_WRITTEN),
                None if is_corrupt_file(code_of(database.as_ref())) => StoreError::corrupt(error),
                None if is_full(code_of(database.as_ref())) => StoreError::unavailable(NO_ROOM),
                None => StoreError::unavailable(error),
            },
            _ => StoreError::unavailable(error),
        }
    }
}

/// The SQLSTATEs of data and indexes that PostgreSQL itself finds damaged.
const DATA_CORRUPTED: &str = "XX001";
const INDEX_CORRUPTED: &str = "XX002";
/// A prepared statement that the session does not have, or has already: it is another session than a moment ago.
const NO_SUCH_STATEMENT: &str = "26000";
const STATEMENT_EXISTS: &str = "42P05";
/// Among other things, values that are not those which the statement takes.
const PROTOCOL_VIOLATION: &str = "08P01";

fn of_postgres(error: &PgDatabaseError) -> StoreError {
    let (code, message) = (error.code(), error.message());
    let is_mixed_up = matches!(code, NO_SUCH_STATEMENT | STATEMENT_EXISTS)
        || code == PROTOCOL_VIOLATION && message.contains("prepared statement");
    match code {
        DATA_CORRUPTED | INDEX_CORRUPTED => StoreError::corrupt(format!("PostgreSQL: {message} ({code})")),
        _ if is_mixed_up => StoreError::unavailable(format!(
            "PostgreSQL: {message} ({code}): a pooler in front of it mixes up prepared statements; use PgBouncer 1.21 or newer with \
             max_prepared_statements of 200, or connect directly"
        )),
        _ => StoreError::unavailable(format!("PostgreSQL: {message} ({code})")),
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        use rusqlite::Error::{
            FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error,
        };
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::corrupt(error),
            Some(_) if is_damaged_page(error.sqlite_error().map(|error| error.extended_code)) => {
                StoreError::corrupt(NOT_AS_WRITTEN)
            }
            Some(_) if is_full(error.sqlite_error().map(|error| error.extended_code)) => {
                StoreError::unavailable(NO_ROOM)
            }
            _ if matches!(
                error,
                FromSqlConversionFailure(..)
                    | IntegralValueOutOfRange(..)
                    | InvalidColumnType(..)
                    | Utf8Error(..)
            ) =>
            {
                StoreError::corrupt(error)
            }
            _ => StoreError::unavailable(error),
        }
    }
}

/// SQLite's primary result codes, the low byte of the extended ones.
const CORRUPT: i32 = 11;
const NOT_A_DATABASE: i32 = 26;
const FULL: i32 = 13;
/// An extended code: the memory that connections share lies in a file, which cannot grow.
const NO_ROOM_TO_SHARE: i32 = 4_874;

/// The message for a full disk.
pub(in crate::store) const NO_ROOM: &str = "the disk is full";

fn is_full(extended: Option<i32>) -> bool {
    extended.is_some_and(|code| code & 0xff == FULL || code == NO_ROOM_TO_SHARE)
}

/// The log has the place (`page_sums`).
const NOT_AS_WRITTEN: &str = "the checksum of a page is wrong; `tidemark verify` lists the damaged pages";

fn code_of(error: &dyn DatabaseError) -> Option<i32> {
    error.code().and_then(|code| code.parse().ok())
}

fn is_damaged_page(extended: Option<i32>) -> bool {
    extended == Some(DAMAGED_PAGE)
}

fn is_corrupt_file(extended: Option<i32>) -> bool {
    matches!(extended.map(|code| code & 0xff), Some(CORRUPT | NOT_A_DATABASE))
}
