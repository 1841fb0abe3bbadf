//! How far a replica is known to have written, kept in a small file beside the others: when they end before it, they
//! were replaced by an older copy. Two slots are written in turns, so that one always holds. It lags behind by up to a
//! second of frames and is no proof: a whole directory that is restored brings its own progress file along.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::frame::SECTOR;
use super::identity::FramePlace;

/// Its name in the directory. Stored, must stay stable.
pub(super) const NAME: &str = "mark";

const MAGIC: [u8; 8] = *b"sqmark1\n";
const LENGTH: usize = 28;

/// The file, open for writing.
pub(super) struct ProgressFile {
    file: File,
    slot: u64,
}

impl ProgressFile {
    /// Opens or makes the file.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(Self { file, slot: 0 })
    }

    /// The place noted last; `None` when neither slot holds anything.
    pub(super) fn read(&mut self) -> io::Result<Option<FramePlace>> {
        let slots = [self.read_slot(0)?, self.read_slot(1)?];
        // The older one is overwritten next.
        self.slot = u64::from(slots[0] > slots[1]);
        Ok(slots.into_iter().max().flatten())
    }

    fn read_slot(&self, slot: u64) -> io::Result<Option<FramePlace>> {
        let mut bytes = [0; LENGTH];
        match self.file.read_exact_at(&mut bytes, slot * SECTOR as u64) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let sum = u32::from_le_bytes(bytes[24..].try_into().expect("4 bytes"));
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let holds = bytes[..8] == MAGIC && crc32fast::hash(&bytes[..24]) == sum;
        Ok(holds.then(|| FramePlace { file: number(8), frame: number(16) }))
    }

    /// Notes a place that is durable. Not synced: should the note be lost, an older one holds.
    pub(super) fn note(&mut self, place: FramePlace) -> io::Result<()> {
        let mut bytes = [0; SECTOR];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&place.file.to_le_bytes());
        bytes[16..24].copy_from_slice(&place.frame.to_le_bytes());
        let sum = crc32fast::hash(&bytes[..24]);
        bytes[24..LENGTH].copy_from_slice(&sum.to_le_bytes());
        self.file.write_all_at(&bytes, self.slot * SECTOR as u64)?;
        self.slot ^= 1;
        Ok(())
    }

    /// Makes the last note durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}
