//! Reads files by way of rows that name them.

use std::ops::Range;

use hyper::body::Bytes;

use super::{FileError, Files};
use crate::domain::{FileId, MessageId, Preview, Segments, ShownFile, Uid};
use crate::files::{FilePlace, FileStream};
use crate::store::FileState;

/// A file that its reader may read.
pub struct Readable {
    /// As the row names it.
    pub shown: ShownFile,
    segments: Segments,
    place: FilePlace,
}

impl Readable {
    /// Its bytes in `range`. An error ends the stream.
    pub fn bytes(&self, range: Range<u64>) -> FileStream {
        self.place.read(self.shown.id(), &self.segments, range)
    }

    /// A preview.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub async fn preview(&self, preview: Preview) -> Result<Bytes, FileError> {
        match self.shown.has(preview) {
            true => Ok(self.place.preview(self.shown.id(), preview).await?),
            false => Err(FileError::Unknown),
        }
    }
}

impl Files {
    /// A file that the row `row` in the inbox of `who` names.
    ///
    /// # Errors
    /// When there is no such row, or it names no such file.
    pub async fn open(&self, who: Uid, row: MessageId, id: FileId) -> Result<Readable, FileError> {
        let entry = self.store.entry(who, row).await?;
        let files = entry.map(|entry| entry.content.files()).unwrap_or_default();
        let shown = files.into_iter().find(|file| file.id() == id).ok_or(FileError::Unknown)?;
        let file = self.directory.file(id).await?.filter(|file| file.state == FileState::Whole);
        let segments = file.ok_or(FileError::Unknown)?.segments;
        Ok(Readable { shown, segments, place: self.place.clone() })
    }
}
