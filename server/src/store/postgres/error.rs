//! Why a PostgreSQL database is not used.

use sqlx::migrate::MigrateError;

use super::Refusal;
use crate::store::StoreError;

/// Why a database cannot be opened; the text says what to do, and never has the password of the URL.
#[derive(Debug, thiserror::Error)]
pub enum PgOpenError {
    /// The URL cannot be used.
    #[error("the URL of the database {why}")]
    Url {
        /// What is wrong with it.
        why: String,
    },
    /// Nothing answers there, or it does not let us in.
    #[error("{place} cannot be connected to: {source}; check that it runs there, and the user and password")]
    Connect {
        /// Which database.
        place: String,
        /// What it says.
        source: sqlx::Error,
    },
    /// Nothing answered in time.
    #[error("{place} does not answer; check that it runs there")]
    Silent {
        /// Which database.
        place: String,
    },
    /// No server has used it yet.
    #[error("{place} has no tables of Tidemark; name the right database with --database-url")]
    Unused {
        /// Which database.
        place: String,
    },
    /// It is set up in a way that would lose or mix up messages.
    #[error("{place} cannot be used: {refusal}")]
    Refused {
        /// Which database.
        place: String,
        /// What is wrong.
        refusal: Refusal,
    },
    /// A newer server has changed it so that this one would go wrong.
    #[error(
        "{place} was changed by a newer version: a program must know migration {oldest} to use it, and this one knows those up to {known}; \
         run that version"
    )]
    Newer {
        /// Which database.
        place: String,
        /// The migration that must be known.
        oldest: i64,
        /// The newest one that is.
        known: i64,
    },
    /// A migration failed, or one that was applied is not the one that this server knows.
    #[error("{place} cannot be migrated: {source}")]
    Migration {
        /// Which database.
        place: String,
        /// Why.
        source: MigrateError,
    },
    /// Something in it cannot be read.
    #[error("{place} cannot be read: {source}")]
    Unreadable {
        /// Which database.
        place: String,
        /// Why.
        source: StoreError,
    },
}
