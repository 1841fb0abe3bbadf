//! A disk that is really full, under the real program: it says so, loses nothing, and goes on when there is room.
//!
//! The data directory is a small file system in a mount namespace of its own, which ends with the program. Needs to be
//! root.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;

use tidemark_client::{Draft, Http, Recipient};
use tidemark_test_support::servers::prometheus::Prometheus;
use tidemark_test_support::until::{PATIENCE, until};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

const RULES: &str = include_str!("../../../docs/operating/alerts.yml");

struct Server {
    process: Child,
    address: String,
    log: PathBuf,
    /// The data directory as the program sees it.
    data: PathBuf,
    _place: tempfile::TempDir,
}

impl Server {
    async fn start() -> Server {
        let place = tempfile::tempdir().expect("a directory");
        let (data, log) = (place.path().join("data"), place.path().join("log"));
        fs::create_dir(&data).expect("made");
        let script = "mount -t tmpfs -o size=32m,mode=700 none \"$2\" && \
            exec \"$1\" serve --listen 127.0.0.1:0 --data-dir \"$2\"";
        let mut process = Command::new("unshare")
            .args(["--mount", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_tidemark")])
            .arg(&data)
            .env("TIDEMARK_LIMITS__SENDS_PER_ACCOUNT_PER_SECOND", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log).expect("made"))
            .kill_on_drop(true)
            .spawn()
            .expect("unshare starts");
        let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let listening = async {
            while let Some(line) = lines.next_line().await.expect("text") {
                if let Some((_, address)) = line.split_once("listening on ") {
                    return address.trim().to_owned();
                }
            }
            panic!("it ended before it listened: {}", fs::read_to_string(&log).unwrap_or_default());
        };
        let address = timeout(PATIENCE, listening).await.expect("it listens in time");
        // `exec` all the way: the process that was spawned is the server.
        let seen = format!("/proc/{}/root{}", process.id().expect("alive"), data.display());
        Server { process, address, log, data: seen.into(), _place: place }
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let answer = reqwest::get(format!("{}{path}", self.address)).await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("a text"))
    }

    async fn metric(&self, name: &str) -> f64 {
        let (_, text) = self.get("/metrics").await;
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        let value = line.and_then(|line| line.rsplit(' ').next()).and_then(|value| value.parse().ok());
        value.unwrap_or_else(|| panic!("{name} is missing in:\n{text}"))
    }
}

#[tokio::test]
async fn a_full_disk_is_reported_by_ready_and_metrics_and_heals_by_itself() {
    let mut server = Server::start().await;
    let http = Http::new(&server.address).expect("an address");
    let ann = http.sign_up("ann", "correct horse battery").await.expect("signed up");
    let http = http.with_token(&ann.token);
    let send = |text: &str| {
        let (http, draft) = (http.clone(), Draft::text(Recipient::User(ann.uid), text));
        async move { http.send(&draft).await }
    };
    let target = server.address.trim_start_matches("http://");
    let prometheus = Prometheus::watching("tidemark", &[target], RULES);
    let tells = |rule| prometheus.tells(rule, target);
    send("before").await.expect("sent");
    assert_eq!(server.get("/ready").await.0, 200);
    assert!(server.metric("tidemark_storage_free_bytes").await > 1e6);

    let mut fill = fs::File::create(server.data.join("fill")).expect("made");
    while fill.write_all(&[7; 4_096]).is_ok() {}
    // Free space in existing files is used up first.
    let long = "x".repeat(7_000);
    let began = Instant::now();
    let mut stored = 0;
    while send(&long).await.is_ok() {
        stored += 1;
        assert!(began.elapsed() < PATIENCE, "the disk never fills");
    }
    let refused = server.metric("tidemark_commits_refused_total").await;
    assert!(refused >= 1.0);
    let (status, text) = server.get("/ready").await;
    assert_eq!(status, 503, "{text}");
    assert!(text.contains("not_ready") && text.contains("full"), "{text}");
    assert_eq!(server.metric("tidemark_storage_ready").await, 0.0);
    assert!(server.metric("tidemark_storage_free_bytes").await < 1e6);
    for _ in 0..50 {
        send(&long).await.expect_err("full");
    }
    let log = fs::read_to_string(&server.log).expect("readable");
    let reported =
        log.lines().filter(|line| line.contains("commit failed") || line.contains("was refused")).count();
    assert!((1..=12).contains(&reported), "{reported} lines:\n{log}");
    for rule in ["TidemarkStorageNotReady", "TidemarkCommitsRefused", "TidemarkDiskAlmostFull"] {
        until(rule, async || {
            send(&long).await.expect_err("full");
            tells(rule)
        })
        .await;
    }

    // An open file keeps its room.
    drop(fill);
    fs::remove_file(server.data.join("fill")).expect("removed");
    let began = Instant::now();
    while server.get("/ready").await.0 != 200 {
        assert!(began.elapsed() < PATIENCE, "it never gets ready again");
    }
    send("after").await.expect("sent");
    until("the alert is over", async || !tells("TidemarkStorageNotReady")).await;
    assert_eq!(server.metric("tidemark_storage_ready").await, 1.0);
    let rows = http.range(&tidemark_client::RangeQuery::after(0)).await.expect("a page").rows;
    assert_eq!(rows.len(), 2 + stored);
    server.process.kill().await.expect("killed");
}

/// What had come counts, nothing of the part that had no room is left, and a file that fits is taken.
#[tokio::test]
async fn an_upload_that_fills_the_disk_is_refused_and_leaves_nothing_half_there() {
    let mut server = Server::start().await;
    let http = Http::new(&server.address).expect("an address");
    let ann = http.sign_up("ann", "correct horse battery").await.expect("signed up");
    let http = http.with_token(&ann.token);
    let refused = http.upload("large", &vec![7; 60 << 20]).await.expect_err("full");
    assert_eq!(refused.code(), Some("no_room"), "{refused}");
    let (mut left, mut objects) = (vec![server.data.join("files")], 0);
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).expect("readable") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                left.push(path);
                continue;
            }
            assert_eq!(fs::metadata(&path).expect("there").len(), 8 << 20, "{}", path.display());
            objects += 1;
        }
    }
    assert!(objects > 0);
    let small = http.upload("small", b"low tide").await.expect("it fits");
    let draft = Draft::text(Recipient::User(ann.uid), "").with_files(&[small]);
    let row = http.send(&draft).await.expect("sent").message_id;
    assert_eq!(http.file(row, small).await.expect("read"), b"low tide");
    server.process.kill().await.expect("killed");
}

/// Wherever the room ends while the files are made.
#[tokio::test]
async fn a_start_on_a_full_disk_says_that_it_is_full() {
    let place = tempfile::tempdir().expect("a directory");
    let mut refused = 0;
    for kib in [32, 64, 100, 200, 300, 400, 500, 600] {
        let script =
            "mount -t tmpfs -o size=\"$3\"k,mode=700 none \"$2\" && exec \"$1\" migrate --data-dir \"$2\"";
        let run = Command::new("unshare")
            .args(["--mount", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_tidemark")])
            .arg(place.path())
            .arg(kib.to_string())
            .env("TIDEMARK_LOG__FILTER", "error")
            .stdin(Stdio::null())
            .output();
        let output = timeout(PATIENCE, run).await.expect("it ends in time").expect("unshare starts");
        if output.status.success() {
            continue;
        }
        refused += 1;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("is full") || said.contains("No space left"), "with {kib} KiB: {said}");
        assert_eq!(said.trim().lines().count(), 1, "{said}");
    }
    assert!(refused > 2, "only {refused} starts were refused");
}
