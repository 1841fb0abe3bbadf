//! Writes one object of a file out of bytes that come over time.

use hyper::body::Bytes;
use object_store::{MultipartUpload, ObjectStoreExt as _, PutPayload, UploadPart};
use tokio::task::JoinHandle;

use super::place::{FilePlace, Lying, PlaceError, of_store};
use crate::domain::{FileId, Segment};

/// One object that is being written. Dropped before its end, nothing of it is there.
pub struct SegmentWriter<'p> {
    place: &'p FilePlace,
    id: FileId,
    name: u64,
    written: u64,
    /// Bytes that wait to be written in one go.
    waiting: Vec<Bytes>,
    waiting_bytes: usize,
    /// Once more has come than is written at once.
    upload: Option<Box<dyn MultipartUpload>>,
    /// The write that is under way while more bytes come.
    writing: Option<JoinHandle<object_store::Result<()>>>,
}

impl FilePlace {
    /// Begins an object of a file.
    pub fn writer(&self, id: FileId) -> SegmentWriter<'_> {
        self.writer_of(id, rand::random())
    }

    /// Begins one under its name, which it had elsewhere. There it has the same bytes.
    pub fn writer_of(&self, id: FileId, name: u64) -> SegmentWriter<'_> {
        SegmentWriter {
            place: self,
            id,
            name,
            written: 0,
            waiting: Vec::new(),
            waiting_bytes: 0,
            upload: None,
            writing: None,
        }
    }
}

impl SegmentWriter<'_> {
    /// Bytes that it has taken.
    pub fn length(&self) -> u64 {
        self.written + self.waiting_bytes as u64
    }

    /// Bytes that still fit into it.
    pub fn room(&self) -> usize {
        let length = usize::try_from(self.length()).unwrap_or(usize::MAX);
        self.place.segment.saturating_sub(length)
    }

    /// Takes some bytes, for which there is room.
    ///
    /// # Errors
    /// Then nothing of the object will be there.
    pub async fn take(&mut self, bytes: Bytes) -> Result<(), PlaceError> {
        self.waiting_bytes += bytes.len();
        self.waiting.push(bytes);
        let is_all_at_once = self.place.piece >= self.place.segment;
        if self.waiting_bytes < self.place.piece || is_all_at_once {
            return Ok(());
        }
        self.write_waiting().await
    }

    async fn write_waiting(&mut self) -> Result<(), PlaceError> {
        self.settle().await?;
        self.place.make_directory().await?;
        let upload = match &mut self.upload {
            Some(upload) => upload,
            None => {
                let path = self.place.path(self.id, Lying::Segment(self.name));
                self.upload.insert(self.place.store.put_multipart(&path).await.map_err(of_store)?)
            }
        };
        let part: UploadPart = upload.put_part(self.waiting.drain(..).collect());
        self.written += self.waiting_bytes as u64;
        self.waiting_bytes = 0;
        self.writing = Some(tokio::spawn(part));
        Ok(())
    }

    /// Waits for the write that is under way.
    async fn settle(&mut self) -> Result<(), PlaceError> {
        let Some(writing) = self.writing.take() else { return Ok(()) };
        let written = writing.await.map_err(|panic| PlaceError::Unavailable(panic.to_string()))?;
        written.map_err(of_store)
    }

    /// Makes the object durable; `None` if it has no bytes.
    ///
    /// # Errors
    /// Then nothing of it is there.
    pub async fn finish(mut self) -> Result<Option<Segment>, PlaceError> {
        let segment = Segment { name: self.name, length: self.length() };
        if segment.length == 0 {
            return Ok(None);
        }
        if self.upload.is_none() {
            self.place.make_directory().await?;
            let payload: PutPayload = self.waiting.drain(..).collect();
            let path = self.place.path(self.id, Lying::Segment(self.name));
            self.place.store.put(&path, payload).await.map_err(of_store)?;
            return Ok(Some(segment));
        }
        let written = async {
            if self.waiting_bytes > 0 {
                self.write_waiting().await?;
            }
            self.settle().await
        };
        let written = written.await;
        let Some(mut upload) = self.upload.take() else { return Ok(None) };
        match written {
            Ok(()) => upload.complete().await.map_err(of_store).map(|_| Some(segment)),
            Err(error) => {
                // Why it failed is said, not what the clearing adds to that.
                _ = upload.abort().await;
                Err(error)
            }
        }
    }
}
