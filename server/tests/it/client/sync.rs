//! The Rust client against the real process: devices stay in step, and every call of the interface is understood.

use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::ProgressBar;
use tempfile::TempDir;
use tidemark_client::{
    Account, BatchOutcome, Client, Conversation, Direction, Draft, Entry, Error, Event, Events, FileStore,
    Http, Kind, MemoryStore, Options, RangeEnd, RangeQuery, Recipient,
};
use tidemark_test_support::until::{PATIENCE, until};
use tidemark_trials::chaos::{Database, DevicesRun};
use tidemark_trials::server::Server;
use tokio::process::Command;
use tokio::time::{Instant, interval, timeout};

use crate::support::TestApp;

struct World {
    server: Server,
    http: Http,
    data: TempDir,
}

impl World {
    async fn start() -> World {
        let data = tempfile::tempdir().expect("a folder");
        let server = Server::start(binary(), data.path()).await.expect("starts");
        let http = server.http().expect("an address");
        World { server, http, data }
    }

    async fn person(&self, name: &str) -> (Account, Http) {
        let account = self.http.sign_up(name, "a long enough password").await.expect("signed up");
        let http = self.http.with_token(&account.token);
        (account, http)
    }
}

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tidemark"))
}

fn options() -> Options {
    Options {
        first_retry: Duration::from_millis(20),
        longest_retry: Duration::from_millis(200),
        ..Options::default()
    }
}

struct Device {
    client: Client,
    events: Events,
    store: MemoryStore,
}

impl Device {
    fn start(http: &Http) -> Device {
        let store = MemoryStore::new();
        let (client, events) = Client::start(http.clone(), store.clone(), options());
        Device { client, events, store }
    }

    /// Waits until this many rows of this kind are there.
    async fn rows(&mut self, kind: Kind, count: usize) -> Vec<Entry> {
        loop {
            let mut rows = self.store.rows();
            rows.retain(|row| row.kind == kind);
            if rows.len() >= count {
                return rows;
            }
            self.event().await;
        }
    }

    async fn event(&mut self) -> Event {
        next(&mut self.events).await
    }
}

async fn next(events: &mut Events) -> Event {
    timeout(PATIENCE, events.next()).await.expect("in time").expect("the client goes on")
}

fn texts(rows: &[Entry]) -> Vec<String> {
    rows.iter().filter_map(Entry::text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_reaches_every_device_of_both() {
    let world = World::start().await;
    let ((ann, anns), (bob, bobs)) = (world.person("ann").await, world.person("bob").await);
    let mut devices =
        [Device::start(&anns), Device::start(&anns), Device::start(&bobs), Device::start(&bobs)];
    let sent =
        devices[0].client.send_text(Recipient::User(bob.uid), "hello \"Bob\" \u{1f30a}").await.expect("sent");
    for (at, device) in devices.iter_mut().enumerate() {
        let rows = device.rows(Kind::Message, 1).await;
        assert_eq!(texts(&rows), ["hello \"Bob\" \u{1f30a}"]);
        assert_eq!(rows[0].sender, ann.uid);
        let (own, other) = if at < 2 { (ann.uid, bob.uid) } else { (bob.uid, ann.uid) };
        assert_eq!((rows[0].receiver, rows[0].conversation), (own, Conversation::User(other)));
        if at < 2 {
            assert_eq!((rows[0].message_id, &rows[0].sent_at), (sent.message_id, &sent.sent_at));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_was_away_gets_exactly_what_it_missed() {
    let world = World::start().await;
    let ((_, anns), (bob, bobs)) = (world.person("ann").await, world.person("bob").await);
    let path: PathBuf = world.data.path().join("device");
    let send = async |text: &str| {
        anns.send(&Draft::text(Recipient::User(bob.uid), text)).await.expect("sent");
    };
    let see = async |count: usize| {
        let store = FileStore::open(&path).expect("opens");
        let (client, mut events) = Client::start(bobs.clone(), store, options());
        let mut seen = Vec::new();
        while seen.len() < count {
            if let Event::Rows(rows) = next(&mut events).await {
                seen.extend(texts(&rows));
            }
        }
        drop(client);
        while timeout(PATIENCE, events.next()).await.expect("ends").is_some() {}
        seen
    };
    send("one").await;
    send("two").await;
    assert_eq!(see(2).await, ["one", "two"]);
    send("three").await;
    assert_eq!(see(1).await, ["three"]);
    let rows = FileStore::open(&path).expect("opens").rows().expect("reads");
    assert_eq!(texts(&rows), ["one", "two", "three"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_sent_while_the_server_is_away_arrives_once() {
    let world = World::start().await;
    let ((_, anns), (bob, bobs)) = (world.person("ann").await, world.person("bob").await);
    let (mut ann, mut bobs) = (Device::start(&anns), Device::start(&bobs));
    while !matches!(ann.event().await, Event::InStep { .. }) {}
    let port = world.server.port().expect("a port");
    world.server.kill().await.expect("killed");
    while !matches!(ann.event().await, Event::Offline { .. }) {}
    let sending = tokio::spawn({
        let client = ann.client.clone();
        async move { client.send_text(Recipient::User(bob.uid), "while away").await }
    });
    let _server = Server::start_at(port, binary(), world.data.path()).await.expect("starts again");
    let sent = timeout(PATIENCE, sending).await.expect("in time").expect("no panic").expect("sent");
    let rows = ann.rows(Kind::Message, 1).await;
    assert_eq!((texts(&rows), rows[0].message_id), (vec!["while away".to_owned()], sent.message_id));
    assert_eq!(texts(&bobs.rows(Kind::Message, 1).await), ["while away"]);
}

/// How an installation is saved and restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Its files are copied while it is stopped, and put back.
    Files,
    /// `tidemark backup` while it serves, and `tidemark restore`.
    Backup,
}

/// Files restored from a copy: ids that were handed out since would come again, were it not for `restored` (I14).
#[tokio::test(flavor = "multi_thread")]
async fn after_a_restore_devices_start_over_and_agree_with_the_server() {
    devices_start_over_after(Way::Files).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restored_backup_devices_start_over_and_agree_with_the_server() {
    devices_start_over_after(Way::Backup).await;
}

async fn devices_start_over_after(way: Way) {
    let World { mut server, http, data } = World::start().await;
    let account = http.sign_up("ann", "a long enough password").await.expect("signed up");
    let anns = http.with_token(&account.token);
    let mut device = Device::start(&anns);
    let note =
        async |text: &str| anns.send(&Draft::text(Recipient::User(account.uid), text)).await.expect("sent");
    let port = server.port().expect("a port");
    note("kept").await;
    let (saved, new) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    match way {
        Way::Files => {
            server.stop().await.expect("stopped");
            copy_files(data.path(), new.path());
            server = Server::start_at(port, binary(), data.path()).await.expect("starts");
        }
        Way::Backup => run(&["backup", text_of(saved.path())], data.path()).await,
    }
    let lost = note("lost with the disk").await;
    device.rows(Kind::Message, 2).await;
    server.kill().await.expect("killed");

    match way {
        Way::Files => run(&["restored"], new.path()).await,
        Way::Backup => run(&["restore", text_of(saved.path())], new.path()).await,
    }
    let _server = Server::start_at(port, binary(), new.path()).await.expect("starts");
    let again = note("after the restore").await;
    assert!(again.message_id > lost.message_id, "{} was handed out before", again.message_id);
    while !matches!(device.event().await, Event::Cleared { cursor: 0 }) {}
    assert_eq!(texts(&device.rows(Kind::Message, 2).await), ["kept", "after the restore"]);
    assert_eq!(device.store.rows(), anns.range(&RangeQuery::after(0)).await.expect("rows").rows);
}

/// It would keep what an edit or a recall, which has expired too, has changed.
#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_was_away_for_longer_than_rows_are_kept_starts_over() {
    let app = TestApp::start_with(|config| {
        config.retention.seconds = 60;
        config.storage.flush_rows = 1;
    })
    .await;
    let http = Http::new(&format!("http://{}", app.address)).expect("an address");
    let [anns, bobs] =
        [app.sign_up("ann").await, app.sign_up("bob").await].map(|who| http.with_token(&who.token));
    let bob = bobs.me().await.expect("me").uid;
    let say = async |text: &str| anns.send(&Draft::text(Recipient::User(bob), text)).await.expect("sent");
    let mut device = Device::start(&bobs);
    say("one").await;
    device.rows(Kind::Message, 1).await;
    let Device { client, mut events, store } = device;
    drop(client);
    while timeout(PATIENCE, events.next()).await.expect("ends").is_some() {}
    say("two").await;
    say("three").await;
    app.pass(Duration::from_secs(61)).await;
    let stored = async || bobs.range(&RangeQuery::after(0)).await.expect("rows").rows;
    until("they expire", async || stored().await.len() == 1).await;
    say("four").await;
    let (client, events) = Client::start(bobs.clone(), store.clone(), options());
    let mut device = Device { client, events, store };
    while !matches!(device.event().await, Event::Cleared { cursor: 0 }) {}
    assert_eq!(texts(&device.rows(Kind::Message, 1).await), ["four"]);
    assert_eq!(device.store.rows(), stored().await, "with what is left of the third");
}

/// Runs a command of the program over `data`; it must succeed.
async fn run(args: &[&str], data: &Path) {
    let done = Command::new(binary()).args(args).arg("--data-dir").arg(data).output().await.expect("runs");
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn text_of(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn copy_files(from: &Path, to: &Path) {
    for file in std::fs::read_dir(from).expect("a folder") {
        let path = file.expect("readable").path();
        std::fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copied");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logging_out_everywhere_stops_every_device() {
    let world = World::start().await;
    let (_, anns) = world.person("ann").await;
    let again = world.http.log_in("ann", "a long enough password").await.expect("logged in");
    let mut devices = [Device::start(&anns), Device::start(&world.http.with_token(&again.token))];
    for device in &mut devices {
        while !matches!(device.event().await, Event::InStep { .. }) {}
    }
    anns.log_out_everywhere().await.expect("logged out");
    for device in &mut devices {
        while !matches!(device.event().await, Event::Stopped(Error::LoggedOut)) {}
        assert!(device.events.next().await.is_none());
    }
    let mut late = Device::start(&anns);
    assert!(matches!(late.event().await, Event::Stopped(Error::LoggedOut)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_for_good_is_reported_to_the_sender_alone() {
    let world = World::start().await;
    let (ann, anns) = world.person("ann").await;
    let device = Device::start(&anns);
    let error = device.client.send_text(Recipient::User(4_000_000), "x").await.expect_err("nobody");
    assert!(!error.is_retryable() && error.code().is_some(), "{error}");
    let draft = Draft::text(Recipient::User(ann.uid), "first");
    let first = device.client.send(draft.clone()).await.expect("sent");
    assert_eq!(device.client.send(draft.clone()).await.expect("the first answer"), first);
    let other = Draft::text_as(draft.client_id, draft.to, "other");
    device.client.send(other.clone()).await.expect_err("the same client_id, another body");
    assert_eq!(anns.send(&other).await.expect_err("the same over HTTP").status(), Some(409));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_marker_follows_to_the_other_device() {
    let world = World::start().await;
    let ((ann, anns), (bob, bobs)) = (world.person("ann").await, world.person("bob").await);
    let mut device = Device::start(&bobs);
    anns.send(&Draft::text(Recipient::User(bob.uid), "unread")).await.expect("sent");
    let message = device.rows(Kind::Message, 1).await.remove(0);
    let with_ann = Conversation::User(ann.uid);
    let unread = async || bobs.conversations().await.expect("listed")[0].unread;
    assert_eq!(unread().await, 1);
    bobs.mark_read(with_ann, message.message_id).await.expect("marked");
    let marker = device.rows(Kind::ReadMarker, 1).await.remove(0);
    assert_eq!((marker.conversation, marker.read_to()), (with_ann, Some(message.message_id)));
    assert_eq!(unread().await, 0);
}

/// A short form of `cargo xtask chaos devices`; the long form runs for minutes under a seed of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_people_with_ten_devices_each_end_with_the_same_view() {
    let (seed, data) = (20_261_125, tempfile::tempdir().expect("a folder"));
    let length = Duration::from_secs(10);
    let run = DevicesRun { database: Database::Sqlite, seed, length, bar: ProgressBar::hidden() };
    let summary = run.run(binary(), data.path()).await;
    let summary = summary.unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    let done = summary.done.len() + usize::from(summary.cuts > 20) + usize::from(summary.repeated > 20);
    assert_eq!(done, 18, "too little happened: {summary}");
}

/// Rows are kept for a minute, by a clock that is four times as fast: rows go while they are read, and whole devices miss some.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_people_with_ten_devices_each_end_with_the_same_view_of_what_has_not_expired() {
    let app = TestApp::start_with(|config| {
        config.retention.seconds = 60;
        config.storage.flush_rows = 200;
        config.limits.log_ins_per_address_per_minute = 0;
        config.limits.log_ins_per_name_per_minute = 0;
        config.limits.sends_per_account_per_second = 0;
        config.limits.stored_kib_per_account_per_day = 0;
    })
    .await;
    let (seed, length) = (20_261_128, Duration::from_secs(45));
    let run = DevicesRun { database: Database::Sqlite, seed, length, bar: ProgressBar::hidden() };
    let passing = async {
        let (mut ticks, end) = (interval(Duration::from_millis(100)), Instant::now() + length);
        while Instant::now() < end {
            ticks.tick().await;
            app.pass(Duration::from_millis(400)).await;
        }
    };
    let host = app.address.clone();
    let (summary, ()) = tokio::join!(run.over(std::slice::from_ref(&host), true), passing);
    let summary = summary.unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    assert!(summary.cleared >= 4 && summary.done.len() == 16, "too little happened: {summary}");
    let sent: usize = summary.done.values().sum();
    assert!(summary.rows < sent, "rows have expired: {summary}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_of_the_interface_is_understood() {
    let World { server, http, .. } = &World::start().await;
    http.health().await.expect("up");
    http.ready().await.expect("ready");
    assert!(http.metrics().await.expect("metrics").contains("tidemark_connections"));
    let world = async |name| http.sign_up(name, "a long enough password").await.expect("signed up");
    let (ann, bob, eve) = (world("ann").await, world("bob").await, world("eve").await);
    assert_eq!(http.sign_up("ann", "a long enough password").await.expect_err("taken").status(), Some(409));
    assert_eq!(http.me().await.expect_err("no token").status(), Some(401));
    let anns = http.with_token(&ann.token);
    let me = anns.me().await.expect("me");
    assert_eq!((me.uid, me.name.as_str()), (ann.uid, "ann"));
    let found = anns.users("bo").await.expect("found");
    assert_eq!((found.len(), found[0].uid), (1, bob.uid));
    assert!(!anns.ticket().await.expect("a ticket").is_empty());

    let gid = anns.create_group("three", &[bob.uid]).await.expect("made");
    anns.add_member(gid, eve.uid).await.expect("added");
    let group = anns.group(gid).await.expect("seen");
    assert_eq!((group.gid, group.name.as_str(), group.members.len()), (gid, "three", 3));
    anns.remove_member(gid, eve.uid).await.expect("removed");
    assert_eq!(http.with_token(&eve.token).group(gid).await.expect_err("not hers").status(), Some(404));

    let drafts: Vec<Draft> = (1..=5).map(|n| Draft::text(Recipient::Group(gid), &format!("{n}"))).collect();
    let outcomes = anns.send_batch(&drafts).await.expect("a batch");
    assert!(outcomes.iter().all(|outcome| matches!(outcome, BatchOutcome::Sent(_))), "{outcomes:?}");
    let nobody = Draft::text(Recipient::User(4_000_000), "x");
    let outcomes = anns.send_batch(&[nobody]).await.expect("a batch");
    assert!(matches!(&outcomes[0], BatchOutcome::Refused { error } if !error.retryable), "{outcomes:?}");

    let in_group = Conversation::Group(gid);
    let page = anns.conversation_messages(in_group, None, Some(3)).await.expect("a page");
    assert_eq!((page.rows.len(), page.next_before.is_some()), (3, true));
    let older = anns.conversation_messages(in_group, page.next_before, None).await.expect("the rest");
    assert!(older.rows.iter().all(|row| row.message_id < page.rows[2].message_id));
    let list = anns.conversations().await.expect("listed");
    assert_eq!((list[0].id, list[0].title.as_str(), list[0].unread), (in_group, "three", 0));

    let all = anns.range(&RangeQuery::after(0)).await.expect("all");
    assert!(all.next_start.is_none() && all.consumed.read >= 1);
    let newest = RangeQuery {
        start: RangeEnd::Max,
        end: RangeEnd::Min,
        limit: Some(2),
        direction: Direction::Backward,
    };
    let newest = anns.range(&newest).await.expect("the newest");
    assert_eq!(
        (texts(&newest.rows), newest.next_start.is_some()),
        (vec!["5".to_owned(), "4".to_owned()], true)
    );
    assert_eq!(anns.seq().await.expect("seq").seq, newest.rows[0].message_id);
    anns.log_out().await.expect("logged out");
    assert_eq!(anns.me().await.expect_err("logged out").status(), Some(401));
    assert!(server.pid().is_ok());
}

/// Between two pages of the list a message takes its conversation from those that are to come to those that were read.
#[tokio::test]
async fn no_conversation_is_missing_in_a_list_that_moves_while_it_is_read() {
    const OTHERS: u32 = 30;
    let app = TestApp::start_with(|config| {
        config.limits.conversations = 10;
        config.limits.sends_per_account_per_second = 0;
    })
    .await;
    let http = Http::new(&format!("http://{}", app.address)).expect("an address");
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let (anns, bobs) = (http.with_token(&ann.token), http.with_token(&bob.token));
    let mut gids = Vec::new();
    for n in 0..OTHERS {
        gids.push(bobs.create_group(&format!("group {n}"), &[ann.uid as u32]).await.expect("made"));
    }
    let oldest_first = gids.clone();
    let writing = tokio::spawn(async move {
        // Each time the oldest comes to the top.
        for (n, gid) in oldest_first.into_iter().cycle().enumerate() {
            bobs.send(&Draft::text(Recipient::Group(gid), &format!("{n}"))).await.expect("sent");
        }
    });
    for _ in 0..20 {
        let list = anns.conversations().await.expect("listed");
        let ids: std::collections::HashSet<_> = list.iter().map(|line| line.id).collect();
        let missing: Vec<_> = gids.iter().filter(|gid| !ids.contains(&Conversation::Group(**gid))).collect();
        assert!(missing.is_empty() && ids.len() == list.len(), "missing: {missing:?} of {}", list.len());
    }
    assert!(!writing.is_finished(), "somebody wrote all the time");
    writing.abort();
}
