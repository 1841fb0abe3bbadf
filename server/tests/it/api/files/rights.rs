//! A file is read by those who have a row that names it, for as long as it does, and by nobody else.

use reqwest::Method;
use serde_json::{Value, json};

use super::{message, read, send, tus, upload};
use crate::support::{Person, TestApp, client_id};

async fn amend(app: &TestApp, who: &Person, with: &Person, row: u64, what: &str, n: u128, more: Value) {
    let mut body = json!({"client_id": client_id(n)});
    more.as_object().into_iter().flatten().for_each(|(key, value)| body[key] = value.clone());
    let path = format!("/api/v1/conversations/u:{}/messages/{row}/{what}", with.uid);
    app.post(who, &path, body).await.ok(201);
}

async fn last(app: &TestApp, who: &Person) -> (u64, Value) {
    let row = app.rows(who).await.pop().expect("a row");
    (row["message_id"].as_u64().expect("an id"), row["body"].clone())
}

#[tokio::test]
async fn the_row_gives_the_right_and_takes_it_away() {
    let app = TestApp::start().await;
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    let file = upload(&app, &ann, "a.txt", b"secret").await;
    let own = send(&app, &ann, &bob, 1, &[&file]).await;
    let (copy, _) = last(&app, &bob).await;
    assert_eq!(read(&app, &ann, own, &file).await.text, "secret");
    assert_eq!(read(&app, &bob, copy, &file).await.text, "secret");
    let other = app.say(&eve, &bob, 2, "hello").await;
    for row in [own, copy, other, 0, 99] {
        assert_eq!(read(&app, &eve, row, &file).await.refused(404), "unknown_file");
    }
    assert_eq!(read(&app, &bob, copy, "x").await.refused(404), "unknown_file");
    let nobody = app.send_unjudged(app.request(Method::GET, &format!("/files/{copy}/{file}"))).await;
    assert_eq!(nobody.refused(401), "unauthorized");
    // Somebody who knows the id of a file can neither send it nor add to it.
    let stolen = message(3, json!({"user": eve.uid}), "", &[&file]);
    assert_eq!(app.post(&eve, "/api/v1/messages", stolen).await.refused(404), "unknown_file");
    let head = app.send_unjudged(tus(&app, &eve, Method::HEAD, &format!("/files/{file}"))).await;
    assert_eq!(head.status, 404);

    amend(&app, &bob, &ann, copy, "delete", 4, Value::Null).await;
    assert_eq!(read(&app, &bob, copy, &file).await.refused(404), "unknown_file");
    assert_eq!(read(&app, &ann, own, &file).await.text, "secret", "Bob has deleted his copy alone");
    amend(&app, &ann, &bob, own, "recall", 5, Value::Null).await;
    assert_eq!(read(&app, &ann, own, &file).await.refused(404), "unknown_file");
}

#[tokio::test]
async fn a_forwarded_message_and_an_edited_one_name_the_same_files() {
    let app = TestApp::start().await;
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    let file = upload(&app, &ann, "a.txt", b"secret").await;
    let body = message(1, json!({"user": bob.uid}), "look", &[&file]);
    let own = app.post(&ann, "/api/v1/messages", body).await.ok(201)["message_id"].as_u64().expect("an id");
    let (copy, shown) = last(&app, &bob).await;
    amend(&app, &ann, &bob, own, "edit", 2, json!({"body": {"text": ""}})).await;
    let edited = app.rows(&bob).await;
    assert_eq!((&edited[0]["body"]["text"], &edited[0]["body"]["files"]), (&json!(""), &shown["files"]));

    let forward =
        json!({"client_id": client_id(3), "to": {"user": eve.uid}, "body": {"text": "", "forward": copy}});
    app.post(&bob, "/api/v1/messages", forward.clone()).await.ok(201);
    app.post(&bob, "/api/v1/messages", forward).await.ok(200);
    let (forwarded, body) = last(&app, &eve).await;
    assert_eq!(body, json!({"text": "", "files": shown["files"], "forwarded_from": ann.uid}));
    assert_eq!(read(&app, &eve, forwarded, &file).await.text, "secret");
    amend(&app, &ann, &bob, own, "recall", 4, Value::Null).await;
    assert_eq!(read(&app, &eve, forwarded, &file).await.text, "secret", "her row names it");
    let both = json!({"client_id": client_id(5), "to": {"user": eve.uid}, "body": {"text": "", "forward": copy, "files": [{"id": file}]}});
    assert_eq!(app.post(&bob, "/api/v1/messages", both).await.refused(422), "invalid_body");
}

#[tokio::test]
async fn moments_and_sockets_name_files_too_and_a_repetition_gets_the_first_answer() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    for (who, with) in [(&ann, &bob), (&bob, &ann)] {
        let body = json!({"client_id": client_id(100 + u128::from(with.uid)), "wanted": true});
        app.put(who, &format!("/api/v1/friends/{}", with.uid), body).await.ok(201);
    }
    let file = upload(&app, &ann, "a.txt", b"sun").await;
    let said = json!({"id": file, "duration_ms": 1_500, "waveform": "AAEC", "width": 3, "height": 2});
    let moment = json!({"client_id": client_id(1), "text": "", "files": [said]});
    app.post(&ann, "/api/v1/moments", moment.clone()).await.ok(201);
    app.post(&ann, "/api/v1/moments", moment).await.ok(200);
    let (row, body) = last(&app, &bob).await;
    assert_eq!(
        body["files"][0],
        json!({"id": file, "name": "a.txt", "size": 3, "type": "application/octet-stream", "duration_ms": 1_500, "waveform": "AAEC", "width": 3, "height": 2})
    );
    assert_eq!(read(&app, &bob, row, &file).await.text, "sun");
    let other = json!({"client_id": client_id(1), "text": "", "files": [{"id": file}]});
    assert_eq!(app.post(&ann, "/api/v1/moments", other).await.refused(409), "client_id_reused");

    let mut socket = app.socket(&ann).await;
    socket.begin().await;
    let frame = json!({"type": "send", "client_id": client_id(2), "to": {"user": bob.uid}, "body": {"text": "", "files": [{"id": file}]}});
    for _ in 0..2 {
        socket.send(&frame).await;
        let answer = loop {
            let frame = socket.next().await.expect("open");
            if frame["client_id"] == client_id(2) {
                break frame;
            }
        };
        assert_eq!(answer["type"], "sent", "{answer}");
    }
    let (row, _) = last(&app, &bob).await;
    assert_eq!(read(&app, &bob, row, &file).await.text, "sun");
    let unknown = json!({"type": "send", "client_id": client_id(3), "to": {"user": bob.uid}, "body": {"text": "", "files": [{"id": client_id(9)}]}});
    socket.send(&unknown).await;
    let answer = loop {
        let frame = socket.next().await.expect("open");
        if frame["client_id"] == client_id(3) {
            break frame;
        }
    };
    assert_eq!((answer["type"].as_str(), answer["code"].as_str()), (Some("error"), Some("unknown_file")));
}

/// Nothing that is given runs in a page of this server.
#[tokio::test]
async fn what_is_given_is_kept_from_running() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let svg = br#"<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>"#;
    for (n, name, bytes, kind, how) in [
        (1, "tide\"; x=.svg", &svg[..], "application/octet-stream", "attachment"),
        (2, "a.png", b"<!doctype html><script>alert(1)</script>", "application/octet-stream", "attachment"),
        (3, "\u{6f6e}.mp3", b"ID3\x04\0\0\0\0\0\0", "audio/mpeg", "inline"),
    ] {
        let file = upload(&app, &ann, name, bytes).await;
        let row = send(&app, &ann, &ann, n, &[&file]).await;
        let answer =
            app.request(Method::GET, &format!("/files/{row}/{file}")).bearer_auth(&ann.token).send().await;
        let answer = answer.expect("an answer");
        let header = |name: &str| answer.headers()[name].to_str().expect("a text").to_owned();
        assert_eq!(header("content-type"), kind, "{name}");
        let disposition = header("content-disposition");
        assert!(disposition.starts_with(&format!("{how}; filename*=UTF-8''")), "{disposition}");
        assert!(
            !disposition.contains('"') && !disposition.contains(' ') || disposition.matches(' ').count() == 1,
            "{disposition}"
        );
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert!(header("content-security-policy").contains("sandbox"));
        assert_eq!(header("cache-control"), "private, max-age=31536000, immutable");
        let again = app.request(Method::GET, &format!("/files/{row}/{file}")).bearer_auth(&ann.token);
        let again = app.send_unjudged(again.header("if-none-match", header("etag"))).await;
        assert_eq!((again.status.as_u16(), again.text.as_str()), (304, ""));
    }
}
