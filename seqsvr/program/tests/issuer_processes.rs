//! Several `seqsvr issuer` processes on one database, killed and started again while numbers are taken over HTTP.

#![allow(clippy::unwrap_used, reason = "a test whose stage cannot be set fails")]

#[path = "support/issuer.rs"]
mod issuer;

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use issuer::{Process, get, take};
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// Of the process, and of the service, once it is no longer unknown.
async fn grpc_health(addr: &str) -> [i32; 2] {
    let channel = Endpoint::from_shared(format!("http://{addr}")).unwrap().connect().await.unwrap();
    let mut client = HealthClient::new(channel);
    let mut of = async |service: &str| {
        let mut answers =
            client.watch(HealthCheckRequest { service: service.to_owned() }).await.unwrap().into_inner();
        loop {
            match answers.message().await.unwrap().unwrap().status {
                unknown if unknown == ServingStatus::ServiceUnknown as i32 => {}
                known => return known,
            }
        }
    };
    [of("").await, of("issuer.v1.Issuer").await]
}

fn configured(folder: &Path) -> std::path::PathBuf {
    let config = folder.join("issuer.toml");
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[issuer]\ndatabase = \"sqlite:{}\"\n\
         [issuer.tags.order]\nstart = 100\nstep = 20\nstep_min = 20\nstep_max = 40\nwait_ms = 10000\n",
        folder.join("issuer.db").display()
    );
    std::fs::write(&config, text).unwrap();
    config
}

#[test]
fn processes_under_sigkill_on_one_database_give_no_number_twice() {
    let folder = tempfile::tempdir().unwrap();
    let config = configured(folder.path());
    let workers: Vec<_> = (0..3)
        .map(|worker| {
            let config = config.clone();
            std::thread::spawn(move || {
                let mut taken = vec![];
                for life in 0..4 {
                    let mut process = Process::start(&config);
                    let mut newest = 0;
                    for call in 0..15 {
                        let numbers = take(&process.addr, 1 + (call + worker + life) % 30).expect("it runs");
                        assert!(numbers[0] > newest && numbers.is_sorted_by(|a, b| a < b));
                        newest = numbers[numbers.len() - 1];
                        taken.extend(numbers);
                    }
                    // Killed while a call is under way, whose answer may or may not come.
                    let addr = process.addr.clone();
                    let last = std::thread::spawn(move || take(&addr, 5));
                    process.kill();
                    taken.extend(last.join().unwrap().unwrap_or_default());
                }
                taken
            })
        })
        .collect();
    let all: Vec<u64> = workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect();
    let different: HashSet<u64> = all.iter().copied().collect();
    assert!(all.len() > 3 * 4 * 15, "{}", all.len());
    assert_eq!(different.len(), all.len(), "no number twice");
    assert!(all.iter().all(|number| *number >= 100));
}

/// The folder of each version since 0.1.0 has the database that its program left after it had issued 100 to 129.
#[test]
fn the_database_of_each_version_goes_on_where_it_was() {
    let mut opened = 0;
    for version in std::fs::read_dir(versions()).unwrap() {
        let folder = tempfile::tempdir().unwrap();
        tar("-xzf", &version.unwrap().path().join("issuer.tar.gz"), folder.path(), &[]);
        let process = Process::start(&configured(folder.path()));
        let numbers = take(&process.addr, 30).expect("it runs");
        assert!(numbers[0] > 129 && numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
        opened += 1;
    }
    assert!(opened > 0);
}

/// `FIXTURES=yes cargo xtask test writes_what_this_version_leaves` writes the one of this version, when it is released.
#[test]
fn writes_what_this_version_leaves() {
    if std::env::var_os("FIXTURES").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::start(&configured(folder.path()));
    assert_eq!(take(&process.addr, 30).expect("it runs"), (100..130).collect::<Vec<_>>());
    process.kill();
    let written = versions().join(env!("CARGO_PKG_VERSION"));
    std::fs::create_dir_all(&written).unwrap();
    tar("-czf", &written.join("issuer.tar.gz"), folder.path(), &["--exclude=issuer.toml", "."]);
}

fn tar(how: &str, archive: &Path, folder: &Path, what: &[&str]) {
    let mut command = std::process::Command::new("tar");
    assert!(command.arg(how).arg(archive).arg("-C").arg(folder).args(what).status().unwrap().success());
}

fn versions() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/versions")
}

#[test]
fn a_wrong_configuration_is_one_line_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("issuer.toml");
    for (text, reported) in [
        ("listen = \"0.0.0.0:0\"\n[issuer.tags.order]", "set certificate, key and token_file in [security]"),
        ("listen = \"127.0.0.1:0\"\n[issuer]", "no tags are configured; add a section [issuer.tags.NAME]"),
        ("listen = \"127.0.0.1:0\"\n[issuer.tags.order]\ncolour = 1", "line 3: unknown field `colour`"),
        (
            "listen = \"127.0.0.1:0\"\n[issuer.tags.order]",
            "[issuer]: name the database that keeps what was issued",
        ),
        (
            "listen = \"127.0.0.1:0\"\n[issuer.tags.trace]\nstrategy = \"snowflake\"",
            "[issuer.machine]: snowflakes need to know who this process is: write id = 0 if",
        ),
    ] {
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_seqsvr"));
        let output = command.args(["issuer", "--config"]).arg(&config).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        // After the line that says which version it is.
        let [_, said] = error.lines().collect::<Vec<_>>()[..] else { panic!("{error}") };
        assert!(said.contains(reported), "{error}");
    }
}

#[test]
fn health_and_readiness_are_true_and_unknown_paths_are_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(&configured(folder.path()));
    for (path, expected, reported) in [
        ("/health", 200, concat!("{\"status\":\"up\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}")),
        ("/ready", 200, "ready"),
        ("/healthz", 404, "not_found"),
        ("/", 404, "not_found"),
    ] {
        let (status, text) = get(&process.addr, path).unwrap();
        assert!(status == expected && text.contains(reported), "{path}: {status} {text}");
    }
    drop(process);
    // Nothing listens on port 1: no number can come.
    let config = folder.path().join("away.toml");
    let text = "listen = \"127.0.0.1:0\"\n[issuer]\ndatabase = \"postgres://nobody@127.0.0.1:1/none\"\n[issuer.tags.order]";
    std::fs::write(&config, text).unwrap();
    let process = Process::start(&config);
    assert_eq!(get(&process.addr, "/health").unwrap().0, 200);
    let (status, text) = get(&process.addr, "/ready").unwrap();
    assert!(status == 503 && text.contains("1 of 1 tags cannot issue"), "{status} {text}");
    let health = tokio::runtime::Runtime::new().unwrap().block_on(grpc_health(&process.addr));
    assert_eq!(health, [ServingStatus::Serving as i32, ServingStatus::NotServing as i32]);
}

#[test]
fn commands_take_numbers_and_show_tags() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(&configured(folder.path()));
    let server = format!("http://{}", process.addr);
    let run = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_seqsvr"))
            .args(words)
            .args(["--server", &server])
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    assert_eq!(
        run(&["issue", "order", "--count", "3"]),
        (Some(0), "100\n101\n102\n".to_owned(), String::new())
    );
    let (_, json, _) = run(&["issue", "order", "--json"]);
    assert_eq!(json, "{\"biz_tag\":\"order\",\"ids\":[\"103\"]}\n");
    let (code, _, error) = run(&["issue", "invoice"]);
    assert_eq!(code, Some(1));
    assert_eq!(error, "seqsvr: unknown tag \"invoice\"; configured are: order\n");
    let (_, table, _) = run(&["tags"]);
    assert!(
        table.lines().nth(1).is_some_and(|line| line.starts_with("order") && line.contains("segment")),
        "{table}"
    );
    let (_, json, _) = run(&["tags", "--json"]);
    assert!(json.contains("\"issued\":\"4\""), "{json}");
    for words in [["issue", "--help"], ["tags", "--help"], ["issuer", "--help"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_seqsvr")).args(words).output().unwrap();
        assert!(String::from_utf8(output.stdout).unwrap().contains("Example"));
    }
}
