//! How a segment of the log lies in its file, as bytes: sectors, the header, and frames. Pure; a [`Segment`](super::segment::Segment)
//! owns the file.
//!
//! A disk writes a sector whole or not at all. Each sector is sealed by a sum over the log's id, its place, its kind and its bytes, those
//! that hold no batch yet, too. So after a power cut each is as it was or as it was to become, and one that is neither is damage.
//!
//! ```text
//!  sector   kind, 507 bytes, sum                                                                            512 bytes
//!  header   the first sector; frames begin at 4 KiB
//!  frame    a head (number of the batch, length of its blob, the beginning of the blob), and further sectors as the blob needs them
//! ```
//!
//! Stored, must stay readable. The magic, the format and the seal of the header's sector stay as they are in every format.

use super::bad::BadLog;
use super::record;

pub(super) const SECTOR: u64 = 512;

/// Where frames begin.
pub(super) const START: u64 = 4_096;

/// Of a sector, between its kind and its seal.
const BYTES: usize = SECTOR as usize - 1 - SEAL;
const SEAL: usize = 4;

/// Bytes of its first sector that a frame takes for itself.
const HEAD: usize = 12;

const MAGIC: [u8; 4] = *b"tmjs";

/// Of the header and the frames; a larger one was written by a newer program.
const FORMAT: u32 = 1;

/// The kind of a sector. Text that somebody sends lies in heads and further sectors, and never reads as another kind.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum SectorKind {
    /// It holds nothing yet.
    Free = 1,
    Header = 2,
    /// The first one of a frame.
    Head = 3,
    /// A further one of a frame.
    Further = 4,
}

impl SectorKind {
    fn is_of(self, sector: &[u8]) -> bool {
        sector[0] == self as u8
    }
}

/// Which log it is, and since when it is open. Both random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogId {
    pub(super) id: u64,
    /// Drawn each time it is opened.
    pub(super) opening: u64,
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) log: LogId,
    /// The opening before, for whoever had no time to note the last one.
    pub(super) before: u64,
    /// The number of its first batch; 0 until it is begun.
    pub(super) first: u64,
    /// How much of the file is durable, in bytes.
    pub(super) length: u64,
    /// A batch that is durable; later ones may be.
    pub(super) durable: u64,
}

impl Header {
    /// Whether a segment is one of the log that is `noted`, and of the same moment. Opening the log writes the header first, and then
    /// notes the opening.
    pub(super) fn is_of(&self, noted: LogId) -> bool {
        self.log.id == noted.id && [self.log.opening, self.before].contains(&noted.opening)
    }

    /// The first sector.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        let Header { log, before, first, length, durable } = *self;
        for number in [log.id, log.opening, before, first, length, durable] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let mut sector = Vec::with_capacity(SECTOR as usize);
        seal(log.id, 0, SectorKind::Header, &bytes, &mut sector);
        sector
    }

    /// Reads the header at the beginning of a segment.
    pub(super) fn decode(file: &[u8]) -> Result<Header, BadLog> {
        let damaged = BadLog::Damaged { what: "it does not begin as a log", at: 0 };
        if file.is_empty() {
            return Err(BadLog::Empty);
        }
        let Some(sector) = file.get(..SECTOR as usize) else { return Err(damaged) };
        let [id, opening, before, first, length, durable] =
            [0, 1, 2, 3, 4, 5].map(|n| u64_at(sector, 9 + 8 * n));
        if !SectorKind::Header.is_of(sector) || sector[1..5] != MAGIC || !is_sealed(id, 0, sector) {
            return Err(damaged);
        }
        match u32_at(sector, 5) {
            FORMAT => Ok(Header { log: LogId { id, opening }, before, first, length, durable }),
            _ => Err(BadLog::Newer),
        }
    }
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
    /// Where the next one begins.
    pub(super) fn end(&self) -> u64 {
        self.offset + size(self.length)
    }

    /// Its blob, out of its own sectors.
    pub(super) fn blob(&self, sectors: &[u8]) -> Vec<u8> {
        let mut blob = Vec::with_capacity(sectors.len());
        for (at, sector) in sectors.chunks(SECTOR as usize).enumerate() {
            let from = 1 + if at == 0 { HEAD } else { 0 };
            blob.extend_from_slice(&sector[from..=BYTES]);
        }
        blob.truncate(self.length);
        blob
    }

    /// Its sectors, in the bytes of the file.
    pub(super) fn sectors<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        &file[self.offset as usize..self.end() as usize]
    }

    /// Whether each of its sectors is of it: a power cut leaves some as they were.
    fn is_whole(&self, file: &[u8]) -> bool {
        let mut further = self.sectors(file).chunks(SECTOR as usize).skip(1);
        further.all(|sector| SectorKind::Further.is_of(sector))
            && record::is_whole(&self.blob(self.sectors(file)))
    }
}

/// Bytes that the frame of a blob takes in the file.
pub(super) fn size(blob: usize) -> u64 {
    (HEAD + blob).div_ceil(BYTES) as u64 * SECTOR
}

/// Finds the frames in the bytes of a segment, in order. Only a last one that a power cut has torn is passed over: nobody was told of it.
pub(super) fn find(file: &[u8], header: &Header) -> Result<Vec<Frame>, BadLog> {
    let damaged = |what, at: usize| Err(BadLog::Damaged { what, at: at as u64 });
    let Some(file) = file.get(..header.length as usize) else {
        return damaged("it is cut off", file.len());
    };
    let sectors = file.chunks(SECTOR as usize).zip((0..).step_by(SECTOR as usize));
    for (sector, at) in sectors {
        if !is_sealed(header.log.id, at as u64, sector) {
            return damaged("its checksum is wrong", at);
        }
    }
    let (mut frames, mut offset, mut due) = (Vec::new(), START as usize, header.first);
    while let Some(frame) = frame_at(file, offset).filter(|frame| frame.seq == due && frame.is_whole(file)) {
        frames.push(frame);
        (offset, due) = (frame.end() as usize, due + 1);
    }
    // The one that is due may be torn. One behind it was begun after it had been synced, and so was what the header calls durable.
    let (at_its_place, behind) = file[offset..].split_at((file.len() - offset).min(SECTOR as usize));
    let later = behind.chunks(SECTOR as usize).any(|sector| seq_of(sector).is_some_and(|seq| seq >= due));
    if later || seq_of(at_its_place).is_some_and(|seq| seq > due) || header.durable >= due.max(1) {
        return damaged("stored batches are incomplete", offset);
    }
    Ok(frames)
}

/// The number of the frame of which this sector is the head, if it is one.
fn seq_of(sector: &[u8]) -> Option<u64> {
    (!sector.is_empty() && SectorKind::Head.is_of(sector)).then(|| u64_at(sector, 1))
}

/// The frame that begins there, if one does and comes to its end in the file.
fn frame_at(file: &[u8], offset: usize) -> Option<Frame> {
    let sector = file.get(offset..offset + SECTOR as usize)?;
    let frame = Frame { seq: seq_of(sector)?, offset: offset as u64, length: u32_at(sector, 9) as usize };
    (frame.end() <= file.len() as u64).then_some(frame)
}

/// Appends a frame to `out`, which lies at `offset`.
pub(super) fn encode(id: u64, offset: u64, seq: u64, blob: &[u8], out: &mut Vec<u8>) {
    let (beginning, rest) = blob.split_at(blob.len().min(BYTES - HEAD));
    let mut head = [0; BYTES];
    head[..8].copy_from_slice(&seq.to_le_bytes());
    let length = u32::try_from(blob.len()).expect("a batch is far below 4 GiB");
    head[8..HEAD].copy_from_slice(&length.to_le_bytes());
    head[HEAD..HEAD + beginning.len()].copy_from_slice(beginning);
    seal(id, offset, SectorKind::Head, &head, out);
    for (bytes, at) in rest.chunks(BYTES).zip((offset + SECTOR..).step_by(SECTOR as usize)) {
        seal(id, at, SectorKind::Further, bytes, out);
    }
}

/// Appends a sector to `out` that holds nothing yet and lies at `offset`.
pub(super) fn encode_free(id: u64, offset: u64, out: &mut Vec<u8>) {
    seal(id, offset, SectorKind::Free, &[], out);
}

fn seal(id: u64, offset: u64, kind: SectorKind, bytes: &[u8], out: &mut Vec<u8>) {
    let from = out.len();
    out.push(kind as u8);
    out.extend_from_slice(bytes);
    out.resize(from + 1 + BYTES, 0);
    let sum = sum(id, offset, &out[from..]);
    out.extend_from_slice(&sum);
}

fn is_sealed(id: u64, offset: u64, sector: &[u8]) -> bool {
    let sealed = sector.split_at_checked(SECTOR as usize - SEAL);
    sealed.is_some_and(|(sealed, seal)| sum(id, offset, sealed) == seal)
}

fn sum(id: u64, offset: u64, sealed: &[u8]) -> [u8; SEAL] {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&id.to_le_bytes());
    sum.update(&offset.to_le_bytes());
    sum.update(sealed);
    sum.finalize().to_le_bytes()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}
