//! The directory of a replica: a lock, the progress file, the numbered files of which only the last counts. Owns all of
//! them; used by the writer alone.
//!
//! ```text
//!  lock       held while a process has the replica; never removed
//!  mark       how far the files are known to reach
//!  state.7    the file that counts
//!  spare      the next one's zeros, being written ahead
//! ```

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use super::identity::{FilesError, FramePlace, Identity};
use super::journal::{self, Journal};
use super::progress_file::{self, ProgressFile};
use super::state::State;
use seqsvr_core::file_lock::FileLock;
use seqsvr_core::flaws::Flaws;
use seqsvr_core::store::Layout;
use seqsvr_core::store::message::Copy;

/// Where a replica ends that was just made.
const FIRST: FramePlace = FramePlace { file: 1, frame: 1 };

/// See the module. Dropping it gives up the lock.
pub(super) struct Directory {
    path: PathBuf,
    identity: Identity,
    layout: Layout,
    /// Bytes of changes that a file has room for.
    room: usize,
    _lock: FileLock,
    progress: ProgressFile,
}

/// A replica's files, in use.
pub(super) struct Files {
    directory: Directory,
    journal: Journal,
    spare: Option<JoinHandle<io::Result<(File, usize)>>>,
}

impl Directory {
    /// Takes the directory for this process. `room`: after how many bytes of changes a new file is begun.
    ///
    /// # Errors
    ///
    /// [`FilesError::Empty`] when there is no such directory, [`FilesError::Locked`], [`FilesError::Io`].
    pub(super) fn lock(
        path: &Path,
        identity: Identity,
        layout: Layout,
        room: usize,
    ) -> Result<Self, FilesError> {
        if !path.is_dir() {
            return Err(FilesError::Empty(path.to_owned()));
        }
        let at = path.join("lock");
        let lock = FileLock::take(&at).map_err(|why| match why {
            TryLockError::WouldBlock => FilesError::Locked(path.to_owned()),
            TryLockError::Error(why) => FilesError::Io { path: at, why },
        })?;
        let at = path.join(progress_file::NAME);
        let progress = ProgressFile::open(&at).map_err(FilesError::io(&at))?;
        Ok(Self { path: path.to_owned(), identity, layout, room, _lock: lock, progress })
    }

    /// Makes the directory an empty replica, under an id that no other has.
    ///
    /// # Errors
    ///
    /// [`FilesError::Exists`], [`FilesError::Io`].
    pub(super) fn init(mut self) -> Result<(State, Files), FilesError> {
        if !self.numbers()?.is_empty() || self.noted()?.is_some() {
            return Err(FilesError::Exists(self.path.clone()));
        }
        let copy = Copy { layout: Some(self.layout), ..Copy::default() };
        let state = State::restored(copy, 1, Flaws::default()).with_id(rand::random_range(1..=u64::MAX));
        let files = self.begin(1, &state)?;
        Ok((state, files))
    }

    /// Reads the replica, and begins a new file.
    ///
    /// # Errors
    ///
    /// Every [`FilesError`] but [`FilesError::Locked`] and [`FilesError::Exists`].
    pub(super) fn open(mut self) -> Result<(State, Files), FilesError> {
        let noted = self.noted()?;
        let last = self.numbers()?.into_iter().max();
        let number = match (last, noted) {
            (Some(number), _) => number,
            (None, None) => return Err(FilesError::Empty(self.path)),
            (None, Some(noted)) => {
                let what = format!("missing, although {noted} was confirmed");
                return Err(FilesError::Damaged { path: self.file(noted.file), what });
            }
        };
        let path = self.file(number);
        let read = journal::read(&path, number)?;
        self.check(&path, &read)?;
        // A replica that was cut off while it was made has no progress file, and has confirmed nothing.
        let Some(confirmed) = noted.or((read.place == FIRST).then_some(FIRST)) else {
            let what = "damaged or missing, although other files of the replica are there".to_owned();
            return Err(FilesError::Damaged { path: self.path.join(progress_file::NAME), what });
        };
        if read.place < confirmed {
            return Err(FilesError::RolledBack { path, found: read.place, confirmed });
        }
        let files = self.begin(number + 1, &read.state)?;
        Ok((read.state, files))
    }

    fn begin(self, number: u64, state: &State) -> Result<Files, FilesError> {
        let path = self.path.join("spare");
        let file = File::create(&path).map_err(FilesError::io(&path))?;
        let mut directory = self;
        let journal = directory.install(file, 0, number, state)?;
        Ok(Files { directory, journal, spare: None })
    }

    /// Turns the spare into the file that counts. Nothing may be confirmed from it before.
    ///
    /// # Errors
    ///
    /// [`FilesError::Full`]: the file before it still counts. After a [`FilesError::Io`] nothing more may be confirmed.
    fn install(
        &mut self,
        spare: File,
        zeros: usize,
        number: u64,
        state: &State,
    ) -> Result<Journal, FilesError> {
        let (from, to) = (self.path.join("spare"), self.file(number));
        let journal = Journal::begin(spare, zeros, &self.identity, number, state, self.room);
        let journal = journal.map_err(FilesError::writing(&from))?;
        fs::rename(&from, &to).map_err(FilesError::io(&to))?;
        self.sync()?;
        self.note(journal.place(), true)?;
        for old in self.numbers()?.into_iter().filter(|&old| old != number) {
            let path = self.file(old);
            fs::remove_file(&path).map_err(FilesError::io(&path))?;
        }
        Ok(journal)
    }

    fn note(&mut self, place: FramePlace, durably: bool) -> Result<(), FilesError> {
        let noted =
            self.progress.note(place).and_then(|()| if durably { self.progress.sync() } else { Ok(()) });
        noted.map_err(FilesError::io(&self.path.join(progress_file::NAME)))
    }

    fn noted(&mut self) -> Result<Option<FramePlace>, FilesError> {
        self.progress.read().map_err(FilesError::io(&self.path.join(progress_file::NAME)))
    }

    /// Makes the names in the directory durable.
    fn sync(&self) -> Result<(), FilesError> {
        File::open(&self.path).and_then(|directory| directory.sync_all()).map_err(FilesError::io(&self.path))
    }

    /// Whether a file is this replica's.
    fn check(&self, path: &Path, read: &journal::Read) -> Result<(), FilesError> {
        let path = || path.to_owned();
        if read.identity != self.identity {
            let (found, configured) = (Box::new(read.identity.clone()), Box::new(self.identity.clone()));
            return Err(FilesError::Foreign { path: path(), found, configured });
        }
        match read.state.layout() {
            Some(stored) if stored != self.layout => {
                Err(FilesError::Layout { path: path(), stored, configured: self.layout })
            }
            _ => Ok(()),
        }
    }

    fn file(&self, number: u64) -> PathBuf {
        self.path.join(format!("state.{number}"))
    }

    /// Which files are there.
    fn numbers(&self) -> Result<Vec<u64>, FilesError> {
        numbers(&self.path)
    }
}

/// The id of the replica whose files are at `path`; `None`: there are none. Reads alone, also beside the process that has them.
///
/// # Errors
///
/// [`FilesError::Damaged`], [`FilesError::Format`], [`FilesError::Io`].
pub(super) fn stored_id(path: &Path) -> Result<Option<u64>, FilesError> {
    let last = match numbers(path) {
        Ok(numbers) => numbers.into_iter().max(),
        Err(FilesError::Io { why, .. }) if why.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let Some(number) = last else { return Ok(None) };
    Ok(Some(journal::read(&path.join(format!("state.{number}")), number)?.state.id()))
}

/// Which files are in the directory.
fn numbers(path: &Path) -> Result<Vec<u64>, FilesError> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(path).map_err(FilesError::io(path))? {
        let name = entry.map_err(FilesError::io(path))?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("state."));
        numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    Ok(numbers)
}

impl Files {
    /// Makes changes durable that `state` already has.
    ///
    /// # Errors
    ///
    /// [`FilesError::Full`]: nothing of the state may be shown before a [`turn`](Self::turn) succeeds. After a [`FilesError::Io`] nothing
    /// more may be confirmed.
    pub(super) fn keep(&mut self, batch: &[u8], state: &State) -> Result<(), FilesError> {
        if !self.journal.fits(batch.len()) {
            return self.turn(state);
        }
        let path = self.directory.file(self.journal.place().file);
        self.journal.append(batch).map_err(FilesError::writing(&path))?;
        if self.spare.is_none() && self.journal.half_full() {
            let (path, room) = (self.directory.path.join("spare"), self.directory.room);
            self.spare = Some(std::thread::spawn(move || {
                let file = File::create(&path)?;
                journal::write_zeros(&file, 0, room)?;
                file.sync_all()?;
                Ok((file, room))
            }));
        }
        Ok(())
    }

    /// Begins the next file, with the state as it is now: when the last is full, and when a change is no record of a file. It
    /// has everything, however the one before it ended.
    ///
    /// # Errors
    ///
    /// [`FilesError::Full`]: as before; it may be called again. After a [`FilesError::Io`] nothing more may be confirmed.
    pub(super) fn turn(&mut self, state: &State) -> Result<(), FilesError> {
        let turned = self.begin_next(state);
        if matches!(turned, Err(FilesError::Full { .. })) {
            // The part that was written takes up room.
            match fs::remove_file(self.directory.path.join("spare")) {
                Err(why) if why.kind() != io::ErrorKind::NotFound => {
                    return Err(FilesError::Io { path: self.directory.path.join("spare"), why });
                }
                _ => {}
            }
        }
        turned
    }

    fn begin_next(&mut self, state: &State) -> Result<(), FilesError> {
        let path = self.directory.path.join("spare");
        let written_ahead = self.spare.take().map(|writing| writing.join().expect("it does not panic"));
        let (spare, zeros) = match written_ahead {
            Some(Ok(written)) => written,
            // There may be room by now.
            Some(Err(_)) | None => (File::create(&path).map_err(FilesError::writing(&path))?, 0),
        };
        let number = self.journal.place().file + 1;
        self.journal = self.directory.install(spare, zeros, number, state)?;
        Ok(())
    }

    /// Notes how far the file reaches: now and then, and `durably` at the end.
    ///
    /// # Errors
    ///
    /// [`FilesError::Io`].
    pub(super) fn note(&mut self, durably: bool) -> Result<(), FilesError> {
        self.directory.note(self.journal.place(), durably)
    }
}

#[cfg(test)]
impl Files {
    /// From now on the system refuses to write.
    pub(super) fn break_disk(&mut self) {
        let path = self.directory.file(self.journal.place().file);
        self.journal.write_to(File::open(path).expect("it is there"));
    }

    /// There is no room: neither in this file nor, at the first attempt, for the next one.
    pub(super) fn fill_disk(&mut self) {
        let full = Path::new("/dev/full");
        self.journal.write_to(fs::OpenOptions::new().write(true).open(full).expect("Linux has it"));
        std::os::unix::fs::symlink(full, self.directory.path.join("spare")).expect("there is no spare");
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if let Some(writing) = self.spare.take() {
            // Its outcome does not matter: the next start makes its own.
            let _ = writing.join();
        }
    }
}

#[cfg(test)]
mod tests;
