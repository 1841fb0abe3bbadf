//! A server that is killed in the middle of an upload: what it had stored counts, and the rest comes to the next one.

use std::path::Path;
use std::time::Duration;

use reqwest::{Client, Method, Response};
use serde_json::{Value, json};
use tidemark_test_support::until::until;
use tokio::io::AsyncWriteExt as _;

use crate::sqlite::operation::{program, serve_with, terminate};
use crate::support::client_id;

/// More than one object of a directory has.
const BYTES: usize = 20 << 20;

async fn tus(
    http: &Client,
    method: Method,
    address: &str,
    token: &str,
    path: &str,
    fields: &[(&str, String)],
    body: Vec<u8>,
) -> Response {
    let request = http.request(method, format!("http://{address}{path}")).bearer_auth(token);
    let request = request.header("tus-resumable", "1.0.0").body(body);
    let request = fields.iter().fold(request, |request, (name, value)| request.header(*name, value));
    request.send().await.expect("an answer")
}

async fn offset(http: &Client, address: &str, token: &str, path: &str) -> u64 {
    let answer = tus(http, Method::HEAD, address, token, path, &[], Vec::new()).await;
    answer.headers()["upload-offset"].to_str().expect("a text").parse().expect("a number")
}

fn left(place: &Path) -> usize {
    let mut found = 0;
    let mut directories = vec![place.join("data/files")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            match entry.path().is_dir() {
                true => directories.push(entry.path()),
                false => found += 1,
            }
        }
    }
    found
}

#[tokio::test]
async fn an_upload_goes_on_after_its_server_was_killed() {
    let place = tempfile::tempdir().expect("a directory");
    let serve = || {
        let mut program = program(place.path());
        program.env("TIDEMARK_ACCOUNTS__PASSWORD_MEMORY_KIB", "8");
        serve_with(program)
    };
    let (mut child, address) = serve().await;
    let http = Client::builder().timeout(Duration::from_secs(60)).build().expect("a client");
    let account = json!({"name": "ann", "password": "correct horse"});
    let made = http
        .post(format!("http://{address}/api/v1/accounts"))
        .json(&account)
        .send()
        .await
        .expect("an answer");
    let made: Value = made.json().await.expect("JSON");
    let (token, uid) = (made["token"].as_str().expect("a token").to_owned(), made["uid"].clone());
    let length = [("upload-length", BYTES.to_string())];
    let begun = tus(&http, Method::POST, &address, &token, "/files", &length, Vec::new()).await;
    let path = begun.headers()["location"].to_str().expect("a text").to_owned();

    let bytes: Vec<u8> = (0..BYTES).map(|n| (n % 249) as u8).collect();
    let mut connection = tokio::net::TcpStream::connect(&address).await.expect("connected");
    let head = format!(
        "PATCH {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ntus-resumable: 1.0.0\r\nupload-offset: 0\r\n\
         content-type: application/offset+octet-stream\r\ncontent-length: {BYTES}\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).await.expect("sent");
    connection.write_all(&bytes[..BYTES - 1_000_000]).await.expect("sent");
    until("the first object counts", async || offset(&http, &address, &token, &path).await > 0).await;
    child.kill().await.expect("killed");

    let (child, address) = serve().await;
    let there = offset(&http, &address, &token, &path).await;
    assert_eq!(there, 16 << 20, "whole objects count, the one that was cut off does not");
    let fields = [
        ("upload-offset", there.to_string()),
        ("content-type", "application/offset+octet-stream".to_owned()),
    ];
    let rest = bytes[usize::try_from(there).expect("small")..].to_vec();
    let added = tus(&http, Method::PATCH, &address, &token, &path, &fields, rest).await;
    assert_eq!(added.status(), 204);
    assert_eq!(left(place.path()), 2, "nothing is left of what was cut off");
    let file = path.strip_prefix("/files/").expect("an id");
    let body = json!({"text": "", "files": [{"id": file}]});
    let message = json!({"client_id": client_id(1), "to": {"user": uid}, "body": body});
    let sent = http.post(format!("http://{address}/api/v1/messages")).bearer_auth(&token).json(&message);
    let sent: Value = sent.send().await.expect("an answer").json().await.expect("JSON");
    let read = http.get(format!("http://{address}/files/{}/{file}", sent["message_id"])).bearer_auth(&token);
    let read = read.send().await.expect("an answer").bytes().await.expect("all of them");
    assert!(read == bytes);
    assert_eq!(terminate(child).await, 0);
}
