//! Errors of sqlx and rusqlite in the words of the store, for both databases.

use rusqlite::ErrorCode;
use sqlx::error::DatabaseError;
use sqlx::postgres::PgDatabaseError;

use super::StoreError;

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> StoreError {
        match &error {
            sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::ColumnNotFound(_)
            | sqlx::Error::Decode(_)
            | sqlx::Error::TypeNotFound { .. } => StoreError::corrupt(error),
            sqlx::Error::Database(database) => match database.try_downcast_ref::<PgDatabaseError>() {
                Some(postgres) => of_postgres(postgres),
                None if is_corrupt_file(database.as_ref()) => StoreError::corrupt(error),
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
const CORRUPT: u32 = 11;
const NOT_A_DATABASE: u32 = 26;

fn is_corrupt_file(error: &dyn DatabaseError) -> bool {
    let extended = error.code().and_then(|code| code.parse::<u32>().ok());
    matches!(extended.map(|code| code & 0xff), Some(CORRUPT | NOT_A_DATABASE))
}
