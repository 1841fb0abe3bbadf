//! What is refused, in one sentence each, and leaves nothing behind.

use reqwest::Method;
use serde_json::json;

use super::{add, begin, id_of, message, objects, offset, tus, upload};
use crate::support::{TestApp, client_id};

#[tokio::test]
async fn names_sizes_and_types_have_bounds() {
    let app = TestApp::start_with(|config| {
        (config.files.file_mib, config.files.account_mib) = (1, 2);
        config.files.refused = ["image/gif", ".exe"].map(str::to_owned).to_vec();
    })
    .await;
    let ann = app.sign_up("ann").await;
    let longest = "a".repeat(255);
    for (name, length, code) in [
        ("../secret", 1, Some("bad_file_name")),
        ("\u{202e}gpj.exe", 1, Some("bad_file_name")),
        (&*"a".repeat(4_000), 1, Some("bad_file_name")),
        ("a.EXE", 1, Some("file_type_refused")),
        ("a", 0, Some("file_empty")),
        (&*longest, 1, None),
    ] {
        let begun = begin(&app, &ann, name, length).await;
        match code {
            Some(code) => assert_eq!(begun.refused(422), code, "{name}"),
            None => assert_eq!(begun.status, 201, "{}", begun.text),
        }
    }
    assert_eq!(begin(&app, &ann, "a", (1 << 20) + 1).await.refused(413), "file_too_large");
    assert_eq!(begin(&app, &ann, &"a".repeat(13_000), 1).await.refused(400), "invalid_query");
    for length in ["x", "-1", "99999999999999999999", ""] {
        let request = tus(&app, &ann, Method::POST, "/files").header("upload-length", length);
        assert_eq!(app.send(request).await.refused(400), "invalid_query");
    }
    let gif = id_of(&begin(&app, &ann, "a.png", 6).await);
    assert_eq!(add(&app, &ann, &gif, 0, b"GIF89a").await.refused(422), "file_type_refused");
    assert_eq!(offset(&app, &ann, &gif).await, None);
    assert_eq!(objects(&app), Vec::<String>::new());
}

#[tokio::test]
async fn an_upload_keeps_to_its_length_and_its_type() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let id = id_of(&begin(&app, &ann, "a", 4).await);
    assert_eq!(add(&app, &ann, &id, 0, b"longer").await.refused(413), "file_too_large");
    let request = tus(&app, &ann, Method::PATCH, &format!("/files/{id}")).header("upload-offset", 0);
    assert_eq!(app.send(request.body("low")).await.refused(415), "wrong_body_type");
    assert_eq!(offset(&app, &ann, &id).await, Some(0));
    assert_eq!(objects(&app), Vec::<String>::new());
    assert_eq!(add(&app, &ann, "x", 0, b"low").await.refused(404), "unknown_file");
}

#[tokio::test]
async fn an_account_has_room_for_so_much_and_so_many_uploads() {
    let app = TestApp::start_with(|config| (config.files.file_mib, config.files.account_mib) = (1, 1)).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    id_of(&begin(&app, &ann, "a", 1 << 19).await);
    assert_eq!(begin(&app, &ann, "a", (1 << 19) + 1).await.refused(422), "files_full");
    id_of(&begin(&app, &ann, "a", 1 << 19).await);
    for _ in 0..20 {
        id_of(&begin(&app, &bob, "a", 1).await);
    }
    assert_eq!(begin(&app, &bob, "a", 1).await.refused(422), "too_many_uploads");
}

#[tokio::test]
async fn a_message_names_a_few_files_each_once() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let mut files = Vec::new();
    for n in 0..10 {
        files.push(upload(&app, &ann, &format!("{n}"), b"x").await);
    }
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let to = || json!({"user": bob.uid});
    let post = async |body| app.post(&ann, "/api/v1/messages", body).await;
    post(message(1, to(), "nine", &files[..9])).await.ok(201);
    assert_eq!(app.rows(&bob).await[0]["body"]["files"].as_array().map(Vec::len), Some(9));
    assert_eq!(post(message(2, to(), "ten", &files)).await.refused(422), "invalid_body");
    assert_eq!(post(message(3, to(), "twice", &[files[0], files[0]])).await.refused(422), "invalid_body");
    assert_eq!(post(message(4, to(), "", &[])).await.refused(422), "text_empty");
    let wrong = json!({"client_id": client_id(5), "to": to(), "body": {"text": "", "files": [{"id": files[0], "waveform": "\""}]}});
    assert_eq!(post(wrong).await.refused(422), "invalid_body");
    assert_eq!(post(message(1, to(), "nine", &files[..8])).await.refused(409), "client_id_reused");
}
