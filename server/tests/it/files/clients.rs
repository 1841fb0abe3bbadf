//! Clients of tus that others wrote, unchanged.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;
use tidemark_test_support::until::until;

use crate::support::{Person, TestApp, client_id};
use crate::table::packages::registries::{from_npm, from_pip};

const BYTES: usize = 5_000_000;

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/files/scripts")
}

/// The folder of tus-js-client.
fn node_modules() -> PathBuf {
    from_npm("tus-js-client-4.3.1", &["tus-js-client@4.3.1"]).join("node_modules")
}

/// The folder of tuspy.
fn python_path() -> PathBuf {
    from_pip("tuspy", "1.1.0", &scripts().join("requirements.txt"))
}

fn bytes() -> Vec<u8> {
    (0..BYTES).map(|n| (n % 253) as u8).collect()
}

/// Runs a program beside the server.
async fn output(make: impl FnOnce() -> Command + Send + 'static) -> Output {
    tokio::task::spawn_blocking(move || make().output().expect("run")).await.expect("it ends")
}

/// The id of the file, from what the program says.
fn uploaded(done: &Output) -> String {
    let (printed, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    let line = printed.lines().find_map(|line| line.strip_prefix("uploaded "));
    let line = line.unwrap_or_else(|| panic!("{printed}\n{errors}"));
    line.rsplit('/').next().expect("an address").to_owned()
}

/// Whether the file is read as it was uploaded.
async fn is_whole(app: &TestApp, who: &Person, file: &str, name: &str) {
    let body = json!({"text": "", "files": [{"id": file}]});
    let message = json!({"client_id": client_id(1), "to": {"user": who.uid}, "body": body});
    let row = app.post(who, "/api/v1/messages", message).await.ok(201)["message_id"].clone();
    assert_eq!(app.rows(who).await[0]["body"]["files"][0]["name"], name);
    let request = app.request(reqwest::Method::GET, &format!("/files/{row}/{file}")).bearer_auth(&who.token);
    let read = request.send().await.expect("an answer").bytes().await.expect("all of them");
    assert!(read == bytes());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tus_js_client_goes_on_with_an_upload_after_it_and_the_server_were_stopped() {
    let mut app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let place = tempfile::tempdir().expect("a directory");
    let (file, memory) = (place.path().join("tide.bin"), place.path().join("memory.json"));
    std::fs::write(&file, bytes()).expect("written");
    let node = |app: &TestApp, stop: Option<&'static str>| {
        let (address, token) = (app.address.clone(), ann.token.clone());
        let (file, memory) = (file.clone(), memory.clone());
        output(move || {
            let mut node = Command::new("node");
            node.arg(scripts().join("upload.js")).args([format!("http://{address}/files"), token]);
            node.arg(file).arg(memory).args(stop).env("NODE_PATH", node_modules());
            node
        })
    };
    let stopped = node(&app, Some("2500000")).await;
    assert_eq!(stopped.status.code(), Some(3), "{stopped:?}");
    // The address of the server stands in the memory of the client, so it comes back where it was.
    let port = app.address.rsplit(':').next().and_then(|port| port.parse::<u16>().ok()).expect("a port");
    app.stop().await;
    app.config.server.listen = ([127, 0, 0, 1], port).into();
    app.start_again().await;
    let done = node(&app, None).await;
    assert!(String::from_utf8_lossy(&done.stdout).contains("resumes "), "{done:?}");
    is_whole(&app, &ann, &uploaded(&done), "tide.bin").await;
    until("no upload is left", async || std::fs::read_to_string(&memory).is_ok()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tuspy_uploads_in_two_goes() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("source");
    std::fs::write(&file, bytes()).expect("written");
    let (address, token) = (app.address.clone(), ann.token.clone());
    let done = output(move || {
        let mut python = Command::new("python3");
        python.arg(scripts().join("upload.py")).args([format!("http://{address}/files"), token]).arg(file);
        python.env("PYTHONPATH", python_path());
        python
    });
    is_whole(&app, &ann, &uploaded(&done.await), "tide.bin").await;
}
