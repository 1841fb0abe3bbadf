//! The files of a store of each version since 0.1.0 are opened whole. Each folder in `../versions` is named for the version that wrote it:
//! `FIXTURES=yes cargo xtask test writes_what_this_version_leaves` does so, when it is released.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

use std::path::{Path, PathBuf};
use std::process::Command;

use seqsvr_core::SectionId;
use seqsvr_core::store::{Ceiling, SectionStore};

use super::process::{RunningReplica, StoreFolder, set_of};
use super::{LAYOUT, claim, owner, sections};

/// Raised in this order; the last of a section counts.
const RAISED: [(u32, u64); 6] =
    [(0, 10_000), (4, 10_000), (0, 20_000), (9, 10_000), (4, 30_000), (0, 40_000)];

/// The ceilings that are stored in the end.
const STORED: [(u32, u64); 3] = [(0, 40_000), (4, 30_000), (9, 10_000)];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/versions")
}

fn tar(arguments: &[&str], archive: &Path, folder: &Path) {
    let mut command = Command::new("tar");
    command.args(arguments).arg(archive).arg("-C").arg(folder);
    if arguments == ["-czf"] {
        command.arg(".");
    }
    assert!(command.status().unwrap().success());
}

fn ceilings(listed: &[(u32, u64)]) -> Vec<Ceiling> {
    listed.iter().map(|&(section, max)| Ceiling { section: SectionId::new(section), max }).collect()
}

async fn holds_all(replica: &RunningReplica, as_owner: u64) {
    let mut found = claim(&replica.member().await, 9, owner(as_owner)).await;
    found.sort_by_key(|one| one.section);
    assert_eq!(found, ceilings(&STORED));
}

#[tokio::test]
async fn the_files_of_a_store_of_each_version_are_opened_whole() {
    let mut opened = 0;
    for version in std::fs::read_dir(fixtures()).unwrap() {
        let place = StoreFolder::new("s1", "");
        std::fs::create_dir(place.files()).unwrap();
        tar(&["-xzf"], &version.unwrap().path().join("store.tar.gz"), &place.files());
        let mut replica = place.start(&[]);
        holds_all(&replica, 2).await;
        replica.kill();
        holds_all(&place.start(&[]), 3).await;
        opened += 1;
    }
    assert!(opened > 0);
}

#[tokio::test]
async fn writes_what_this_version_leaves() {
    if std::env::var_os("FIXTURES").is_none() {
        return;
    }
    let place = StoreFolder::new("s1", "");
    let mut replica = place.start(&["--init"]);
    let set = set_of(&[&replica]).await;
    set.claim(&sections(9), owner(1), LAYOUT).await.unwrap();
    for raised in RAISED {
        assert_eq!(set.raise(owner(1), &ceilings(&[raised])).await, [Ok(raised.1)]);
    }
    replica.kill();
    let folder = fixtures().join(env!("CARGO_PKG_VERSION"));
    std::fs::create_dir_all(&folder).unwrap();
    tar(&["-czf"], &folder.join("store.tar.gz"), &place.files());
}
