//! The bytes and names of backups, and what is refused in a manifest.

use std::collections::HashMap;
use std::path::Path;

use indicatif::ProgressBar;
use uuid::Uuid;

use super::format::{
    CHUNK, Chunk, FileRecord, HEADER, Manifest, Role, Sum, TRAILER, moment_of, name_of, trailer,
};
use super::writer::Writer;
use crate::domain::Timestamp;

fn about() -> Manifest {
    Manifest {
        program: "0.2.0 (commit unknown)".to_owned(),
        migration: 7,
        installation: Uuid::from_u128(1),
        history: Uuid::from_u128(2),
        moment: "2026-11-28T23:18:30.5Z".to_owned(),
        series: "2026-11-28T23:18:30.5Z".to_owned(),
        sources: Vec::new(),
        files: Vec::new(),
        sum: Sum::of(&[]),
    }
}

/// The bytes of a backup of these files, and its manifest.
fn written(files: &[(Role, &[u8])], known: HashMap<Sum, (u32, u64)>, about: Manifest) -> (Vec<u8>, Manifest) {
    let mut writer = Writer::begin(Vec::new(), known).expect("begun");
    for (role, bytes) in files {
        writer.file(*role, *bytes, &ProgressBar::hidden()).expect("written");
    }
    let bytes = writer.finish(about).expect("written");
    let length =
        bytes.iter().rev().skip(TRAILER - 8).take(8).fold(0, |length, byte| length << 8 | usize::from(*byte));
    let end = bytes.len() - TRAILER;
    let manifest = serde_json::from_slice(&bytes[end - length..end]).expect("a manifest");
    (bytes, manifest)
}

/// Backups that were made are read by every later version.
#[test]
fn the_bytes_of_a_backup_stay_as_they_are() {
    let (bytes, _) = written(&[(Role::Database, b"pages"), (Role::Journal, b"")], HashMap::new(), about());
    let manifest = "{\"program\":\"0.2.0 (commit unknown)\",\"migration\":7,\
        \"installation\":\"00000000-0000-0000-0000-000000000001\",\
        \"history\":\"00000000-0000-0000-0000-000000000002\",\"moment\":\"2026-11-28T23:18:30.5Z\",\
        \"series\":\"2026-11-28T23:18:30.5Z\",\"sources\":[],\"files\":[{\"role\":\"database\",\"length\":5,\
        \"chunks\":[[\"bfa062de040f55a15ce910800757061ec3d2fc31d6b7c72d9fa02b75a9ad1133\",0,20]]},\
        {\"role\":\"journal\",\"length\":0,\"chunks\":[]}],\
        \"sum\":\"660ef97a6a65e5fac95d2ab70db76cf7de5ef6454db897575bf81fc9cd1cd413\"}";
    let expected = [b"TIDEMARK-BACKUP\n\x01\0\0\0pages", manifest.as_bytes(), &trailer(manifest.as_bytes())];
    assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&expected.concat()));
    assert_eq!(bytes, expected.concat());
    assert_eq!(trailer(b"{}")[..12], [2, 0, 0, 0, 0, 0, 0, 0, 0x44, 0x13, 0x6f, 0xa3]);
}

#[test]
fn a_chunk_that_is_known_is_not_written_again_and_a_source_of_none_is_left_out() {
    let chunk = |byte| vec![byte; CHUNK];
    let known = [(Sum::of(&chunk(1)), (2, 900)), (Sum::of(&chunk(9)), (1, 20))].into();
    let sources = ["first", "second"].map(str::to_owned).into();
    let file = [chunk(1), chunk(2), chunk(2), vec![3; 10]].concat();
    let (bytes, manifest) =
        written(&[(Role::Database, &file), (Role::Journal, &[])], known, Manifest { sources, ..about() });
    assert_eq!(manifest.sources, ["second"]);
    let own = HEADER as u64;
    let places: Vec<_> = manifest.files[0].chunks.iter().map(|Chunk(_, source, at)| (*source, *at)).collect();
    assert_eq!(places, [(1, 900), (0, own), (0, own), (0, own + CHUNK as u64)]);
    assert!(bytes.len() < 2 * CHUNK, "{}", bytes.len());
}

#[test]
fn names_are_in_the_order_of_the_moments_and_nothing_else_is_one() {
    let name = |ms| name_of(Timestamp(1_795_261_438_000 + ms));
    assert_eq!(name(40), "2026-11-21T114358.040Z.tidemark-backup");
    assert!(name(0) < name(9) && name(9) < name(40) && name(40) < name(400) && name(400) < name(1_000));
    for ms in [0, 9, 40, 400, 1_000] {
        assert_eq!(moment_of(Path::new(&name(ms))), Some(Timestamp(1_795_261_438_000 + ms)));
    }
    for other in [
        "",
        "lock",
        "2026-11-21T114358.040Z",
        "2026-11-21T114358.04Z.tidemark-backup",
        "../2026-11-21T114358.040Z.tidemark-backup",
    ] {
        assert_eq!(moment_of(Path::new(other)), None, "{other}");
    }
}

#[test]
fn a_manifest_that_does_not_fit_to_its_file_is_refused() {
    let file = |role, length, chunks: &[(u32, u64)]| {
        let chunks = chunks.iter().map(|(source, at)| Chunk(Sum::of(&[]), *source, *at)).collect();
        FileRecord { role, length, chunks }
    };
    let journal = || file(Role::Journal, 0, &[]);
    let end = 20 + CHUNK as u64;
    let check = |files| Manifest { files, sources: vec!["one".to_owned()], ..about() }.check(end);
    assert_eq!(check(vec![file(Role::Database, CHUNK as u64, &[(0, 20)]), journal()]), Ok(()));
    assert_eq!(check(vec![file(Role::Database, 5, &[(1, u64::MAX - 5)]), journal()]), Ok(()));
    for wrong in [
        vec![file(Role::Database, 5, &[(0, 20)])],
        vec![journal()],
        vec![file(Role::Database, 5, &[(0, 20)]), journal(), journal()],
        vec![file(Role::Database, 5, &[(0, 19)]), journal()],
        vec![file(Role::Database, 5, &[(0, end - 4)]), journal()],
        vec![file(Role::Database, 5, &[(2, 20)]), journal()],
        vec![file(Role::Database, 5, &[(0, u64::MAX - 1)]), journal()],
        vec![file(Role::Database, 5, &[]), journal()],
        vec![file(Role::Database, u64::MAX, &[(0, 20)]), journal()],
    ] {
        assert!(check(wrong.clone()).is_err(), "{wrong:?}");
    }
}
