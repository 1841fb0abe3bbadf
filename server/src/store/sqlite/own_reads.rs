//! Look-ups of the committer in the tables, on its own thread: over sqlx each would hand its statement to another thread,
//! and wake this one again. A message that is alone waits for one look at its key, and for nothing else beside the disk.
//!
//! Owned by the committer, which asks memory first. A connection on which all of them failed is not used again.

use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::lookup::message_id;
use super::scan::open;
use crate::domain::{IdempotencyKey, MessageId, Uid};
use crate::store::StoreError;

/// The committer's own way to the tables.
pub(super) struct OwnReads {
    path: PathBuf,
    /// Opened when it is needed.
    connection: Option<Connection>,
}

/// The facts that were looked for, as far as the tables have them.
#[derive(Debug, Default)]
pub(super) struct FoundFacts {
    /// The keys that have a record, or one that cannot be read: who decides again asks for each by itself.
    pub(super) used: Vec<IdempotencyKey>,
    /// The latest id of each inbox, in the order of the question; 0 where no row was ever stored.
    pub(super) latest_ids: Vec<(Uid, MessageId)>,
}

impl OwnReads {
    /// Of the database at `path`.
    pub(super) fn new(path: PathBuf) -> OwnReads {
        OwnReads { path, connection: None }
    }

    /// Looks for the records under `keys` and the latest ids of `uids`, all at one moment.
    pub(super) fn look(&mut self, keys: &[IdempotencyKey], uids: &[Uid]) -> Result<FoundFacts, StoreError> {
        if keys.is_empty() && uids.is_empty() {
            return Ok(FoundFacts::default());
        }
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => open(&self.path)?,
        };
        let found = look(&connection, keys, uids)?;
        self.connection = Some(connection);
        Ok(found)
    }

    /// Closes the connection.
    pub(super) fn close(&mut self) {
        self.connection = None;
    }
}

fn look(connection: &Connection, keys: &[IdempotencyKey], uids: &[Uid]) -> Result<FoundFacts, StoreError> {
    // One look needs no transaction to be of one moment.
    let many = (keys.len() + uids.len() > 1).then(|| connection.unchecked_transaction()).transpose()?;
    let mut found = FoundFacts::default();
    let mut record = connection
        .prepare_cached("SELECT 1 FROM sent WHERE partition_key = ? AND sender = ? AND client_id = ?")?;
    for key in keys {
        let (sender, client_id) = key;
        let partition_key = sender.partition_key();
        let key_of = params![partition_key.as_str(), sender.0, client_id.0.as_bytes().as_slice()];
        match record.exists(key_of).map_err(StoreError::from) {
            Ok(false) => {}
            Err(error) if error.is_retryable() => return Err(error),
            Ok(true) | Err(_) => found.used.push(*key),
        }
    }
    let mut head =
        connection.prepare_cached("SELECT last_id FROM heads WHERE partition_key = ? AND receiver = ?")?;
    for &uid in uids {
        let latest = head.query_row(params![uid.partition_key().as_str(), uid.0], |row| row.get(0));
        let latest: Option<i64> = latest.optional()?;
        found.latest_ids.push((uid, message_id(latest.unwrap_or(0))?));
    }
    many.map_or(Ok(()), |transaction| transaction.commit())?;
    Ok(found)
}
