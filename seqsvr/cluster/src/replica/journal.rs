//! One file of a replica: its identity, the state as the file began, and every change since. Written ahead with zeros,
//! so that a sync need not change the file's size. A file is only ever written by the process that made it:
//! opening a replica reads the last one and begins another, which makes everything durable anew (a sync that once
//! failed may have left changes in memory alone) and leaves torn ends behind.

use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::Path;

use prost::Message;

use super::frame::{self, Damage, FileId, FoundFrame};
use super::identity::{FilesError, FramePlace, Identity};
use super::state::{State, StateChange};
use seqsvr_core::flaws::Flaws;
use seqsvr_core::store::message::Copy;
use seqsvr_rpc::v1;

/// Stored in each file.
const FORMAT: u32 = 1;
/// Files are whole blocks of the usual file system.
const BLOCK: usize = 4_096;
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// How large a file may be, in bytes, to be read at all.
pub(super) const LARGEST: RangeInclusive<u64> = 0..=(4 << 30) - 1;

/// The first frame. Stored, must stay readable.
#[derive(Clone, PartialEq, Message)]
struct JournalHead {
    #[prost(uint32, tag = "1")]
    format: u32,
    #[prost(string, tag = "2")]
    cluster: String,
    #[prost(uint32, tag = "3")]
    set: u32,
    #[prost(string, tag = "4")]
    name: String,
    #[prost(uint64, tag = "5")]
    number: u64,
    #[prost(uint64, tag = "6")]
    revision: u64,
    /// The replica's id among the members.
    #[prost(uint64, tag = "7")]
    id: u64,
}

/// Each frame behind the second, which is the state. Stored, must stay readable.
#[derive(Clone, PartialEq, Message)]
struct Batch {
    /// Each holds the request that the change stands for.
    #[prost(message, repeated, tag = "1")]
    changes: Vec<v1::StoreRequest>,
}

/// A file that is being written.
pub(super) struct Journal {
    file: File,
    id: FileId,
    place: FramePlace,
    /// Where the next frame goes.
    position: usize,
    /// How far the file was written ahead.
    capacity: usize,
    buffer: Vec<u8>,
}

impl Journal {
    /// Writes the beginning of file `number` into `file`, which holds nothing but `zeros` zeros, and room for `room` bytes of
    /// changes. Durable when it returns, its name excepted.
    pub(super) fn begin(
        file: File,
        zeros: usize,
        identity: &Identity,
        number: u64,
        state: &State,
        room: usize,
    ) -> io::Result<Self> {
        let head = JournalHead {
            format: FORMAT,
            cluster: identity.cluster.clone(),
            set: identity.set,
            name: identity.name.clone(),
            number,
            revision: state.revision(),
            id: state.id(),
        };
        let id = FileId(rand::random());
        let mut buffer = Vec::new();
        frame::write(id, 0, &head.encode_to_vec(), &mut buffer);
        frame::write(id, 1, &v1::CopyReply::from(&state.copy()).encode_to_vec(), &mut buffer);
        let position = buffer.len();
        let capacity = (position + room).max(zeros).next_multiple_of(BLOCK);
        write_zeros(&file, zeros, capacity)?;
        file.write_all_at(&buffer, 0)?;
        file.sync_all()?;
        buffer.clear();
        Ok(Self { file, id, place: FramePlace { file: number, frame: 1 }, position, capacity, buffer })
    }

    /// Makes changes durable, together. After an error the file must not be used again, since its contents are unknown: the next
    /// one must begin.
    ///
    /// # Errors
    ///
    /// The system's.
    pub(super) fn append(&mut self, batch: &[u8]) -> io::Result<()> {
        self.buffer.clear();
        frame::write(self.id, self.place.frame + 1, batch, &mut self.buffer);
        self.file.write_all_at(&self.buffer, self.position as u64)?;
        self.file.sync_data()?;
        self.position += self.buffer.len();
        self.place.frame += 1;
        Ok(())
    }

    /// Whether a batch of this size still goes into the file.
    pub(super) fn fits(&self, batch: usize) -> bool {
        self.position + frame::size(batch) <= self.capacity
    }

    /// Whether more than half of the room is used.
    pub(super) fn half_full(&self) -> bool {
        self.position > self.capacity / 2
    }

    /// The last frame that is durable.
    pub(super) fn place(&self) -> FramePlace {
        self.place
    }
}

#[cfg(test)]
impl Journal {
    /// Goes on with another file.
    pub(super) fn write_to(&mut self, file: File) {
        self.file = file;
    }
}

/// The payload of a frame that holds `changes`.
pub(super) fn batch(changes: &[StateChange]) -> Vec<u8> {
    let request = |change| v1::StoreRequest { request: Some(change), ..v1::StoreRequest::default() };
    let changes = changes.iter().map(|change| request(change.into())).collect();
    Batch { changes }.encode_to_vec()
}

/// Fills `file` with zeros from `from` to `to`; not synced.
pub(super) fn write_zeros(file: &File, from: usize, to: usize) -> io::Result<()> {
    let mut at = from;
    while at < to {
        let some = ZEROS.len().min(to - at);
        file.write_all_at(&ZEROS[..some], at as u64)?;
        at += some;
    }
    Ok(())
}

/// The contents of a file.
pub(super) struct Read {
    pub(super) identity: Identity,
    pub(super) place: FramePlace,
    pub(super) state: State,
}

/// Reads the file called `number`.
///
/// # Errors
///
/// [`FilesError::Damaged`], [`FilesError::Format`], [`FilesError::Io`].
pub(super) fn read(path: &Path, number: u64) -> Result<Read, FilesError> {
    let damaged = |what: String| FilesError::Damaged { path: path.to_owned(), what };
    let length = path.metadata().map_err(FilesError::io(path))?.len();
    if !LARGEST.contains(&length) {
        return Err(damaged(format!("{length} bytes long, longer than any file of a replica")));
    }
    let bytes = std::fs::read(path).map_err(FilesError::io(path))?;
    let mut frames = Frames { bytes: &bytes, id: None, offset: 0, sequence: 0 };
    let mut next = |what: &'static str| {
        let at = frames.offset;
        let found = frames.next().map_err(|damage| damaged(damage.to_string()))?;
        found
            .map(|payload| (at, payload))
            .ok_or_else(|| damaged(format!("damaged at byte {at}: {what} is missing")))
    };
    let undecodable =
        |at: usize, why: &dyn std::fmt::Display| damaged(format!("damaged at byte {at}: {why}"));
    let (at, head) = next("its beginning")?;
    let head = JournalHead::decode(head).map_err(|why| undecodable(at, &why))?;
    if head.format != FORMAT {
        return Err(FilesError::Format { path: path.to_owned(), format: head.format });
    }
    if head.number != number {
        return Err(damaged(format!("a copy of file {}", head.number)));
    }
    let (at, copy) = next("the state")?;
    let copy = v1::CopyReply::decode(copy).map_err(|why| undecodable(at, &why))?;
    let copy = Copy::try_from(copy).map_err(|why| undecodable(at, &why))?;
    let mut state = State::restored(copy, head.revision, Flaws::default()).with_id(head.id);
    loop {
        let at = frames.offset;
        let Some(payload) = frames.next().map_err(|damage| damaged(damage.to_string()))? else { break };
        let batch = Batch::decode(payload).map_err(|why| undecodable(at, &why))?;
        for request in batch.changes.into_iter().filter_map(|change| change.request) {
            state.apply(&StateChange::try_from(request).map_err(|why| undecodable(at, &why))?);
        }
    }
    let identity = Identity { cluster: head.cluster, set: head.set, name: head.name };
    Ok(Read { identity, place: FramePlace { file: number, frame: frames.sequence - 1 }, state })
}

struct Frames<'a> {
    bytes: &'a [u8],
    id: Option<FileId>,
    offset: usize,
    sequence: u64,
}

impl<'a> Frames<'a> {
    fn next(&mut self) -> Result<Option<&'a [u8]>, Damage> {
        let id = match self.id {
            Some(id) => id,
            None => *self.id.insert(frame::id(self.bytes)?),
        };
        let FoundFrame::Frame { payload, next } = frame::read(self.bytes, id, self.offset, self.sequence)?
        else {
            return Ok(None);
        };
        (self.offset, self.sequence) = (next, self.sequence + 1);
        Ok(Some(payload))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    /// The frames of a file: its head, the state, and one of each change.
    static WRITTEN: LazyLock<(FileId, Vec<Vec<u8>>)> = LazyLock::new(|| {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let identity = Identity { cluster: "test".to_owned(), set: 0, name: "s1".to_owned() };
        let state = State::new(Flaws::default()).with_id(7);
        let begun = file.reopen().and_then(|file| Journal::begin(file, 0, &identity, 1, &state, BLOCK));
        let mut journal = begun.expect("written");
        for (_, change) in super::super::record::tests::changes() {
            journal.append(&batch(&[change])).expect("written");
        }
        let bytes = std::fs::read(file.path()).expect("read");
        let mut frames = Frames { bytes: &bytes, id: None, offset: 0, sequence: 0 };
        let mut payloads = Vec::new();
        while let Some(payload) = frames.next().expect("undamaged") {
            payloads.push(payload.to_vec());
        }
        (frames.id.expect("it has a head"), payloads)
    });

    #[test]
    fn the_bytes_of_a_head_stay_as_they_are() {
        let (cluster, name) = ("test".to_owned(), "s1".to_owned());
        let head = JournalHead { format: FORMAT, cluster, set: 3, name, number: 2, revision: 9, id: 7 };
        assert_eq!(head.encode_to_vec(), b"\x08\x01\x12\x04test\x18\x03\x22\x02s1\x28\x02\x30\x09\x38\x07");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// Frames whose checksums are right: what they hold may still be anything.
        #[test]
        fn any_payload_is_read_or_named(
            which in any::<prop::sample::Index>(), from in any::<prop::sample::Index>(),
            to in any::<prop::sample::Index>(), piece in prop::collection::vec(any::<u8>(), 0..24),
        ) {
            let (id, mut payloads) = WRITTEN.clone();
            let which = which.index(payloads.len());
            let payload = &mut payloads[which];
            let (from, to) = (from.index(payload.len() + 1), to.index(payload.len() + 1));
            payload.splice(from.min(to)..from.max(to), piece);
            let mut bytes = Vec::new();
            for (sequence, payload) in (0..).zip(&payloads) {
                frame::write(id, sequence, payload, &mut bytes);
            }
            let file = tempfile::NamedTempFile::new().expect("a file");
            std::fs::write(file.path(), &bytes).expect("written");
            match read(file.path(), 1) {
                Ok(read) => prop_assert_eq!(read.place.frame + 1, payloads.len() as u64),
                Err(error) => prop_assert!(!error.to_string().contains('\n'), "{}", error),
            }
        }
    }
}
