//! How a log lies in its file, as bytes: the header, and frames. Pure; the [`Log`](super::log::Log) owns the file.
//!
//! Stored, must stay readable.

use sha2::{Digest as _, Sha256};

use super::log::BadLog;
use super::record;

/// Where frames begin; the header has a block of its own.
pub(super) const START: u64 = 4_096;

/// Frames begin at multiples of it, so that no head lies in two sectors.
pub(super) const ALIGN: u64 = 32;
pub(super) const HEAD: usize = 32;
/// What of a head its checksum covers.
pub(super) const SUMMED: usize = 28;
pub(super) const FRAME: [u8; 4] = *b"tmjf";
pub(super) const HEADER: [u8; 4] = *b"tmjl";

/// Of the header and the frames; a larger one was written by a newer program.
pub(super) const FORMAT: u32 = 1;

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

impl Header {
    /// Its bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD);
        bytes.extend_from_slice(&HEADER);
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        for number in [self.log.id, self.log.opening, self.before] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes
    }
}

/// What the beginning of a log says.
pub(super) fn header(bytes: &[u8]) -> Result<Header, BadLog> {
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

/// Where a batch lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// The number of the batch.
    pub(super) seq: u64,
    pub(super) offset: u64,
    /// Bytes of its blob.
    pub(super) length: usize,
}

impl Frame {
    /// Where the next one could begin.
    pub(super) fn end(&self) -> u64 {
        self.offset + size(self.length)
    }

    /// Its blob, in the bytes of the file.
    pub(super) fn blob<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        let from = self.offset as usize + HEAD;
        &file[from..from + self.length]
    }
}

/// Bytes that a frame takes in the file.
pub(super) fn size(blob: usize) -> u64 {
    ((HEAD + blob) as u64).next_multiple_of(ALIGN)
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
    pub(super) fn check(&self, after: u64, length: u64) -> Result<(), BadLog> {
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
pub(super) fn encode(id: u64, seq: u64, length: u64, blob: &[u8], out: &mut Vec<u8>) {
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
