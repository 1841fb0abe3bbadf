//! Reads the bytes of a file, object after object, as its reader takes them.

use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt as _};
use hyper::body::Bytes;
use object_store::{GetOptions, GetRange, GetResultPayload, ObjectStore as _, ObjectStoreExt as _};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::place::{FilePlace, Lying, PlaceError, of_io, of_store};
use crate::domain::{FileId, Preview, Segments};

/// Bytes of a file of a directory that are read at a time.
const PIECE: u64 = 128 << 10;

/// How long a bucket may leave a reader waiting.
const PATIENCE: Duration = Duration::from_secs(20);

/// The bytes of a file, in order.
pub type FileStream = BoxStream<'static, Result<Bytes, PlaceError>>;

/// Where a reader has come to.
struct Reading {
    place: FilePlace,
    id: FileId,
    /// What comes next.
    left: VecDeque<(u64, Range<u64>)>,
    open: Open,
}

enum Open {
    Nothing,
    File(Arc<File>, Range<u64>),
    Stream(BoxStream<'static, object_store::Result<Bytes>>),
}

impl FilePlace {
    /// The bytes in `range` of a file that lies in `segments`. An error ends the stream.
    pub fn read(&self, id: FileId, segments: &Segments, range: Range<u64>) -> FileStream {
        let left = segments.within(range).into();
        pieces(Reading { place: self.clone(), id, left, open: Open::Nothing }).boxed()
    }

    /// All of these bytes at once, which the caller has counted.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn read_whole(
        &self,
        id: FileId,
        segments: &Segments,
        range: Range<u64>,
    ) -> Result<Vec<u8>, PlaceError> {
        let length = range.end.min(segments.length()).saturating_sub(range.start);
        let mut whole = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
        let mut pieces = self.read(id, segments, range);
        while let Some(piece) = pieces.next().await {
            whole.extend_from_slice(&piece?);
        }
        Ok(whole)
    }

    /// A preview, which is small.
    ///
    /// # Errors
    /// When it is not there, or cannot be read.
    pub async fn preview(&self, id: FileId, preview: Preview) -> Result<Bytes, PlaceError> {
        let found = self.store.get(&self.path(id, Lying::Preview(preview))).await.map_err(of_store)?;
        timeout(PATIENCE, found.bytes())
            .await
            .map_err(|late| PlaceError::Unavailable(late.to_string()))?
            .map_err(of_store)
    }
}

fn pieces(reading: Reading) -> impl Stream<Item = Result<Bytes, PlaceError>> + Send {
    stream::unfold(Some(reading), |reading| async move {
        let mut reading = reading?;
        match reading.next().await {
            Ok(Some(bytes)) => Some((Ok(bytes), Some(reading))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
}

impl Reading {
    async fn next(&mut self) -> Result<Option<Bytes>, PlaceError> {
        loop {
            match &mut self.open {
                Open::File(file, range) if !range.is_empty() => {
                    let end = range.end.min(range.start + PIECE);
                    let (file, piece) = (Arc::clone(file), range.start..end);
                    range.start = end;
                    return read_piece(file, piece).await.map(Some);
                }
                Open::Stream(stream) => match timeout(PATIENCE, stream.next()).await {
                    Ok(Some(bytes)) => return bytes.map(Some).map_err(of_store),
                    Ok(None) => self.open = Open::Nothing,
                    Err(late) => return Err(PlaceError::Unavailable(late.to_string())),
                },
                Open::File(..) | Open::Nothing => {
                    let Some((segment, range)) = self.left.pop_front() else { return Ok(None) };
                    self.open(segment, range).await?;
                }
            }
        }
    }

    async fn open(&mut self, segment: u64, range: Range<u64>) -> Result<(), PlaceError> {
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        let path = self.place.path(self.id, Lying::Segment(segment));
        let found = self.place.store.get_opts(&path, options).await.map_err(of_store)?;
        self.open = match found.payload {
            GetResultPayload::File(file, _) => Open::File(Arc::new(file), found.range),
            GetResultPayload::Stream(stream) => Open::Stream(stream),
        };
        Ok(())
    }
}

async fn read_piece(file: Arc<File>, piece: Range<u64>) -> Result<Bytes, PlaceError> {
    // Made here, since each of the threads that read would keep megabytes of its own for such buffers.
    let mut bytes = vec![0; usize::try_from(piece.end - piece.start).unwrap_or_default()];
    let read = spawn_blocking(move || {
        file.read_exact_at(&mut bytes, piece.start)?;
        Ok(Bytes::from(bytes))
    });
    match read.await {
        Ok(read) => read.map_err(|error| of_io(&error)),
        Err(panic) => Err(PlaceError::Unavailable(panic.to_string())),
    }
}
