//! Written batches are found again, whatever was freed or torn; damaged files are refused.

use std::fs;
use std::os::unix::fs::FileExt as _;

use proptest::prelude::*;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::super::record;
use super::super::sector::SECTOR;
use super::*;

const LOG: LogId = LogId { id: 77, opening: 1 };

/// A blob with a right checksum, as a batch has one.
fn blob(rest: &[u8]) -> Vec<u8> {
    let mut blob = vec![1; record::HEADER];
    blob[1..].copy_from_slice(&Sha256::digest(rest)[..8]);
    blob.extend_from_slice(rest);
    blob
}

/// The content of a frame of `bytes` bytes, different for each number.
fn content(seq: u64, bytes: usize) -> Vec<u8> {
    blob(&(0..bytes).map(|at| (seq as usize * 7 + at) as u8).collect::<Vec<_>>())
}

fn paths(directory: &TempDir) -> Paths {
    ["0", "1"].map(|name| directory.path().join(name))
}

fn made() -> (TempDir, Log) {
    let directory = tempfile::tempdir().expect("a directory");
    let log = Log::make(&paths(&directory), LOG, 0).expect("made");
    (directory, log)
}

/// Its files as they lie there, in a new directory.
fn copied(from: &TempDir) -> TempDir {
    let to = tempfile::tempdir().expect("a directory");
    for (from, to) in paths(from).iter().zip(paths(&to)) {
        fs::copy(from, to).expect("copied");
    }
    to
}

fn opened(directory: &TempDir, flushed: u64) -> Result<Log, LogError> {
    Log::open(&paths(directory), flushed, LOG, LOG.opening)
}

/// The fault of the log, if it does not open.
fn bad(directory: &TempDir, flushed: u64) -> Option<BadLog> {
    opened(directory, flushed).err().map(|error| error.bad)
}

fn found(directory: &TempDir, flushed: u64) -> Vec<Vec<u8>> {
    read_beside(&paths(directory), LOG.id, flushed).expect("readable").expect("whole")
}

/// Appends batches of so many bytes until both segments had their turns, and flushes all but the last three of them. Says which are needed.
fn several_turns(log: &mut Log) -> Vec<Vec<u8>> {
    let mut needed = Vec::new();
    let mut turns = 0;
    while turns < 3 || needed.len() < 3 {
        let (seq, active) = (log.last() + 1, log.active);
        needed.push(content(seq, 1_500));
        log.append(seq, needed.last().expect("pushed")).expect("appended");
        if needed.len() > 3 {
            needed.remove(0);
        }
        log.free(seq - needed.len() as u64);
        turns += u32::from(log.active != active);
    }
    needed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Needed batches are there as they were written, in the files and in the open log, whatever is appended and freed.
    #[test]
    fn what_is_needed_is_never_written_over(
        steps in prop::collection::vec((0..6_000_usize, 0..4_u64, prop::bool::weighted(0.1)), 1..150)
    ) {
        let (directory, mut log) = made();
        let (mut last, mut freed, mut expected) = (0, 0, Vec::new());
        for (bytes, free, is_reopened) in steps {
            last += 1;
            let content = content(last, bytes);
            log.append(last, &content).expect("appended");
            expected.push((last, content));
            freed = (freed + free).min(last);
            log.free(freed);
            expected.retain(|(seq, _)| *seq > freed);
            if is_reopened {
                drop(log);
                log = opened(&directory, freed).expect("opened");
                log.settle().expect("settled");
            }
            prop_assert_eq!(log.last(), last);
            for (seq, content) in &expected {
                prop_assert_eq!(log.read(*seq).expect("readable"), Some(content.clone()));
            }
        }
        let expected: Vec<_> = expected.into_iter().map(|(_, content)| content).collect();
        prop_assert_eq!(found(&directory, freed), expected);
    }

    /// A power cut while the last frame is written: some of the sectors are as before. All others are there, and it goes on behind them.
    #[test]
    fn a_torn_last_frame_is_passed_over_and_nothing_else_is_lost(
        sizes in prop::collection::vec(0..3_000_usize, 1..60), kept in prop::collection::vec(any::<bool>(), 8)
    ) {
        let (directory, mut log) = made();
        let (mut before, mut last) = (copied(&directory), 0_u64);
        for bytes in &sizes {
            last += 1;
            log.free(last.saturating_sub(3));
            let content = content(last, *bytes);
            // Growth and turns are durable before the frame is written.
            log.make_room(content.len()).expect("room");
            before = copied(&directory);
            log.append(last, &content).expect("appended");
        }
        let active = log.active;
        let frame = *log.segments[active].frames().last().expect("appended");
        drop(log);
        let (path, earlier) = (&paths(&directory)[active], fs::read(&paths(&before)[active]).expect("readable"));
        let whole = fs::read(path).expect("readable");
        let mut torn = whole.clone();
        let sectors = (frame.offset..frame.end()).step_by(SECTOR as usize);
        for (at, is_kept) in std::iter::once(0).chain(sectors).zip(kept.iter().cycle()) {
            let sector = at as usize..(at + SECTOR) as usize;
            if !is_kept {
                torn[sector.clone()].copy_from_slice(&earlier[sector]);
            }
        }
        fs::write(path, &torn).expect("written");
        let frame = frame.offset as usize..frame.end() as usize;
        let stored = last - u64::from(torn[frame.clone()] != whole[frame]);
        let flushed = last.saturating_sub(3);
        let mut log = opened(&directory, flushed).expect("opened");
        prop_assert_eq!(log.last(), stored);
        for seq in flushed + 1..=stored {
            let expected = content(seq, sizes[seq as usize - 1]);
            prop_assert_eq!(log.read(seq).expect("readable"), Some(expected));
        }
        log.append(stored + 1, &content(99, 10)).expect("appended");
        drop(log);
        prop_assert_eq!(opened(&directory, flushed).expect("opened").last(), stored + 1);
    }

    /// Wherever a file is cut off, zeroed or changed, also where nobody needs it, it is refused.
    #[test]
    fn each_damage_is_refused(
        which in 0..2_usize, at in any::<prop::sample::Index>(), to in any::<prop::sample::Index>(), kind in 0..5_u32
    ) {
        let (directory, mut log) = made();
        several_turns(&mut log);
        let flushed = log.flushed;
        drop(log);
        let path = &paths(&directory)[which];
        let good = fs::read(path).expect("readable");
        let mut file = good.clone();
        let (at, sector) = (at.index(good.len()), SECTOR as usize);
        match kind {
            0 => file.truncate(at),
            1 => file[at] ^= 1 << to.index(8),
            2 => file[at / sector * sector..][..sector].fill(0),
            3 => file[at / 4_096 * 4_096..].fill(0),
            _ => {
                // A sector, or what follows from there on, comes to another place.
                let (from, to) = (at / sector * sector, to.index(good.len()) / sector * sector);
                file[to..to + sector].copy_from_slice(&good[from..from + sector]);
            }
        }
        fs::write(path, &file).expect("written");
        let refused = bad(&directory, flushed);
        prop_assert_eq!(refused.is_some(), file != good, "{:?} at {} of {}", refused, at, good.len());
        let beside = read_beside(&paths(&directory), LOG.id, flushed);
        prop_assert!(file == good || !matches!(beside, Ok(Some(_))));
    }

    #[test]
    fn any_bytes_are_read_or_named(bytes in prop::collection::vec(any::<u8>(), 0..9_000), begin in 0..600_usize) {
        let header = Header { log: LOG, before: 1, first: 1, length: 8_192, durable: 0 };
        let mut file = header.encode();
        file.truncate(begin);
        file.extend_from_slice(&bytes);
        if let Ok(header) = Header::decode(&file) {
            prop_assert!(sector::find(&file, &header).is_err());
        }
    }
}

/// Takes the sectors of the last batch back, as they were before it was written.
fn without_the_last(directory: &TempDir, which: usize, before: &TempDir, frame: &Frame) {
    let path = &paths(directory)[which];
    let (mut file, earlier) =
        (fs::read(path).expect("there"), fs::read(&paths(before)[which]).expect("there"));
    let place = frame.offset as usize..frame.end() as usize;
    file[place.clone()].copy_from_slice(&earlier[place]);
    fs::write(path, file).expect("written");
}

#[test]
fn a_segment_that_does_not_come_to_the_next_one_is_refused_while_it_is_needed() {
    let (directory, mut log) = made();
    let mut before = copied(&directory);
    while log.active == 0 {
        let content = content(log.last() + 1, 1_500);
        log.make_room(content.len()).expect("room");
        if log.active == 0 {
            before = copied(&directory);
        }
        log.append(log.last() + 1, &content).expect("appended");
    }
    let frame = *log.segments[0].frames().last().expect("many");
    drop(log);
    without_the_last(&directory, 0, &before, &frame);
    assert_eq!(bad(&directory, frame.seq - 1), Some(BadLog::Gap(frame.seq)));
    assert_eq!(bad(&directory, frame.seq), None);
}

#[test]
fn what_a_disk_only_pretended_to_write_is_missed() {
    let (directory, mut log) = made();
    for seq in 1..=3 {
        log.append(seq, &content(seq, 100)).expect("appended");
    }
    let before = copied(&directory);
    for seq in 4..=5 {
        log.append(seq, &content(seq, 100)).expect("appended");
    }
    let frames = log.segments[0].frames().to_vec();
    drop(log);
    // The last one may be torn. With the one before it the header was written.
    without_the_last(&directory, 0, &before, &frames[4]);
    assert_eq!(bad(&directory, 0), None);
    without_the_last(&directory, 0, &before, &frames[3]);
    let what = "stored batches are incomplete";
    assert_eq!(bad(&directory, 0), Some(BadLog::Damaged { what, at: frames[3].offset }));
}

/// Until a turn is known to be durable the next start may find either, so nothing goes into the segment before.
#[test]
fn after_a_turn_that_failed_nothing_is_appended_before_it_is_done() {
    let (directory, mut log) = made();
    let mut needed = several_turns(&mut log);
    while log.segments[log.active].end() < START + TURN {
        let seq = log.last() + 1;
        needed.push(content(seq, 1_500));
        log.append(seq, needed.last().expect("pushed")).expect("appended");
        log.free(seq - 3);
    }
    let needed = needed.split_off(needed.len() - 3);
    let (active, earlier) = (log.active, copied(&directory));
    log.segments[1 - active].fails_after = Some(0);
    log.make_room(100).expect_err("as the test says");
    for survived in [&earlier, &copied(&directory)] {
        assert_eq!(found(survived, log.flushed), needed);
        assert_eq!(opened(survived, log.flushed).expect("opened").last(), log.last());
    }
    // After a sync that failed the system may forget what it did not write.
    let header = fs::read(&paths(&earlier)[1 - active]).expect("there")[..SECTOR as usize].to_vec();
    let file = fs::OpenOptions::new().write(true).open(&paths(&directory)[1 - active]).expect("opened");
    file.write_all_at(&header, 0).expect("written");
    log.make_room(100).expect("room");
    assert_eq!(read_header(&paths(&directory)[1 - active]).expect("whole").first, log.last() + 1);
    let last = log.last();
    log.append(last + 1, &content(last + 1, 100)).expect("appended");
    assert_eq!(log.active, 1 - active);
    drop(log);
    assert_eq!(opened(&directory, last - 3).expect("opened").last(), last + 1);
}

#[test]
fn a_growth_that_is_cut_off_after_any_step_changes_nothing_and_is_done_again() {
    for syncs in 0..2 {
        let (directory, mut log) = made();
        log.append(1, &content(1, 100)).expect("appended");
        let length = log.segments[0].header().length;
        log.segments[0].fails_after = Some(syncs);
        let large = 2 * STEP as usize;
        log.make_room(large).expect_err("as the test says");
        assert_eq!(log.segments[0].header().length, length);
        // A power cut keeps some of the sectors that are not counted yet.
        let cut = copied(&directory);
        let header = Header { length, ..*log.segments[0].header() };
        let file = fs::OpenOptions::new().write(true).open(&paths(&cut)[0]).expect("opened");
        file.write_all_at(&header.encode(), 0).expect("written");
        file.set_len(length + SECTOR + 100).expect("cut");
        assert_eq!(found(&cut, 0), [content(1, 100)]);
        let mut again = opened(&cut, 0).expect("opened");
        for log in [&mut again, &mut log] {
            log.append(2, &content(2, large)).expect("appended");
        }
        drop((again, log));
        for place in [&cut, &directory] {
            assert_eq!(opened(place, 0).expect("opened").last(), 2);
        }
    }
}

#[test]
fn the_files_stop_growing_when_batches_are_let_go() {
    let (directory, mut log) = made();
    for seq in 1..=2_000_u64 {
        log.append(seq, &content(seq, 1_000)).expect("appended");
        log.free(seq.saturating_sub(20));
    }
    // Twenty batches are needed at a time; all that were appended have 2 MB.
    let length: u64 = paths(&directory).iter().map(|path| fs::metadata(path).expect("there").len()).sum();
    assert!(length < 150_000, "{length}");
}

#[test]
fn a_frame_in_a_text_is_no_frame_of_the_log() {
    let (directory, mut log) = made();
    log.make_room(STEP as usize - 100).expect("room");
    let before = copied(&directory);
    let mut forged = Vec::new();
    sector::encode(LOG.id, START + SECTOR, 1, &blob(b"forged"), &mut forged);
    // The first bytes fill the head, so that the forged ones begin where the next sectors' bytes do.
    let text = [&[b'x'; 486][..], &forged[..507], &forged[..507], &forged[..507]].concat();
    log.append(1, &blob(&text)).expect("appended");
    let frame = Frame { length: 0, ..log.segments[0].frames()[0] };
    drop(log);
    without_the_last(&directory, 0, &before, &frame);
    assert_eq!(found(&directory, 0), Vec::<Vec<u8>>::new());
}

#[test]
fn what_is_no_log_is_named_and_both_files_are_needed() {
    for which in [0, 1] {
        let (directory, log) = made();
        drop(log);
        let path = &paths(&directory)[which];
        let good = fs::read(path).expect("readable");
        let refused = |bytes: &[u8]| {
            fs::write(path, bytes).expect("written");
            bad(&directory, 0)
        };
        assert_eq!(refused(b""), Some(BadLog::Empty));
        let what = "it does not begin as a log";
        assert_eq!(refused(&[b'x'; 5_000]), Some(BadLog::Damaged { what, at: 0 }));
        assert_eq!(
            refused(&good[..good.len() - 1]).map(|bad| bad.to_string().contains("cut off")),
            Some(true)
        );
        let other = fs::read(&paths(&directory)[1 - which]).expect("readable");
        let what = "both files begin with the same batch, so one is a copy of the other";
        assert_eq!(refused(&other), Some(BadLog::Damaged { what, at: 0 }));
        assert_eq!(refused(&good), None);
        assert_eq!(read_header(path).expect("a log").log, LOG);
        let error = Log::open(&paths(&directory), 0, LogId { id: 78, ..LOG }, 2).err();
        assert_eq!(error.map(|error| error.bad), Some(BadLog::Other));
        fs::remove_file(path).expect("removed");
        assert_eq!(bad(&directory, 0), Some(BadLog::Missing));
    }
}

/// The first start may end while it makes the files, with any part of them on the disk.
#[test]
fn what_was_left_of_a_log_that_nobody_noted_is_in_nobodys_way() {
    let (directory, log) = made();
    drop(log);
    let paths = paths(&directory);
    assert_eq!(set_aside(&paths), Ok(None), "no batch is in it");
    let whole = fs::read(&paths[0]).expect("readable");
    for left in [vec![], vec![0; 4_096], whole[..600].to_vec()] {
        fs::write(&paths[0], &left).expect("written");
        fs::remove_file(&paths[1]).ok();
        let aside = set_aside(&paths).expect("nobody has them");
        assert_eq!(
            aside.map(|aside| fs::read(aside).expect("kept")),
            Some(left).filter(|left| !left.is_empty())
        );
        drop(Log::make(&paths, LOG, 0).expect("made"));
        assert_eq!(bad(&directory, 0), None);
    }
}

/// Each opening writes the headers before it is noted, and may end in between.
#[test]
fn openings_that_are_interrupted_again_and_again_leave_a_log_that_fits() {
    let (directory, mut log) = made();
    log.append(1, &content(1, 100)).expect("appended");
    drop(log);
    for opening in 2..6 {
        let log = Log::open(&paths(&directory), 0, LOG, opening).expect("opened");
        assert_eq!((log.last(), log.segments[1].header().before), (1, LOG.opening));
    }
    let mut log =
        Log::open(&paths(&directory), 0, LogId { opening: 5, ..LOG }, 6).expect("the last was noted");
    log.settle().expect("settled");
    drop(log);
    assert_eq!(bad(&directory, 0), Some(BadLog::Other), "from then on the note before fits no longer");
}

/// A log on a disk must stay readable.
#[test]
fn the_bytes_of_a_log_stay_as_they_are() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = Log::make(&paths(&directory), LogId { id: 0x0102, opening: 3 }, 8).expect("made");
    log.append(9, &blob(&[b'x'; 600])).expect("appended");
    let file = fs::read(&paths(&directory)[0]).expect("readable");
    let sum = |at: u64| {
        let sealed = &file[at as usize..(at + SECTOR) as usize - 4];
        let summed = [&0x0102_u64.to_le_bytes()[..], &at.to_le_bytes(), sealed].concat();
        assert_eq!(file[at as usize + 508..][..4], crc32fast::hash(&summed).to_le_bytes());
    };
    let numbers =
        |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
    assert_eq!(&file[..9], b"\x02tmjs\x01\0\0\0");
    assert_eq!(file[9..57], numbers(&[0x0102, 3, 3, 9, 8_192, 8])[..]);
    assert_eq!(&file[START as usize..][..13], b"\x03\x09\0\0\0\0\0\0\0\x61\x02\0\0");
    let blob = blob(&[b'x'; 600]);
    assert_eq!(file[START as usize + 13..][..495], blob[..495]);
    assert_eq!(file[(START + SECTOR) as usize], 4);
    assert_eq!(file[(START + SECTOR) as usize + 1..][..114], blob[495..]);
    assert_eq!(file[(START + 2 * SECTOR) as usize], 1);
    [0, SECTOR, START, START + SECTOR, START + 2 * SECTOR].into_iter().for_each(sum);
}
