//! Failures of the store as refusals.
//!
//! Clients may repeat what was refused (`OTSServerBusy`). They do not repeat a write whose outcome is unknown
//! (`OTSTimeout`).

use tidemark_table::operations::no_table;
use tidemark_table::{ErrorCode, TableError};
use tracing::error;

use crate::log_limit::LogLimit;
use crate::store::StoreError;
use crate::store::tables::TableOutcome;

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

/// The cause is in the log.
pub(super) fn internal() -> TableError {
    TableError::new(ErrorCode::InternalServerError, "Internal server error.")
}

/// A read failed. Unreadable rows go to the log.
pub(super) fn unread(error: &StoreError) -> TableError {
    if error.is_retryable() { busy() } else { unreadable(error) }
}

/// Why rows are refused that the store could write and has not. Rows that are stale can be decided again.
pub(super) fn not_stored(outcome: &TableOutcome) -> TableError {
    match outcome {
        TableOutcome::Stored(_) => internal(),
        TableOutcome::Stale => busy(),
        TableOutcome::NoTable => no_table(),
        TableOutcome::Rejected(why) => {
            error!(why, "a table takes no more rows under one value of its first key column");
            TableError::invalid("The auto-increment primary key has come to its largest value.")
        }
    }
}

/// Something that is stored cannot be read.
pub(super) fn unreadable(what: &dyn std::fmt::Display) -> TableError {
    static LOG: std::sync::LazyLock<LogLimit> = std::sync::LazyLock::new(LogLimit::default);
    if let Some(left_out) = LOG.pass() {
        error!(error = %what, left_out, "a table holds something unreadable");
    }
    internal()
}
