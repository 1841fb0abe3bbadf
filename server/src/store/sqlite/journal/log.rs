//! The log: a file of frames, one a batch, each synced before the next one is written.
//!
//! A frame lies wherever there was room; its number says after which it comes. Room is behind the last frame, and where frames lie that
//! nobody needs any more. So the file stops growing, and a sync has its bytes to write and nothing else: no size changes. It grows by
//! whole steps of zeros.
//!
//! ```text
//!  header   magic, format, id of the log, its opening, the opening before           32 bytes, and room up to 4 KiB
//!  frame    magic, length of the blob, number of the batch, id of the log, durable length of the file, checksum; blob
//!                                                            a multiple of 32 bytes, wherever there is room
//! ```
//!
//! What is no whole frame of this log is passed over: an older frame that was partly written over, or the last one, torn by a power cut,
//! which nobody was told of. A later one is damage, and so is a file that is shorter than a frame of it says. That no number is missing in
//! between is for the [`Journal`](super::Journal) to see. The id is random and nobody is told it, so that no text that somebody sends reads
//! as a frame.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use seqsvr_core::file_lock::FileLock;

use super::frame::{Frame, HEAD, Header, LogId, START, encode, find, header, size};
use crate::store::sqlite::private;

/// The file grows by multiples of it, and room is used again that is as large. Small in tests, which so come to every case.
const STEP: u64 = if cfg!(test) { 8 << 10 } else { 1 << 20 };
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Why a file is not the log that was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLog {
    /// It is not there.
    #[error("it is missing")]
    Missing,
    /// It has not a byte.
    #[error("it is empty")]
    Empty,
    /// It is something else, or not all of it is there; what.
    #[error("{0}")]
    Damaged(&'static str),
    /// A newer version wrote it.
    #[error("it was written by a newer version")]
    Newer,
    /// It is the log of another moment, or of another installation.
    #[error("it is of another moment or installation")]
    Other,
    /// Another process has it.
    #[error("it is in use by another process; stop that one")]
    Busy,
    /// It is not there any more, while it is open: what is appended would be lost with the process.
    #[error("it was removed while it was in use")]
    Removed,
    /// It cannot be read or written now; why.
    #[error("{0}")]
    Io(String),
}

impl From<TryLockError> for BadLog {
    fn from(error: TryLockError) -> BadLog {
        match error {
            TryLockError::WouldBlock => BadLog::Busy,
            TryLockError::Error(why) => why.into(),
        }
    }
}

impl From<io::Error> for BadLog {
    fn from(error: io::Error) -> BadLog {
        match error.kind() {
            io::ErrorKind::NotFound => BadLog::Missing,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                BadLog::Io("the disk is full".into())
            }
            _ => BadLog::Io(error.to_string()),
        }
    }
}

/// The log, open, and locked: whatever became of the lock file, one process writes it.
pub(super) struct Log {
    lock: FileLock,
    id: u64,
    /// Those that are needed, by number, and the last one: it shows how far the log has come.
    frames: VecDeque<Frame>,
    /// Where the next frame goes, and up to where there is room for it.
    head: u64,
    limit: u64,
    /// How long the file is, and how much of that is durable.
    length: u64,
    synced: u64,
    buffer: Vec<u8>,
    #[cfg(test)]
    pub(super) most_bytes: Option<std::sync::Arc<std::sync::atomic::AtomicU64>>,
}

impl Log {
    /// Makes an empty log in place of any file at `path`. Durable when it returns.
    pub(super) fn make(path: &Path, log: LogId) -> Result<Log, BadLog> {
        private::make_file(path)?;
        let lock = FileLock::of(OpenOptions::new().read(true).write(true).open(path)?)?;
        lock.file().set_len(0)?;
        let mut made = Log::over(lock, log.id, VecDeque::new(), 0);
        made.grow(START)?;
        made.write_header(Header { log, before: log.opening })?;
        made.sync()?;
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(made)
    }

    /// Opens the log at `path`, if `is_right` says that it is the one. `after`: the batch behind which it begins. Gives its bytes, too.
    pub(super) fn open(
        path: &Path,
        after: u64,
        is_right: impl Fn(&Header) -> bool,
    ) -> Result<(Log, Vec<u8>), BadLog> {
        let lock = FileLock::of(OpenOptions::new().read(true).write(true).open(path)?)?;
        let (header, bytes) = read(path)?;
        if !is_right(&header) {
            return Err(BadLog::Other);
        }
        let found = find(&bytes, header.log.id);
        found.check(after, bytes.len() as u64)?;
        Ok((Log::over(lock, header.log.id, found.whole.into(), bytes.len() as u64), bytes))
    }

    fn over(lock: FileLock, id: u64, frames: VecDeque<Frame>, length: u64) -> Log {
        // Up to `limit` there is room: the first frame that is written looks for some.
        let head = frames.back().map_or(START, Frame::end);
        Log {
            lock,
            id,
            frames,
            head,
            limit: head,
            length,
            synced: 0,
            buffer: Vec::new(),
            #[cfg(test)]
            most_bytes: None,
        }
    }

    /// Moves the log at `path` aside, if there are batches in it. Says where it is.
    pub(super) fn set_aside(path: &Path) -> Result<Option<PathBuf>, BadLog> {
        let (header, bytes) = match read(path) {
            Ok(read) => read,
            Err(BadLog::Missing | BadLog::Empty) => return Ok(None),
            Err(bad) => return Err(bad),
        };
        let _unused = FileLock::of(File::open(path)?)?;
        if find(&bytes, header.log.id).whole.is_empty() {
            return Ok(None);
        }
        let aside = path.with_added_extension(format!("{:016x}", header.log.id));
        std::fs::rename(path, &aside)?;
        Ok(Some(aside))
    }

    /// The frames that are needed, by number, and the last one.
    pub(super) fn frames(&self) -> impl ExactSizeIterator<Item = &Frame> {
        self.frames.iter()
    }

    /// Writes the frames that are needed anew, as they are in `bytes`, and a header: what was written before a sync that failed, and is
    /// only believed to lie on the disk, lies there afterwards.
    pub(super) fn make_sure(&mut self, bytes: &[u8], header: Header) -> io::Result<()> {
        for frame in &self.frames {
            self.file().write_all_at(&bytes[frame.offset as usize..frame.end() as usize], frame.offset)?;
        }
        self.write_header(header)?;
        self.sync()
    }

    /// Makes durable what was written.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file().sync_data()?;
        self.synced = self.length;
        Ok(())
    }

    /// Writes a header; not synced.
    pub(super) fn write_header(&self, header: Header) -> io::Result<()> {
        let bytes = header.encode();
        self.file().write_all_at(&bytes, 0)
    }

    /// Stores a batch, durably. After an error the log must be opened anew: what it holds is unknown.
    pub(super) fn append(&mut self, seq: u64, blob: &[u8]) -> Result<(), BadLog> {
        self.write(seq, blob)?;
        self.sync()?;
        self.check_name()
    }

    /// Without a name the file is gone with the process, however durable it is.
    fn check_name(&self) -> Result<(), BadLog> {
        if self.file().metadata()?.nlink() == 0 { Err(BadLog::Removed) } else { Ok(()) }
    }

    fn file(&self) -> &File {
        self.lock.file()
    }

    fn write(&mut self, seq: u64, blob: &[u8]) -> io::Result<()> {
        let offset = self.place(size(blob.len()))?;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        encode(self.id, seq, self.synced, blob, &mut buffer);
        let written = self.file().write_all_at(&buffer, offset);
        self.buffer = buffer;
        written?;
        let frame = Frame { seq, offset, length: blob.len() };
        self.head = frame.end();
        self.frames.push_back(frame);
        Ok(())
    }

    /// The batch of a frame.
    pub(super) fn read(&self, seq: u64) -> io::Result<Option<Vec<u8>>> {
        let Ok(at) = self.frames.binary_search_by_key(&seq, |frame| frame.seq) else { return Ok(None) };
        let frame = self.frames[at];
        let mut blob = vec![0; frame.length];
        self.file().read_exact_at(&mut blob, frame.offset + HEAD as u64)?;
        Ok(Some(blob))
    }

    /// Batches up to this one are not needed any more, and may be written over.
    pub(super) fn free(&mut self, through: u64) {
        while self.frames.len() > 1 && self.frames[0].seq <= through {
            self.frames.pop_front();
        }
    }

    /// Makes sure that so many bytes find room. After an error the log is as it was.
    pub(super) fn make_room(&mut self, bytes: usize) -> Result<(), BadLog> {
        self.check_name()?;
        Ok(self.place(size(bytes)).map(|_| ())?)
    }

    /// A place for so many bytes that nobody needs.
    fn place(&mut self, bytes: u64) -> io::Result<u64> {
        if self.head + bytes > self.limit.min(self.length) {
            self.find_room(bytes);
            self.grow(self.head + bytes)?;
        }
        #[cfg(test)]
        if self
            .most_bytes
            .as_ref()
            .is_some_and(|most| self.head + bytes > most.load(std::sync::atomic::Ordering::Relaxed))
        {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(self.head)
    }

    /// Goes on where there is room: up to the next frame that is needed, from the start of the file, or behind all frames.
    fn find_room(&mut self, bytes: u64) {
        let enough = bytes.max(STEP);
        let next = self.frames.iter().map(|frame| frame.offset).filter(|offset| *offset >= self.head).min();
        let lowest = self.frames.iter().map(|frame| frame.offset).min();
        (self.head, self.limit) = match (next, lowest) {
            (Some(next), _) if next - self.head >= enough => (self.head, next),
            (_, Some(lowest)) if lowest - START >= enough => (START, lowest),
            _ => (self.frames.iter().map(Frame::end).max().unwrap_or(START), u64::MAX),
        };
    }

    /// Makes the file at least so long, by zeros; the next sync makes them durable.
    fn grow(&mut self, to: u64) -> io::Result<()> {
        if to <= self.length {
            return Ok(());
        }
        let to = if to <= START { START } else { to.next_multiple_of(STEP) };
        while self.length < to {
            let some = (ZEROS.len() as u64).min(to - self.length) as usize;
            self.file().write_all_at(&ZEROS[..some], self.length)?;
            self.length += some as u64;
        }
        Ok(())
    }
}

/// The header and all bytes of the log at `path`.
pub(super) fn read(path: &Path) -> Result<(Header, Vec<u8>), BadLog> {
    let bytes = std::fs::read(path)?;
    Ok((header(&bytes)?, bytes))
}

/// The header of the log at `path`.
pub(super) fn read_header(path: &Path) -> Result<Header, BadLog> {
    let mut bytes = Vec::with_capacity(HEAD);
    File::open(path)?.take(HEAD as u64).read_to_end(&mut bytes)?;
    header(&bytes)
}

/// Where the frame of each batch lies in the bytes of a log.
#[cfg(test)]
pub(in crate::store::sqlite) fn places(
    file: &[u8],
) -> std::collections::BTreeMap<u64, std::ops::Range<usize>> {
    let frames = find(file, header(file).expect("a log").log.id).whole;
    frames.iter().map(|frame| (frame.seq, frame.offset as usize..frame.end() as usize)).collect()
}

#[cfg(test)]
mod tests;
