//! The log: two segments by turns, and in each a frame a batch, synced before the next one is written.
//!
//! A turn comes when one segment has [`TURN`] bytes and all batches of the other are flushed. The header of the one that begins has the
//! number of its first batch: so far the other one was durable, and it is refused if it does not come that far and is needed. So the files
//! stop growing, and a sync has its bytes to write and nothing else: no size changes. They grow by whole steps of free sectors.
//!
//! Bytes that are not as they were written are damage, but for the last frame, which a power cut may have torn (docs/adr/0010).

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use seqsvr_core::file_lock::FileLock;

use super::bad::{BadLog, LogError};
use super::sector::{self, Frame, Header, LogId, START, size};
use super::segment::Segment;
use crate::store::sqlite::private::sync_directory_of;

/// Bytes in a segment after which the other one has its turn. Small in tests, which so come to every case, as the next two.
const TURN: u64 = if cfg!(test) { 16 << 10 } else { 4 << 20 };

/// A segment grows by multiples of it.
const STEP: u64 = if cfg!(test) { 8 << 10 } else { 1 << 20 };

/// So often the header gets the number of a batch that is durable: what a disk only pretended to write is missed.
const NOTED_EVERY: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_secs(1) };

/// Where the two lie.
pub(super) type Paths = [PathBuf; 2];

/// The log, open, and locked: whatever became of the lock file, one process writes it.
pub(super) struct Log {
    segments: [Segment; 2],
    /// To which frames are appended.
    active: usize,
    /// Batches up to this one are not needed.
    flushed: u64,
    /// A turn was begun, and is not known to be durable: until it is, nothing is appended. The next start might find a gap.
    turning: bool,
    noted: Instant,
    buffer: Vec<u8>,
    #[cfg(test)]
    pub(super) most_bytes: Option<std::sync::Arc<std::sync::atomic::AtomicU64>>,
}

impl Log {
    /// Makes an empty log behind the batch `flushed`, in place of any files at `paths`. Durable when it returns.
    pub(super) fn make(paths: &Paths, log: LogId, flushed: u64) -> Result<Log, LogError> {
        let begun = Header { log, before: log.opening, first: flushed + 1, length: 0, durable: flushed };
        let other = Header { first: 0, durable: 0, ..begun };
        let [first, second] = paths;
        let segments = [
            Segment::make(first, begun).map_err(LogError::at(first))?,
            Segment::make(second, other).map_err(LogError::at(second))?,
        ];
        sync_directory_of(first).map_err(LogError::at(first))?;
        Ok(Log::over(segments, 0, flushed))
    }

    /// Opens the log at `paths`, if both files are of the one that is `noted`. Batches behind `flushed` are needed; all of them are durable
    /// when it returns, and both headers say `opening`.
    pub(super) fn open(paths: &Paths, flushed: u64, noted: LogId, opening: u64) -> Result<Log, LogError> {
        let open = |path: &PathBuf| Segment::open(path).map_err(LogError::at(path));
        let ((first, first_bytes), (second, second_bytes)) = (open(&paths[0])?, open(&paths[1])?);
        let (segments, bytes) = ([first, second], [first_bytes, second_bytes]);
        if let Some(other) = segments.iter().find(|segment| !segment.header().is_of(noted)) {
            return Err(LogError { path: other.path().to_owned(), bad: BadLog::Other });
        }
        let parts = [0, 1].map(|at| (segments[at].header(), segments[at].frames()));
        let newer = newer(parts);
        needed(parts, flushed).map_err(LogError::at(segments[newer].path()))?;
        let mut log = Log::over(segments, newer, flushed);
        log.make_sure(&bytes, noted, opening)?;
        Ok(log)
    }

    fn over(segments: [Segment; 2], active: usize, flushed: u64) -> Log {
        Log {
            segments,
            active,
            flushed,
            turning: false,
            noted: Instant::now(),
            buffer: Vec::new(),
            #[cfg(test)]
            most_bytes: None,
        }
    }

    /// Whether a sync had failed before cannot be known (I3): so all that is needed is written anew.
    fn make_sure(&mut self, bytes: &[Vec<u8>; 2], noted: LogId, opening: u64) -> Result<(), LogError> {
        let flushed = self.flushed;
        for at in [0, 1] {
            self.edit(at, |segment| {
                segment.write_again(&bytes[at], flushed)?;
                // As long as the opening is not noted, the one that is stays here, however often this is interrupted.
                let (log, before) = (LogId { opening, ..noted }, noted.opening);
                segment.write_header(Header { log, before, ..*segment.header() })?;
                segment.sync()
            })?;
        }
        Ok(())
    }

    /// From now on no note of an opening before fits.
    pub(super) fn settle(&mut self) -> Result<(), LogError> {
        for at in [0, 1] {
            self.edit(at, |segment| {
                let header = *segment.header();
                segment.write_header(Header { before: header.log.opening, ..header })?;
                segment.sync()
            })?;
        }
        Ok(())
    }

    /// The number of the last batch.
    pub(super) fn last(&self) -> u64 {
        self.segments[self.active].last()
    }

    /// Stores a batch, durably. After an error the log must be opened anew: what it holds is unknown.
    pub(super) fn append(&mut self, seq: u64, blob: &[u8]) -> Result<(), LogError> {
        self.place(size(blob.len()))?;
        let durable = (self.noted.elapsed() >= NOTED_EVERY).then_some(seq - 1);
        let mut buffer = std::mem::take(&mut self.buffer);
        let appended = self.edit(self.active, |segment| {
            segment.append(seq, blob, durable, &mut buffer)?;
            segment.sync()
        });
        self.buffer = buffer;
        appended?;
        if durable.is_some() {
            self.noted = Instant::now();
        }
        self.check_names()
    }

    /// Makes sure that a blob of so many bytes finds room. After an error nothing is lost, and it may be called again.
    pub(super) fn make_room(&mut self, bytes: usize) -> Result<(), LogError> {
        self.check_names()?;
        self.place(size(bytes))
    }

    /// The blob of a batch.
    pub(super) fn read(&self, seq: u64) -> Result<Option<Vec<u8>>, LogError> {
        for segment in &self.segments {
            let blob = segment.read(seq).map_err(LogError::at(segment.path()))?;
            if blob.is_some() {
                return Ok(blob);
            }
        }
        Ok(None)
    }

    /// Batches up to this one are not needed any more.
    pub(super) fn free(&mut self, through: u64) {
        self.flushed = self.flushed.max(through);
    }

    /// Room for so many bytes where the next frame goes.
    fn place(&mut self, bytes: u64) -> Result<(), LogError> {
        let other = 1 - self.active;
        let is_full = self.segments[self.active].end() >= START + TURN;
        if is_full && self.segments[other].last() <= self.flushed {
            let last = self.last();
            self.edit(other, |segment| segment.begin(last))?;
            (self.active, self.turning) = (other, true);
        }
        if self.turning {
            // Anew each time: after a sync that failed the next one may succeed without having written it.
            self.edit(self.active, |segment| {
                segment.write_header(*segment.header())?;
                segment.sync()
            })?;
            self.turning = false;
        }
        let to = self.segments[self.active].end() + bytes;
        #[cfg(test)]
        let most =
            self.most_bytes.as_ref().map_or(u64::MAX, |most| most.load(std::sync::atomic::Ordering::Relaxed));
        self.edit(self.active, |segment| {
            #[cfg(test)]
            if to > most {
                return Err(std::io::ErrorKind::StorageFull.into());
            }
            match to > segment.header().length {
                true => segment.grow(to.next_multiple_of(STEP)),
                false => Ok(()),
            }
        })
    }

    fn check_names(&self) -> Result<(), LogError> {
        self.segments
            .iter()
            .try_for_each(|segment| segment.check_name().map_err(LogError::at(segment.path())))
    }

    fn edit(
        &mut self,
        at: usize,
        edit: impl FnOnce(&mut Segment) -> std::io::Result<()>,
    ) -> Result<(), LogError> {
        let segment = &mut self.segments[at];
        edit(segment).map_err(|error| LogError::at(segment.path())(error))
    }
}

/// A segment as it was read: its header, and where its batches lie.
type ReadSegment<'a> = (&'a Header, &'a [Frame]);

/// Which of the two was begun last.
fn newer(parts: [ReadSegment<'_>; 2]) -> usize {
    usize::from(parts[1].0.first > parts[0].0.first)
}

/// The batches behind `flushed`, with the segment in which each lies.
fn needed<'a>(parts: [ReadSegment<'a>; 2], flushed: u64) -> Result<Vec<(usize, &'a Frame)>, BadLog> {
    let newer = newer(parts);
    let ((begun, later), (before, earlier)) = (parts[newer], parts[1 - newer]);
    if begun.first == before.first {
        return Err(BadLog::Damaged {
            what: "both files begin with the same batch, so one is a copy of the other",
            at: 0,
        });
    }
    let last = |header: &Header, frames: &[Frame]| {
        frames.last().map_or(header.first.saturating_sub(1), |frame| frame.seq)
    };
    // So far the older one was durable.
    if begun.first > flushed + 1 {
        let end = last(before, earlier);
        if before.first == 0 || before.first > flushed + 1 {
            return Err(BadLog::Gap(flushed + 1));
        }
        if end + 1 != begun.first {
            return Err(BadLog::Gap(end + 1));
        }
    }
    let end = last(begun, later);
    if end < flushed {
        return Err(BadLog::Gap(end + 1));
    }
    let earlier = earlier.iter().map(|frame| (1 - newer, frame));
    let all = earlier.chain(later.iter().map(|frame| (newer, frame)));
    Ok(all.filter(|(_, frame)| frame.seq > flushed).collect())
}

/// The blobs of the batches behind `flushed` of the log `id`, beside the process that writes it. `None`: it changed meanwhile, or a part
/// is damaged, which the next look tells.
pub(super) fn read_beside(paths: &Paths, id: u64, flushed: u64) -> Result<Option<Vec<Vec<u8>>>, LogError> {
    let mut parts = Vec::with_capacity(paths.len());
    for path in paths {
        let read = || -> Result<_, BadLog> {
            let file = File::open(path)?;
            let bytes = std::fs::read(path)?;
            let header = Header::decode(&bytes)?;
            // The bytes may not be synced yet, and a power cut would take them away again.
            file.sync_data()?;
            if header.log.id != id {
                return Err(BadLog::Other);
            }
            let frames = sector::find(&bytes, &header)?;
            Ok((bytes, header, frames))
        };
        match read() {
            Err(BadLog::Damaged { .. }) => return Ok(None),
            read => parts.push(read.map_err(LogError::at(path))?),
        }
    }
    let of = |at: usize| (&parts[at].1, parts[at].2.as_slice());
    let Ok(needed) = needed([of(0), of(1)], flushed) else { return Ok(None) };
    let blob = |(at, frame): (usize, &Frame)| frame.blob(frame.sectors(&parts[at].0));
    Ok(Some(needed.into_iter().map(blob).collect()))
}

/// Reads both files whole, also beside the process that writes them. `noted`: the log that belongs there, and the batch up to which it is
/// flushed, if that is known.
///
/// # Errors
/// What is wrong with a file, for each.
pub(super) fn verify(paths: &Paths, noted: Option<(LogId, u64)>) -> Result<(), Vec<LogError>> {
    let mut wrong = Vec::new();
    let mut parts = Vec::new();
    for path in paths {
        let read = || -> Result<_, BadLog> {
            let bytes = std::fs::read(path)?;
            let header = Header::decode(&bytes)?;
            if noted.is_some_and(|(noted, _)| !header.is_of(noted)) {
                return Err(BadLog::Other);
            }
            Ok((header, sector::find(&bytes, &header)?))
        };
        match read() {
            Ok(part) => parts.push(part),
            Err(bad) => wrong.push(LogError { path: path.clone(), bad }),
        }
    }
    if let ([first, second], Some((_, flushed))) = (&parts[..], noted) {
        let parts: [ReadSegment<'_>; 2] = [(&first.0, &first.1), (&second.0, &second.1)];
        let joined = needed(parts, flushed).map_err(LogError::at(&paths[newer(parts)]));
        wrong.extend(joined.err());
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// The header of the segment at `path`.
pub(super) fn read_header(path: &Path) -> Result<Header, LogError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(sector::SECTOR).read_to_end(&mut bytes));
    read.map_err(LogError::at(path))?;
    Header::decode(&bytes).map_err(LogError::at(path))
}

/// Moves the files at `paths` aside that nobody has, and of which it is not certain that no batch is in them. Says where the last one is.
pub(super) fn set_aside(paths: &Paths) -> Result<Option<PathBuf>, LogError> {
    let mut aside = None;
    // The same for both: they belong together.
    let ending = format!("{:016x}", rand::random::<u64>());
    for path in paths {
        let set_aside = || -> Result<Option<PathBuf>, BadLog> {
            let bytes = std::fs::read(path)?;
            let _unused = FileLock::of(File::open(path)?)?;
            let frames = Header::decode(&bytes).and_then(|header| sector::find(&bytes, &header));
            match frames {
                Err(BadLog::Empty) => return Ok(None),
                Ok(frames) if frames.is_empty() => return Ok(None),
                // One that was being made when the power went, or was damaged.
                Err(BadLog::Damaged { .. }) | Ok(_) => {}
                Err(bad) => return Err(bad),
            }
            let to = path.with_added_extension(&ending);
            std::fs::rename(path, &to)?;
            Ok(Some(to))
        };
        match set_aside() {
            Err(BadLog::Missing) => {}
            done => aside = done.map_err(LogError::at(path))?.or(aside),
        }
    }
    Ok(aside)
}

/// Where the frame of each batch lies in the bytes of a segment.
#[cfg(test)]
pub(in crate::store::sqlite) fn places(
    file: &[u8],
) -> std::collections::BTreeMap<u64, std::ops::Range<usize>> {
    let frames = sector::find(file, &Header::decode(file).expect("a segment")).expect("whole");
    frames.iter().map(|frame| (frame.seq, frame.offset as usize..frame.end() as usize)).collect()
}

#[cfg(test)]
mod tests;
