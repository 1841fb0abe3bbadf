//! Pictures of people and groups: who chooses one, who sees it, what is served, and when its file goes.

use std::io::Cursor;
use std::time::Duration;

use image::codecs::gif::GifEncoder;
use image::{DynamicImage, Frame, ImageFormat, Rgba, RgbaImage};
use reqwest::Method;
use serde_json::{Value, json};
use tidemark_test_support::until::until;

use super::{objects, send, upload};
use crate::support::{Answer, Person, TestApp, client_id};

const RED: Rgba<u8> = Rgba([220, 20, 20, 255]);
const BLUE: Rgba<u8> = Rgba([20, 20, 220, 255]);

fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let picture = DynamicImage::ImageRgba8(RgbaImage::from_pixel(width, height, RED));
    picture.write_to(&mut bytes, ImageFormat::Png).expect("encoded");
    bytes.into_inner()
}

/// Red first, then blue.
fn animation() -> Vec<u8> {
    let mut bytes = Vec::new();
    let frames = [RED, BLUE].map(|colour| Frame::new(RgbaImage::from_pixel(40, 20, colour)));
    GifEncoder::new(&mut bytes).encode_frames(frames).expect("encoded");
    bytes
}

async fn choose(app: &TestApp, who: &Person, n: u128, file: Option<&str>) -> Answer {
    let value = file.map(|file| json!({"file": file}));
    app.put(who, "/api/v1/settings/picture", json!({"client_id": client_id(n), "value": value})).await
}

async fn describe(app: &TestApp, who: &Person, gid: &Value, picture: Option<&str>) -> Answer {
    let request = app.request(Method::PATCH, &format!("/api/v1/groups/{gid}")).bearer_auth(&who.token);
    app.send(request.json(&json!({"picture": picture}))).await
}

async fn see(app: &TestApp, who: &Person, of: &str, id: &str) -> reqwest::Response {
    let request = app.request(Method::GET, &format!("/files/pictures/{of}/{id}")).bearer_auth(&who.token);
    request.send().await.expect("an answer")
}

async fn of(app: &TestApp, who: &Person, uid: u64) -> Value {
    app.get(who, &format!("/api/v1/profiles?uids={uid}")).await.ok(200)[0]["picture"].clone()
}

#[tokio::test]
async fn a_person_has_a_picture_that_everybody_sees_as_a_small_square() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let file = upload(&app, &ann, "secret name.png", &png(700, 400)).await;
    let own = format!("u:{}", ann.uid);
    assert_eq!(see(&app, &bob, &own, &file).await.status(), 404, "nobody has chosen it");
    choose(&app, &ann, 1, Some(&file)).await.ok(201);
    choose(&app, &ann, 1, Some(&file)).await.ok(200);
    assert_eq!(of(&app, &bob, ann.uid).await, json!(file));
    assert_eq!(app.get(&bob, &format!("/api/v1/users/{}", ann.uid)).await.ok(200)["picture"], json!(file));

    let seen = see(&app, &bob, &own, &file).await;
    let header = |name: &str| seen.headers()[name].to_str().expect("text").to_owned();
    assert_eq!(header("content-type"), "image/jpeg");
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert_eq!(header("content-disposition"), "inline; filename*=UTF-8''picture.jpg");
    assert_eq!(header("cache-control"), "private, max-age=31536000, immutable");
    assert!(header("content-security-policy").contains("sandbox"));
    let tag = header("etag");
    let picture = image::load_from_memory(&seen.bytes().await.expect("bytes")).expect("a picture");
    assert_eq!((picture.width(), picture.height()), (256, 256));
    let again = app.request(Method::GET, &format!("/files/pictures/{own}/{file}")).bearer_auth(&bob.token);
    assert_eq!(again.header("if-none-match", tag).send().await.expect("an answer").status(), 304);
    let nobody = app.request(Method::GET, &format!("/files/pictures/{own}/{file}"));
    assert_eq!(app.send_unjudged(nobody).await.refused(401), "unauthorized");
    assert_eq!(see(&app, &bob, &format!("u:{}", bob.uid), &file).await.status(), 404);
    assert_eq!(see(&app, &bob, "x", &file).await.status(), 404);
    assert_eq!(see(&app, &bob, &own, "x").await.status(), 404);

    // The same file in a message is told as ever.
    send(&app, &ann, &bob, 2, &[&file]).await;
    let rows = app.rows(&bob).await;
    assert_eq!(rows[0]["body"]["files"][0]["previews"], json!(["small"]));
    choose(&app, &ann, 3, None).await.ok(201);
    assert_eq!(of(&app, &bob, ann.uid).await, Value::Null);
    assert_eq!(see(&app, &bob, &own, &file).await.status(), 404);
}

#[tokio::test]
async fn what_is_no_picture_or_not_ones_own_is_refused_and_an_animation_becomes_its_first_image() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    for (n, bytes) in
        [(1, &b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>"[..]), (2, b"%PDF-1.7"), (3, b"words")]
    {
        let file = upload(&app, &ann, "me.png", bytes).await;
        assert_eq!(choose(&app, &ann, n, Some(&file)).await.refused(422), "no_picture");
    }
    let others = upload(&app, &bob, "me.png", &png(9, 9)).await;
    assert_eq!(choose(&app, &ann, 4, Some(&others)).await.refused(404), "unknown_file");
    assert_eq!(choose(&app, &ann, 5, Some("x")).await.refused(422), "bad_setting");
    assert_eq!(of(&app, &bob, ann.uid).await, Value::Null);

    let file = upload(&app, &ann, "me.gif", &animation()).await;
    choose(&app, &ann, 6, Some(&file)).await.ok(201);
    let seen = see(&app, &bob, &format!("u:{}", ann.uid), &file).await.bytes().await.expect("bytes");
    let picture = image::load_from_memory(&seen).expect("a picture").to_rgb8();
    let [red, _, blue] = picture.get_pixel(9, 9).0;
    assert_eq!((picture.width(), picture.height()), (20, 20));
    assert!(red > 180 && blue < 60 && seen.starts_with(b"\xff\xd8"), "{red} {blue}");
}

#[tokio::test]
async fn who_looks_after_a_group_chooses_its_picture_and_members_see_it() {
    let app = TestApp::start().await;
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    let made = json!({"name": "walkers", "members": [bob.uid]});
    let gid = app.post(&ann, "/api/v1/groups", made).await.ok(201)["gid"].clone();
    let file = upload(&app, &ann, "us.png", &png(64, 80)).await;
    let own = upload(&app, &bob, "us.png", &png(64, 80)).await;
    assert_eq!(describe(&app, &bob, &gid, Some(&own)).await.refused(403), "administrators_only");
    assert_eq!(describe(&app, &ann, &gid, Some(&own)).await.refused(404), "unknown_file");
    assert_eq!(describe(&app, &eve, &gid, None).await.refused(404), "unknown_group");
    describe(&app, &ann, &gid, Some(&file)).await.ok(204);
    let path = format!("/api/v1/groups/{gid}");
    assert_eq!(app.get(&bob, &path).await.ok(200)["picture"], json!(file));
    assert_eq!(app.get(&bob, "/api/v1/conversations").await.ok(200)[0]["picture"], json!(file));
    let row = app.rows(&bob).await.pop().expect("a row");
    assert_eq!((&row["body"]["action"], &row["body"]["picture"]), (&json!("picture"), &json!(file)));
    let of = format!("g:{gid}");
    assert_eq!(see(&app, &bob, &of, &file).await.status(), 200);
    assert_eq!(see(&app, &eve, &of, &file).await.status(), 404);
    app.delete(&bob, &format!("{path}/members/{}", bob.uid)).await.ok(204);
    assert_eq!(see(&app, &bob, &of, &file).await.status(), 404);
    assert_eq!(app.get(&bob, "/api/v1/conversations").await.ok(200)[0]["picture"], Value::Null);
    describe(&app, &ann, &gid, None).await.ok(204);
    assert_eq!(app.get(&ann, &path).await.ok(200)["picture"], Value::Null);
    assert_eq!(see(&app, &ann, &of, &file).await.status(), 404);
}

#[tokio::test]
async fn devices_that_watch_somebody_and_the_own_ones_are_told_of_another_picture() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let file = upload(&app, &ann, "me.png", &png(9, 9)).await;
    let mut own = app.socket(&ann).await;
    own.begin().await;
    let mut watching = app.socket(&bob).await;
    watching.begin().await;
    watching.send(&json!({"type": "presence", "of": [ann.uid]})).await;
    watching.expect("presence").await;
    choose(&app, &ann, 1, Some(&file)).await.ok(201);
    assert_eq!(watching.expect("person").await, json!({"type": "person", "uid": ann.uid}));
    let entries = own.expect("entries").await;
    let body = &entries["entries"][0]["body"];
    assert_eq!(body, &json!({"name": "picture", "value": {"file": file}}));
}

/// A day passes, and the server looks at what is due.
async fn a_day_later(app: &mut TestApp) {
    app.pass(Duration::from_secs(86_460)).await;
    app.restart().await;
}

#[tokio::test]
async fn a_picture_stays_as_long_as_it_is_one_and_goes_a_day_after_that() {
    // Rows that are still in memory alone go later.
    let mut app = TestApp::start_with(|config| config.storage.flush_rows = 1).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let first = upload(&app, &ann, "1.png", &png(9, 9)).await;
    let second = upload(&app, &ann, "2.png", &png(9, 9)).await;
    let third = upload(&app, &bob, "3.png", &png(9, 9)).await;
    let made = json!({"name": "walkers", "members": [ann.uid]});
    let gid = app.post(&bob, "/api/v1/groups", made).await.ok(201)["gid"].clone();
    choose(&app, &ann, 1, Some(&first)).await.ok(201);
    describe(&app, &bob, &gid, Some(&third)).await.ok(204);
    // Each has its bytes and its square; the second one its bytes alone.
    assert_eq!(objects(&app).len(), 5);
    a_day_later(&mut app).await;
    until("what nobody chose is gone", async || objects(&app).len() == 4).await;
    let second_again = upload(&app, &ann, "2.png", &png(9, 9)).await;
    assert_ne!(second, second_again);
    choose(&app, &ann, 2, Some(&second_again)).await.ok(201);
    assert_eq!(objects(&app).len(), 6);
    a_day_later(&mut app).await;
    until("the one before is gone", async || objects(&app).len() == 4).await;
    assert_eq!(see(&app, &bob, &format!("u:{}", ann.uid), &second_again).await.status(), 200);
    assert_eq!(see(&app, &ann, &format!("g:{gid}"), &third).await.status(), 200);

    app.post(&ann, "/api/v1/me/delete", json!({"password": "correct horse"})).await.ok(204);
    assert_eq!(see(&app, &bob, &format!("u:{}", ann.uid), &second_again).await.status(), 404);
    a_day_later(&mut app).await;
    until("it goes with the account", async || objects(&app).len() == 2).await;
    describe(&app, &bob, &gid, None).await.ok(204);
    a_day_later(&mut app).await;
    until("nothing is left", async || objects(&app).is_empty()).await;
}
