//! Health, metrics, stopping; and the program itself, from its command line to its exit code.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::support::{PATIENCE, TestApp, texts};

#[tokio::test]
async fn health_readiness_and_metrics_are_reported() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    app.say(&ann, &ann, 1, "hi").await;
    let mut socket = app.socket(&ann).await;
    let seq = socket.expect("welcome").await["seq"].as_u64().expect("a number");
    for cursor in [0, seq, seq] {
        socket.heartbeat(cursor).await;
        socket.next().await.expect("an answer");
    }
    let get = async |path: &str| app.send(app.request(Method::GET, path)).await;
    get("/health").await.ok(200);
    get("/ready").await.ok(200);
    let metrics = get("/metrics").await.text;
    for line in [
        "tidemark_messages_total{path=\"http\"} 1",
        "tidemark_http_requests_total{method=\"POST\",route=\"/api/v1/messages\",status=\"201\"} 1",
        "tidemark_heartbeats_total{result=\"alive\"} 2",
        "tidemark_heartbeats_total{result=\"entries\"} 1",
        "tidemark_send_seconds_count 1",
        "tidemark_connections 1",
        "tidemark_queue_depth{queue=\"0\"} 0",
        "seqsvr_allocated_total 1",
        "seqsvr_route_version 1",
        "seqsvr_lease_remaining_seconds inf",
        "seqsvr_refusals_total{reason=\"unavailable\"} 0",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is missing in:\n{metrics}");
    }
    for name in [
        "tidemark_deliver_seconds_count",
        "seqsvr_raises_total",
        "seqsvr_raise_seconds_bucket",
        "process_threads",
    ] {
        assert!(metrics.contains(name), "{name} is missing in:\n{metrics}");
    }
}

#[tokio::test]
async fn metrics_are_for_callers_on_this_machine_unless_they_are_opened() {
    let metrics = async |app: &TestApp, forwarded: Option<&str>| {
        let request = app.request(Method::GET, "/metrics");
        let request = match forwarded {
            Some(name) => request.header(name, "198.51.100.1"),
            None => request,
        };
        app.send(request).await
    };
    let app = TestApp::start_with(|config| config.metrics.listen = "localhost:0".into()).await;
    assert_eq!(metrics(&app, None).await.status, 200);
    for name in ["x-forwarded-for", "forwarded", "via", "x-real-ip", "x-forwarded-host"] {
        assert_eq!(metrics(&app, Some(name)).await.refused(403), "metrics_private", "{name}");
    }
    let own = app.metrics_address.expect("an address of its own");
    let request = reqwest::Client::new().get(format!("http://{own}/metrics")).header("via", "1.1 x");
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    assert!(answer.text().await.expect("a text").contains("tidemark_connections 0"));
    let other = reqwest::get(format!("http://{own}/api/v1/me")).await.expect("an answer");
    assert_eq!(other.status(), 404, "nothing else lies there");
    let trusted = vec!["127.0.0.1/32".parse().expect("a network")];
    for behind in [
        TestApp::start_with(|config| config.server.public_url = "http://chat.example".into()).await,
        TestApp::start_with(|config| config.server.trusted_proxies = trusted).await,
    ] {
        assert_eq!(metrics(&behind, None).await.refused(403), "metrics_private", "a proxy may add no header");
    }
    let open = TestApp::start_with(|config| config.metrics.public = true).await;
    assert_eq!(metrics(&open, Some("x-forwarded-for")).await.status, 200);
}

#[tokio::test]
async fn a_stop_answers_what_was_sent_and_tells_sockets_to_come_back() {
    let mut app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let mut socket = app.socket(&ann).await;
    socket.expect("welcome").await;
    let to = json!({"user": bob.uid});
    for n in 0..50 {
        socket.say(&to, n, "before the stop").await;
    }
    // The first answer shows that the frames are being taken; the stop then comes in the middle of them.
    socket.expect("sent").await;
    let mut answered = 1;
    let hear = async {
        loop {
            match socket.next().await {
                Ok(frame) => answered += usize::from(frame["type"] == "sent"),
                Err(code) => break code,
            }
        }
    };
    let (code, ()) = tokio::join!(hear, app.restart());
    assert_eq!(code, 1012);
    let stored = app.rows(&bob).await;
    assert!(texts(&stored).len() >= answered, "{answered} were answered, {} are stored", stored.len());
}

#[tokio::test]
async fn a_request_that_never_ends_does_not_hold_up_a_stop() {
    let mut app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let mut slow = TcpStream::connect(&app.address).await.expect("connected");
    let head = format!(
        "POST /api/v1/messages HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-length: 100\r\n\r\n{{",
        app.address, ann.token
    );
    slow.write_all(head.as_bytes()).await.expect("sent");
    // The next request is answered after the first one was taken.
    app.get(&ann, "/api/v1/me").await.ok(200);
    app.stop_within(Duration::from_secs(2)).await;
}

pub(crate) fn program(place: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command
        .current_dir(place)
        // A database that is not there is not waited for.
        .env("TIDEMARK_STORAGE__START_SECONDS", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Runs the program to its end: exit code, standard output, standard error.
pub(crate) async fn run(place: &Path, args: &[&str]) -> (i32, String, String) {
    let output = timeout(PATIENCE, program(place).args(args).output()).await.expect("in time").expect("run");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().expect("an exit code"), text(output.stdout), text(output.stderr))
}

/// Starts the program and waits for the line that tells its address.
pub(crate) async fn serve(place: &Path) -> (Child, String) {
    serve_with(program(place)).await
}

/// The same by a program whose environment is changed.
pub(crate) async fn serve_with(mut program: Command) -> (Child, String) {
    let mut child = program.args(["--listen", "127.0.0.1:0"]).spawn().expect("started");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let line = timeout(PATIENCE, lines.next_line()).await.expect("in time").expect("read").expect("a line");
    (child, line.strip_prefix("listening on http://").expect("the address").to_owned())
}

pub(crate) async fn terminate(child: Child) -> i32 {
    signal(child, "-TERM").await
}

async fn signal(mut child: Child, which: &str) -> i32 {
    let pid = child.id().expect("alive").to_string();
    assert!(Command::new("kill").args([which, &pid]).status().await.expect("run").success());
    timeout(PATIENCE, child.wait()).await.expect("in time").expect("waited").code().expect("an exit code")
}

#[tokio::test]
async fn the_program_serves_until_sigterm_and_exits_with_0() {
    let place = tempfile::tempdir().expect("a directory");
    let (child, address) = serve(place.path()).await;
    let health = reqwest::get(format!("http://{address}/health")).await.expect("an answer");
    assert_eq!(health.status(), 200);
    assert!(place.path().join("data/tidemark.db").exists(), "data lie in ./data");
    assert_eq!(terminate(child).await, 0);
    let (child, _) = serve(place.path()).await;
    assert_eq!(signal(child, "-HUP").await, 0, "a terminal that closes stops it in good order, too");
}

#[tokio::test]
async fn the_program_says_which_version_it_is_wherever_one_looks() {
    let place = tempfile::tempdir().expect("a directory");
    let (code, said, _) = run(place.path(), &["--version"]).await;
    let version = said.trim().strip_prefix("tidemark ").expect("its name");
    assert_eq!(code, 0, "{said}");
    let (mut child, address) = serve(place.path()).await;
    let get = async |path: &str| {
        let answer = reqwest::get(format!("http://{address}{path}")).await.expect("an answer");
        answer.text().await.expect("a text")
    };
    let health: serde_json::Value = serde_json::from_str(&get("/health").await).expect("JSON");
    let [number, commit] = ["version", "commit"].map(|field| health[field].as_str().expect(field));
    assert_eq!((&health["status"], number), (&json!("up"), env!("CARGO_PKG_VERSION")));
    let shown = if commit == "unknown" { "commit unknown" } else { commit };
    assert!(version.starts_with(&format!("{number} ({shown}")), "{version}");
    let metric = format!("tidemark_build_info{{version=\"{number}\",commit=\"{commit}\"}} 1");
    assert!(get("/metrics").await.lines().any(|line| line == metric), "{metric}");
    let document: serde_json::Value = serde_json::from_str(&get("/api/v1/openapi.json").await).expect("JSON");
    assert_eq!(document["info"]["version"], number);
    let mut log = BufReader::new(child.stderr.take().expect("piped")).lines();
    let first = timeout(PATIENCE, log.next_line()).await.expect("in time").expect("read").expect("a line");
    assert!(first.contains("tidemark starts") && first.contains(version), "{first}");
}

#[tokio::test]
async fn with_few_files_fewer_connections_are_served_and_reads_go_on() {
    let place = tempfile::tempdir().expect("a directory");
    let limited = |files: u32| {
        let mut command = Command::new("sh");
        let program = env!("CARGO_BIN_EXE_tidemark");
        let line = format!("ulimit -n {files} && exec {program} --listen 127.0.0.1:0");
        command.args(["-c", &line]).current_dir(place.path()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    };
    let output = timeout(PATIENCE, limited(100).output()).await.expect("in time").expect("run");
    let reported = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(1), "{reported}");
    assert!(reported.contains("allows 100 open files") && reported.contains("ulimit -n"), "{reported}");

    let mut child = limited(200).spawn().expect("started");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let line = timeout(PATIENCE, lines.next_line()).await.expect("in time").expect("read").expect("a line");
    let address = line.strip_prefix("listening on http://").expect("the address").to_owned();
    let http = reqwest::Client::new();
    let body = json!({"name": "Ann", "password": "correct horse"});
    let made = http.post(format!("http://{address}/api/v1/accounts")).json(&body).send().await.expect("made");
    let made: serde_json::Value = made.json().await.expect("JSON");
    let token = made["token"].as_str().expect("a token");
    let mut crowd = Vec::new();
    for _ in 0..150 {
        crowd.push(TcpStream::connect(&address).await.expect("connected"));
    }
    for _ in 0..20 {
        let range = http.get(format!("http://{address}/api/v1/range")).bearer_auth(token);
        let range = range.send().await.expect("on the connection that is open");
        assert_eq!(range.status(), 200);
        range.bytes().await.expect("read, so that the connection is used again");
    }
    assert_eq!(terminate(child).await, 0);
}

/// Texts that must never be in a log.
const SECRET_TEXT: &str = "a text that nobody else reads";
const SECRET_PASSWORD: &str = "a password that nobody knows";

#[tokio::test]
async fn no_filter_prints_texts_passwords_tokens_or_codes() {
    let place = tempfile::tempdir().expect("a directory");
    let log = std::fs::File::create(place.path().join("log")).expect("a file");
    let mut command = program(place.path());
    command.args(["--listen", "127.0.0.1:0"]).stderr(log);
    command.env("TIDEMARK_LOG__FILTER", "trace,tungstenite::protocol=trace,hyper=trace,sqlx=trace");
    let mut child = command.spawn().expect("started");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let line = timeout(PATIENCE, lines.next_line()).await.expect("in time").expect("read").expect("a line");
    let address = line.strip_prefix("listening on http://").expect("the address").to_owned();
    let http = reqwest::Client::new();
    let call = async |path: &str, token: Option<&str>, body: serde_json::Value| {
        let request = http.post(format!("http://{address}/api/v1/{path}")).json(&body);
        let request = if let Some(token) = token { request.bearer_auth(token) } else { request };
        let answer = request.send().await.expect("an answer");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.json::<serde_json::Value>().await.unwrap_or_default()
    };
    let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
    let account = call("accounts", None, json!({"name": "Ann", "password": SECRET_PASSWORD})).await;
    let token = text(&account["token"]);
    call("sessions", None, json!({"name": "Ann", "password": SECRET_PASSWORD})).await;
    let group = call("groups", Some(&token), json!({"name": "us"})).await["gid"].clone();
    let code = text(&call(&format!("groups/{group}/invites"), Some(&token), json!({})).await["code"]);
    call(&format!("invites/{code}"), Some(&token), json!({})).await;
    reqwest::get(format!("http://{address}/invites/{code}")).await.expect("an answer");
    let ticket = text(&call("sessions/current/ticket", Some(&token), json!({})).await["ticket"]);
    let mut socket =
        crate::support::Socket::dial(&address, &format!("/ws?ticket={ticket}"), &[]).await.expect("opened");
    socket.expect("welcome").await;
    socket.say(&json!({"user": account["uid"]}), 1, SECRET_TEXT).await;
    socket.expect("sent").await;
    socket.heartbeat(0).await;
    socket.expect("entries").await;
    drop(socket);
    assert_eq!(terminate(child).await, 0);
    let log = std::fs::read_to_string(place.path().join("log")).expect("a log");
    assert!(log.contains("answered") && log.contains("/invites/…"), "it says something: {log}");
    for secret in [SECRET_TEXT, SECRET_PASSWORD, &token, &code, &ticket] {
        let line = log.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "{secret}: {line:?}");
    }
}

#[tokio::test]
async fn a_second_process_on_the_same_database_is_refused() {
    let place = tempfile::tempdir().expect("a directory");
    let (child, _) = serve(place.path()).await;
    for args in [&["--listen", "127.0.0.1:0"][..], &["migrate"]] {
        let (code, _, reported) = run(place.path(), args).await;
        let line = reported.lines().last().unwrap_or_default();
        assert_eq!(code, 1, "{args:?}: {reported}");
        assert!(line.contains("in use by another process; stop that one"), "{args:?}: {reported}");
    }
    assert_eq!(terminate(child).await, 0);
}

#[tokio::test]
async fn wrong_use_is_one_line_that_says_what_to_do() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("bad.toml"), "[limits]\ntext_charakters = 5\n").expect("written");
    std::fs::write(place.path().join("typo.toml"), "[log]\nfilter = \"inof\"\n").expect("written");
    for (args, code, part) in [
        (&["--lisen", "x"][..], 2, "--lisen"),
        (&["frobnicate"], 2, "frobnicate"),
        (
            &["serve", "--listen", "nowhere"],
            2,
            "--listen: `nowhere` is no address to listen on; write host and port",
        ),
        (&["import"], 2, "<FILE> is missing; `--help` shows how"),
        (&["user"], 2, "a command is missing: tidemark user"),
        (&["check-config", "--config", "typo.toml"], 2, "[log] filter: `inof` is neither a level"),
        (&["serve", "--config", "typo.toml"], 2, "did you mean `info`?"),
        (&["serve", "--database-url", "mysql://db/x"], 2, "write sqlite:PATH or postgres://"),
        (
            &["serve", "--database-url", "postgres://a:b@localhost:1/x"],
            1,
            "cannot connect to PostgreSQL at localhost, port 1, database x",
        ),
        (
            &["ids", "seqsvr", "--database-url", "postgres://a:b@localhost:1/x"],
            1,
            "is not possible on PostgreSQL yet",
        ),
        (&["check-config", "--config", "missing.toml"], 2, "missing.toml"),
        (&["check-config", "--config", "bad.toml"], 2, "bad.toml line 2: unknown field `text_charakters`"),
        (&["serve", "--data-dir", "/dev/null/x", "--listen", "127.0.0.1:0"], 1, "/dev/null"),
    ] {
        let (exit, out, reported) = run(place.path(), args).await;
        assert_eq!(exit, code, "{args:?}: {reported}");
        let [said] =
            reported.lines().filter(|line| !line.contains("tidemark starts")).collect::<Vec<_>>()[..]
        else {
            panic!("{args:?}: {reported}")
        };
        assert!(said.starts_with("tidemark: ") && said.contains(part), "{args:?}: {reported}");
        assert_eq!(out, "");
    }
}

/// Commands for an installation that is there make none.
#[tokio::test]
async fn without_an_installation_nothing_is_done_and_nothing_is_made() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("bad.jsonl"), "{}\n").expect("written");
    let none = "no installation in data: there is no tidemark.db";
    for (args, part) in [
        (&["restored"][..], none),
        (&["user", "list"], none),
        (&["user", "reset-password", "ann"], none),
        (&["user", "add", "ann"], none),
        (&["export", "all.jsonl"], none),
        (&["import", "bad.jsonl", "--user", "ann", "--into", "10001"], none),
        (&["import", "/nonexistent"], "/nonexistent: No such file"),
        (&["import", "bad.jsonl"], "bad.jsonl line 1"),
    ] {
        let (code, out, reported) = run(place.path(), args).await;
        assert_eq!((code, out.as_str()), (1, ""), "{args:?}: {reported}");
        assert_eq!(reported.lines().count(), 1, "{args:?}: {reported}");
        assert!(reported.contains(part), "{args:?}: {reported}");
        let there: Vec<_> = std::fs::read_dir(place.path()).expect("readable").collect();
        assert_eq!(there.len(), 1, "{args:?}: {there:?}");
    }
}

#[tokio::test]
async fn check_config_prints_what_is_in_force() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("good.toml"), "[limits]\ntext_characters = 5\n").expect("written");
    let mut command = program(place.path());
    command.args(["check-config", "--config", "good.toml"]).env("TIDEMARK_LIMITS__GROUP_MEMBERS", "7");
    let output = command.output().await.expect("run");
    assert_eq!(output.status.code(), Some(0));
    let printed: toml::Table =
        toml::from_str(&String::from_utf8(output.stdout).expect("UTF-8")).expect("TOML");
    assert_eq!(printed["limits"]["text_characters"].as_integer(), Some(5));
    assert_eq!(printed["limits"]["group_members"].as_integer(), Some(7));
    assert_eq!(printed["server"]["heartbeat_seconds"].as_integer(), Some(30));
    let (code, out, _) = run(place.path(), &["--help"]).await;
    assert!(code == 0 && out.contains("Examples:") && out.contains("check-config"), "{out}");
}
