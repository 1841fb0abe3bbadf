//! The bytes of files as parts of bounded size: how a file is cut into them, how they are read for an archive, and how objects are made
//! of them again, under the names that they had. A place that has an object already gets the same bytes.

use std::iter::Peekable;
use std::ops::Range;

use futures_util::StreamExt as _;
use hyper::body::Bytes;

use super::error::TransferError;
use crate::domain::{FileId, Segments};
use crate::files::{FilePlace, FileStream, Lying, PlaceError, SegmentWriter};
use crate::store::StoredFile;
use crate::store::archive::FilePart;

/// Bytes of one part, at most. A preview, which has about as many, is one part.
const PART: u64 = 1 << 20;

/// Bytes of a preview, at most.
const MOST_PREVIEW: usize = 16 << 20;

/// What a part holds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    /// Of which object.
    what: Lying,
    /// Where in the file; of a preview nothing.
    range: Range<u64>,
    /// Whether the object ends with it.
    is_last: bool,
}

/// The parts of a file, in order.
struct Pieces {
    segments: Segments,
    previews: Vec<Lying>,
    /// The object that comes next, or of which more comes.
    object: usize,
    /// Where that begins in the file, and how much of it has come.
    begins: u64,
    taken: u64,
}

impl Pieces {
    fn of(file: &StoredFile) -> Pieces {
        let previews = file.facts.previews.iter().copied().map(Lying::Preview).collect();
        Pieces { segments: file.segments.clone(), previews, object: 0, begins: 0, taken: 0 }
    }
}

impl Iterator for Pieces {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let Some(segment) = self.segments.0.get(self.object) else {
            let preview = *self.previews.get(self.object - self.segments.0.len())?;
            self.object += 1;
            return Some(Piece { what: preview, range: 0..0, is_last: true });
        };
        let from = self.taken;
        let to = segment.length.min(from + PART);
        let piece = Piece {
            what: Lying::Segment(segment.name),
            range: self.begins + from..self.begins + to,
            is_last: to == segment.length,
        };
        if piece.is_last {
            (self.object, self.begins, self.taken) = (self.object + 1, self.begins + segment.length, 0);
        } else {
            self.taken = to;
        }
        Some(piece)
    }
}

/// The parts of a file of an archive, as they come.
pub(super) struct Followed {
    file: FileId,
    pieces: Peekable<Pieces>,
    /// The number of the next one.
    next: u64,
}

impl Followed {
    pub(super) fn of(file: &StoredFile) -> Followed {
        Followed { file: file.facts.id, pieces: Pieces::of(file).peekable(), next: 1 }
    }

    /// Which file it is.
    pub(super) fn file(&self) -> FileId {
        self.file
    }

    /// Whether all of it has come.
    pub(super) fn is_whole(&mut self) -> bool {
        self.pieces.peek().is_none()
    }

    /// Whether this is the next part.
    pub(super) fn see(&mut self, part: &FilePart) -> Result<(), String> {
        self.take(part).map(drop)
    }

    fn take(&mut self, part: &FilePart) -> Result<Piece, String> {
        let wrong = || format!("part {} of the file {} is not the one that comes next", part.part, part.file);
        let piece = self.pieces.next().filter(|_| part.file == self.file && part.part == self.next);
        let piece = piece.ok_or_else(wrong)?;
        let length = part.bytes.len();
        let fits = match (piece.what, part.preview) {
            (Lying::Segment(_), None) => length as u64 == piece.range.end - piece.range.start,
            (Lying::Preview(one), Some(other)) => one == other && (1..=MOST_PREVIEW).contains(&length),
            _ => false,
        };
        self.next += 1;
        fits.then_some(piece).ok_or_else(wrong)
    }
}

/// Reads the parts of a file behind the first `after`, and passes each on. `false`: what comes next is not there.
pub(super) async fn read_parts(
    place: &FilePlace,
    file: &StoredFile,
    after: u64,
    mut each: impl FnMut(FilePart) -> Result<(), TransferError>,
) -> Result<bool, TransferError> {
    let id = file.facts.id;
    let mut stream: Option<(FileStream, Bytes)> = None;
    for (piece, part) in Pieces::of(file).zip(1..).skip(usize::try_from(after).unwrap_or(usize::MAX)) {
        let read = match piece.what {
            Lying::Preview(preview) => place.preview(id, preview).await.map(|bytes| bytes.to_vec()),
            Lying::Segment(_) => {
                let (from, to) = (piece.range.start, piece.range.end);
                let begin = || (place.read(id, &file.segments, from..file.facts.size), Bytes::new());
                exactly(stream.get_or_insert_with(begin), to - from).await
            }
        };
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(PlaceError::Missing(_)) => return Ok(false),
            Err(source) => return Err(TransferError::UnreadFile { file: id, source }),
        };
        let preview = if let Lying::Preview(preview) = piece.what { Some(preview) } else { None };
        each(FilePart { file: id, part, preview, bytes })?;
    }
    Ok(true)
}

/// The next `length` bytes. What came with them and is more is kept.
async fn exactly((stream, rest): &mut (FileStream, Bytes), length: u64) -> Result<Vec<u8>, PlaceError> {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let mut bytes = Vec::with_capacity(length);
    loop {
        let some = rest.split_to(rest.len().min(length - bytes.len()));
        bytes.extend_from_slice(&some);
        if bytes.len() == length {
            return Ok(bytes);
        }
        *rest = match stream.next().await {
            Some(more) => more?,
            None => return Err(PlaceError::Unavailable("it has fewer bytes than it should".to_owned())),
        };
    }
}

/// Makes objects of parts.
pub(super) struct PartWriter<'p> {
    place: &'p FilePlace,
    /// The file whose parts come.
    followed: Option<Followed>,
    /// The object that is not whole yet.
    open: Option<SegmentWriter<'p>>,
}

impl<'p> PartWriter<'p> {
    pub(super) fn into(place: &'p FilePlace) -> PartWriter<'p> {
        PartWriter { place, followed: None, open: None }
    }

    /// Parts of this file come.
    pub(super) fn begin(&mut self, file: &StoredFile) {
        (self.followed, self.open) = (Some(Followed::of(file)), None);
    }

    /// The rest of it does not come.
    pub(super) fn end(&mut self) {
        (self.followed, self.open) = (None, None);
    }

    /// Whether all objects are durable of which a part has come.
    pub(super) fn is_settled(&self) -> bool {
        self.open.is_none()
    }

    /// Takes a part. The last one of an object makes that durable. `true`: the file is whole with it.
    ///
    /// # Errors
    /// When it is not the next one, or cannot be written.
    pub(super) async fn take(&mut self, part: FilePart) -> Result<bool, TransferError> {
        let file = part.file;
        let unwritten = |source| TransferError::UnwrittenFile { file, source };
        let (piece, is_whole) = self.next(&part)?;
        let bytes = Bytes::from(part.bytes);
        match piece.what {
            Lying::Preview(_) => self.place.put(file, piece.what, bytes).await.map_err(unwritten)?,
            Lying::Segment(name) => {
                let open = self.open.get_or_insert_with(|| self.place.writer_of(file, name));
                open.take(bytes).await.map_err(unwritten)?;
                if piece.is_last
                    && let Some(open) = self.open.take()
                {
                    open.finish().await.map_err(unwritten)?;
                }
            }
        }
        Ok(is_whole)
    }

    /// Leaves out a part that an earlier run has stored.
    ///
    /// # Errors
    /// When it is not the next one.
    pub(super) fn pass(&mut self, part: &FilePart) -> Result<(), TransferError> {
        self.next(part).map(drop)
    }

    /// What the part holds, if it is the next one, and whether it is the last one.
    fn next(&mut self, part: &FilePart) -> Result<(Piece, bool), TransferError> {
        let followed = self.followed.as_mut();
        let next = followed.and_then(|followed| Some((followed.take(part).ok()?, followed.is_whole())));
        next.ok_or_else(|| {
            let source = PlaceError::Unavailable("the archive was changed meanwhile".to_owned());
            TransferError::UnwrittenFile { file: part.file, source }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{FileFacts, Preview, Segment, Timestamp, Uid};
    use crate::store::FileState;
    use uuid::Uuid;

    const MIB: u64 = 1 << 20;

    fn file(lengths: &[u64]) -> StoredFile {
        let segments = (7..).zip(lengths).map(|(name, length)| Segment { name, length: *length });
        let segments = Segments(segments.collect());
        StoredFile {
            owner: Uid(7),
            made_at: Timestamp(0),
            length: segments.length(),
            stored: segments.length(),
            state: FileState::Whole,
            facts: FileFacts {
                id: FileId(Uuid::from_u128(9)),
                name: "a".to_owned(),
                size: segments.length(),
                media_type: "image/png".to_owned(),
                sides: None,
                previews: vec![Preview::Small],
            },
            segments,
            check_at: Timestamp(0),
        }
    }

    #[tokio::test]
    async fn parts_make_the_same_objects_elsewhere_from_wherever_they_go_on() {
        let (from, to) = (FilePlace::in_memory(), FilePlace::in_memory());
        let file = file(&[2 * MIB + 5, 3, MIB]);
        let id = file.facts.id;
        let bytes: Vec<u8> = (0..file.facts.size).map(|n| (n % 251) as u8).collect();
        let mut begin = 0;
        for segment in &file.segments.0 {
            let end = begin + usize::try_from(segment.length).expect("small");
            let object = Bytes::copy_from_slice(&bytes[begin..end]);
            from.put(id, Lying::Segment(segment.name), object).await.expect("memory");
            begin = end;
        }
        from.put(id, Lying::Preview(Preview::Small), Bytes::from_static(b"preview")).await.expect("memory");
        let mut parts = Vec::new();
        let keep = |parts: &mut Vec<FilePart>, part| {
            parts.push(part);
            Ok(())
        };
        assert!(read_parts(&from, &file, 0, |part| keep(&mut parts, part)).await.expect("read"));
        let lengths: Vec<u64> = parts.iter().map(|part| part.bytes.len() as u64).collect();
        assert_eq!(lengths, [MIB, MIB, 5, 3, MIB, 7]);
        for after in 0..=6 {
            let mut rest = Vec::new();
            assert!(read_parts(&from, &file, after, |part| keep(&mut rest, part)).await.expect("read"));
            assert_eq!(rest, parts[usize::try_from(after).expect("small")..]);
        }
        let mut writer = PartWriter::into(&to);
        writer.begin(&file);
        let mut settled = Vec::new();
        for part in parts.clone() {
            let is_whole = writer.take(part).await.expect("written");
            settled.push((writer.is_settled(), is_whole));
        }
        let expected =
            [(false, false), (false, false), (true, false), (true, false), (true, false), (true, true)];
        assert_eq!(settled, expected);
        assert!(to.read_whole(id, &file.segments, 0..file.facts.size).await.expect("there") == bytes);
        assert_eq!(to.preview(id, Preview::Small).await.expect("there"), &b"preview"[..]);

        from.remove(id, &[Lying::Segment(8)]).await.expect("memory");
        let mut rest = Vec::new();
        assert!(!read_parts(&from, &file, 0, |part| keep(&mut rest, part)).await.expect("read"));
        assert_eq!(rest, parts[..3], "those before it are there");
    }

    #[test]
    fn a_part_that_is_missing_or_of_another_length_is_noticed() {
        let file = file(&[MIB + 1, 3]);
        let part =
            |part, length, preview| FilePart { file: file.facts.id, part, preview, bytes: vec![1; length] };
        let mib = 1 << 20;
        let good = [part(1, mib, None), part(2, 1, None), part(3, 3, None), part(4, 9, Some(Preview::Small))];
        let mut followed = Followed::of(&file);
        for part in &good {
            assert!(!followed.is_whole());
            assert_eq!(followed.see(part), Ok(()));
        }
        assert!(followed.is_whole());
        assert!(followed.see(&part(5, 1, None)).is_err());
        for wrong in [part(2, mib, None), part(1, mib - 1, None), part(1, mib, Some(Preview::Small))] {
            assert!(Followed::of(&file).see(&wrong).is_err(), "{} {}", wrong.part, wrong.bytes.len());
        }
        let other = FilePart { file: FileId(Uuid::from_u128(8)), ..part(1, mib, None) };
        assert!(Followed::of(&file).see(&other).is_err());
    }
}
