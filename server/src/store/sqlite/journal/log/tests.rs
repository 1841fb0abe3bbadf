//! What is written is found again, whatever was let go, torn or changed.

use std::os::unix::fs::FileExt as _;

use proptest::prelude::*;

use sha2::{Digest as _, Sha256};

use super::super::frame::{FORMAT, FRAME, HEADER, SUMMED};
use super::super::record;
use super::*;

const LOG: LogId = LogId { id: 77, opening: 1 };
const SECTOR: usize = 512;

/// A blob with a right checksum, as a batch has one.
fn blob(rest: &[u8]) -> Vec<u8> {
    let mut blob = vec![1; record::HEADER];
    blob[1..].copy_from_slice(&Sha256::digest(rest)[..8]);
    blob.extend_from_slice(rest);
    blob
}

/// What a frame of so many bytes holds, different for each number.
fn content(seq: u64, bytes: usize) -> Vec<u8> {
    blob(&(0..bytes).map(|at| (seq as usize * 7 + at) as u8).collect::<Vec<_>>())
}

fn made(directory: &tempfile::TempDir) -> (std::path::PathBuf, Log) {
    let path = directory.path().join("log");
    let log = Log::make(&path, LOG).expect("made");
    (path, log)
}

fn found(path: &Path) -> Vec<(u64, Vec<u8>)> {
    let (header, bytes) = read(path).expect("a log");
    let found = find(&bytes, header.log.id).whole;
    found.iter().map(|frame| (frame.seq, frame.blob(&bytes).to_vec())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is appended and let go: what is needed is there, as it was written, in the file and for who has it open.
    #[test]
    fn what_is_needed_is_never_written_over(
        steps in prop::collection::vec((0..6_000_usize, 0..4_u64, prop::bool::weighted(0.1)), 1..150)
    ) {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, mut log) = made(&directory);
        let (mut last, mut freed, mut expected) = (0, 0, Vec::new());
        for (bytes, free, is_reopened) in steps {
            last += 1;
            let content = content(last, bytes);
            log.append(last, &content).expect("appended");
            expected.push((last, content));
            freed = (freed + free).min(last);
            log.free(freed);
            expected.retain(|(seq, _)| *seq > freed || *seq == last);
            if is_reopened {
                drop(log);
                let (opened, bytes) = Log::open(&path, 0, |_| true).expect("opened");
                log = opened;
                log.free(freed);
                log.make_sure(&bytes, Header { log: LOG, before: 1 }).expect("sure");
            }
            for (seq, content) in &expected {
                prop_assert_eq!(log.read(*seq).expect("readable"), Some(content.clone()));
            }
        }
        let kept: Vec<_> = found(&path).into_iter().filter(|(seq, _)| *seq > freed || *seq == last).collect();
        prop_assert_eq!(kept, expected);
    }

    /// A power cut while the last frame is written: some of its sectors are as before, zeros or what was there. All others are there.
    #[test]
    fn a_torn_last_frame_is_passed_over_and_nothing_else_is_lost(
        earlier in 0..40_u64, sizes in prop::collection::vec(0..3_000_usize, 1..8),
        kept in prop::collection::vec(any::<bool>(), 8)
    ) {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, mut log) = made(&directory);
        for seq in 1..=earlier {
            log.append(seq, &content(seq, 2_000)).expect("appended");
            log.free(seq - 1);
        }
        log.free(earlier);
        let (mut before, mut last) = (Vec::new(), earlier);
        for bytes in &sizes {
            before = std::fs::read(&path).expect("readable");
            last += 1;
            log.append(last, &content(last, *bytes)).expect("appended");
        }
        let frame = *log.frames().last().expect("appended");
        drop(log);
        let mut torn = std::fs::read(&path).expect("readable");
        before.resize(torn.len(), 0);
        let whole = torn.clone();
        for (at, sector) in (frame.offset as usize / SECTOR..(frame.end() as usize).div_ceil(SECTOR)).enumerate() {
            let bytes = sector * SECTOR..(sector + 1) * SECTOR;
            if !kept[at % kept.len()] {
                torn[bytes.clone()].copy_from_slice(&before[bytes]);
            }
        }
        std::fs::write(&path, &torn).expect("written");
        let (opened, bytes) = Log::open(&path, 0, |_| true).expect("opened");
        let expected = last - u64::from(torn != whole);
        prop_assert_eq!(opened.frames().last().map_or(0, |frame| frame.seq), expected);
        for (seq, size) in (earlier + 1..=expected).zip(&sizes) {
            let found = opened.frames().find(|frame| frame.seq == seq).expect("it is there");
            prop_assert_eq!(found.blob(&bytes), content(seq, *size));
        }
    }

    /// A file of which the end is missing, or more than the last frame is damaged, is refused: those were acknowledged.
    #[test]
    fn what_was_synced_and_is_not_there_is_noticed(frames in 3..20_u64, damaged in any::<prop::sample::Index>()) {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, mut log) = made(&directory);
        for seq in 1..=frames {
            log.append(seq, &content(seq, 1_000)).expect("appended");
        }
        let refused = |file: &[u8]| {
            std::fs::write(&path, file).expect("written");
            Log::open(&path, 0, |_| true).map(|(log, _)| log.frames().len()).err()
        };
        let places = log.frames().map(|frame| frame.offset as usize..frame.end() as usize).collect::<Vec<_>>();
        drop(log);
        let file = std::fs::read(&path).expect("readable");
        // All from one on, at least two, have their heads alone.
        let mut tail = file.clone();
        for place in &places[damaged.index(places.len() - 1)..] {
            tail[place.start + 100..place.end].fill(7);
        }
        prop_assert_eq!(refused(&tail), Some(BadLog::Damaged("frames that were synced are not whole")));
        prop_assert_eq!(refused(&file), None);
        let (mut again, bytes) = Log::open(&path, 0, |_| true).expect("opened");
        again.make_sure(&bytes, Header { log: LOG, before: 1 }).expect("sure");
        again.append(frames + 1, &content(frames + 1, 10)).expect("appended");
        drop(again);
        let file = std::fs::read(&path).expect("readable");
        prop_assert_eq!(refused(&file[..bytes.len() - 1]), Some(BadLog::Damaged("it is cut off")));
    }

    /// No flipped bit of a frame gives another frame.
    #[test]
    fn a_changed_bit_takes_its_frame_away(bytes in 0..200_usize, bit in any::<prop::sample::Index>()) {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, mut log) = made(&directory);
        for seq in 1..=3 {
            log.append(seq, &content(seq, bytes)).expect("appended");
        }
        let second = *log.frames().nth(1).expect("appended");
        let mut file = std::fs::read(&path).expect("readable");
        let bit = bit.index((HEAD + second.length) * 8);
        file[second.offset as usize + bit / 8] ^= 1 << (bit % 8);
        // The version of a blob is read later, and is covered by the checksum of the head.
        std::fs::write(&path, &file).expect("written");
        prop_assert_eq!(found(&path).into_iter().map(|(seq, _)| seq).collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn any_bytes_are_read_or_named(mut bytes in prop::collection::vec(any::<u8>(), 0..9_000), is_log in any::<bool>()) {
        if is_log && bytes.len() > 8 {
            bytes[..4].copy_from_slice(&HEADER);
            bytes[4..8].copy_from_slice(&FORMAT.to_le_bytes());
        }
        if let Ok(header) = header(&bytes) {
            prop_assert_eq!(find(&bytes, header.log.id).whole, []);
        }
    }
}

#[test]
fn the_file_stops_growing_when_batches_are_let_go() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, mut log) = made(&directory);
    for seq in 1..=2_000_u64 {
        log.append(seq, &content(seq, 1_000)).expect("appended");
        log.free(seq.saturating_sub(20));
    }
    // Twenty batches are needed at a time; all that were appended have 2 MB.
    let length = std::fs::metadata(&path).expect("there").len();
    assert!(length < 100_000, "{length}");
}

#[test]
fn a_frame_in_a_text_is_no_frame_of_the_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, mut log) = made(&directory);
    let mut forged = Vec::new();
    encode(78, 2, 0, &blob(b"forged"), &mut forged);
    // Where a frame could begin, if the one around it were not whole.
    let mut text = vec![0; 64 - HEAD - record::HEADER];
    text.extend_from_slice(&forged);
    log.append(1, &blob(&text)).expect("appended");
    let mut file = std::fs::read(&path).expect("readable");
    assert_eq!(file[START as usize + 64..][..4], FRAME);
    file[START as usize] ^= 1;
    std::fs::write(&path, &file).expect("written");
    assert_eq!(found(&path), []);
}

#[test]
fn what_is_no_log_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    let refused = |path: &Path| read(path).err();
    assert_eq!(refused(&path), Some(BadLog::Missing));
    std::fs::write(&path, b"").expect("written");
    assert_eq!(refused(&path), Some(BadLog::Empty));
    std::fs::write(&path, [b'x'; 5_000]).expect("written");
    assert_eq!(refused(&path), Some(BadLog::Damaged("it does not begin as a log")));
    std::fs::remove_file(&path).expect("removed");
    Log::make(&path, LOG).expect("made");
    assert_eq!(read_header(&path), Ok(Header { log: LOG, before: LOG.opening }));
    assert_eq!(Log::open(&path, 0, |header| header.log.id == 78).err(), Some(BadLog::Other));
    let file = OpenOptions::new().write(true).open(&path).expect("opened");
    file.write_all_at(&2_u32.to_le_bytes(), 4).expect("written");
    assert_eq!(refused(&path), Some(BadLog::Newer));
}

/// What is on a disk must stay readable.
#[test]
fn the_bytes_of_a_log_stay_as_they_are() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    let mut log = Log::make(&path, LogId { id: 0x0102, opening: 3 }).expect("made");
    log.append(9, &blob(b"batch")).expect("appended");
    let file = std::fs::read(&path).expect("readable");
    let header = b"tmjl\x01\0\0\0\x02\x01\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0";
    assert_eq!(&file[..HEAD], header);
    let head = b"tmjf\x0e\0\0\0\x09\0\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0\x01\0\0\0";
    assert_eq!(&file[START as usize..][..SUMMED], head);
    let sum = Sha256::digest([&head[..], &blob(b"batch")[..9]].concat());
    assert_eq!(file[START as usize + SUMMED..][..4], sum[..4]);
    assert_eq!(&file[START as usize + HEAD..][..14], &blob(b"batch"));
}
