//! Power cut: what was acknowledged is there when everything unsynced is gone (I3).
//!
//! The real program runs under a preloaded shim (`power_cut/shim.c`) that keeps, beside the data directory, what a disk
//! would still hold. It is killed in mid-load, its directory replaced by that, and started again. The second test is
//! the proof that the first can fail: the same, with a disk that only pretends to sync from some moment on.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;
use tidemark_client::{Draft, Entry, Http, RangeQuery, Recipient};
use tidemark_test_support::until::PATIENCE;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;
use uuid::Uuid;

mod retention;
mod tables;

const PEOPLE: usize = 6;
const SENDERS: usize = 24;
const PASSWORD: &str = "correct horse battery";

/// A directory for the data, one for what survives, and the disk between them.
struct Disk {
    directory: TempDir,
    shim: PathBuf,
}

impl Disk {
    /// Compiles the shim; the C compiler is the one that Rust links with.
    fn new() -> Disk {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let shim = directory.path().join("shim.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/power_cut/shim.c");
        let compiled = std::process::Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
            .args([&shim, &source])
            .status()
            .expect("a C compiler");
        assert!(compiled.success(), "the shim does not compile");
        for name in ["data", "shadow"] {
            std::fs::create_dir(directory.path().join(name)).expect("made");
        }
        Disk { directory, shim }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// From now on syncs succeed and do nothing.
    fn begin_to_lie(&self) {
        std::fs::write(self.path("lie"), "").expect("written");
    }

    /// Drops everything that was not synced.
    fn lose_power(&self) {
        std::fs::rename(self.path("data"), self.path("lost")).expect("moved away");
        std::fs::rename(self.path("shadow/tree"), self.path("data")).expect("something was synced");
    }

    async fn serve_on_it(&self) -> Server {
        self.serve_with(&[]).await
    }

    /// The same with these settings, named as in the environment.
    async fn serve_with(&self, settings: &[(&'static str, PathBuf)]) -> Server {
        let shim = [
            ("LD_PRELOAD", self.shim.clone()),
            ("POWER_CUT_ROOT", self.path("data")),
            ("POWER_CUT_SHADOW", self.path("shadow")),
            ("POWER_CUT_LIE", self.path("lie")),
        ];
        Server::start(&self.path("data"), &[&shim[..], settings].concat()).await
    }

    async fn serve_what_is_left(&self) -> Server {
        Server::start(&self.path("data"), &[]).await
    }
}

/// A running `tidemark serve`.
struct Server {
    process: Child,
    http: Http,
}

impl Server {
    async fn start(data: &Path, environment: &[(&str, PathBuf)]) -> Server {
        let mut process = Command::new(env!("CARGO_BIN_EXE_tidemark"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data)
            .env("TIDEMARK_LIMITS__SIGN_UPS_PER_ADDRESS_PER_MINUTE", "0")
            .env("TIDEMARK_LIMITS__LOG_INS_PER_NAME_PER_MINUTE", "0")
            .env("TIDEMARK_LIMITS__SENDS_PER_ACCOUNT_PER_SECOND", "0")
            .env("TIDEMARK_LOG__FILTER", "warn")
            .envs(environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let listening = async {
            while let Some(line) = lines.next_line().await.expect("text") {
                if let Some((_, address)) = line.split_once("listening on ") {
                    return address.trim().to_owned();
                }
            }
            panic!("it ended before it listened: {:?}", process.wait().await);
        };
        let address = timeout(PATIENCE, listening).await.expect("it listens in time");
        // It says more, and somebody has to read it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Server { process, http: Http::new(&address).expect("an address") }
    }

    async fn kill(mut self) {
        self.process.kill().await.expect("killed");
    }

    /// Asks it to stop.
    async fn terminate(&self) {
        let pid = self.process.id().expect("alive").to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().await.expect("run").success());
    }

    /// Waits for the end that it was asked for.
    async fn ended(mut self) {
        let ended = timeout(PATIENCE, self.process.wait()).await.expect("it stops in time").expect("waited");
        assert!(ended.success(), "{ended}");
    }
}

/// A send that was answered.
#[derive(Clone)]
struct Acknowledged {
    sender: usize,
    receiver: usize,
    draft: Draft,
    message_id: u64,
}

/// Somebody with an account: the uid, and calls in their name.
type Person = (u32, Http);

async fn sign_up(server: &Http) -> Vec<Person> {
    let mut people = Vec::new();
    for n in 0..PEOPLE {
        let account = server.sign_up(&format!("person {n}"), PASSWORD).await.expect("signed up");
        people.push((account.uid, server.with_token(&account.token)));
    }
    people
}

async fn log_in(server: &Http) -> Vec<Person> {
    let mut people = Vec::new();
    for n in 0..PEOPLE {
        let account = server.log_in(&format!("person {n}"), PASSWORD).await.expect("the account is there");
        people.push((account.uid, server.with_token(&account.token)));
    }
    people
}

/// Sends from many at once until the server is gone; each answer goes into the channel.
fn load(people: &[Person], text: &'static str) -> mpsc::Receiver<Acknowledged> {
    let (answers, acknowledged) = mpsc::channel(SENDERS);
    for n in 0..SENDERS {
        let (sender, receiver) = (n % PEOPLE, (n + 1 + n / PEOPLE) % PEOPLE);
        let (http, to, answers) = (people[sender].1.clone(), people[receiver].0, answers.clone());
        tokio::spawn(async move {
            for at in 0u128.. {
                let client_id = Uuid::from_u128(((n as u128) << 64) | at);
                let draft = Draft::text_as(client_id, Recipient::User(to), &format!("{n} says {at}{text}"));
                let Ok(sent) = http.send(&draft).await else { return };
                let message_id = sent.message_id;
                if answers.send(Acknowledged { sender, receiver, draft, message_id }).await.is_err() {
                    return;
                }
            }
        });
    }
    acknowledged
}

/// Every row of the caller, each of them once and in order.
async fn inbox(http: &Http) -> Vec<Entry> {
    let mut rows: Vec<Entry> = Vec::new();
    loop {
        let cursor = rows.last().map_or(0, |row| row.message_id);
        let page = http.range(&RangeQuery::after(cursor)).await.expect("a page");
        assert!(page.rows.is_sorted_by_key(|row| row.message_id), "rows come in order");
        rows.extend(page.rows);
        if page.next_start.is_none() {
            return rows;
        }
    }
}

/// The acknowledged messages that are missing from the sender's or the receiver's inbox. Panics on one that is there
/// twice or under another number.
async fn missing(people: &[Person], acknowledged: &[Acknowledged]) -> usize {
    let mut copies: Vec<HashMap<(u32, Uuid), Entry>> = Vec::new();
    for (_, http) in people {
        let mut known = HashMap::new();
        for row in inbox(http).await {
            // What is left of a message that expired has no name.
            let Some(client_id) = row.client_id else { continue };
            let name = (row.sender, client_id);
            let twice = known.insert(name, row);
            assert!(twice.is_none(), "{name:?} is there twice");
        }
        copies.push(known);
    }
    let mut missing = 0;
    for sent in acknowledged {
        let name = (people[sent.sender].0, sent.draft.client_id);
        match (copies[sent.sender].get(&name), copies[sent.receiver].get(&name)) {
            (Some(own), Some(other)) => {
                assert_eq!(own.message_id, sent.message_id, "the number that was answered");
                assert_eq!(
                    (own.body.get(), other.body.get()),
                    (sent.draft.body.get(), sent.draft.body.get())
                );
            }
            _ => missing += 1,
        }
    }
    missing
}

/// A new message has a larger number than every one that was answered (I6).
async fn numbers_go_on(people: &[Person], acknowledged: &[Acknowledged]) {
    for (n, (uid, http)) in people.iter().enumerate() {
        let note = Draft::text_as(Uuid::from_u128(u128::MAX), Recipient::User(*uid), "after the power cut");
        let next = http.send(&note).await.expect("sent").message_id;
        let answered = acknowledged.iter().filter(|sent| sent.sender == n).map(|sent| sent.message_id);
        assert!(Some(next) > answered.max(), "person {n} got {next}");
    }
}

/// How far the server under load stops before the power goes.
#[derive(Clone, Copy)]
enum End {
    /// Nothing.
    None,
    /// A stop to its end: everything is moved from the journal into the tables.
    Stopped,
    /// A stop: the power goes when the last request was answered, and the moving begins.
    Stopping,
}

async fn everything_acknowledged_survives(end: End) {
    let disk = Disk::new();
    let server = disk.serve_on_it().await;
    let people = sign_up(&server.http).await;
    let mut answers = load(&people, "");
    let mut acknowledged = Vec::new();
    while acknowledged.len() < 600 {
        acknowledged.push(answers.recv().await.expect("the load goes on"));
    }
    let rest = async {
        while let Some(answer) = answers.recv().await {
            acknowledged.push(answer);
        }
    };
    match end {
        End::None => {
            server.kill().await;
            rest.await;
        }
        End::Stopped | End::Stopping => {
            server.terminate().await;
            rest.await;
            if matches!(end, End::Stopped) { server.ended().await } else { server.kill().await }
        }
    }
    disk.lose_power();
    all_is_there(&disk, &acknowledged).await;
}

/// Starts on what survived.
async fn all_is_there(disk: &Disk, acknowledged: &[Acknowledged]) {
    let server = disk.serve_what_is_left().await;
    let people = log_in(&server.http).await;
    // Copies that were still owed are delivered after the start (I5).
    let all_there = async { while missing(&people, acknowledged).await > 0 {} };
    if timeout(PATIENCE, all_there).await.is_err() {
        panic!("{} of {} are missing", missing(&people, acknowledged).await, acknowledged.len());
    }
    // A repetition is known as well, and gets the answer that it got before (I4).
    let last = acknowledged.last().expect("many");
    let again = people[last.sender].1.send(&last.draft).await.expect("repeated");
    assert_eq!(again.message_id, last.message_id);
    numbers_go_on(&people, acknowledged).await;
}

/// The segments of the log have several turns before the power goes.
#[tokio::test]
async fn what_was_acknowledged_survives_when_room_of_the_log_is_used_again() {
    let disk = Disk::new();
    let server = disk.serve_with(&[("TIDEMARK_STORAGE__FLUSH_ROWS", "100".into())]).await;
    let people = sign_up(&server.http).await;
    let text: &'static str = "x".repeat(6_000).leak();
    let mut answers = load(&people, text);
    let mut acknowledged = Vec::new();
    while acknowledged.len() < 3_000 {
        acknowledged.push(answers.recv().await.expect("the load goes on"));
    }
    server.kill().await;
    while let Some(answer) = answers.recv().await {
        acknowledged.push(answer);
    }
    let length = |name| std::fs::metadata(disk.path("data").join(name)).expect("there").len() as usize;
    let log = length("tidemark.journal.0.dat") + length("tidemark.journal.1.dat");
    let sent = acknowledged.len() * text.len();
    assert!(log < sent * 2 / 3, "{log} bytes for {sent}: nothing was written over");
    disk.lose_power();
    all_is_there(&disk, &acknowledged).await;
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_power_cut() {
    everything_acknowledged_survives(End::None).await;
}

#[tokio::test]
async fn what_was_moved_by_a_stop_survives_a_power_cut_after_it() {
    everything_acknowledged_survives(End::Stopped).await;
}

#[tokio::test]
async fn a_power_cut_in_the_middle_of_a_stop_loses_nothing() {
    everything_acknowledged_survives(End::Stopping).await;
}

#[tokio::test]
async fn a_disk_that_only_pretends_to_sync_is_found_out() {
    let disk = Disk::new();
    let server = disk.serve_on_it().await;
    let people = sign_up(&server.http).await;
    let mut answers = load(&people, "");
    let mut acknowledged = Vec::new();
    while acknowledged.len() < 600 {
        if acknowledged.len() == 200 {
            disk.begin_to_lie();
        }
        acknowledged.push(answers.recv().await.expect("the load goes on"));
    }
    server.kill().await;
    disk.lose_power();

    let server = disk.serve_what_is_left().await;
    let people = log_in(&server.http).await;
    let in_earnest = async { while missing(&people, &acknowledged[..200]).await > 0 {} };
    timeout(PATIENCE, in_earnest).await.expect("what was synced in earnest is there");
    assert_ne!(missing(&people, &acknowledged).await, 0, "what was never written has survived");
}
