//! Reads an archive line by line, with the running checksum. Knows how a file ends, not what a good one holds.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::error::TransferError;
use super::line::ArchiveLine;
use super::values::hex;

/// A longer line is none that an export writes: bounds the memory that a wrong file can take.
const LONGEST_LINE: u64 = 64 << 20;

/// An archive while it is read.
pub(super) struct ArchiveReader {
    path: PathBuf,
    lines: BufReader<File>,
    buffer: Vec<u8>,
    /// Complete lines so far.
    number: u64,
    /// Bytes of them.
    offset: u64,
    hash: Sha256,
}

impl ArchiveReader {
    /// Opens the archive at `path`.
    pub(super) fn open(path: &Path) -> Result<ArchiveReader, TransferError> {
        let file =
            File::open(path).map_err(|source| TransferError::File { path: path.to_owned(), source })?;
        Ok(ArchiveReader {
            path: path.to_owned(),
            lines: BufReader::with_capacity(1 << 20, file),
            buffer: Vec::new(),
            number: 0,
            offset: 0,
            hash: Sha256::new(),
        })
    }

    /// The next complete line; `None` where the file ends, be it in the middle of a line. The checksum of a footer
    /// is compared here.
    pub(super) fn next(&mut self) -> Result<Option<ArchiveLine>, TransferError> {
        self.buffer.clear();
        let got = (&mut self.lines).take(LONGEST_LINE).read_until(b'\n', &mut self.buffer);
        let length = got.map_err(|source| TransferError::File { path: self.path.clone(), source })? as u64;
        if self.buffer.pop_if(|last| *last == b'\n').is_none() {
            return if length == LONGEST_LINE {
                self.number += 1;
                Err(self.fault(format!("is longer than {LONGEST_LINE} bytes")))
            } else {
                Ok(None)
            };
        }
        self.number += 1;
        let text = std::str::from_utf8(&self.buffer).map_err(|_| self.fault("is not UTF-8".to_owned()))?;
        let line = ArchiveLine::read(text).map_err(|why| self.fault(why))?;
        if let ArchiveLine::Footer(footer) = &line {
            let found = hex(&self.hash.clone().finalize());
            if footer.sha256 != found {
                return Err(self.fault(format!(
                    "the checksum does not fit: the lines before it were changed or lost (they have {found})"
                )));
            }
        } else {
            self.hash.update(&self.buffer);
            self.hash.update(b"\n");
        }
        self.offset += length;
        Ok(Some(line))
    }

    /// Whether the file has no byte.
    pub(super) fn is_empty(&self) -> Result<bool, TransferError> {
        let fault = |source| TransferError::File { path: self.path.clone(), source };
        Ok(self.lines.get_ref().metadata().map_err(fault)?.len() == 0)
    }

    /// Bytes of the complete lines so far.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The checksum over what has been read, to be carried on.
    pub(super) fn into_hash(self) -> Sha256 {
        self.hash
    }

    /// `why` of the line that was read last.
    pub(super) fn fault(&self, why: String) -> TransferError {
        TransferError::Line { path: self.path.clone(), number: self.number, why }
    }

    /// The file ended before its footer.
    pub(super) fn cut_off(&self) -> TransferError {
        TransferError::CutOff { path: self.path.clone(), complete: self.number }
    }
}
