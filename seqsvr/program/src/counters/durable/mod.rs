//! Counters by name, in memory and in one file (S1, S3). Owns the thread that makes windows of numbers durable; `counter`
//! decides (pure), `book` holds the counters, `file` keeps their windows.
//!
//! A number is answered when a ceiling at or above it is on the disk. Ceilings are raised ahead of need, those of all
//! counters that ask in one commit, so an answer seldom waits. After a kill a counter goes on at its ceiling; after a stop
//! in good order it goes on where it was.

mod book;
mod counter;
mod file;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use async_trait::async_trait;
use seqsvr_resp::{KeyCounters, Refused, TryTake};
use tokio::time::{Instant, timeout_at};
use tracing::{info, warn};

use book::{Book, Want};
use file::CounterFile;

/// How long a call waits for its ceiling.
const WAIT: Duration = Duration::from_secs(5);
/// Ceilings in one commit.
const BATCH: usize = 10_000;
/// The pause after a first commit that failed; doubled with each further failure.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// See the module.
pub(crate) struct DurableCounters {
    book: Arc<Book>,
    raiser: Mutex<Option<JoinHandle<()>>>,
}

impl DurableCounters {
    /// Opens the counters in `directory`, which is made if there is none.
    ///
    /// # Errors
    ///
    /// One line: another process uses it, it cannot be read or written, another program wrote it.
    pub(crate) fn open(directory: &Path) -> Result<Self, String> {
        let mut file = CounterFile::open(directory)?;
        let book = Arc::new(Book::new(file.load()?));
        let raised = Arc::clone(&book);
        let raiser = thread::Builder::new().name("ceilings".to_owned());
        let raiser = raiser.spawn(move || raise(&raised, &mut file)).map_err(|error| error.to_string())?;
        Ok(Self { book, raiser: Mutex::new(Some(raiser)) })
    }

    /// Hands out nothing more, and writes where each counter stands. Waits for the disk.
    pub(crate) fn close(&self) {
        self.book.close();
        let raiser = self.raiser.lock().unwrap_or_else(PoisonError::into_inner).take();
        if raiser.is_some_and(|raiser| raiser.join().is_err()) {
            tracing::error!("the thread of the ceilings panicked");
        }
    }

    async fn wait(&self, key: &[u8], want: Want) -> Result<u64, Refused> {
        let deadline = Instant::now() + WAIT;
        let mut rounds = self.book.rounds();
        loop {
            match self.book.attempt(key, want) {
                Ok(number) => return Ok(number),
                Err(TryTake::Refused(refused)) => return Err(refused),
                Err(TryTake::Later) => {}
            }
            // The sender lives as long as the book, so only time can end the wait without a round.
            if timeout_at(deadline, rounds.changed()).await.is_err() {
                let why = self.book.trouble().unwrap_or_else(|| "the disk is slow".to_owned());
                return Err(Refused::now(format!("no number could be made durable within {WAIT:?}: {why}")));
            }
        }
    }
}

impl Drop for DurableCounters {
    fn drop(&mut self) {
        self.close();
    }
}

#[async_trait]
impl KeyCounters for DurableCounters {
    fn try_take(&self, key: &[u8], count: u64) -> Result<u64, TryTake> {
        self.book.attempt(key, Want::Next(count))
    }

    async fn take(&self, key: &[u8], count: u64) -> Result<u64, Refused> {
        self.wait(key, Want::Next(count)).await
    }

    fn expect(&self, key: &[u8], count: u64) {
        self.book.expect(key, count);
    }

    async fn last(&self, key: &[u8]) -> Result<Option<u64>, Refused> {
        Ok(self.book.last(key))
    }

    async fn advance(&self, key: &[u8], at_least: u64) -> Result<(), Refused> {
        self.wait(key, Want::To(at_least)).await.map(|_| ())
    }

    fn describe(&self) -> String {
        let trouble = self.book.trouble().unwrap_or_default();
        format!("counters:{}\r\ntrouble:{trouble}\r\n", self.book.len())
    }
}

/// Makes ceilings durable until the book is closed, and then writes where each counter stands.
fn raise(book: &Book, file: &mut CounterFile) {
    let mut pause = FIRST_PAUSE;
    while let Some(due) = book.due(BATCH) {
        match file.write(&due) {
            Ok(()) => {
                book.confirm(&due);
                pause = FIRST_PAUSE;
            }
            Err(why) => {
                warn!(counters = due.len(), why, "ceilings could not be written; trying again");
                book.failed(due, why);
                book.pause(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
    let standing = book.standing();
    let written = standing.chunks(BATCH).try_for_each(|part| file.write(part));
    match written {
        Ok(()) => info!(counters = standing.len(), "every counter is written as it stands"),
        Err(why) => warn!(why, "counters are not written as they stand; they will go on at their ceilings"),
    }
}
