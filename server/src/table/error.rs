//! Failures of the store as refusals.

use tidemark_table::{ErrorCode, TableError};
use tracing::error;

use crate::log_limit::LogLimit;
use crate::store::StoreError;

/// Nothing was applied; trying again may help.
pub(super) fn busy() -> TableError {
    TableError::new(ErrorCode::ServerBusy, "Server is busy.")
}

/// It may or may not have been applied.
pub(super) fn timeout() -> TableError {
    TableError::new(ErrorCode::Timeout, "Operation timeout: it may or may not have been applied.")
}

/// A read was ended.
pub(super) fn too_slow() -> TableError {
    TableError::new(
        ErrorCode::Timeout,
        "Operation timeout: reading took too long; ask for less, or try again.",
    )
}

/// What went wrong is in the log.
pub(super) fn internal() -> TableError {
    TableError::new(ErrorCode::InternalServerError, "Internal server error.")
}

/// A read failed. What is unreadable goes to the log.
pub(super) fn unread(error: &StoreError) -> TableError {
    if error.is_retryable() { busy() } else { unreadable(error) }
}

/// Something that is stored cannot be read.
pub(super) fn unreadable(what: &dyn std::fmt::Display) -> TableError {
    static LOG: std::sync::LazyLock<LogLimit> = std::sync::LazyLock::new(LogLimit::default);
    if let Some(left_out) = LOG.pass() {
        error!(error = %what, left_out, "a table holds something unreadable");
    }
    internal()
}
