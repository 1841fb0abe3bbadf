//! Frames: a replica's file holds each write as one. Each frame is checksummed, numbered, bound to its file, and written
//! only after the one before it was synced; the file is zeros from there on. So a frame that a power cut tore
//! is told from one that was damaged later. Pure; the file around it owns the bytes.

use thiserror::Error;

/// Disks write a sector whole or not at all, in any order.
pub(super) const SECTOR: usize = 512;
/// Frames begin at multiples of this, so that no head lies in two sectors.
const HEAD: usize = 32;
const MAGIC: [u8; 4] = *b"sqsv";
/// Behind each payload, so that the last sector of a whole frame is never all zeros.
const TRAILER: u8 = 0xa5;

/// Which file frames belong to, drawn at random: a frame that an earlier file left in the same place is never taken for this one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId(pub(super) u64);

/// Bytes that are neither a frame, nor torn, nor zeros behind the last one.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("damaged at byte {offset}: {what}")]
pub(super) struct Damage {
    /// Of the frame, from the start of the file.
    pub(super) offset: usize,
    /// The kind of damage.
    pub(super) what: &'static str,
}

/// How many bytes a frame takes in the file.
pub(super) fn size(payload: usize) -> usize {
    (HEAD + payload + 1).next_multiple_of(HEAD)
}

/// Appends a frame to `out`.
pub(super) fn write(id: FileId, sequence: u64, payload: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let length = u32::try_from(payload.len() + 1).expect("a state is far below 4 GiB");
    let mut sum = crc32fast::Hasher::new();
    sum.update(payload);
    sum.update(&[TRAILER]);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&sequence.to_le_bytes());
    out.extend_from_slice(&id.0.to_le_bytes());
    out.extend_from_slice(&sum.finalize().to_le_bytes());
    let head = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&head.to_le_bytes());
    out.extend_from_slice(payload);
    out.push(TRAILER);
    out.resize(start + size(payload.len()), 0);
}

/// The id that the head at the start of `file` names.
pub(super) fn id(file: &[u8]) -> Result<FileId, Damage> {
    match DiskFrameHead::read(file, 0) {
        Some(head) => Ok(head.id),
        None => Err(Damage { offset: 0, what: "its header is not the header of a replica's file" }),
    }
}

/// The contents of one place in a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FoundFrame<'a> {
    /// The frame, and where the next one begins.
    Frame { payload: &'a [u8], next: usize },
    /// The frames end here; a torn frame may lie behind.
    End,
}

/// Reads the frame that must carry `sequence` at `offset`.
pub(super) fn read(file: &[u8], id: FileId, offset: usize, sequence: u64) -> Result<FoundFrame<'_>, Damage> {
    let damage = |what| Err(Damage { offset, what });
    let end_unless_later = |what| match later(file, id, offset, sequence) {
        true => damage(what),
        false => Ok(FoundFrame::End),
    };
    let Some(place) = file.get(offset..offset + HEAD) else {
        return if offset >= file.len() { Ok(FoundFrame::End) } else { damage("the file is cut short") };
    };
    if place.iter().all(|&byte| byte == 0) {
        return end_unless_later("a frame is missing");
    }
    let Some(head) = DiskFrameHead::read(file, offset) else {
        return damage("the header of a frame is wrong");
    };
    if head.id != id || head.sequence != sequence {
        return damage("the frame is not the one that was written here");
    }
    let (start, end) = (offset + HEAD, offset + HEAD + head.length);
    let Some(payload) = file.get(start..end).filter(|payload| !payload.is_empty()) else {
        return damage("the file is cut short");
    };
    if crc32fast::hash(payload) == head.sum {
        return Ok(FoundFrame::Frame {
            payload: &payload[..payload.len() - 1],
            next: end.next_multiple_of(HEAD),
        });
    }
    if torn(file, start, end) {
        return end_unless_later("a part of a frame is missing");
    }
    damage("the checksum of a frame is wrong")
}

struct DiskFrameHead {
    length: usize,
    sequence: u64,
    id: FileId,
    sum: u32,
}

impl DiskFrameHead {
    fn read(file: &[u8], offset: usize) -> Option<DiskFrameHead> {
        let head = file.get(offset..offset + HEAD)?;
        let u32_at = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("4 bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("8 bytes"));
        if head[..4] != MAGIC || crc32fast::hash(&head[..HEAD - 4]) != u32_at(HEAD - 4) {
            return None;
        }
        let (length, sequence, id) = (u32_at(4) as usize, u64_at(8), FileId(u64_at(16)));
        Some(DiskFrameHead { length, sequence, id, sum: u32_at(24) })
    }
}

/// Whether one of the sectors of a frame, its head's excepted, is still as it was before the frame was written.
fn torn(file: &[u8], start: usize, end: usize) -> bool {
    let first = start.next_multiple_of(SECTOR);
    let sectors = (first..end).step_by(SECTOR);
    sectors.into_iter().any(|at| file[at..end.min(at + SECTOR)].iter().all(|&byte| byte == 0))
}

/// Whether a frame behind `offset` was written: the one there was synced then.
fn later(file: &[u8], id: FileId, offset: usize, sequence: u64) -> bool {
    let places = (offset + HEAD..file.len()).step_by(HEAD);
    places
        .filter(|&at| file[at..].starts_with(&MAGIC))
        .filter_map(|at| DiskFrameHead::read(file, at))
        .any(|head| head.id == id && head.sequence > sequence)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: FileId = FileId(77);

    /// A file of zeros with frames in it, and where each begins.
    fn file(payloads: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut starts) = (Vec::new(), Vec::new());
        for (sequence, payload) in payloads.iter().enumerate() {
            starts.push(bytes.len());
            write(ID, sequence as u64, payload, &mut bytes);
        }
        bytes.resize(bytes.len().next_multiple_of(SECTOR) + 4 * SECTOR, 0);
        (bytes, starts)
    }

    fn read_all(file: &[u8]) -> Result<Vec<Vec<u8>>, Damage> {
        let (mut found, mut offset) = (Vec::new(), 0);
        while let FoundFrame::Frame { payload, next } = read(file, ID, offset, found.len() as u64)? {
            found.push(payload.to_vec());
            offset = next;
        }
        Ok(found)
    }

    fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
        // As protobuf makes them: with zeros, but never a sector of them.
        let bytes = prop::collection::vec(prop_oneof![Just(0u8), 1u8..=255], 0..2_000);
        let payload = bytes.prop_map(|mut bytes| {
            bytes.iter_mut().step_by(100).for_each(|byte| *byte |= 1);
            bytes
        });
        prop::collection::vec(payload, 1..5)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn frames_come_back_as_written(payloads in payloads()) {
            prop_assert_eq!(read_all(&file(&payloads).0), Ok(payloads));
        }

        #[test]
        fn any_flipped_bit_in_any_frame_is_named(payloads in payloads(), at in any::<prop::sample::Index>()) {
            let (mut bytes, starts) = file(&payloads);
            let which = at.index(payloads.len());
            let written = HEAD + payloads[which].len() + 1;
            let bit = at.index(written * 8);
            bytes[starts[which] + bit / 8] ^= 1 << (bit % 8);
            let damage = read_all(&bytes).unwrap_err();
            prop_assert_eq!(damage.offset, starts[which]);
        }

        #[test]
        fn a_torn_last_frame_ends_the_file_and_nothing_else_is_lost(
            payloads in payloads(), kept in prop::collection::vec(any::<bool>(), 8)
        ) {
            let (whole, starts) = file(&payloads);
            let last = payloads.len() - 1;
            let (before, _) = file(&payloads[..last]);
            // Some sectors of the last frame reached the disk; the others are as before it was written.
            let mut bytes = before;
            bytes.resize(whole.len(), 0);
            let first = starts[last] / SECTOR;
            let sectors = (starts[last] + HEAD + payloads[last].len()) / SECTOR - first + 1;
            for sector in (0..sectors).filter(|&sector| kept[sector]) {
                let at = (first + sector) * SECTOR;
                bytes[at..at + SECTOR].copy_from_slice(&whole[at..at + SECTOR]);
            }
            let complete = kept[..sectors].iter().all(|&kept| kept);
            let expected = if complete { &payloads[..] } else { &payloads[..last] };
            prop_assert_eq!(read_all(&bytes), Ok(expected.to_vec()));
        }

        #[test]
        fn a_sector_lost_before_the_last_frame_is_named(payloads in payloads(), at in any::<prop::sample::Index>()) {
            prop_assume!(payloads.len() > 1);
            let (mut bytes, starts) = file(&payloads);
            let sector = at.index(starts[payloads.len() - 1] / SECTOR + 1) * SECTOR;
            prop_assume!(sector + SECTOR <= starts[payloads.len() - 1]);
            bytes[sector..sector + SECTOR].fill(0);
            prop_assert!(read_all(&bytes).is_err());
        }
    }

    #[test]
    fn what_an_earlier_file_left_is_not_taken_for_a_frame() {
        let (mut bytes, _) = file(&[vec![1; 10]]);
        let mut stale = Vec::new();
        write(FileId(78), 1, &[2; 10], &mut stale);
        bytes[64..64 + stale.len()].copy_from_slice(&stale);
        assert_eq!(read_all(&bytes).unwrap_err().offset, 64);
    }

    #[test]
    fn a_file_cut_short_within_a_frame_is_named() {
        let (bytes, _) = file(&[vec![1; 10], vec![2; 100]]);
        assert_eq!(read_all(&bytes[..64 + 32]).unwrap_err().offset, 64);
    }
}
