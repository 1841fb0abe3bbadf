//! Writes a backup. A chunk that an earlier file of the series has, or this one, is referred to.

use std::collections::HashMap;
use std::io::{self, Read, Write};

use indicatif::ProgressBar;
use sha2::{Digest as _, Sha256};

use super::format::{self, CHUNK, Chunk, FileRecord, Manifest, Role, Sum};

/// A backup while it is written.
pub(super) struct Writer<W> {
    to: W,
    sum: Sha256,
    offset: u64,
    /// The places of chunks: source and offset.
    known: HashMap<Sum, (u32, u64)>,
    files: Vec<FileRecord>,
}

impl<W: Write> Writer<W> {
    /// Begins one that may refer to these places.
    pub(super) fn begin(to: W, known: HashMap<Sum, (u32, u64)>) -> io::Result<Writer<W>> {
        let mut writer = Writer { to, sum: Sha256::new(), offset: 0, known, files: Vec::new() };
        writer.put(&format::header())?;
        Ok(writer)
    }

    /// Adds a file of the installation.
    pub(super) fn file(&mut self, role: Role, mut from: impl Read, progress: &ProgressBar) -> io::Result<()> {
        let mut file = FileRecord { role, length: 0, chunks: Vec::new() };
        let mut bytes = Vec::with_capacity(CHUNK);
        loop {
            bytes.clear();
            let read = from.by_ref().take(CHUNK as u64).read_to_end(&mut bytes)?;
            if read == 0 {
                break;
            }
            let sum = Sum::of(&bytes);
            let (source, offset) = match self.known.get(&sum) {
                Some(place) => *place,
                None => {
                    let place = (0, self.offset);
                    self.put(&bytes)?;
                    self.known.insert(sum, place);
                    place
                }
            };
            file.chunks.push(Chunk(sum, source, offset));
            file.length += read as u64;
            progress.inc(read as u64);
        }
        self.files.push(file);
        Ok(())
    }

    /// Ends it. `about` says all but what was written.
    pub(super) fn finish(mut self, about: Manifest) -> io::Result<W> {
        let mut manifest = Manifest { files: self.files, sum: Sum(self.sum.finalize().into()), ..about };
        leave_out_unused(&mut manifest);
        let text = serde_json::to_vec(&manifest)?;
        self.to.write_all(&text)?;
        self.to.write_all(&format::trailer(&text))?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)?;
        self.sum.update(bytes);
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

/// Leaves out sources that no chunk lies in any more: their files need not be kept.
fn leave_out_unused(manifest: &mut Manifest) {
    let mut new = vec![0; manifest.sources.len() + 1];
    for Chunk(_, source, _) in manifest.files.iter().flat_map(|file| &file.chunks) {
        new[*source as usize] = 1;
    }
    new[0] = 0;
    let mut kept = 0;
    for place in new.iter_mut().filter(|place| **place > 0) {
        kept += 1;
        *place = kept;
    }
    for Chunk(_, source, _) in manifest.files.iter_mut().flat_map(|file| &mut file.chunks) {
        *source = new[*source as usize];
    }
    let mut places = new.iter().skip(1);
    manifest.sources.retain(|_| places.next().is_some_and(|place| *place > 0));
}
