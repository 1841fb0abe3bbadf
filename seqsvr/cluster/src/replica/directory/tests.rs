//! A replica's files that were closed well, cut off, damaged, restored or mixed up.

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use tempfile::TempDir;

use super::super::frame;
use super::*;
use seqsvr_core::clock::Moment;
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::store::message::Question;
use seqsvr_core::store::{Ceiling, Configuration, Member, Moves, Owner};

const LAYOUT: Layout = Layout { section_size: 100_000, step: 10_000 };
const OWNER: Owner = Owner { epoch: Epoch { term: 1, version: 1 }, incarnation: 1 };
const ROOM: usize = 4_096;

fn identity(name: &str) -> Identity {
    Identity { cluster: "test".to_owned(), set: 3, name: name.to_owned() }
}

fn lock(at: &TempDir) -> Result<Directory, FilesError> {
    Directory::lock(at.path(), identity("s1"), LAYOUT, ROOM)
}

fn open(at: &TempDir) -> Result<(State, Files), FilesError> {
    lock(at)?.open()
}

/// A replica that has just been made and owns ten sections.
fn fresh() -> (TempDir, State, Files) {
    let at = tempfile::tempdir().unwrap();
    let (mut state, mut files) = lock(&at).unwrap().init().unwrap();
    let sections = vec![SectionId::new(0)..=SectionId::new(9)];
    ask(&mut state, &mut files, Question::Claim { sections, owner: OWNER, layout: LAYOUT });
    (at, state, files)
}

fn ask(state: &mut State, files: &mut Files, question: Question) {
    let change = state.ask(Moment::default(), &question).change.expect("it changes something");
    files.keep(&journal::batch(&[change]), state).unwrap();
}

fn raise(state: &mut State, files: &mut Files, section: u32, max: u64) {
    let ceilings = vec![Ceiling { section: SectionId::new(section), max }];
    ask(state, files, Question::Raise { owner: OWNER, ceilings });
}

/// The one file that counts.
fn last(at: &TempDir) -> PathBuf {
    let names = fs::read_dir(at.path()).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = names.filter(|path| path.to_string_lossy().contains("/state.")).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn refusal(opened: Result<(State, Files), FilesError>) -> FilesError {
    opened.err().expect("it is not opened")
}

#[test]
fn what_was_kept_is_there_after_each_start() {
    let (at, mut state, mut files) = fresh();
    for start in 1..4 {
        raise(&mut state, &mut files, start, 10_000);
        drop(files);
        let opened = open(&at).unwrap();
        assert_eq!(opened.0.copy(), state.copy());
        assert_eq!(opened.0.revision(), state.revision());
        (state, files) = opened;
    }
    assert_eq!(last(&at).extension().unwrap(), "4");
}

#[test]
fn files_turn_over_and_nothing_is_lost() {
    let (at, mut state, mut files) = fresh();
    for max in 1..400 {
        raise(&mut state, &mut files, max as u32 % 10, max);
    }
    drop(files);
    assert!(last(&at) > at.path().join("state.3"), "several files were filled: {:?}", last(&at));
    assert_eq!(open(&at).unwrap().0.copy(), state.copy());
}

#[test]
fn a_directory_is_made_once_and_only_when_asked() {
    let at = tempfile::tempdir().unwrap();
    assert!(matches!(refusal(open(&at)), FilesError::Empty(_)));
    let missing = Directory::lock(&at.path().join("none"), identity("s1"), LAYOUT, ROOM);
    assert!(matches!(missing, Err(FilesError::Empty(_))));
    drop(lock(&at).unwrap().init().unwrap());
    assert!(matches!(refusal(lock(&at).unwrap().init()), FilesError::Exists(_)));
    assert!(open(&at).is_ok());
}

#[test]
fn two_processes_cannot_have_one_directory() {
    let (at, _state, files) = fresh();
    assert!(matches!(lock(&at), Err(FilesError::Locked(_))));
    drop(files);
    assert!(lock(&at).is_ok());
}

#[test]
fn another_replicas_files_are_refused() {
    let (at, _state, files) = fresh();
    drop(files);
    let other = Directory::lock(at.path(), identity("s2"), LAYOUT, ROOM).unwrap();
    let line = refusal(other.open()).to_string();
    assert!(line.contains("belongs to replica s1 of Set 3 of cluster test"), "{line}");
    let smaller = Layout { section_size: 50_000, ..LAYOUT };
    let other = Directory::lock(at.path(), identity("s1"), smaller, ROOM).unwrap();
    let line = refusal(other.open()).to_string();
    assert!(line.contains("set section_size = 100000 and step = 10000"), "{line}");
}

#[test]
fn a_flipped_bit_is_named_with_its_place() {
    let (at, mut state, mut files) = fresh();
    raise(&mut state, &mut files, 1, 10_000);
    drop(files);
    let path = last(&at);
    let whole = fs::read(&path).unwrap();
    // The last frame: the one that a torn write could be mistaken for.
    let frame = (0..ROOM).step_by(32).rfind(|&offset| whole[offset..].starts_with(b"sqsv")).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[whole[frame + 40] ^ 1], frame as u64 + 40).unwrap();
    let line = refusal(open(&at)).to_string();
    assert!(line.contains("state.1") && line.contains(&format!("byte {frame}")), "{line}");
    assert!(line.contains("--init"), "{line}");
    assert_eq!(last(&at), path, "what is damaged stays for whoever wants to look at it");
}

#[test]
fn a_batch_that_was_not_synced_is_gone_and_all_before_it_is_there() {
    let (at, mut state, mut files) = fresh();
    raise(&mut state, &mut files, 1, 10_000);
    let synced = (state.copy(), fs::read(last(&at)).unwrap());
    // A long frame: a range of its own for each of 200 sections.
    let sections = (0..200).map(|section| SectionId::new(section)..=SectionId::new(section)).collect();
    let owner = Owner { epoch: Epoch { term: 1, version: 2 }, incarnation: 2 };
    ask(&mut state, &mut files, Question::Claim { sections, owner, layout: LAYOUT });
    drop(files);
    let path = last(&at);
    let whole = fs::read(&path).unwrap();
    let changed: Vec<_> =
        (0..whole.len()).step_by(512).filter(|&at| whole[at..at + 512] != synced.1[at..at + 512]).collect();
    assert!(changed.len() > 1, "the frame lies in several sectors");
    for lost in changed {
        let mut torn = whole.clone();
        torn[lost..lost + 512].copy_from_slice(&synced.1[lost..lost + 512]);
        fs::write(&path, torn).unwrap();
        assert_eq!(journal::read(&path, 1).unwrap().state.copy(), synced.0);
    }
    assert_eq!(open(&at).unwrap().0.copy(), synced.0);
}

#[test]
fn files_put_back_from_an_older_copy_are_noticed() {
    let (at, mut state, mut files) = fresh();
    let (path, older) = (last(&at), fs::read(last(&at)).unwrap());
    raise(&mut state, &mut files, 1, 10_000);
    files.note(true).unwrap();
    drop(files);
    let newer = fs::read(&path).unwrap();
    fs::write(&path, &older).unwrap();
    assert!(matches!(refusal(open(&at)), FilesError::RolledBack { .. }));
    fs::write(&path, newer).unwrap();
    drop(open(&at).unwrap());
    fs::remove_file(last(&at)).unwrap();
    let line = refusal(open(&at)).to_string();
    assert!(line.contains("missing, although frame 1 of file 2 was confirmed"), "{line}");
    fs::write(&path, older).unwrap();
    let line = refusal(open(&at)).to_string();
    assert!(line.contains("restored from an older copy"), "{line}");
}

#[test]
fn the_configuration_survives_a_restart() {
    let (at, mut state, mut files) = fresh();
    let lease = std::time::Duration::from_secs(2);
    let members = vec![Member { id: state.id(), name: "s1".to_owned(), addr: "http://s1:1".to_owned() }];
    let uids = 0..=u32::MAX;
    let next = Configuration {
        number: 1,
        members,
        write: 1,
        lease,
        layout: LAYOUT,
        uids,
        taking: None,
        moves: Moves::default(),
    };
    let install = Question::Install { next: Arc::new(next), copy: Arc::default() };
    assert!(state.ask(Moment::default(), &install).change.is_some());
    files.turn(&state).unwrap();
    let seal = Question::Seal { number: 1, ballot: 5 };
    assert!(state.ask(Moment::default(), &seal).change.is_some());
    files.turn(&state).unwrap();
    drop(files);
    let (read, _files) = open(&at).unwrap();
    assert_eq!((read.copy(), read.id()), (state.copy(), state.id()));
    assert_eq!((read.configured().number(), read.configured().ballot), (1, 5));
}

#[test]
fn a_file_of_an_unknown_format_is_refused() {
    let (at, _state, files) = fresh();
    drop(files);
    let path = last(&at);
    let bytes = fs::read(&path).unwrap();
    let (id, mut sequence, mut offset) = (frame::id(&bytes).unwrap(), 0, 0);
    let mut changed = Vec::new();
    while let frame::FoundFrame::Frame { payload, next } = frame::read(&bytes, id, offset, sequence).unwrap()
    {
        let mut payload = payload.to_vec();
        if sequence == 0 {
            // The number of the format is the first field of the head.
            assert_eq!(payload[..2], [0x08, 1]);
            payload[1] = 2;
        }
        frame::write(id, sequence, &payload, &mut changed);
        (offset, sequence) = (next, sequence + 1);
    }
    fs::write(&path, changed).unwrap();
    let line = refusal(open(&at)).to_string();
    assert!(line.contains("has format 2, which this program does not know"), "{line}");
}
