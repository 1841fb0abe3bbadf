//! The name and the bytes of a backup, version 1: a header, chunks, a manifest that says what they are, and a trailer with its length
//! and sum.
//!
//! The manifest is JSON. It names the files of the installation as lists of chunks, each with its SHA-256 and its place: in this file, or
//! in an earlier one of the series. Every size that is read is bounded before memory is taken for it. Stored, must stay stable.

use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::super::values::hex;
use crate::domain::Timestamp;

/// Of the files that this program writes; larger ones were written by a newer program.
pub(super) const VERSION: u32 = 1;

/// Bytes of a chunk; the last one of a file is as long as what is left.
pub(super) const CHUNK: usize = 64 << 10;

/// The most bytes of a manifest.
pub(super) const MOST_MANIFEST: u64 = 256 << 20;

/// The most bytes of an installation: a chunk takes some hundred bytes of the manifest.
pub(super) const MOST_BYTES: u64 = MOST_MANIFEST / 128 * CHUNK as u64;

const ENDING: &str = "tidemark-backup";

/// Of a backup that is being written, behind its name.
pub(super) const PART: &str = "part";

/// The name of a backup of this moment: `2026-11-28T231830.500Z.tidemark-backup`. Names are in the order of the moments.
pub(super) fn name_of(moment: Timestamp) -> String {
    let ms = moment.0.rem_euclid(1_000);
    let second = Timestamp(moment.0 - ms).to_rfc3339().replace([':', 'Z'], "");
    format!("{second}.{ms:03}Z.{ENDING}")
}

/// The moment of the backup at `path` by its name; `None`: it is not the name of one.
pub(super) fn moment_of(path: &Path) -> Option<Timestamp> {
    let name = path.to_str()?;
    let (day_and_hour, minute, second) = (name.get(..13)?, name.get(13..15)?, name.get(15..22)?);
    let moment = Timestamp::from_rfc3339(&format!("{day_and_hour}:{minute}:{second}"))?;
    (name_of(moment) == name).then_some(moment)
}

const MAGIC: &[u8; 16] = b"TIDEMARK-BACKUP\n";

/// Bytes before the first chunk.
pub(super) const HEADER: usize = MAGIC.len() + 4;

/// Bytes behind the manifest.
pub(super) const TRAILER: usize = 8 + 32;

/// The first bytes of a backup.
pub(super) fn header() -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..MAGIC.len()].copy_from_slice(MAGIC);
    bytes[MAGIC.len()..].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

/// The version of the format that a header names; `None`: it is not one.
pub(super) fn version(header: &[u8; HEADER]) -> Option<u32> {
    let (magic, version) = header.split_at(MAGIC.len());
    (magic == MAGIC).then(|| u32::from_le_bytes(version.try_into().unwrap_or_default()))
}

/// The last bytes of a backup with this manifest.
pub(super) fn trailer(manifest: &[u8]) -> [u8; TRAILER] {
    let mut bytes = [0; TRAILER];
    bytes[..8].copy_from_slice(&(manifest.len() as u64).to_le_bytes());
    bytes[8..].copy_from_slice(&Sum::of(manifest).0);
    bytes
}

/// The length of the manifest that a trailer names, and its sum.
pub(super) fn read_trailer(trailer: &[u8; TRAILER]) -> (u64, Sum) {
    let (length, sum) = trailer.split_at(8);
    let mut read = [0; 32];
    read.copy_from_slice(sum);
    (u64::from_le_bytes(length.try_into().unwrap_or_default()), Sum(read))
}

/// A SHA-256, in JSON as 64 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sum(pub(super) [u8; 32]);

impl Sum {
    pub(super) fn of(bytes: &[u8]) -> Sum {
        Sum(Sha256::digest(bytes).into())
    }
}

impl Serialize for Sum {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for Sum {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Sum, D::Error> {
        let text = String::deserialize(from)?;
        let digits = text.as_bytes();
        let mut sum = [0; 32];
        let wrong = || serde::de::Error::custom("a sum is not 64 hex digits");
        if digits.len() != 64 {
            return Err(wrong());
        }
        for (byte, pair) in sum.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| !pair.starts_with('+'));
            *byte = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()).ok_or_else(wrong)?;
        }
        Ok(Sum(sum))
    }
}

/// Which file of an installation it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    /// The main database.
    Database,
    /// The batches of the journal that the database does not have, each behind its length (4 bytes, little-endian).
    Journal,
    /// How far the numbers of users, groups and invitations were given.
    Ids,
}

/// A chunk: its sum, the place of its file in [`Manifest::sources`] counted from 1 (0: this file), and where it begins there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Chunk(pub(super) Sum, pub(super) u32, pub(super) u64);

/// A file of the installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileRecord {
    pub(super) role: Role,
    pub(super) length: u64,
    pub(super) chunks: Vec<Chunk>,
}

impl FileRecord {
    /// The bytes of the `nth` chunk.
    pub(super) fn chunk_length(&self, nth: usize) -> usize {
        let left = self.length.saturating_sub(nth as u64 * CHUNK as u64);
        left.min(CHUNK as u64) as usize
    }
}

/// Says what is in a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    /// The program that wrote it.
    pub(super) program: String,
    /// The last migration of the database.
    pub(super) migration: i64,
    pub(super) installation: Uuid,
    pub(super) history: Uuid,
    /// RFC 3339: all that was answered before is in it.
    pub(super) moment: String,
    /// The same in all backups that refer to one another: the moment of the first of them.
    pub(super) series: String,
    /// The names of the earlier files in which chunks lie.
    pub(super) sources: Vec<String>,
    pub(super) files: Vec<FileRecord>,
    /// Of all bytes before the manifest.
    pub(super) sum: Sum,
}

impl Manifest {
    /// Refuses one that does not fit to itself, or to the `chunks_end` of its file: says why.
    pub(super) fn check(&self, chunks_end: u64) -> Result<(), String> {
        for (nth, file) in self.files.iter().enumerate() {
            if self.files[..nth].iter().any(|earlier| earlier.role == file.role) {
                return Err("its manifest names a file twice".to_owned());
            }
            if file.chunks.len() as u64 != file.length.div_ceil(CHUNK as u64) {
                return Err("its manifest names a file with too few or too many chunks".to_owned());
            }
            for (nth, Chunk(_, source, offset)) in file.chunks.iter().enumerate() {
                let end = offset.checked_add(file.chunk_length(nth) as u64);
                let is_there = match *source {
                    0 => *offset >= HEADER as u64 && end.is_some_and(|end| end <= chunks_end),
                    source => source as usize <= self.sources.len() && end.is_some(),
                };
                if !is_there {
                    return Err("its manifest names a chunk that is nowhere".to_owned());
                }
            }
        }
        match self.file(Role::Database).is_some() && self.file(Role::Journal).is_some() {
            true => Ok(()),
            false => Err("its manifest lacks a file".to_owned()),
        }
    }

    /// The file of that role.
    pub(super) fn file(&self, role: Role) -> Option<&FileRecord> {
        self.files.iter().find(|file| file.role == role)
    }

    /// Bytes of all files.
    pub(super) fn length(&self) -> u64 {
        self.files.iter().map(|file| file.length).fold(0, u64::saturating_add)
    }
}
