//! Files in a bucket, on a server of S3 that others wrote.

use std::net::SocketAddr;
use std::path::Path;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use reqwest::Method;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::support::{Person, TestApp, client_id};

/// A server of S3 with one bucket in this directory.
pub(super) fn service(place: &Path) -> S3Service {
    std::fs::create_dir_all(place.join("files")).expect("a bucket");
    let mut builder = S3ServiceBuilder::new(FileSystem::new(place).expect("a directory"));
    builder.set_auth(SimpleAuth::from_single("KEY", "the/secret+of=it"));
    builder.build()
}

pub(super) async fn serve(service: S3Service, at: SocketAddr) -> (JoinHandle<()>, SocketAddr) {
    let listener = TcpListener::bind(at).await.expect("an address");
    let address = listener.local_addr().expect("bound");
    let serving = tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let service = service.clone();
            connections.spawn(async move {
                _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    (serving, address)
}

pub(super) fn objects(place: &Path) -> usize {
    let (mut found, mut left) = (0, vec![place.join("files")]);
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            match entry.path().is_dir() {
                true => left.push(entry.path()),
                false => found += 1,
            }
        }
    }
    found
}

pub(super) async fn begin(app: &TestApp, who: &Person, length: usize) -> String {
    let request =
        app.request(Method::POST, "/files").bearer_auth(&who.token).header("tus-resumable", "1.0.0");
    let begun = app.send(request.header("upload-length", length)).await;
    assert_eq!(begun.status, 201, "{}", begun.text);
    begun.header("location").to_owned()
}

pub(super) async fn add(
    app: &TestApp,
    who: &Person,
    path: &str,
    offset: usize,
    bytes: &[u8],
) -> crate::support::Answer {
    let request = app.request(Method::PATCH, path).bearer_auth(&who.token).header("tus-resumable", "1.0.0");
    let request =
        request.header("upload-offset", offset).header("content-type", "application/offset+octet-stream");
    app.send(request.body(bytes.to_vec())).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_lie_in_a_bucket_come_from_there_and_survive_its_absence() {
    let place = tempfile::tempdir().expect("a directory");
    let service = service(place.path());
    let (serving, address) = serve(service.clone(), ([127, 0, 0, 1], 0).into()).await;
    let url = format!("s3+http://KEY:the/secret+of=it@{address}/files/of/chat");
    let app = TestApp::start_with(|config| config.files.store = url.as_str().into()).await;
    let ann = app.sign_up("ann").await;
    // More than one object, and a part of another one.
    let bytes: Vec<u8> = (0..(9 << 20)).map(|n: u32| (n % 247) as u8).collect();
    let path = begin(&app, &ann, bytes.len()).await;
    add(&app, &ann, &path, 0, &bytes[..1_000]).await.ok(204);

    serving.abort();
    _ = serving.await;
    let away = add(&app, &ann, &path, 1_000, &bytes[1_000..2_000]).await;
    assert_eq!(away.refused(503), "files_unavailable");
    let (serving, _) = serve(service, address).await;
    add(&app, &ann, &path, 1_000, &bytes[1_000..]).await.ok(204);

    let file = path.strip_prefix("/files/").expect("an id");
    let body = json!({"text": "", "files": [{"id": file}]});
    let message = json!({"client_id": client_id(1), "to": {"user": ann.uid}, "body": body});
    let row = app.post(&ann, "/api/v1/messages", message).await.ok(201)["message_id"].clone();
    let request = || app.request(Method::GET, &format!("/files/{row}/{file}")).bearer_auth(&ann.token);
    let read = request().send().await.expect("an answer").bytes().await.expect("all of them");
    assert!(read == bytes);
    let part = request().header("range", "bytes=999-8388700").send().await.expect("an answer");
    assert!(part.bytes().await.expect("a part") == bytes[999..=8_388_700]);
    assert!(objects(place.path()) >= 3);

    let other = begin(&app, &ann, 9).await;
    add(&app, &ann, &other, 0, b"half").await.ok(204);
    let there = objects(place.path());
    let end = app.request(Method::DELETE, &other).bearer_auth(&ann.token).header("tus-resumable", "1.0.0");
    app.send(end).await.ok(204);
    assert!(objects(place.path()) < there);
    serving.abort();
}
