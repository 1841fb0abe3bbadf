//! The reconciliation journal: a local file of checksummed lines, each synced before its event takes effect. One process uses it, which a
//! lock on the file makes sure of; its tags share it.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use seqsvr_core::file_lock::FileLock;

use super::ledger::{JournalEntry, RangeEvent, RangeLedger};
use crate::clock::Clock;
use crate::error::OpenError;
use crate::range::Range;
use crate::repository::Extension;
use crate::tag::Tag;

/// The file is written anew, with the lines that still matter, when it has this many.
const LONGEST: usize = 10_000;

/// The open journal of a process.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    clock: Clock,
    state: Mutex<JournalState>,
    /// Locked as long as the journal is open.
    _lock: FileLock,
}

#[derive(Debug)]
struct JournalState {
    file: File,
    ledger: RangeLedger,
    lines: usize,
}

impl Journal {
    /// Opens the file, making it if there is none, and drops the lines that no longer matter. Beside it lies a
    /// file `.lock`.
    ///
    /// # Errors
    ///
    /// [`OpenError::Bad`]: another process uses it, it is damaged, or the system refuses.
    pub fn open(path: impl AsRef<Path>, clock: Clock) -> Result<Arc<Self>, OpenError> {
        let path = path.as_ref().to_owned();
        let bad = |problem: String| OpenError::Bad(format!("{}: {problem}", path.display()));
        let io = |error: io::Error| bad(error.to_string());
        let lock = FileLock::take(&beside(&path, "lock")).map_err(|error| match error {
            TryLockError::WouldBlock => {
                bad("another process uses it: stop that one, or name another file".to_owned())
            }
            TryLockError::Error(error) => io(error),
        })?;
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(io(error)),
        };
        let mut ledger = RangeLedger::default();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for (at, line) in lines.iter().enumerate() {
            match line.strip_suffix('\n').and_then(JournalEntry::parse) {
                Some(entry) => ledger.note(&entry),
                // A write that was cut short was not confirmed, so nothing came of it.
                None if at + 1 == lines.len() => {}
                None => {
                    return Err(bad(format!(
                        "line {} is damaged: restore the file, or remove it once its contents are in the database",
                        at + 1
                    )));
                }
            }
        }
        let state = Mutex::new(JournalState::written(&path, ledger).map_err(io)?);
        Ok(Arc::new(Self { path, clock, state, _lock: lock }))
    }

    /// Notes events of one tag, durably when this returns. Blocks for a sync of the file.
    ///
    /// # Errors
    ///
    /// The system's error; then nothing may come of the events.
    pub(super) fn note(&self, tag: &Tag, events: &[(RangeEvent, Range)]) -> io::Result<()> {
        let at = self.clock.wall();
        let entry =
            |&(event, range): &(RangeEvent, Range)| JournalEntry { event, tag: tag.clone(), range, at };
        let entries: Vec<JournalEntry> = events.iter().map(entry).collect();
        let lines: String = entries.iter().map(JournalEntry::line).collect();
        // After a panic half-way through, the file is at least as far as the ledger.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let written = state.file.write_all(lines.as_bytes()).and_then(|()| state.file.sync_data());
        if let Err(error) = written {
            // The file's contents are unknown now, so it is written anew from the ledger.
            *state = JournalState::written(&self.path, std::mem::take(&mut state.ledger))?;
            return Err(error);
        }
        entries.iter().for_each(|entry| state.ledger.note(entry));
        state.lines += entries.len();
        if state.lines > LONGEST {
            *state = JournalState::written(&self.path, std::mem::take(&mut state.ledger))?;
        }
        Ok(())
    }

    /// The ranges of `tag` that were taken ahead and not put in use, in order.
    pub(super) fn ahead(&self, tag: &Tag) -> std::collections::VecDeque<Range> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).ledger.ahead(tag)
    }

    /// The extensions of `tag` that the database must still be told about.
    pub(super) fn unreported(&self, tag: &Tag) -> Vec<Extension> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).ledger.unreported(tag)
    }
}

impl JournalState {
    /// Writes the lines that matter to a new file and puts it in the place of the old one.
    fn written(path: &Path, ledger: RangeLedger) -> io::Result<Self> {
        let live = ledger.live();
        let fresh = beside(path, "new");
        let mut file = File::create(&fresh)?;
        file.write_all(live.iter().map(JournalEntry::line).collect::<String>().as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, path)?;
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            File::open(folder)?.sync_all()?;
        }
        let mut kept = RangeLedger::default();
        live.iter().for_each(|entry| kept.note(entry));
        Ok(Self { file, ledger: kept, lines: live.len() })
    }
}

/// The path with `.ending` added.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::manual::Hands;

    fn open(path: &Path) -> Result<Arc<Journal>, OpenError> {
        Journal::open(path, Hands::at(1_700_000_000_000).clock())
    }

    #[test]
    fn what_was_noted_is_there_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("issuer.journal");
        let tag = Tag::new("order").unwrap();
        let range = |first| Range { first, last: first + 99 };
        let journal = open(&path).unwrap();
        journal
            .note(
                &tag,
                &[
                    (RangeEvent::Ahead, range(1)),
                    (RangeEvent::Ahead, range(101)),
                    (RangeEvent::Ahead, range(201)),
                ],
            )
            .unwrap();
        journal.note(&tag, &[(RangeEvent::Begun, range(1)), (RangeEvent::Extended, range(101))]).unwrap();
        assert!(matches!(open(&path), Err(OpenError::Bad(text)) if text.contains("another process uses it")));
        drop(journal);
        for _ in 0..2 {
            let again = open(&path).unwrap();
            assert_eq!(again.ahead(&tag), [range(201)]);
            let reported = Extension { tag: tag.clone(), range: range(101), used_at: 1_700_000_000_000 };
            assert_eq!(again.unreported(&tag), [reported]);
        }
        assert_eq!(
            fs::read_to_string(&path).unwrap().lines().count(),
            2,
            "what no longer matters is dropped"
        );
    }

    #[test]
    fn a_torn_last_line_is_forgotten_and_a_damaged_one_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("issuer.journal");
        let tag = Tag::new("order").unwrap();
        let journal = open(&path).unwrap();
        for first in [1, 101] {
            journal.note(&tag, &[(RangeEvent::Ahead, Range { first, last: first + 99 })]).unwrap();
        }
        drop(journal);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        assert_eq!(open(&path).unwrap().ahead(&tag), [Range { first: 1, last: 100 }]);
        fs::write(&path, whole.replacen("ahead", "begun", 1)).unwrap();
        assert!(matches!(open(&path), Err(OpenError::Bad(text)) if text.contains("line 1 is damaged")));
    }
}
