//! Reads a backup: its manifest first, then chunks, each compared with its sum, from this file and the earlier ones that it refers to.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use sha2::{Digest as _, Sha256};

use super::error::BackupError;
use super::format::{
    self, CHUNK, Chunk, FileRecord, HEADER, MOST_MANIFEST, Manifest, Role, Sum, TRAILER, VERSION, moment_of,
};
use crate::domain::Timestamp;
use crate::store::sqlite::newest_migration;

/// Earlier files that are kept open.
const MOST_OPEN: usize = 64;

/// The most bytes of batches: many times what a flush leaves in the journal.
const MOST_JOURNAL: u64 = 4 << 30;

/// A backup whose manifest is good.
#[derive(Debug)]
pub struct Whole {
    path: PathBuf,
    file: File,
    pub(super) manifest: Manifest,
    /// Where the manifest begins.
    chunks_end: u64,
    open: HashMap<u32, File>,
}

impl Whole {
    /// Opens the backup at `path`, and reads its manifest.
    ///
    /// # Errors
    /// When it is no backup, of a newer program, or its ends are not as they were written.
    pub(super) fn open(path: &Path) -> Result<Whole, BackupError> {
        let fault = BackupError::at;
        let damaged = |what: &str| BackupError::Damaged { path: path.to_owned(), what: what.to_owned() };
        let mut file = File::open(path).map_err(fault(path))?;
        let length = file.metadata().map_err(fault(path))?.len();
        let mut header = [0; HEADER];
        match file.read_exact(&mut header) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Err(damaged("it is cut off")),
            read => read.map_err(fault(path))?,
        }
        match format::version(&header) {
            None => return Err(BackupError::NotOne { path: path.to_owned() }),
            Some(VERSION) => {}
            Some(version) if version > VERSION => {
                let what = format!("format {version}, and {VERSION} is known here");
                return Err(BackupError::Newer { path: path.to_owned(), what });
            }
            Some(_) => return Err(damaged("its header is not as it was written")),
        }
        let before_trailer = length.checked_sub(TRAILER as u64).filter(|end| *end >= HEADER as u64);
        let before_trailer = before_trailer.ok_or_else(|| damaged("it is cut off"))?;
        let mut trailer = [0; TRAILER];
        file.read_exact_at(&mut trailer, before_trailer).map_err(fault(path))?;
        let (manifest_length, sum) = format::read_trailer(&trailer);
        let chunks_end = before_trailer.checked_sub(manifest_length).filter(|end| *end >= HEADER as u64);
        let Some(chunks_end) = chunks_end.filter(|_| manifest_length <= MOST_MANIFEST) else {
            return Err(damaged("its end is not as it was written, or it is cut off"));
        };
        let mut text = vec![0; manifest_length as usize];
        file.read_exact_at(&mut text, chunks_end).map_err(fault(path))?;
        if Sum::of(&text) != sum {
            return Err(damaged("its end is not as it was written, or it is cut off"));
        }
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|error| damaged(&format!("its manifest: {error}")))?;
        manifest.check(chunks_end).map_err(|what| damaged(&what))?;
        if manifest.migration > newest_migration() {
            let what = format!("of {}, with migration {}", manifest.program, manifest.migration);
            return Err(BackupError::Newer { path: path.to_owned(), what });
        }
        let is_named = |name: &String| moment_of(Path::new(name)).is_some();
        if Timestamp::from_rfc3339(&manifest.moment).is_none() || !manifest.sources.iter().all(is_named) {
            return Err(damaged("its manifest holds a name or a time that cannot be one"));
        }
        Ok(Whole { path: path.to_owned(), file, manifest, chunks_end, open: HashMap::new() })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All that was answered before this moment is in it.
    pub fn moment(&self) -> Timestamp {
        Timestamp::from_rfc3339(&self.manifest.moment).unwrap_or(Timestamp(0))
    }

    /// Bytes of the installation that it holds.
    pub fn length(&self) -> u64 {
        self.manifest.length()
    }

    /// Reads all bytes of this file before the manifest, and compares them with their sum.
    pub(super) fn check_own(&mut self, progress: &ProgressBar) -> Result<(), BackupError> {
        self.file.seek(SeekFrom::Start(0)).map_err(BackupError::at(&self.path))?;
        let (mut left, mut sum, mut bytes) = (self.chunks_end, Sha256::new(), vec![0; 16 * CHUNK]);
        while left > 0 {
            let some = left.min(bytes.len() as u64) as usize;
            self.file.read_exact(&mut bytes[..some]).map_err(BackupError::at(&self.path))?;
            sum.update(&bytes[..some]);
            progress.inc(some as u64);
            left -= some as u64;
        }
        match Sum(sum.finalize().into()) == self.manifest.sum {
            true => Ok(()),
            false => Err(self.damaged("its bytes are not as they were written")),
        }
    }

    /// Reads every chunk that a restore needs, and every byte of this file: whether it can be restored.
    ///
    /// # Errors
    /// What is missing or damaged.
    pub fn check(&mut self, progress: &ProgressBar) -> Result<(), BackupError> {
        progress.set_message("checking");
        progress.set_length(self.chunks_end + self.length());
        progress.set_position(0);
        self.check_own(progress)?;
        let mut begins = Vec::new();
        for role in [Role::Database, Role::Ids] {
            self.read_file(role, |bytes| {
                progress.inc(bytes.len() as u64);
                if begins.is_empty() {
                    begins.extend_from_slice(&bytes[..bytes.len().min(16)]);
                }
                Ok(())
            })?;
        }
        if begins != b"SQLite format 3\0" {
            return Err(self.damaged("it holds no database"));
        }
        self.batches().map(drop)
    }

    /// Reads the file of that role, and passes on its bytes in their order. Nothing, if there is none.
    pub(super) fn read_file(
        &mut self,
        role: Role,
        mut each: impl FnMut(&[u8]) -> Result<(), BackupError>,
    ) -> Result<(), BackupError> {
        let Some(file) = self.manifest.file(role).cloned() else { return Ok(()) };
        let mut bytes = vec![0; CHUNK];
        for (nth, chunk) in file.chunks.iter().enumerate() {
            let bytes = &mut bytes[..FileRecord::chunk_length(&file, nth)];
            self.read_chunk(*chunk, bytes)?;
            each(bytes)?;
        }
        Ok(())
    }

    /// The batches of the journal.
    pub(super) fn batches(&mut self) -> Result<Vec<Vec<u8>>, BackupError> {
        if self.manifest.file(Role::Journal).is_some_and(|file| file.length > MOST_JOURNAL) {
            return Err(self.damaged("its journal is too long to be one"));
        }
        let mut all = Vec::new();
        self.read_file(Role::Journal, |bytes| {
            all.extend_from_slice(bytes);
            Ok(())
        })?;
        let (mut batches, mut rest) = (Vec::new(), &all[..]);
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let length = u32::from_le_bytes(*length) as usize;
            let Some((batch, behind)) = behind.split_at_checked(length) else { break };
            batches.push(batch.to_vec());
            rest = behind;
        }
        match rest {
            [] => Ok(batches),
            _ => Err(self.damaged("its journal does not end with a batch")),
        }
    }

    fn read_chunk(&mut self, Chunk(sum, source, offset): Chunk, to: &mut [u8]) -> Result<(), BackupError> {
        let read = match source {
            0 => self.file.read_exact_at(to, offset),
            source => self.source(source)?.read_exact_at(to, offset),
        };
        let name = match source {
            0 => self.path.clone(),
            source => self.beside(source),
        };
        match read {
            Err(error) if error.kind() != ErrorKind::UnexpectedEof => {
                Err(BackupError::File { path: name, source: error })
            }
            Ok(()) if Sum::of(to) == sum => Ok(()),
            _ => Err(BackupError::Damaged { path: name, what: format!("a chunk at byte {offset}") }),
        }
    }

    /// Where an earlier file lies.
    fn beside(&self, source: u32) -> PathBuf {
        self.path.with_file_name(&self.manifest.sources[source as usize - 1])
    }

    /// An earlier file. It is looked at when it is opened: it must be of the same series.
    fn source(&mut self, source: u32) -> Result<&File, BackupError> {
        if !self.open.contains_key(&source) {
            let path = self.beside(source);
            let needs = |why| BackupError::Needs {
                path: self.path.clone(),
                needed: self.manifest.sources[source as usize - 1].clone(),
                why,
            };
            let earlier = match Whole::open(&path) {
                Err(BackupError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    return Err(needs("is missing"));
                }
                opened => opened?,
            };
            let (own, its) = (&self.manifest, &earlier.manifest);
            if (own.installation, &own.series) != (its.installation, &its.series) {
                return Err(needs("is of another installation or series"));
            }
            if self.open.len() >= MOST_OPEN {
                self.open.clear();
            }
            self.open.insert(source, earlier.file);
        }
        Ok(&self.open[&source])
    }

    pub(super) fn damaged(&self, what: &str) -> BackupError {
        BackupError::Damaged { path: self.path.clone(), what: what.to_owned() }
    }
}
