//! The bytes of an upload: object after object, each of which is durable before it counts.

use std::pin::pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use hyper::body::Bytes;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{FileError, Files, Upload};
use crate::domain::{FileId, MOST_SEGMENTS, Uid};
use crate::files::{Lying, SegmentWriter};
use crate::store::{FileState, StoredFile};

/// How long the next byte may keep one waiting.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes that a client sends, from where on, and what ends them early.
pub struct Incoming<S> {
    /// The first byte's place in the file.
    pub offset: u64,
    /// The bytes. An error is the end of the connection.
    pub bytes: S,
    /// The server goes down: what has come is stored.
    pub stopping: CancellationToken,
}

/// Why an object has come to its end.
enum End {
    /// It has no more room.
    Long,
    /// All has come that the client sends now.
    All,
    /// The connection was lost.
    Cut,
    Stalled,
    Stopping,
}

impl Files {
    /// Takes the next bytes of an upload of `owner`, as far as they come. What has come is stored in any case, unless storing fails. The
    /// last byte makes the file whole.
    ///
    /// # Errors
    /// When there is no such upload, or it stands elsewhere; when what comes is refused, or cannot be stored.
    pub async fn receive<S, E>(
        &self,
        owner: Uid,
        id: FileId,
        incoming: Incoming<S>,
    ) -> Result<Upload, FileError>
    where
        S: Stream<Item = Result<Bytes, E>> + Send,
    {
        let Incoming { offset, bytes, stopping } = incoming;
        let mut file = self.own(owner, id).await?;
        if offset != file.stored {
            return Err(FileError::Elsewhere(file.stored));
        }
        let (mut bytes, mut rest) = (pin!(bytes), Bytes::new());
        if file.state == FileState::Whole {
            return Ok(Upload::of(&file));
        }
        loop {
            if file.segments.0.len() >= MOST_SEGMENTS {
                return Err(FileError::TooManyParts);
            }
            let mut writer = self.place.writer(id);
            let left = file.length - file.stored;
            let end = fill(&mut writer, &mut rest, bytes.as_mut(), left, &stopping).await?;
            self.store(&mut file, writer).await?;
            match end {
                End::Long => {}
                End::All | End::Cut if file.stored == file.length => return self.finish(file).await,
                End::All | End::Cut => return Ok(Upload::of(&file)),
                End::Stalled => return Err(FileError::Stalled),
                End::Stopping => return Err(FileError::Stopping),
            }
        }
    }

    /// Makes an object durable and lets it count, unless another one has come to its place.
    async fn store(&self, file: &mut StoredFile, writer: SegmentWriter<'_>) -> Result<(), FileError> {
        let (id, check_at) = (file.facts.id, self.in_a_day());
        let Some(segment) = writer.finish().await? else { return Ok(()) };
        let segments = file.segments.with(segment);
        let counts = self.directory.grow_file(id, file.stored, &segments, check_at).await;
        if !matches!(counts, Ok(true)) {
            // After an error it may count all the same; then it is needed, and else it goes with the file.
            if counts.is_ok() {
                _ = self.place.remove(id, &[Lying::Segment(segment.name)]).await;
            }
            counts?;
            let now = self.own(file.owner, id).await?;
            return Err(FileError::Elsewhere(now.stored));
        }
        (file.stored, file.segments, file.check_at) = (segments.length(), segments, check_at);
        Ok(())
    }
}

/// Writes what comes until the object is full, or nothing comes any more. `rest` is what came with it and had no room.
async fn fill<S, E>(
    writer: &mut SegmentWriter<'_>,
    rest: &mut Bytes,
    mut bytes: std::pin::Pin<&mut S>,
    left: u64,
    stopping: &CancellationToken,
) -> Result<End, FileError>
where
    S: Stream<Item = Result<Bytes, E>> + Send,
{
    loop {
        if rest.is_empty() {
            let next = stopping.run_until_cancelled(timeout(PATIENCE, bytes.next()));
            *rest = match next.await {
                Some(Ok(Some(Ok(bytes)))) => bytes,
                Some(Ok(None)) => return Ok(End::All),
                Some(Ok(Some(Err(_)))) => return Ok(End::Cut),
                Some(Err(_)) => return Ok(End::Stalled),
                None => return Ok(End::Stopping),
            };
        }
        if writer.length() + rest.len() as u64 > left {
            return Err(FileError::TooMuch);
        }
        let now = rest.split_to(rest.len().min(writer.room()));
        writer.take(now).await?;
        if writer.room() == 0 {
            return Ok(End::Long);
        }
    }
}
