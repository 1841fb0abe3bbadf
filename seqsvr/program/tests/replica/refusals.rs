//! Files and configurations that do not belong together: each is refused in one line that says what to do.

use std::fs;
use std::path::Path;

use crate::process::{StoreFolder, refusal, start};

#[test]
fn files_of_another_replica_or_layout_are_refused() {
    let place = StoreFolder::new("s1", "set = 0\nsection_size = 100000\nstep = 10000");
    assert!(place.start(&["--init"]).stop().success());
    let whose = "correct directory, or cluster, set and name";
    let layout = "set section_size = 100000 and step = 10000";
    let others = [
        ("cluster = \"test\"", "cluster = \"other\"", whose),
        ("name = \"s1\"", "name = \"s2\"", whose),
        ("set = 0", "set = 3", whose),
        ("section_size = 100000", "section_size = 50000", layout),
        ("step = 10000", "step = 5000", layout),
    ];
    for (from, to, says) in others {
        let line = refusal(&place.altered(from, to), &[]);
        assert!(line.contains("state.1") && line.contains(says), "{line}");
    }
    assert!(place.start(&[]).stop().success());
}

#[test]
fn damaged_files_are_named_and_not_served_from() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 4] = [
        ("the checksum of a frame is wrong", |file| {
            let mut bytes = fs::read(file).unwrap();
            bytes[100] ^= 1;
            fs::write(file, bytes).unwrap();
        }),
        ("its header is not the header of a replica's file", |file| {
            fs::write(file, b"something else").unwrap()
        }),
        ("the file is cut short", |file| fs::write(file, &fs::read(file).unwrap()[..100]).unwrap()),
        ("is missing", |file| fs::remove_file(file).unwrap()),
    ];
    for (what, damage) in damages {
        let place = StoreFolder::new("s1", "");
        assert!(place.start(&["--init"]).stop().success());
        damage(&place.files().join("state.1"));
        let line = refusal(&place, &[]);
        let says = [
            what,
            "state.1",
            "it is not served from. Move the files away, start once with --init, and run `seqsvr store replace",
        ];
        assert!(says.iter().all(|says| line.contains(says)), "{line}");
    }
}

#[test]
fn roles_that_mean_other_sections_or_another_cluster_say_so_once() {
    let place = StoreFolder::new("s1", "");
    let store = place.start(&["--init"]);
    let folder = tempfile::tempdir().unwrap();
    let replicas = format!("replicas = [{:?}]", store.addr);
    let alloc = |cluster: &str, keys: &str| {
        let text = format!(
            "cluster = {cluster:?}\nname = \"a1\"\ndirectory = \"a1\"\n[[sets]]\n{keys}\n[sets.stores]\n{replicas}\n"
        );
        start("alloc", folder.path(), &text)
    };
    let foreign = alloc("other", "").logged_until("the caller wants Set 0 of cluster other");
    assert!(foreign[0].contains("correct its cluster, Set or replicas"), "{foreign:?}");

    // It is asked to serve by an arbiter, and cannot.
    let another_step = alloc("test", "step = 77");
    let arbiter = |section_size: u32| {
        let text = format!(
            "cluster = \"test\"\nnumber = 0\n[set]\nsection_size = {section_size}\n[timing]\nprobe_every_ms = 50\n\
             [stores]\n{replicas}\n[[allocators]]\nname = \"a1\"\naddr = {:?}\n",
            another_step.addr
        );
        start("arbiter", folder.path(), &text)
    };
    let refused = arbiter(50_000).logged_until("but [set] of this file has 50000 and 10000; set the same");
    let reported = refused.iter().filter(|line| line.contains("was made with section_size = 100000")).count();
    assert_eq!(reported, 1, "{refused:?}");
    let _arbiter = arbiter(100_000);
    let unclaimed = another_step.logged_until("set section_size = 100000 and step = 10000");
    let reported = unclaimed.iter().filter(|line| line.contains("but this role's file has")).count();
    assert_eq!(reported, 1, "{unclaimed:?}");
}
