//! Where the segments of tags are durable (S22, S26): one small row for each tag, advanced by compare and set, so
//! that any number of processes can share one database and no range is handed out twice.

use async_trait::async_trait;
use thiserror::Error;

use super::range::Range;
use super::tag::Tag;

#[cfg(test)]
mod conformance;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
mod sql;
mod sqlite;

pub use memory::MemoryRepository;
#[cfg(feature = "postgres")]
pub use postgres::PostgresRepository;
pub use sqlite::SqliteRepository;
#[cfg(feature = "postgres")]
pub use sqlx::PgPool;

/// The largest number that a row can hold: 2^63 - 1.
pub const MAX_NUMBER: u64 = i64::MAX as u64;

/// The values that are stored for a tag and move with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values {
    /// The first number of the line, as configured when it was begun or moved up: 1 to [`MAX_NUMBER`].
    pub start: u64,
    /// Numbers up to this one belong to somebody already: `start - 1` to [`MAX_NUMBER`].
    pub max: u64,
    /// How many numbers the next segment holds: 1 and up.
    pub step: u64,
}

/// The durable row of a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagRow {
    /// The tag.
    pub tag: Tag,
    /// Its values.
    pub values: Values,
    /// When it was last written, by the repository's clock: milliseconds since 1970.
    pub updated_at: u64,
}

/// Numbers that were issued while the database was away, to be told to it afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The tag.
    pub tag: Tag,
    /// The range, taken from the database before it went away.
    pub range: Range,
    /// When it was put in use, by the process: milliseconds since 1970.
    pub used_at: u64,
}

/// Keeps the rows of tags.
///
/// The contract, which the conformance suite checks:
///
/// - `max` never becomes smaller, regardless of the caller and of the order in which calls arrive.
/// - Of several [`take`](Self::take)s that expect the same `max`, one succeeds.
/// - A confirmed change survives the loss of the process (in memory: as long as the value lives).
/// - A call that failed may have been carried out or may be later; since a take compares, that leaves a gap
///   at worst.
#[async_trait]
pub trait Repository: Send + Sync {
    /// The row of `tag`, if there is one.
    ///
    /// # Errors
    ///
    /// [`RepositoryError`].
    async fn get(&self, tag: &Tag) -> Result<Option<TagRow>, RepositoryError>;

    /// All rows, by name.
    ///
    /// # Errors
    ///
    /// [`RepositoryError`].
    async fn list(&self) -> Result<Vec<TagRow>, RepositoryError>;

    /// Makes the row of `tag` unless there is one: whether it was made.
    ///
    /// # Errors
    ///
    /// [`RepositoryError`].
    async fn create(&self, tag: &Tag, values: Values) -> Result<bool, RepositoryError>;

    /// Replaces the values of a row whose `max` is `expected`: whether it was. The numbers above
    /// `expected` up to `values.max` are then the caller's alone.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Smaller`] when `values.max` is below `expected`.
    async fn take(&self, tag: &Tag, expected: u64, values: Values) -> Result<bool, RepositoryError>;

    /// Removes the row of `tag`: whether there was one. Numbers of the tag would then begin anew: for tags that
    /// are never used again.
    ///
    /// # Errors
    ///
    /// [`RepositoryError`].
    async fn remove(&self, tag: &Tag) -> Result<bool, RepositoryError>;

    /// Records numbers that were issued while the database was away, and raises `max` to their last if it is
    /// smaller (a database that was restored from a copy): whether this was the first time. Again changes nothing.
    ///
    /// # Errors
    ///
    /// [`RepositoryError`].
    async fn reconcile(&self, extension: &Extension) -> Result<bool, RepositoryError>;

    /// The recorded extensions of `tag`, by their first number.
    ///
    /// # Errors
    ///
    /// [`RepositoryError`].
    async fn extensions(&self, tag: &Tag) -> Result<Vec<Extension>, RepositoryError>;
}

/// Why a repository did nothing, as far as it knows.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RepositoryError {
    /// It cannot be reached or used now.
    #[error("the repository cannot be used: {0}")]
    Unavailable(String),
    /// The call would go back.
    #[error("{to} is below {stored}, the last number of {tag} that was taken; numbers never go back")]
    Smaller {
        /// The tag.
        tag: Tag,
        /// The requested `max`.
        to: u64,
        /// The `max` that is stored, or was expected.
        stored: u64,
    },
}

/// Refuses a take that would go back, before anything is asked of the storage.
fn check_forward(tag: &Tag, expected: u64, values: Values) -> Result<(), RepositoryError> {
    if values.max < expected {
        return Err(RepositoryError::Smaller { tag: tag.clone(), to: values.max, stored: expected });
    }
    Ok(())
}
