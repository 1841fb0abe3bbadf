//! The meaning of the database's errors for a commit, of messages and of rows. Pure.

use sqlx::postgres::{PgDatabaseError, PgSeverity};

use crate::store::StoreError;

/// Calls of one commit that may be ended by a lock or a deadlock.
pub(super) const MOST_CONFLICTS: usize = 5;

/// Why a call stored nothing, or may have.
#[derive(Debug)]
pub(super) enum Setback {
    /// A key has a record.
    KeyUsed,
    /// A copy is owed no more, or a group is there already.
    Overtaken,
    /// It could be stored: the answer to a call that only checks.
    Storable,
    /// Another transaction was in the way.
    Conflict(StoreError),
    /// It began after its deadline.
    Late(StoreError),
    /// The database refuses something in it for good.
    Unstorable(String),
    /// Nothing of it is stored.
    Refused(StoreError),
    /// Something of it may be stored.
    Unknown(StoreError),
}

/// The meaning of a database error for a commit.
pub(super) fn setback(error: sqlx::Error) -> Setback {
    let Some(database) = error.as_database_error().map(|error| error.downcast_ref::<PgDatabaseError>())
    else {
        return Setback::Unknown(error.into());
    };
    let code = database.code().to_owned();
    match code.as_str() {
        "TM001" => Setback::KeyUsed,
        "TM002" => Setback::Overtaken,
        "TM003" => Setback::Storable,
        "TM007" => Setback::Late(error.into()),
        // The session ends; the transaction may have been committed before that.
        _ if matches!(database.severity(), PgSeverity::Fatal | PgSeverity::Panic) => {
            Setback::Unknown(error.into())
        }
        "40003" => Setback::Unknown(error.into()),
        // A deadlock, a transaction that must be done again, a lock that did not come in time.
        "40P01" | "40001" | "55P03" => Setback::Conflict(error.into()),
        _ => match &code[..2] {
            // Connections, and what an operator ends.
            "08" => Setback::Unknown(error.into()),
            // Data, rules of tables, limits of the program.
            "22" | "23" | "54" => Setback::Unstorable(format!("PostgreSQL: {}", database.message())),
            _ => Setback::Refused(error.into()),
        },
    }
}
