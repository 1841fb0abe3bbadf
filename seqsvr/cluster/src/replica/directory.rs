//! The directory of a replica: a lock, the progress file, the numbered files of which only the last counts. Owns all of
//! them; used by the writer alone.
//!
//! ```text
//!  lock       held while a process has the replica; never removed
//!  mark       how far the files are known to reach
//!  state.7    the file that counts
//!  spare      the next one's zeros, being written ahead
//!  rejoining  what is here must not be voted by
//! ```

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use super::identity::{Identity, OpenError, Place};
use super::journal::{self, Journal};
use super::progress_file::{self, ProgressFile};
use super::state::State;
use seqsvr_core::file_lock::FileLock;
use seqsvr_core::flaws::Flaws;
use seqsvr_core::store::message::Copy;
use seqsvr_core::store::{Configured, Layout};

/// Where a replica ends that was just made.
const FIRST: Place = Place { file: 1, frame: 1 };

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
    /// [`OpenError::Empty`] when there is no such directory, [`OpenError::Locked`], [`OpenError::Io`].
    pub(super) fn lock(
        path: &Path,
        identity: Identity,
        layout: Layout,
        room: usize,
    ) -> Result<Self, OpenError> {
        if !path.is_dir() {
            return Err(OpenError::Empty(path.to_owned()));
        }
        let at = path.join("lock");
        let lock = FileLock::take(&at).map_err(|why| match why {
            TryLockError::WouldBlock => OpenError::Locked(path.to_owned()),
            TryLockError::Error(why) => OpenError::Io { path: at, why },
        })?;
        let at = path.join(progress_file::NAME);
        let progress = ProgressFile::open(&at).map_err(OpenError::io(&at))?;
        Ok(Self { path: path.to_owned(), identity, layout, room, _lock: lock, progress })
    }

    /// Makes sure that there is no replica in it.
    ///
    /// # Errors
    ///
    /// [`OpenError::Exists`], [`OpenError::Rejoining`], [`OpenError::Io`].
    pub(super) fn vacant(&mut self) -> Result<(), OpenError> {
        if self.rejoining().exists() {
            return Err(OpenError::Rejoining(self.path.clone()));
        }
        if !self.numbers()?.is_empty() || self.noted()?.is_some() {
            return Err(OpenError::Exists(self.path.clone()));
        }
        Ok(())
    }

    /// Makes the directory an empty replica.
    ///
    /// # Errors
    ///
    /// [`OpenError::Exists`], [`OpenError::Rejoining`], [`OpenError::Io`].
    pub(super) fn init(mut self) -> Result<(State, Files), OpenError> {
        self.vacant()?;
        self.make(Configured::default())
    }

    /// Makes the directory an empty replica that waits to be taken in, in the place of another.
    ///
    /// # Errors
    ///
    /// [`OpenError::Exists`], [`OpenError::Rejoining`], [`OpenError::Io`].
    pub(super) fn join(mut self) -> Result<(State, Files), OpenError> {
        self.vacant()?;
        self.make(Configured { joining: true, ..Configured::default() })
    }

    fn make(self, configured: Configured) -> Result<(State, Files), OpenError> {
        let copy = Copy { layout: Some(self.layout), configured, ..Copy::default() };
        let state = State::restored(copy, 1, Flaws::default()).with_id(fresh_id());
        let files = self.begin(1, &state)?;
        Ok((state, files))
    }

    /// Reads the replica, and begins a new file.
    ///
    /// # Errors
    ///
    /// Every [`OpenError`] but [`OpenError::Locked`] and [`OpenError::Exists`].
    pub(super) fn open(mut self) -> Result<(State, Files), OpenError> {
        if self.rejoining().exists() {
            return Err(OpenError::Rejoining(self.path));
        }
        let noted = self.noted()?;
        let last = self.numbers()?.into_iter().max();
        let number = match (last, noted) {
            (Some(number), _) => number,
            (None, None) => return Err(OpenError::Empty(self.path)),
            (None, Some(noted)) => {
                let what = format!("missing, although {noted} was confirmed");
                return Err(OpenError::Damaged { path: self.file(noted.file), what });
            }
        };
        let path = self.file(number);
        let read = journal::read(&path, number)?;
        self.check(&path, &read)?;
        // A replica that was cut off while it was made has no progress file, and has confirmed nothing.
        let Some(confirmed) = noted.or((read.place == FIRST).then_some(FIRST)) else {
            let what = "damaged or missing, although there are files to it".to_owned();
            return Err(OpenError::Damaged { path: self.path.join(progress_file::NAME), what });
        };
        if read.place < confirmed {
            return Err(OpenError::RolledBack { path, found: read.place, confirmed });
        }
        let files = self.begin(number + 1, &read.state)?;
        Ok((read.state, files))
    }

    /// Notes that nothing here may be voted by until [`rejoined`](Self::rejoined); a directory of another replica is refused.
    /// Returns what can still be read, its id and what adds to what the others have.
    ///
    /// # Errors
    ///
    /// [`OpenError::Foreign`], [`OpenError::Layout`], [`OpenError::Format`], [`OpenError::Io`].
    pub(super) fn rejoin(&mut self) -> Result<Option<(u64, Copy)>, OpenError> {
        let mut kept = None;
        if let Some(number) = self.numbers()?.into_iter().max() {
            let path = self.file(number);
            match journal::read(&path, number) {
                Ok(read) => {
                    self.check(&path, &read)?;
                    kept = Some((read.state.id(), read.state.copy()));
                }
                Err(why @ (OpenError::Damaged { .. } | OpenError::Io { .. })) => {
                    tracing::warn!(%why, "what is here cannot be read: only the other replicas are copied");
                }
                Err(other) => return Err(other),
            }
        }
        let path = self.rejoining();
        File::create(&path).and_then(|file| file.sync_all()).map_err(OpenError::io(&path))?;
        self.sync()?;
        Ok(kept)
    }

    /// Goes on from a copy, as the member `id`; 0: it was never given one.
    ///
    /// # Errors
    ///
    /// [`OpenError::Io`].
    pub(super) fn rejoined(mut self, copy: Copy, id: u64) -> Result<(State, Files), OpenError> {
        let last = self.numbers()?.into_iter().max().unwrap_or(0);
        let number = last.max(self.noted()?.map_or(0, |place| place.file)) + 1;
        // Readers that knew this replica before take it for changed, whatever revision they saw.
        let id = if id == 0 { fresh_id() } else { id };
        let state = State::restored(copy, number << 32, Flaws::default()).with_id(id);
        let marker = self.rejoining();
        let files = self.begin(number, &state)?;
        fs::remove_file(&marker).map_err(OpenError::io(&marker))?;
        files.directory.sync()?;
        Ok((state, files))
    }

    fn begin(self, number: u64, state: &State) -> Result<Files, OpenError> {
        let path = self.path.join("spare");
        let file = File::create(&path).map_err(OpenError::io(&path))?;
        let mut directory = self;
        let journal = directory.install(file, 0, number, state)?;
        Ok(Files { directory, journal, spare: None })
    }

    /// Turns the spare into the file that counts. Nothing may be confirmed from it before.
    fn install(
        &mut self,
        spare: File,
        zeros: usize,
        number: u64,
        state: &State,
    ) -> Result<Journal, OpenError> {
        let (from, to) = (self.path.join("spare"), self.file(number));
        let journal = Journal::begin(spare, zeros, &self.identity, number, state, self.room);
        let journal = journal.map_err(OpenError::io(&from))?;
        fs::rename(&from, &to).map_err(OpenError::io(&to))?;
        self.sync()?;
        self.note(journal.place(), true)?;
        for old in self.numbers()?.into_iter().filter(|&old| old != number) {
            let path = self.file(old);
            fs::remove_file(&path).map_err(OpenError::io(&path))?;
        }
        Ok(journal)
    }

    fn note(&mut self, place: Place, durably: bool) -> Result<(), OpenError> {
        let noted =
            self.progress.note(place).and_then(|()| if durably { self.progress.sync() } else { Ok(()) });
        noted.map_err(OpenError::io(&self.path.join(progress_file::NAME)))
    }

    fn noted(&mut self) -> Result<Option<Place>, OpenError> {
        self.progress.read().map_err(OpenError::io(&self.path.join(progress_file::NAME)))
    }

    /// Makes the names in the directory durable.
    fn sync(&self) -> Result<(), OpenError> {
        File::open(&self.path).and_then(|directory| directory.sync_all()).map_err(OpenError::io(&self.path))
    }

    /// Whether a file is this replica's.
    fn check(&self, path: &Path, read: &journal::Read) -> Result<(), OpenError> {
        let path = || path.to_owned();
        if read.identity != self.identity {
            let (found, configured) = (Box::new(read.identity.clone()), Box::new(self.identity.clone()));
            return Err(OpenError::Foreign { path: path(), found, configured });
        }
        match read.state.layout() {
            Some(stored) if stored != self.layout => {
                Err(OpenError::Layout { path: path(), stored, configured: self.layout })
            }
            _ => Ok(()),
        }
    }

    fn file(&self, number: u64) -> PathBuf {
        self.path.join(format!("state.{number}"))
    }

    fn rejoining(&self) -> PathBuf {
        self.path.join("rejoining")
    }

    /// Which files are there.
    fn numbers(&self) -> Result<Vec<u64>, OpenError> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(OpenError::io(&self.path))? {
            let name = entry.map_err(OpenError::io(&self.path))?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("state."));
            numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
        }
        Ok(numbers)
    }
}

fn fresh_id() -> u64 {
    rand::random_range(1..=u64::MAX)
}

impl Files {
    /// Makes changes durable that `state` already has. After an error nothing may be confirmed any more.
    ///
    /// # Errors
    ///
    /// [`OpenError::Io`].
    pub(super) fn keep(&mut self, batch: &[u8], state: &State) -> Result<(), OpenError> {
        if !self.journal.fits(batch.len()) {
            return self.turn(state);
        }
        let path = self.directory.file(self.journal.place().file);
        self.journal.append(batch).map_err(OpenError::io(&path))?;
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

    /// Begins the next file, with the state as it is now: when the last is full, and when what was changed is no record of a
    /// file.
    ///
    /// # Errors
    ///
    /// [`OpenError::Io`].
    pub(super) fn turn(&mut self, state: &State) -> Result<(), OpenError> {
        let path = self.directory.path.join("spare");
        let (spare, zeros) = match self.spare.take() {
            Some(writing) => writing.join().expect("it writes zeros and does not panic"),
            None => File::create(&path).map(|file| (file, 0)),
        }
        .map_err(OpenError::io(&path))?;
        let number = self.journal.place().file + 1;
        self.journal = self.directory.install(spare, zeros, number, state)?;
        Ok(())
    }

    /// Notes how far the file reaches: now and then, and `durably` at the end.
    ///
    /// # Errors
    ///
    /// [`OpenError::Io`].
    pub(super) fn note(&mut self, durably: bool) -> Result<(), OpenError> {
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
}

impl Drop for Files {
    fn drop(&mut self) {
        if let Some(writing) = self.spare.take() {
            // What came of it does not matter: the next start makes its own.
            let _ = writing.join();
        }
    }
}

#[cfg(test)]
mod tests;
