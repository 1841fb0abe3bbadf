//! Files of several servers of one PostgreSQL.

use std::path::Path;

use reqwest::Method;
use serde_json::json;
use tidemark_test_support::servers::postgres::durable_database;
use tidemark_trials::server::Server;

use super::s3::{add, begin, objects, serve, service};
use crate::support::{Database, client_id};

/// One upload that goes on at the second server, also once the first one has stopped, is named there, and read at both that run.
async fn goes_on(store: &str) {
    let mut one = Database::Postgres.start_with(|config| config.files.store = store.into()).await;
    let url = one.config.storage.database_url.clone();
    let beside = async || {
        let beside = Database::Postgres.start_with(|config| {
            config.storage.database_url = url.clone();
            config.files.store = store.into();
        });
        beside.await
    };
    let other = beside().await;
    let (ann, bob) = (one.sign_up("ann").await, other.sign_up("bob").await);
    let bytes: Vec<u8> = (0..(9 << 20)).map(|n: u32| (n % 247) as u8).collect();
    let path = begin(&one, &ann, bytes.len()).await;
    add(&one, &ann, &path, 0, &bytes[..1_000]).await.ok(204);
    add(&other, &ann, &path, 1_000, &bytes[1_000..5_000]).await.ok(204);
    // The first one has not written these, and says how far it has come.
    assert_eq!(add(&one, &ann, &path, 1_000, &bytes[1_000..2_000]).await.refused(409), "upload_elsewhere");
    one.stop().await;
    let asked = other.request(Method::HEAD, &path).bearer_auth(&ann.token).header("tus-resumable", "1.0.0");
    assert_eq!(other.send_unjudged(asked).await.header("upload-offset"), "5000");
    add(&other, &ann, &path, 5_000, &bytes[5_000..]).await.ok(204);

    let file = path.strip_prefix("/files/").expect("an id");
    let body = json!({"text": "", "files": [{"id": file}]});
    let message = json!({"client_id": client_id(1), "to": {"user": bob.uid}, "body": body});
    other.post(&ann, "/api/v1/messages", message).await.ok(201);
    for app in [&other, &beside().await] {
        let row = app.rows(&bob).await[0]["message_id"].clone();
        let request = app.request(Method::GET, &format!("/files/{row}/{file}")).bearer_auth(&bob.token);
        let read = request.send().await.expect("an answer").bytes().await.expect("all of them");
        assert!(read == bytes);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_goes_on_at_another_server_over_a_shared_directory() {
    let place = tempfile::tempdir().expect("a directory");
    Box::pin(goes_on(place.path().join("files").to_str().expect("UTF-8"))).await;
    assert!(objects(place.path()) >= 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_goes_on_at_another_server_over_a_bucket() {
    let place = tempfile::tempdir().expect("a directory");
    let (serving, address) = serve(service(place.path()), ([127, 0, 0, 1], 0).into()).await;
    Box::pin(goes_on(&format!("s3+http://KEY:the/secret+of=it@{address}/files/of/chat"))).await;
    serving.abort();
}

#[tokio::test]
async fn a_server_says_that_it_does_not_have_the_directory_of_the_others() {
    let place = tempfile::tempdir().expect("a directory");
    let url = durable_database().await;
    let start = async |data: &str, store: &Path| {
        let data = place.path().join(data);
        std::fs::create_dir_all(&data).expect("made");
        let store = store.to_str().expect("UTF-8").to_owned();
        let settings = [
            ("TIDEMARK_DATABASE_URL", url.clone()),
            ("TIDEMARK_FILES__STORE", store),
            ("TIDEMARK_LOG__FILTER", "info".to_owned()),
        ];
        let binary = Path::new(env!("CARGO_BIN_EXE_tidemark"));
        let server = Server::start_with(&settings, 0, binary, &data).await.expect("starts");
        server.stop().await.expect("stopped");
        std::fs::read_to_string(data.join("trial.log")).expect("a log")
    };
    const WARNED: &str = "the other servers of the database have their files in another directory";
    let (shared, own) = (place.path().join("shared"), place.path().join("own"));
    for data in ["one", "two"] {
        let log = start(data, &shared).await;
        assert!(
            !log.contains(WARNED) && log.contains("which every server of the database must have"),
            "{log}"
        );
    }
    let log = start("three", &own).await;
    assert!(log.contains(WARNED), "{log}");
    // What the line says helps.
    std::fs::copy(shared.join("tidemark.place"), own.join("tidemark.place")).expect("copied");
    let log = start("four", &own).await;
    assert!(!log.contains(WARNED), "{log}");
}
