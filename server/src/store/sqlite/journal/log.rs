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
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::record;
use crate::store::sqlite::private;

/// Where frames begin; the header has a block of its own.
const START: u64 = 4_096;

/// Frames begin at multiples of it, so that no head lies in two sectors.
const ALIGN: u64 = 32;
const HEAD: usize = 32;
/// What of a head its checksum covers.
const SUMMED: usize = 28;
const FRAME: [u8; 4] = *b"tmjf";
const HEADER: [u8; 4] = *b"tmjl";

/// Of the header and the frames; a larger one was written by a newer program.
const FORMAT: u32 = 1;

/// The file grows by multiples of it, and room is used again that is as large. Small in tests, which so come to every case.
const STEP: u64 = if cfg!(test) { 8 << 10 } else { 1 << 20 };
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Which log it is, and since when it is open. Both random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogId {
    pub(super) id: u64,
    /// Drawn each time it is opened.
    pub(super) opening: u64,
}

/// What the header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) log: LogId,
    /// The opening before, for whoever had no time to note the last one.
    pub(super) before: u64,
}

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
    /// It cannot be read or written now; why.
    #[error("{0}")]
    Io(String),
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

/// Where a batch lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// The number of the batch.
    pub(super) seq: u64,
    offset: u64,
    /// Bytes of its blob.
    length: usize,
}

impl Frame {
    fn end(&self) -> u64 {
        self.offset + size(self.length)
    }

    /// Its blob, in the bytes of the file.
    pub(super) fn blob<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        let from = self.offset as usize + HEAD;
        &file[from..from + self.length]
    }
}

/// The log, open.
pub(super) struct Log {
    file: File,
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

/// Bytes that a frame takes in the file.
fn size(blob: usize) -> u64 {
    ((HEAD + blob) as u64).next_multiple_of(ALIGN)
}

impl Log {
    /// Makes a log that has these batches, in place of any file at `path`. Durable when it returns.
    pub(super) fn make(path: &Path, log: LogId, batches: &[(u64, Vec<u8>)]) -> Result<Log, BadLog> {
        private::make_file(path)?;
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        file.set_len(0)?;
        let mut made = Log::over(file, log.id, VecDeque::new(), 0);
        made.grow(START)?;
        for (seq, blob) in batches {
            made.write(*seq, blob)?;
        }
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
        let (header, bytes) = read(path)?;
        if !is_right(&header) {
            return Err(BadLog::Other);
        }
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let found = find(&bytes, header.log.id);
        found.check(after, bytes.len() as u64)?;
        Ok((Log::over(file, header.log.id, found.whole.into(), bytes.len() as u64), bytes))
    }

    fn over(file: File, id: u64, frames: VecDeque<Frame>, length: u64) -> Log {
        // Up to `limit` there is room: the first frame that is written looks for some.
        let head = frames.back().map_or(START, Frame::end);
        Log {
            file,
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
            self.file.write_all_at(&bytes[frame.offset as usize..frame.end() as usize], frame.offset)?;
        }
        self.write_header(header)?;
        self.sync()
    }

    /// Makes durable what was written.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.synced = self.length;
        Ok(())
    }

    /// Writes a header; not synced.
    pub(super) fn write_header(&self, header: Header) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(HEAD);
        bytes.extend_from_slice(&HEADER);
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        for number in [header.log.id, header.log.opening, header.before] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        self.file.write_all_at(&bytes, 0)
    }

    /// Stores a batch, durably. After an error the log must be opened anew: what it holds is unknown.
    pub(super) fn append(&mut self, seq: u64, blob: &[u8]) -> io::Result<()> {
        self.write(seq, blob)?;
        self.sync()
    }

    fn write(&mut self, seq: u64, blob: &[u8]) -> io::Result<()> {
        let offset = self.place(size(blob.len()))?;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        encode(self.id, seq, self.synced, blob, &mut buffer);
        let written = self.file.write_all_at(&buffer, offset);
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
        self.file.read_exact_at(&mut blob, frame.offset + HEAD as u64)?;
        Ok(Some(blob))
    }

    /// Batches up to this one are not needed any more, and may be written over.
    pub(super) fn free(&mut self, through: u64) {
        while self.frames.len() > 1 && self.frames[0].seq <= through {
            self.frames.pop_front();
        }
    }

    /// Makes sure that so many bytes find room. After an error the log is as it was.
    pub(super) fn make_room(&mut self, bytes: usize) -> io::Result<()> {
        self.place(size(bytes)).map(|_| ())
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
            self.file.write_all_at(&ZEROS[..some], self.length)?;
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

/// What the beginning of a log says.
fn header(bytes: &[u8]) -> Result<Header, BadLog> {
    if bytes.is_empty() {
        return Err(BadLog::Empty);
    }
    let head = bytes.get(..HEAD).filter(|head| head.starts_with(&HEADER));
    let head = head.ok_or(BadLog::Damaged("it does not begin as a log"))?;
    if u32_at(head, 4) != FORMAT {
        return Err(BadLog::Newer);
    }
    let log = LogId { id: u64_at(head, 8), opening: u64_at(head, 16) };
    Ok(Header { log, before: u64_at(head, 24) })
}

/// What the bytes of a log hold.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The whole frames, by number.
    pub(super) whole: Vec<Frame>,
    /// The largest number of a frame of which only the head is whole.
    broken: u64,
    /// How long the file was at the least, as the whole frames say.
    length: u64,
}

impl Found {
    /// Refuses a file in which more than the last frame is torn, or of which a part is missing.
    fn check(&self, after: u64, length: u64) -> Result<(), BadLog> {
        let last = self.whole.last().map_or(after, |frame| frame.seq);
        if length < self.length {
            return Err(BadLog::Damaged("it is cut off"));
        }
        // The frame behind the last one was written after that one was synced, and so on.
        match self.broken > last + 1 {
            true => Err(BadLog::Damaged("frames that were synced are not whole")),
            false => Ok(()),
        }
    }
}

/// Finds the frames in the bytes of a log.
pub(super) fn find(file: &[u8], id: u64) -> Found {
    let (mut found, mut offset) = (Found::default(), START as usize);
    while let Some(head) = file.get(offset..offset + HEAD) {
        let next = offset + ALIGN as usize;
        let Some((frame, length)) = frame_at(file, head, id, offset) else {
            offset = next;
            continue;
        };
        let blob = file.get(offset + HEAD..frame.end() as usize).map(|_| frame.blob(file));
        if blob.is_some_and(record::is_whole) {
            offset = frame.end() as usize;
            found.length = found.length.max(length);
            found.whole.push(frame);
        } else {
            offset = next;
            found.broken = found.broken.max(frame.seq);
        }
    }
    found.whole.sort_unstable_by_key(|frame| frame.seq);
    found
}

/// The frame with this head, if the head is whole; and how long the file was.
fn frame_at(file: &[u8], head: &[u8], id: u64, offset: usize) -> Option<(Frame, u64)> {
    if !head.starts_with(&FRAME) || u64_at(head, 16) != id {
        return None;
    }
    let beginning = file.get(offset + HEAD..offset + HEAD + record::HEADER)?;
    if sum(&head[..SUMMED], beginning) != head[SUMMED..] {
        return None;
    }
    let frame = Frame { seq: u64_at(head, 8), offset: offset as u64, length: u32_at(head, 4) as usize };
    Some((frame, u64::from(u32_at(head, 24)) * START))
}

/// Appends a frame to `out`. `length`: how much of the file is durable before it.
fn encode(id: u64, seq: u64, length: u64, blob: &[u8], out: &mut Vec<u8>) {
    let small =
        |number: u64| u32::try_from(number).expect("a batch is far below 4 GiB, and a log below 16 TiB");
    out.extend_from_slice(&FRAME);
    out.extend_from_slice(&small(blob.len() as u64).to_le_bytes());
    out.extend_from_slice(&seq.to_le_bytes());
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&small(length / START).to_le_bytes());
    let sum = sum(out, &blob[..record::HEADER]);
    out.extend_from_slice(&sum);
    out.extend_from_slice(blob);
    out.resize(size(blob.len()) as usize, 0);
}

/// Of a head and the beginning of its blob, which has a checksum over the rest.
fn sum(head: &[u8], beginning: &[u8]) -> [u8; HEAD - SUMMED] {
    let digest = Sha256::new().chain_update(head).chain_update(beginning).finalize();
    digest[..HEAD - SUMMED].try_into().expect("4 of 32 bytes")
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
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
