//! Files go when nothing names them any more, and not before.

use std::time::Duration;

use serde_json::json;

use super::{add, begin, id_of, objects, offset, read, send, upload};
use crate::support::{TestApp, client_id};
use tidemark_test_support::until::until;

const DAY: Duration = Duration::from_secs(86_400);

/// Lets a day and a bit pass, and starts the server again: it looks at once.
async fn a_day_later(app: &mut TestApp) {
    app.pass(DAY + Duration::from_secs(60)).await;
    app.restart().await;
}

#[tokio::test]
async fn an_upload_that_stops_and_a_file_that_nobody_names_go_after_a_day() {
    let mut app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let stopped = id_of(&begin(&app, &ann, "a", 9).await);
    add(&app, &ann, &stopped, 0, b"half").await.ok(204);
    let unnamed = upload(&app, &ann, "a", b"whole").await;
    app.pass(DAY - Duration::from_secs(60)).await;
    app.restart().await;
    assert_eq!((offset(&app, &ann, &stopped).await, offset(&app, &ann, &unnamed).await), (Some(4), Some(5)));
    a_day_later(&mut app).await;
    until("both are gone", async || {
        offset(&app, &ann, &stopped).await.is_none() && offset(&app, &ann, &unnamed).await.is_none()
    })
    .await;
    until("nothing is left", async || objects(&app).is_empty()).await;
}

#[tokio::test]
async fn a_file_goes_with_the_last_row_that_names_it() {
    let mut app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let (kept, recalled) =
        (upload(&app, &ann, "a", b"kept").await, upload(&app, &ann, "b", b"recalled").await);
    send(&app, &ann, &bob, 1, &[&kept]).await;
    let row = send(&app, &ann, &bob, 2, &[&recalled]).await;
    let copy = app.rows(&bob).await[0]["message_id"].as_u64().expect("an id");
    let path = format!("/api/v1/conversations/u:{}/messages/{row}/recall", bob.uid);
    app.post(&ann, &path, json!({"client_id": client_id(3)})).await.ok(201);
    // The sender's own copy is gone, the other one names the file.
    let own = app.rows(&ann).await[0]["message_id"].as_u64().expect("an id");
    let path = format!("/api/v1/conversations/u:{}/messages/{own}/delete", bob.uid);
    app.post(&ann, &path, json!({"client_id": client_id(4)})).await.ok(201);
    a_day_later(&mut app).await;
    until("what was recalled is gone", async || objects(&app).len() == 1).await;
    assert_eq!(read(&app, &bob, copy, &kept).await.text, "kept");
    assert_eq!(offset(&app, &ann, &recalled).await, None);
    let path = format!("/api/v1/conversations/u:{}/messages/{copy}/delete", ann.uid);
    app.post(&bob, &path, json!({"client_id": client_id(5)})).await.ok(201);
    a_day_later(&mut app).await;
    until("nothing is left", async || objects(&app).is_empty()).await;
}

#[tokio::test]
async fn the_end_of_an_account_leaves_what_others_have() {
    // Rows that are still in memory alone go later.
    let mut app = TestApp::start_with(|config| config.storage.flush_rows = 1).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let (sent, note) = (upload(&app, &ann, "a", b"sent").await, upload(&app, &ann, "b", b"note").await);
    send(&app, &ann, &bob, 1, &[&sent]).await;
    send(&app, &ann, &ann, 2, &[&note]).await;
    id_of(&begin(&app, &ann, "c", 9).await);
    let copy = app.rows(&bob).await[0]["message_id"].as_u64().expect("an id");
    app.post(&ann, "/api/v1/me/delete", json!({"password": "correct horse"})).await.ok(204);
    // The rows go once no server writes for the account any more, and files after them.
    a_day_later(&mut app).await;
    until("the note is gone", async || objects(&app).len() == 1).await;
    assert_eq!(read(&app, &bob, copy, &sent).await.text, "sent");
}
