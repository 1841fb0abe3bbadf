//! Files: uploads part by part, messages that name them, and who may read them.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::support::{Answer, Person, TestApp, client_id};

mod bad;
mod life;
mod pictures;
mod rights;
mod uploads;

/// A request by tus.
fn tus(app: &TestApp, who: &Person, method: Method, path: &str) -> RequestBuilder {
    app.request(method, path).bearer_auth(&who.token).header("tus-resumable", "1.0.0")
}

/// Begins an upload.
async fn begin(app: &TestApp, who: &Person, name: &str, length: u64) -> Answer {
    use base64::Engine as _;
    let name = base64::prelude::BASE64_STANDARD.encode(name);
    let request = tus(app, who, Method::POST, "/files");
    let request =
        request.header("upload-length", length).header("upload-metadata", format!("filename {name}"));
    app.send(request).await
}

/// The id of an upload that was begun.
fn id_of(begun: &Answer) -> String {
    assert_eq!(begun.status, 201, "{}", begun.text);
    begun.header("location").strip_prefix("/files/").expect("an address").to_owned()
}

/// Sends bytes of an upload.
async fn add(app: &TestApp, who: &Person, id: &str, offset: u64, bytes: &[u8]) -> Answer {
    let request = tus(app, who, Method::PATCH, &format!("/files/{id}")).header("upload-offset", offset);
    app.send(request.header("content-type", "application/offset+octet-stream").body(bytes.to_vec())).await
}

/// How far an upload has come; `None`: there is none.
async fn offset(app: &TestApp, who: &Person, id: &str) -> Option<u64> {
    let answer = app.send_unjudged(tus(app, who, Method::HEAD, &format!("/files/{id}"))).await;
    answer.header("upload-offset").parse().ok().filter(|_| answer.status == 200)
}

/// Uploads a file, and returns its id.
pub(crate) async fn upload(app: &TestApp, who: &Person, name: &str, bytes: &[u8]) -> String {
    let id = id_of(&begin(app, who, name, bytes.len() as u64).await);
    let added = add(app, who, &id, 0, bytes).await;
    assert_eq!(added.status, 204, "{}", added.text);
    assert_eq!(added.header("upload-offset"), bytes.len().to_string());
    id
}

/// A message with files.
fn message(n: u128, to: Value, text: &str, files: &[&str]) -> Value {
    let files: Vec<Value> = files.iter().map(|id| json!({"id": id})).collect();
    json!({"client_id": client_id(n), "to": to, "body": {"text": text, "files": files}})
}

pub(crate) async fn send(app: &TestApp, from: &Person, to: &Person, n: u128, files: &[&str]) -> u64 {
    let body = message(n, json!({"user": to.uid}), "", files);
    app.post(from, "/api/v1/messages", body).await.ok(201)["message_id"].as_u64().expect("an id")
}

/// Asks for a file by way of a row.
pub(crate) async fn read(app: &TestApp, who: &Person, row: u64, file: &str) -> Answer {
    app.send_unjudged(app.request(Method::GET, &format!("/files/{row}/{file}")).bearer_auth(&who.token)).await
}

/// The objects that lie in the server's directory of files.
pub(crate) fn objects(app: &TestApp) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![app.config.storage.data_dir.join("files")];
    while let Some(directory) = left.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries {
            let entry = entry.expect("an entry");
            if entry.file_name() == "tidemark.place" {
                continue;
            }
            match entry.file_type().expect("a type").is_dir() {
                true => left.push(entry.path()),
                false => found.push(entry.path().display().to_string()),
            }
        }
    }
    found
}
