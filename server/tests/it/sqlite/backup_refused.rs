//! Backups and restores that are interrupted, damaged or wrong: one error, earlier backups stay good, and no server takes half of a
//! restore.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use indicatif::ProgressBar;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use seqsvr_core::file_lock::FileLock;
use tidemark::transfer::backup;
use tokio::process::Command;
use tokio::task::yield_now;

use crate::api::transfer::{World, done, over, refused, text, tidemark};
use crate::sqlite::backup::files;
use crate::sqlite::operation::run;

/// So many bits are flipped, others in each run.
const FLIPS: usize = 200;

/// What `--check` does.
fn check(file: &Path) -> Result<(), String> {
    let checked = backup::chosen(file, None).and_then(|mut whole| whole.check(&ProgressBar::hidden()));
    checked.map_err(|error| error.to_string())
}

/// Two backups, of which the second refers to the first.
async fn two(world: &World) -> (PathBuf, PathBuf, PathBuf) {
    let dir = world.file("backups");
    for n in 0..2 {
        done(&world.home, &["backup", text(&dir)]).await;
        world.app.say(&world.people[0], &world.people[1], 9_000 + n, "more").await;
    }
    let [first, second] = files(&dir).try_into().expect("two");
    (dir, first, second)
}

/// Whether the directory is as a restore that was refused has to leave it.
fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none()) || !dir.exists()
}

#[tokio::test]
async fn a_backup_that_was_cut_or_changed_anywhere_is_refused() {
    let world = World::new().await;
    let (dir, first, second) = two(&world).await;
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    for file in [&first, &second] {
        let good = fs::read(file).expect("readable");
        // The edges of each part, and anywhere.
        let edges = [0, 15, 16, 19, 20, good.len() - 1, good.len() - 33, good.len() - 40, good.len() - 41];
        let anywhere: Vec<usize> = (0..FLIPS).map(|_| random.random_range(0..good.len())).collect();
        for (nth, place) in edges.into_iter().chain(anywhere).enumerate() {
            let mut changed = good.clone();
            changed[place] ^= 1 << random.random_range(0..8);
            fs::write(file, &changed).expect("written");
            assert!(check(file).is_err(), "byte {place} of {}", file.display());
            fs::write(file, &good[..place]).expect("written");
            assert!(check(file).is_err(), "{} cut at {place}", file.display());
            if nth % 50 == 0 {
                let new = world.file(&format!("new-{nth}"));
                let said = refused(&new, &["restore", text(file)]).await;
                assert!(said.contains(".tidemark-backup"), "{said}");
                assert!(is_empty(&new), "nothing is left");
            }
        }
        fs::write(file, &good).expect("written");
    }
    check(&second).expect("good again");

    // The next one does not refer to what is damaged.
    let mut bytes = fs::read(&first).expect("readable");
    bytes[1_000] ^= 1;
    fs::write(&first, &bytes).expect("written");
    let said = refused(&world.home, &["backup", "--check", text(&dir)]).await;
    assert!(said.contains("is damaged (a chunk at byte 20)"), "{said}");
    let said = done(&world.home, &["backup", text(&dir)]).await;
    assert!(said.contains("a full one, since") && said.contains("is damaged"), "{said}");
    done(&world.home, &["backup", "--check", text(&dir)]).await;
}

#[tokio::test]
async fn each_wrong_use_is_one_clear_error() {
    let mut world = World::new().await;
    let (dir, first, second) = two(&world).await;
    let data = world.file("data");
    let new = world.file("new");
    let home = &world.home;

    let said = refused(home, &["restore", text(&dir)]).await;
    assert!(said.contains("is not empty; restore into an empty directory"), "{said}");
    for from in [&dir, &first] {
        let said = refused(&new, &["restore", text(from), "--at", "2020-01-01T00:00:00Z"]).await;
        assert!(said.contains("the first backup in ") && said.contains("not before it"), "{said}");
    }
    let (code, said) = tidemark(&new, &["restore", "-", "--at", "2020-01-01T00:00:00Z"]).await;
    assert!(code == 2 && said.contains("leave out --at"), "{said}");
    let said = refused(&new, &["restore", text(&world.file("data").join("tidemark.db"))]).await;
    assert!(said.contains("is no backup of tidemark"), "{said}");
    let said = refused(&new, &["restore", text(&data)]).await;
    assert!(said.contains("holds no backup"), "{said}");
    let said = refused(&new, &["restore", text(&world.file("nowhere"))]).await;
    assert!(said.contains("nowhere"), "{said}");
    let said = refused(&new, &["backup", text(&dir)]).await;
    assert!(said.contains("no installation in "), "{said}");
    let (code, said) = tidemark(&new, &["restore", text(&dir), "--at", "yesterday"]).await;
    assert!(code == 2 && said.contains("2026-11-28T23:18:30Z"), "{said}");
    assert!(is_empty(&new), "nothing was made");

    let lock = FileLock::take(&dir.join("lock")).expect("free");
    let said = refused(home, &["backup", text(&dir)]).await;
    assert!(said.contains("another backup into "), "{said}");
    drop(lock);

    let good = fs::read(&second).expect("readable");
    let newer = [&good[..16], &2_u32.to_le_bytes(), &good[20..]].concat();
    fs::write(&second, newer).expect("written");
    let said = refused(&new, &["restore", text(&dir)]).await;
    assert!(said.contains("was written by a newer version (format 2, and 1 is known here)"), "{said}");
    fs::write(&second, &good).expect("written");

    let later = dir.join("2999-01-01T000000.000Z.tidemark-backup");
    fs::copy(&second, &later).expect("copied");
    let said = refused(home, &["backup", text(&dir)]).await;
    assert!(said.contains("which is later than now; correct the clock, or move that file away"), "{said}");
    let said = refused(&new, &["restore", text(&dir)]).await;
    assert!(said.contains("its name is that of another moment"), "{said}");
    fs::remove_file(later).expect("removed");

    let aside = world.file("aside");
    fs::rename(&first, &aside).expect("moved");
    let said = refused(&new, &["restore", text(&second)]).await;
    assert!(said.contains(" needs ") && said.contains("which is missing"), "{said}");

    // Another installation: its backups refer to none of these, and none of its files takes the place of one.
    let other = world.file("other");
    drop(over(&other).await);
    let said = refused(&other, &["backup", text(&dir)]).await;
    assert!(said.contains("holds backups of another installation; choose another directory"), "{said}");
    let apart = world.file("apart");
    done(&other, &["backup", text(&apart)]).await;
    let foreign = files(&apart).pop().expect("one");
    fs::copy(&foreign, &first).expect("copied");
    let said = refused(&new, &["restore", text(&second)]).await;
    assert!(said.contains("is of another installation or series"), "{said}");
    fs::rename(&aside, &first).expect("moved back");
    assert!(is_empty(&new), "nothing was made");
    world.app.stop().await;
}

#[tokio::test]
async fn an_installation_in_postgresql_is_referred_to_its_own_tools() {
    let place = tempfile::tempdir().expect("a directory");
    let url = "postgres://tidemark@127.0.0.1:1/tidemark";
    for args in [["backup", "dir"], ["restore", "dir"]] {
        let args = [&args[..], &["--database-url", url]].concat();
        let (code, _, said) = run(place.path(), &args).await;
        assert!(code == 1 && said.contains("its own tools") && said.contains("docs/OPERATING.md"), "{said}");
    }
}

/// Needs to be root, as the tests of a full disk.
#[tokio::test]
async fn a_disk_with_too_little_room_is_refused_before_anything_is_written() {
    let world = World::new().await;
    let dir = world.file("backups");
    done(&world.home, &["backup", text(&dir)]).await;
    let small = world.file("small");
    fs::create_dir(&small).expect("made");
    let script = "mount -t tmpfs -o size=64k none \"$2\" && shift 2 && exec \"$@\"";
    let on_small = async |args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, "sh", "-"]).arg(&small);
        command.arg(env!("CARGO_BIN_EXE_tidemark")).args(args).stdin(Stdio::null());
        let output = command.output().await.expect("unshare starts");
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    let data = world.file("data");
    for args in [
        ["backup", text(&small), "--data-dir", text(&data)],
        ["restore", text(&dir), "--data-dir", text(&small)],
    ] {
        let (code, said) = on_small(&args).await;
        assert!(code == Some(1) && said.contains("MiB of free space, and "), "{said}");
    }
}

#[tokio::test]
async fn what_cannot_be_written_or_read_leaves_no_part() {
    let mut world = World::new().await;
    world.app.stop().await;
    let (data, dir) = (world.file("data"), world.file("backups"));
    let file = data.join("tidemark.db");
    let length = fs::metadata(&file).expect("there").len();
    // The copy of the database has just as many bytes; the backup has the rest as well. The signal is ignored: writing fails.
    let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$@\"", length / 512 + 1);
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_tidemark"), "backup", text(&dir), "--data-dir"]);
    let output = command.arg(&data).stdin(Stdio::null()).output().await.expect("runs");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.code() == Some(1) && said.contains(".part: File too large"), "{said}");
    assert!(!ends_with(&dir, ".part") && files(&dir).is_empty(), "it was removed");

    let full = fs::File::options().write(true).open("/dev/full").expect("there");
    let child =
        program(&["backup", "-"], &data).stdout(full).stderr(Stdio::piped()).spawn().expect("started");
    let output = child.wait_with_output().await.expect("ended");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.code() == Some(1) && said.contains("standard output: No space left"), "{said}");

    let mut bytes = fs::read(&file).expect("readable");
    let last = bytes.len() - 2_000;
    bytes[last] ^= 1;
    fs::write(&file, bytes).expect("written");
    let said = refused(&world.home, &["backup", text(&dir)]).await;
    assert!(said.contains("tidemark.db cannot be backed up: "), "{said}");
    assert!(!ends_with(&dir, ".part") && files(&dir).is_empty(), "no backup of what is damaged");
}

/// Kills `command` when `dir` has what `is_reached` looks for, or lets it end.
async fn kill_when(mut command: Command, is_reached: impl Fn() -> bool) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
    while child.try_wait().expect("waited").is_none() && !is_reached() {
        yield_now().await;
    }
    // It may have ended just now.
    _ = child.kill().await;
}

fn program(args: &[&str], data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(args).arg("--data-dir").arg(data).stdin(Stdio::null()).kill_on_drop(true);
    command
}

fn ends_with(dir: &Path, ending: &str) -> bool {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().to_string_lossy().ends_with(ending))
}

#[tokio::test]
async fn a_backup_that_is_killed_leaves_the_earlier_ones_good_and_a_part_that_the_next_one_removes() {
    let world = World::new().await;
    let (dir, ..) = two(&world).await;
    let left_over = dir.join("2026-01-01T000000.000Z.tidemark-backup.part");
    fs::write(&left_over, "a part").expect("written");
    for round in 0..12 {
        let before = files(&dir).len();
        let args = ["backup", text(&dir), if round % 2 == 0 { "--full" } else { "--check" }];
        let args = if round % 2 == 0 { &args[..] } else { &args[..2] };
        kill_when(program(args, &world.file("data")), || match round % 3 {
            0 => ends_with(&dir, "copy.part"),
            1 => ends_with(&dir, "backup.part"),
            _ => files(&dir).len() > before,
        })
        .await;
        for file in files(&dir) {
            check(&file).expect("good");
        }
    }
    done(&world.home, &["backup", text(&dir)]).await;
    assert!(!ends_with(&dir, ".part"), "the next one removes them");
}

#[tokio::test]
async fn a_restore_that_is_killed_leaves_what_no_server_takes() {
    let world = World::new().await;
    let (dir, ..) = two(&world).await;
    for (nth, stage) in
        ["restore.part", "ids.db", "journal.0.dat", "journal.1.dat", "tidemark.db", "sequence.db"]
            .into_iter()
            .enumerate()
    {
        let new = world.file(&format!("new-{nth}"));
        kill_when(program(&["restore", text(&dir)], &new), || ends_with(&new, stage)).await;
        let (code, said) = tidemark(&new, &["migrate"]).await;
        let is_told = said.contains("`tidemark restore` again") || said.contains("`tidemark restored`");
        // Quicker than the test: it was done.
        assert!(code == 0 || (code == 1 && is_told), "{stage}: {said}");
    }
}
