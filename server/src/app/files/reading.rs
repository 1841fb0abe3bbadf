//! Reads files by way of rows that name them.

use std::ops::Range;

use futures_util::{StreamExt as _, stream};
use hyper::body::Bytes;
use tracing::warn;

use super::{FileError, Files};
use crate::domain::{FileId, MessageId, Preview, Segments, ShownFile, Uid};
use crate::files::{FilePlace, FileStream, PlaceError};
use crate::store::FileState;

/// A file that its reader may read.
pub struct Readable {
    /// As the row names it.
    pub shown: ShownFile,
    segments: Segments,
    place: FilePlace,
}

impl Readable {
    /// Its bytes in `range`, of which the first ones are read already. An error ends the stream.
    ///
    /// # Errors
    /// When none of them can be read.
    pub async fn bytes(&self, range: Range<u64>) -> Result<FileStream, FileError> {
        let mut bytes = self.place.read(self.shown.id(), &self.segments, range);
        let first = bytes.next().await.transpose().map_err(|error| self.unread(error))?;
        Ok(stream::iter(first.map(Ok)).chain(bytes).boxed())
    }

    /// A preview.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub async fn preview(&self, preview: Preview) -> Result<Bytes, FileError> {
        if !self.shown.has(preview) {
            return Err(FileError::Unknown);
        }
        self.place.preview(self.shown.id(), preview).await.map_err(|error| self.unread(error))
    }

    fn unread(&self, error: PlaceError) -> FileError {
        if let PlaceError::Missing(object) = error {
            warn!(id = %self.shown.id(), object, "a file that a row names is not in its place");
            return FileError::Gone;
        }
        error.into()
    }
}

impl Files {
    /// A file that the row `row` in the inbox of `who` names.
    ///
    /// # Errors
    /// When there is no such row, or it names no such file, or that is gone.
    pub async fn open(&self, who: Uid, row: MessageId, id: FileId) -> Result<Readable, FileError> {
        let entry = self.store.entry(who, row).await?;
        let files = entry.map(|entry| entry.content.files()).unwrap_or_default();
        let shown = files.into_iter().find(|file| file.id() == id).ok_or(FileError::Unknown)?;
        let file = self.directory.file(id).await?.filter(|file| file.state == FileState::Whole);
        let segments = file.ok_or(FileError::Gone)?.segments;
        Ok(Readable { shown, segments, place: self.place.clone() })
    }

    /// The square of a picture, of which the caller knows that it may be read.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub(in crate::app) async fn square(&self, id: FileId) -> Result<Bytes, FileError> {
        let file =
            self.directory.file(id).await?.filter(|file| file.facts.previews.contains(&Preview::Square));
        file.ok_or(FileError::Unknown)?;
        Ok(self.place.preview(id, Preview::Square).await?)
    }
}
