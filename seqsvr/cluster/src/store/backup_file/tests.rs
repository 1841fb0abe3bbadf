//! The contents that a file keeps, and the files that are refused.

use std::ops::RangeInclusive;

use std::os::unix::fs::MetadataExt as _;

use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Also with a good checksum: an editor of the file can renew that by hand.
    #[test]
    fn any_text_is_a_backup_or_refused(
        from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>(),
        piece in prop_oneof![any::<String>(), "[0-9]{0,22}", r#"[-0-9:"{}\[\],a-z\n]{0,9}"#],
    ) {
        let whole = file().render();
        let end = whole.trim_end().rfind('\n').expect("lines") + 1;
        let mut body = whole[..end].to_owned();
        let (from, to) = (from.index(body.len()), to.index(body.len()));
        body.replace_range(from.min(to)..from.max(to), &piece);
        prop_assert!(parse(&body).is_err(), "without its checksum");
        let sealed = format!("{body}{}", json(&BackupLine::Sha256(checksum(&body))));
        if let Ok(read) = parse(&sealed) {
            prop_assert_eq!(&parse(&read.render()).expect("what was read is written and read again"), &read);
            let apart = |pair: &[(RangeInclusive<SectionId>, u64)]| pair[0].0.end() < pair[1].0.start();
            prop_assert!(read.backup.ceilings.windows(2).all(apart), "each section has one ceiling");
        }
    }
}

fn file() -> BackupFile {
    let section = |first, last| SectionId::new(first)..=SectionId::new(last);
    let epoch = Epoch { term: 256, version: 3 };
    let table = Table {
        set: 3,
        version: epoch,
        section_size: 100_000,
        uids: 0..=u32::MAX,
        nodes: vec![Node { name: "a".to_owned(), addr: "http://a:1".to_owned(), state: NodeState::Drained }],
        assignments: vec![Assignment {
            sections: section(0, 9),
            node: 0,
            home: 0,
            incarnation: u64::MAX,
            epoch,
        }],
    };
    let moves = Moves {
        given: vec![Given { uids: 0..=99_999, to: 2, number: 3 }],
        taken: vec![Move { from: 1, number: u64::MAX }],
    };
    let backup = Backup {
        moves,
        layout: Some(Layout { section_size: 100_000, step: 10_000 }),
        promised: 512,
        newest: epoch,
        floor: 7,
        table: Some(Arc::new(table)),
        ceilings: vec![(section(0, 4), 10_000), (section(9, 9), MAX_CEILING)],
    };
    BackupFile { cluster: "test".to_owned(), set: 3, moved: None, backup }
}

#[test]
fn the_text_stays_as_it_is() {
    let moved = BackupFile { moved: Some(Given { uids: 500_000..=999_999, to: 1, number: 4 }), ..file() };
    assert_eq!(file().render(), include_str!("whole.backup"));
    assert_eq!(parse(&moved.render()).as_ref(), Ok(&moved));
    assert_eq!(moved.render(), include_str!("moved.backup"));
}

#[test]
fn a_file_is_read_as_it_was_written_and_only_by_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set0.backup");
    file().write(&path).unwrap();
    file().write(&path).unwrap();
    assert_eq!(BackupFile::read(&path).unwrap(), file());
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_cut_or_changed_file_is_refused() {
    let whole = file().render();
    assert!(parse(&whole).is_ok());
    for cut in 0..whole.len() - 1 {
        assert!(parse(&whole[..cut]).is_err(), "cut at {cut}");
    }
    let changed = parse(&whole.replace("10000\"", "10001\"")).unwrap_err();
    assert!(changed.contains("its checksum is wrong"), "{changed}");
    let other = parse(&whole.replace("\"version\":1,\"cluster\"", "\"version\":3,\"cluster\"")).unwrap_err();
    assert!(other.contains("version 3, which this program does not know"), "{other}");
    assert_eq!(parse("{}\n").unwrap_err(), "it is not a backup of seqsvr");
}
