//! Search: a person's own messages and moments, by words and parts of words, sender, conversation and time.
//!
//! The index only names candidates. Each of them is read as every row is, and compared with the search, so edits, recalls,
//! deletions and expiry are right whatever the index says. Rows that are not indexed yet are read and compared one after the
//! other. So the index may be behind, or be lost: a search is slower then, and finds the same ([`find`]). [`Indexer`] keeps
//! the index up to date beside the queues; nobody who sends waits for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::domain::{Conversation, Entry, MessageId, SearchWords, Timestamp, Uid};
use crate::store::{MessageStore, SearchIndex, StoreError};

mod due;
mod find;
mod indexer;
mod lookup;
mod scan;

pub use due::{Due, DueNotices, IndexState};
pub use indexer::{Indexer, IndexerOptions};

/// Searches at a time, of everybody; others wait.
const AT_ONCE: usize = 2;

/// Searches that wait, in all and of one person.
const WAITING: usize = 64;
const WAITING_OF_ONE: usize = 4;

/// The index is read in larger pieces than rows: so many bytes of it count as one.
const BYTES_OF_INDEX: usize = 8;

/// What is looked for.
#[derive(Clone, Debug, Default)]
pub struct SearchRequest {
    /// Words; `None`: any text.
    pub words: Option<SearchWords>,
    /// In this conversation alone.
    pub conversation: Option<Conversation>,
    /// Of this person alone.
    pub sender: Option<Uid>,
    /// Sent then or later.
    pub from: Option<Timestamp>,
    /// Sent before then.
    pub to: Option<Timestamp>,
    /// With ids below this one.
    pub before: Option<MessageId>,
    /// At most so many.
    pub limit: usize,
}

/// A row that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The row as it stands.
    pub row: Entry,
    /// Where the words stand in its text ([`SearchWords::marks`]).
    pub marks: Vec<(u32, u32)>,
}

/// A page of rows that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Newest first.
    pub hits: Vec<Hit>,
    /// The search goes on below this id; `None`: there is nothing more.
    pub next_before: Option<MessageId>,
    /// `false`: the index is so far behind that edits of older messages may be missing in it and on this page.
    pub is_complete: bool,
    /// Bytes that it cost, as if all of them were rows.
    pub looked_through: usize,
}

/// How much one page may cost.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions {
    /// Rows that are read because they are not indexed.
    pub scanned: usize,
    /// Rows that are read because the index names them.
    pub candidates: usize,
    /// After so long a page ends with what was found. It goes on until it has come forward.
    pub takes: Duration,
}

impl Default for SearchOptions {
    fn default() -> SearchOptions {
        SearchOptions { scanned: 8_192, candidates: 2_000, takes: Duration::from_millis(300) }
    }
}

/// Searches.
#[derive(Clone)]
pub struct Search {
    store: Arc<dyn MessageStore>,
    index: Arc<dyn SearchIndex>,
    due: Arc<Due>,
    options: SearchOptions,
    running: Arc<Semaphore>,
    line: Arc<Line>,
}

/// Those who search or wait, and how often.
#[derive(Debug, Default)]
struct Line(Mutex<HashMap<Uid, usize>>);

/// A place in the line.
struct PlaceInLine<'a>(&'a Line, Uid);

impl Line {
    fn place(&self, uid: Uid) -> Option<PlaceInLine<'_>> {
        let mut line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if line.values().sum::<usize>() >= AT_ONCE + WAITING
            || line.get(&uid).is_some_and(|own| *own >= WAITING_OF_ONE)
        {
            return None;
        }
        *line.entry(uid).or_insert(0) += 1;
        Some(PlaceInLine(self, uid))
    }
}

impl Drop for PlaceInLine<'_> {
    fn drop(&mut self) {
        let mut line = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = line.get_mut(&self.1) {
            *own -= 1;
            if *own == 0 {
                line.remove(&self.1);
            }
        }
    }
}

impl Search {
    /// Searches by `index`, which the indexer of `due` fills.
    pub fn new(
        store: Arc<dyn MessageStore>,
        index: Arc<dyn SearchIndex>,
        due: Arc<Due>,
        options: SearchOptions,
    ) -> Search {
        let running = Arc::new(Semaphore::new(AT_ONCE));
        Search { store, index, due, options, running, line: Arc::default() }
    }

    /// The next page of what `who` looks for.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when too many searches wait, of everybody or of `who`; the store's errors. Those of the index make it slower.
    pub async fn find(&self, who: Uid, request: &SearchRequest) -> Result<Found, StoreError> {
        let _place = self.line.place(who).ok_or(StoreError::Busy)?;
        let _turn = self.running.acquire().await.map_err(StoreError::unavailable)?;
        find::Finder::new(self, who, request).find().await
    }

    /// Takes everything about `uid` out of the index, whose account is deleted.
    ///
    /// # Errors
    /// Those of the index.
    pub async fn forget(&self, uid: Uid) -> Result<(), StoreError> {
        self.index.forget(uid).await
    }
}

#[cfg(test)]
mod tests;
