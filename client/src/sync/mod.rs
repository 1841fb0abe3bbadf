//! The rules of the cursor, without I/O: what a device does with each frame that tells it about its rows.
//!
//! The state is a [`Position`]: which life of the data (`history`) the device follows and how far it has come
//! (`cursor`). A frame turns it into a [`StoreChange`], which the caller carries out on its store, rows and cursor in one
//! transaction, and then confirms with [`SyncState::stored`]. A change that could not be stored is simply not
//! confirmed: the next heartbeat then says the old cursor and the server sends the rows again. The rules, each with its
//! reason:
//!
//! - Rows are stored only if they continue the cursor (`after` ≤ cursor); behind a hole they would hide the loss.
//! - Rows never lower the cursor; only an `alive` with a smaller number or a new history does.
//! - Rows at or below the cursor are there already and are dropped by id.
//! - A gap between ids means nothing (I11): nothing here does arithmetic on them.

use crate::error::Error;
use crate::wire::{Entries, Entry};

/// How far a device has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The life of the data that the rows belong to; `None` before the first contact.
    pub history: Option<String>,
    /// Every row up to here is stored; 0 = nothing.
    pub cursor: u64,
}

/// A change for the store to make, whole or not at all.
#[derive(Clone, Debug, PartialEq)]
pub enum StoreChange {
    /// Nothing.
    None,
    /// Add these rows, all newer than the old cursor, and set the cursor.
    Append {
        /// In the order of their ids; may be empty.
        rows: Vec<Entry>,
        /// The new cursor.
        cursor: u64,
    },
    /// Set the cursor back and drop the rows above it, which the server does not have.
    Lower {
        /// The new cursor.
        cursor: u64,
    },
    /// Drop all rows, start at 0 and follow this history.
    Reset {
        /// Its name.
        history: String,
    },
}

/// The state machine of one device.
#[derive(Clone, Debug)]
pub struct SyncState {
    position: Position,
}

impl SyncState {
    /// Continues from what the store holds.
    pub fn new(position: Position) -> SyncState {
        SyncState { position }
    }

    /// Where the device stands; the cursor is what the next heartbeat says.
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// A `welcome` came. Heartbeat next, after any change: a connection without a heartbeat gets nothing.
    pub fn on_welcome(&self, history: &str) -> StoreChange {
        if self.position.history.as_deref() == Some(history) {
            return StoreChange::None;
        }
        StoreChange::Reset { history: history.to_owned() }
    }

    /// An `alive` came. After any change but `None`, heartbeat at once with the new cursor.
    pub fn on_alive(&self, seq: u64, history: &str) -> StoreChange {
        match self.on_welcome(history) {
            StoreChange::None if seq < self.position.cursor => StoreChange::Lower { cursor: seq },
            change => change,
        }
    }

    /// Rows came. Heartbeat next, after any change: as the acknowledgement, or to ask for the missing rows.
    ///
    /// # Errors
    /// [`Error::Protocol`] when the rows are not in order or not within (`after`, `synced`].
    pub fn on_entries(&self, entries: Entries) -> Result<StoreChange, Error> {
        let Entries { mut rows, after, synced, .. } = entries;
        let in_order = rows.is_sorted_by(|a, b| a.message_id < b.message_id);
        let within = rows.first().is_none_or(|row| row.message_id > after)
            && rows.last().is_none_or(|row| row.message_id <= synced);
        if !in_order || !within {
            return Err(Error::Protocol(format!("rows out of order, or not in ({after}, {synced}]")));
        }
        let cursor = self.position.cursor;
        if after > cursor || synced <= cursor {
            return Ok(StoreChange::None);
        }
        rows.retain(|row| row.message_id > cursor);
        Ok(StoreChange::Append { rows, cursor: synced })
    }

    /// The change is in the store for good; from now on heartbeats say so.
    pub fn stored(&mut self, change: &StoreChange) {
        match change {
            StoreChange::None => {}
            StoreChange::Append { cursor, .. } | StoreChange::Lower { cursor } => {
                self.position.cursor = *cursor
            }
            StoreChange::Reset { history } => {
                self.position = Position { history: Some(history.clone()), cursor: 0 };
            }
        }
    }
}

#[cfg(test)]
mod tests;
