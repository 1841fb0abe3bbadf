//! The horizon on disk: one small file with two slots, written in turn, each with its own checksum, so that a write
//! which is cut short leaves the one before it. The open file is locked: one process an instance. Called by
//! the guard when it opens and by its keeper.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use seqsvr_core::file_lock::FileLock;
use sha2::{Digest, Sha256};
use thiserror::Error;

/// Bytes of a slot; stored, must stay stable.
const SLOT: usize = 64;

/// Why the file cannot be used.
#[derive(Debug, Error)]
pub enum HorizonError {
    /// Another process of this instance runs.
    #[error(
        "{path} is in use: stop the other process of this instance, or give this one another id, name or folder"
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Neither slot can be read.
    #[error(
        "{path} is damaged: restore it, or remove it once the clock is certainly later than at the last issue"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The open, locked file.
#[derive(Debug)]
pub(super) struct HorizonFile {
    path: PathBuf,
    lock: FileLock,
}

impl HorizonFile {
    /// Opens and locks the file, making it if there is none, and reads the horizon; 0 in a new file.
    pub(super) fn open(path: &Path) -> Result<(Self, u64), HorizonError> {
        let io = |source| HorizonError::Io { path: path.to_owned(), source };
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
        let lock = FileLock::of(file).map_err(|error| match error {
            TryLockError::WouldBlock => HorizonError::InUse { path: path.to_owned() },
            TryLockError::Error(source) => io(source),
        })?;
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut lock.file(), &mut bytes).map_err(io)?;
        let slots: Vec<u64> = bytes.chunks(SLOT).filter_map(decode).collect();
        let this = Self { path: path.to_owned(), lock };
        // The first write was cut short, so it confirmed nothing; anything else held a horizon once.
        match slots.into_iter().max() {
            Some(horizon) => Ok((this, horizon)),
            None if bytes.len() < SLOT || bytes.iter().all(|&byte| byte == 0) => {
                this.begin().map_err(io)?;
                Ok((this, 0))
            }
            None => Err(HorizonError::Damaged { path: path.to_owned() }),
        }
    }

    /// Both slots exist before the first horizon, so that no later write changes the file's length.
    fn begin(&self) -> io::Result<()> {
        let file = self.lock.file();
        file.write_all_at(&[encode(0), encode(0)].concat(), 0)?;
        file.sync_all()?;
        match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
            _ => File::open(".")?.sync_all(),
        }
    }

    /// Makes `horizon` durable in `slot` (0 or 1); blocks for the time of a sync.
    pub(super) fn write(&self, slot: u64, horizon: u64) -> Result<(), HorizonError> {
        let file = self.lock.file();
        let written = file.write_all_at(&encode(horizon), slot * SLOT as u64);
        written.and_then(|()| file.sync_data()).map_err(|source| self.failed(source))
    }

    /// An error of the system about this file.
    pub(super) fn failed(&self, source: io::Error) -> HorizonError {
        HorizonError::Io { path: self.path.clone(), source }
    }
}

fn encode(horizon: u64) -> [u8; SLOT] {
    let text = format!("seqsvr clock 1 not after {horizon:020} ");
    let line = format!("{text}{}", check(&text));
    let mut slot = [b' '; SLOT];
    slot[..line.len()].copy_from_slice(line.as_bytes());
    slot[SLOT - 1] = b'\n';
    slot
}

fn decode(slot: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(slot).ok()?.strip_suffix('\n')?.trim_end();
    let (text, check_text) = line.split_at_checked(line.len().checked_sub(16)?)?;
    if check(text) != check_text {
        return None;
    }
    text.strip_prefix("seqsvr clock 1 not after ")?.trim_end().parse().ok()
}

/// 16 hex digits that a torn or changed line does not have.
fn check(text: &str) -> String {
    Sha256::digest(text.as_bytes())[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_slot_stays_as_it_is() {
        assert_eq!(
            encode(5_000).escape_ascii().to_string(),
            "seqsvr clock 1 not after 00000000000000005000 9ec28e46ad34a125 \\n"
        );
    }

    #[test]
    fn a_horizon_survives_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.clock");
        let (file, horizon) = HorizonFile::open(&path).unwrap();
        assert_eq!(horizon, 0);
        file.write(0, 1_000).unwrap();
        file.write(1, 2_000).unwrap();
        drop(file);
        let (file, horizon) = HorizonFile::open(&path).unwrap();
        assert_eq!(horizon, 2_000);
        file.write(0, u64::MAX).unwrap();
        drop(file);
        assert_eq!(HorizonFile::open(&path).unwrap().1, u64::MAX);
    }

    #[test]
    fn a_second_process_is_turned_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.clock");
        let _first = HorizonFile::open(&path).unwrap();
        let error = HorizonFile::open(&path).unwrap_err();
        assert!(matches!(error, HorizonError::InUse { .. }), "{error}");
    }

    #[test]
    fn a_write_cut_short_leaves_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.clock");
        let (file, _) = HorizonFile::open(&path).unwrap();
        file.write(0, 5_000).unwrap();
        drop(file);
        let whole = fs::read(&path).unwrap();
        for torn in 0..SLOT {
            let mut bytes = whole.clone();
            bytes[SLOT..SLOT + torn].copy_from_slice(&encode(9_000)[..torn]);
            fs::write(&path, &bytes).unwrap();
            let horizon = HorizonFile::open(&path).unwrap().1;
            assert!(horizon == 5_000 || (horizon == 9_000 && torn > SLOT - 8), "{torn}: {horizon}");
        }
    }

    #[test]
    fn a_damaged_file_is_refused_and_one_that_never_began_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.clock");
        fs::write(&path, "seqsvr cl").unwrap();
        assert_eq!(HorizonFile::open(&path).unwrap().1, 0);
        fs::write(&path, [b'x'; 2 * SLOT]).unwrap();
        let error = HorizonFile::open(&path).unwrap_err().to_string();
        assert!(error.contains("is damaged: restore it"), "{error}");
    }

    proptest! {
        #[test]
        fn a_slot_reads_as_written(horizon: u64) {
            prop_assert_eq!(decode(&encode(horizon)), Some(horizon));
        }

        #[test]
        fn a_changed_digit_is_noticed(horizon: u64, at in 25_usize..45, digit in b'0'..=b'9') {
            let mut slot = encode(horizon);
            prop_assume!(slot[at] != digit);
            slot[at] = digit;
            prop_assert_eq!(decode(&slot), None);
        }
    }
}
