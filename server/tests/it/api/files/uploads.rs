//! Uploads by tus 1.0.

use reqwest::Method;
use serde_json::json;

use super::{add, begin, id_of, message, objects, offset, read, send, tus, upload};
use crate::support::TestApp;

#[tokio::test]
async fn a_file_comes_in_parts_and_is_read_as_it_was_sent() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let begun = begin(&app, &ann, "tide table.bin", bytes.len() as u64).await;
    let id = id_of(&begun);
    assert_eq!(begun.header("upload-expires"), "Sun, 22 Nov 2026 11:43:58 GMT");
    assert_eq!(offset(&app, &ann, &id).await, Some(0));
    assert_eq!(add(&app, &ann, &id, 0, &bytes[..10]).await.header("upload-offset"), "10");
    assert_eq!(add(&app, &ann, &id, 10, &bytes[10..2_000_000]).await.header("upload-offset"), "2000000");
    assert_eq!(add(&app, &ann, &id, 10, &bytes[10..20]).await.refused(409), "upload_elsewhere");
    assert_eq!(offset(&app, &ann, &id).await, Some(2_000_000));
    let unfinished = message(1, json!({"user": bob.uid}), "", &[&id]);
    assert_eq!(app.post(&ann, "/api/v1/messages", unfinished.clone()).await.refused(404), "unknown_file");
    let last = add(&app, &ann, &id, 2_000_000, &bytes[2_000_000..]).await;
    assert_eq!((last.status.as_u16(), last.header("upload-expires")), (204, ""));
    assert_eq!(offset(&app, &ann, &id).await, Some(3_000_000), "also once it is whole");

    app.post(&ann, "/api/v1/messages", unfinished).await.ok(201);
    let row = app.rows(&bob).await.pop().expect("a row");
    assert_eq!(
        row["body"],
        json!({"text": "", "files": [{"id": id, "name": "tide table.bin", "size": 3_000_000, "type": "application/octet-stream"}]})
    );
    let row = row["message_id"].as_u64().expect("an id");
    let answer = app.request(Method::GET, &format!("/files/{row}/{id}")).bearer_auth(&bob.token).send().await;
    let answer = answer.expect("an answer");
    assert_eq!(answer.headers()["content-length"], "3000000");
    assert!(answer.bytes().await.expect("all of them") == bytes);
    for (range, expected) in [
        ("bytes=1999990-2000009", 1_999_990..2_000_010),
        ("bytes=-5", 2_999_995..3_000_000),
        ("bytes=5-14", 5..15),
    ] {
        let request = app.request(Method::GET, &format!("/files/{row}/{id}")).bearer_auth(&bob.token);
        let answer = request.header("range", range).send().await.expect("an answer");
        assert_eq!(answer.status(), 206);
        assert_eq!(
            answer.headers()["content-range"],
            format!("bytes {}-{}/3000000", expected.start, expected.end - 1)
        );
        assert!(answer.bytes().await.expect("a part") == bytes[expected]);
    }
    let request = app.request(Method::GET, &format!("/files/{row}/{id}")).bearer_auth(&bob.token);
    let beyond = app.send_unjudged(request.header("range", "bytes=3000000-")).await;
    assert_eq!(
        (beyond.refused(416).as_str(), beyond.header("content-range")),
        ("no_such_range", "bytes */3000000")
    );
}

#[tokio::test]
async fn the_first_bytes_may_come_with_the_beginning() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let request = tus(&app, &ann, Method::POST, "/files").header("upload-length", 9);
    let request = request.header("content-type", "application/offset+octet-stream");
    let begun = app.send(request.body("low t")).await;
    assert_eq!((id_of(&begun).len(), begun.header("upload-offset")), (36, "5"));
    let id = id_of(&begun);
    add(&app, &ann, &id, 5, b"ide!").await.ok(204);
    let row = send(&app, &ann, &ann, 1, &[&id]).await;
    assert_eq!(read(&app, &ann, row, &id).await.text, "low tide!");
    assert_eq!(app.rows(&ann).await[0]["body"]["files"][0]["name"], "file");
}

#[tokio::test]
async fn a_server_says_what_it_takes_and_keeps_to_the_version() {
    let app = TestApp::start_with(|config| config.files.file_mib = 2).await;
    let ann = app.sign_up("ann").await;
    let options = app.send_unjudged(app.request(Method::OPTIONS, "/files")).await;
    assert_eq!(options.status, 204);
    assert_eq!(options.header("tus-version"), "1.0.0");
    assert_eq!(options.header("tus-max-size"), "2097152");
    assert_eq!(options.header("tus-extension"), "creation,creation-with-upload,expiration,termination");
    let without = app.request(Method::POST, "/files").bearer_auth(&ann.token).header("upload-length", 1);
    let refused = app.send(without).await;
    assert_eq!((refused.refused(412).as_str(), refused.header("tus-version")), ("tus_version", "1.0.0"));
    let preflight = app.request(Method::OPTIONS, "/files").header("origin", "https://elsewhere.example");
    let preflight = preflight.header("access-control-request-method", "PATCH");
    let preflight = app.send_unjudged(preflight).await;
    assert!(preflight.header("access-control-allow-headers").contains("upload-offset"));
    assert!(preflight.header("access-control-allow-methods").contains("HEAD"));
    let read = tus(&app, &ann, Method::POST, "/files")
        .header("upload-length", 1)
        .header("origin", "https://elsewhere.example");
    let read = app.send(read).await;
    assert_eq!(read.status, 201);
    assert!(read.header("access-control-expose-headers").contains("upload-offset"));
}

#[tokio::test]
async fn an_upload_that_is_ended_leaves_nothing_behind() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let id = id_of(&begin(&app, &ann, "a", 9).await);
    add(&app, &ann, &id, 0, b"half").await.ok(204);
    assert_eq!(objects(&app).len(), 1);
    let end = async |who, id: &str| app.send(tus(&app, who, Method::DELETE, &format!("/files/{id}"))).await;
    assert_eq!(end(&bob, &id).await.refused(404), "unknown_file");
    end(&ann, &id).await.ok(204);
    assert_eq!((offset(&app, &ann, &id).await, objects(&app)), (None, Vec::new()));
    assert_eq!(end(&ann, &id).await.refused(404), "unknown_file");

    let whole = upload(&app, &ann, "a", b"whole").await;
    send(&app, &ann, &bob, 1, &[&whole]).await;
    assert_eq!(end(&ann, &whole).await.refused(409), "file_named");
}

#[tokio::test]
async fn an_upload_goes_on_after_the_server_has_stopped() {
    let mut app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let id = id_of(&begin(&app, &ann, "a", 8).await);
    add(&app, &ann, &id, 0, b"low ").await.ok(204);
    app.restart().await;
    assert_eq!(offset(&app, &ann, &id).await, Some(4));
    add(&app, &ann, &id, 4, b"tide").await.ok(204);
    let row = send(&app, &ann, &ann, 1, &[&id]).await;
    assert_eq!(read(&app, &ann, row, &id).await.text, "low tide");
}

/// What had come when a connection is lost counts, and the rest comes over another one.
#[tokio::test]
async fn what_came_before_a_lost_connection_is_kept() {
    use tokio::io::AsyncWriteExt as _;
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let id = id_of(&begin(&app, &ann, "a", 1_000_000).await);
    let mut connection = tokio::net::TcpStream::connect(&app.address).await.expect("connected");
    let head = format!(
        "PATCH /files/{id} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ntus-resumable: 1.0.0\r\nupload-offset: 0\r\n\
         content-type: application/offset+octet-stream\r\ncontent-length: 1000000\r\n\r\n",
        app.address, ann.token
    );
    connection.write_all(head.as_bytes()).await.expect("sent");
    connection.write_all(&[b'a'; 400_000]).await.expect("sent");
    drop(connection);
    let mut there = 0;
    tidemark_test_support::until::until("what had come is stored", async || {
        there = offset(&app, &ann, &id).await.expect("an upload");
        there > 0
    })
    .await;
    assert_eq!(there, 400_000);
    let rest = vec![b'a'; 600_000];
    add(&app, &ann, &id, there, &rest).await.ok(204);
}
