//! `/ws`: the flow of frames, and frames that are not as they should be.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::support::{Person, Socket, TestApp, client_id, texts};

async fn two(app: &TestApp) -> (Person, Person) {
    (app.sign_up("ann").await, app.sign_up("bob").await)
}

fn rows(frame: &Value) -> Vec<&str> {
    texts(frame["entries"].as_array().expect("entries"))
}

#[tokio::test]
async fn welcome_comes_first_and_nothing_unasked_before_a_heartbeat() {
    let app = TestApp::start().await;
    let (ann, bob) = two(&app).await;
    let mut socket = app.socket(&bob).await;
    let welcome = socket.expect("welcome").await;
    let history = app.get(&bob, "/api/v1/me").await.ok(200)["history"].clone();
    assert_eq!(
        welcome,
        json!({
            "type": "welcome", "version": 1, "uid": bob.uid, "seq": 0, "history": history, "heartbeat_seconds": 30
        })
    );
    let id = app.say(&ann, &bob, 1, "hi").await;
    let first = socket.only_answer_to(0).await;
    assert_eq!(
        (&first["type"], &first["after"], &first["more"]),
        (&json!("entries"), &json!(0), &json!(false))
    );
    assert_eq!((rows(&first), &first["synced"]), (vec!["hi"], &json!(id)));
    let alive = socket.only_answer_to(id).await;
    assert_eq!(alive, json!({"type": "alive", "seq": id, "history": history}));
}

#[tokio::test]
async fn new_rows_come_unasked_one_unacknowledged_frame_at_a_time() {
    let app = TestApp::start().await;
    let (ann, bob) = two(&app).await;
    let mut socket = app.socket(&bob).await;
    socket.begin().await;
    let first = app.say(&ann, &bob, 1, "one").await;
    let frame = socket.expect("entries").await;
    assert_eq!((rows(&frame), &frame["after"], &frame["synced"]), (vec!["one"], &json!(0), &json!(first)));
    app.say(&ann, &bob, 2, "two").await;
    let third = app.say(&ann, &bob, 3, "three").await;
    let frame = socket.only_answer_to(first).await;
    assert_eq!(frame["type"], "entries", "nothing came between the frame and its acknowledgement");
    assert_eq!((rows(&frame), &frame["after"]), (vec!["two", "three"], &json!(first)));
    assert_eq!(socket.only_answer_to(third).await["type"], "alive");
    app.say(&ann, &bob, 4, "four").await;
    assert_eq!(rows(&socket.expect("entries").await), ["four"]);
}

#[tokio::test]
async fn after_more_nothing_comes_until_the_client_asks() {
    let app = TestApp::start_with(|config| config.limits.entries_rows = 2).await;
    let (ann, bob) = two(&app).await;
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(app.say(&ann, &bob, n, &n.to_string()).await);
    }
    let mut socket = app.socket(&bob).await;
    socket.expect("welcome").await;
    let frame = socket.only_answer_to(0).await;
    assert_eq!(
        (rows(&frame), &frame["synced"], &frame["more"]),
        (vec!["0", "1"], &json!(ids[1]), &json!(true))
    );
    app.say(&ann, &bob, 5, "5").await;
    let frame = socket.only_answer_to(ids[1]).await;
    assert_eq!((rows(&frame), &frame["more"]), (vec!["2", "3"], &json!(true)));
    let frame = socket.only_answer_to(ids[3]).await;
    assert_eq!((rows(&frame), &frame["more"]), (vec!["4", "5"], &json!(false)));
}

#[tokio::test]
async fn a_cursor_goes_down_where_the_client_says_so() {
    let app = TestApp::start().await;
    let (ann, bob) = two(&app).await;
    for n in 0..3 {
        app.say(&ann, &bob, n, &n.to_string()).await;
    }
    let mut socket = app.socket(&bob).await;
    socket.begin().await;
    assert_eq!(rows(&socket.only_answer_to(0).await), ["0", "1", "2"], "storing it failed: once more from 0");
    assert_eq!(rows(&socket.only_answer_to(0).await), ["0", "1", "2"]);
}

#[tokio::test]
async fn a_cursor_beyond_the_latest_id_is_answered_with_the_true_one() {
    let app = TestApp::start().await;
    let (ann, bob) = two(&app).await;
    let latest = app.say(&ann, &bob, 1, "hi").await;
    let mut socket = app.socket(&bob).await;
    socket.expect("welcome").await;
    for beyond in [latest + 1, 9_007_199_254_740_991, u64::MAX] {
        let alive = socket.only_answer_to(beyond).await;
        assert_eq!((&alive["type"], &alive["seq"]), (&json!("alive"), &json!(latest)), "{beyond}");
    }
    let metrics = app.send(app.request(reqwest::Method::GET, "/metrics")).await.text;
    assert!(metrics.contains("tidemark_cursors_ahead_total 3\n"), "each is counted: {metrics}");
    let id = app.say(&ann, &bob, 2, "after").await;
    let frame = socket.expect("entries").await;
    assert_eq!(
        (&frame["after"], &frame["synced"]),
        (&json!(latest), &json!(id)),
        "the cursor is the true one"
    );
}

#[tokio::test]
async fn sends_are_accepted_in_the_order_of_their_frames_and_move_no_cursor() {
    let app = TestApp::start().await;
    let (ann, bob) = two(&app).await;
    let mut socket = app.socket(&ann).await;
    socket.expect("welcome").await;
    let to = json!({"user": bob.uid});
    for n in 0..200 {
        socket.say(&to, n, &n.to_string()).await;
    }
    let mut sent = Vec::new();
    for _ in 0..200 {
        let frame = socket.expect("sent").await;
        sent.push((
            frame["client_id"].as_str().expect("a name").to_owned(),
            frame["message_id"].as_u64().expect("an id"),
        ));
    }
    sent.sort_by_key(|(_, id)| *id);
    let names: Vec<String> = sent.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names, (0..200).map(client_id).collect::<Vec<_>>());
    let expected: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    assert_eq!(texts(&app.rows(&bob).await), expected);
    let frame = socket.only_answer_to(0).await;
    assert_eq!(
        (&frame["type"], &frame["after"]),
        (&json!("entries"), &json!(0)),
        "one's own rows come by sync"
    );
    assert_eq!(rows(&frame), expected);
}

#[tokio::test]
async fn a_repeated_send_gets_the_first_answer_and_a_refused_one_its_name() {
    let app = TestApp::start().await;
    let (ann, bob) = two(&app).await;
    let mut socket = app.socket(&ann).await;
    socket.expect("welcome").await;
    let to = json!({"user": bob.uid});
    socket.say(&to, 1, "hi").await;
    let first = socket.expect("sent").await;
    socket.say(&to, 1, "hi").await;
    assert_eq!(socket.expect("sent").await, first);
    for (to, n, text, code) in [
        (&to, 1, "other", "client_id_reused"),
        (&json!({"user": 77}), 2, "hi", "unknown_user"),
        (&json!({"group": 77}), 3, "hi", "unknown_group"),
        (&to, 4, " ", "text_empty"),
        (&json!({}), 5, "hi", "invalid_body"),
    ] {
        socket.say(to, n, text).await;
        let error = socket.expect("error").await;
        assert_eq!((&error["code"], &error["client_id"]), (&json!(code), &json!(client_id(n))), "{error}");
        assert!(error["detail"].is_string() && error["retryable"] == false);
    }
}

#[tokio::test]
async fn a_read_marker_reaches_ones_other_devices() {
    let app = TestApp::start().await;
    let (ann, bob) = two(&app).await;
    let id = app.say(&ann, &bob, 1, "hi").await;
    let (mut phone, mut laptop) = (app.socket(&bob).await, app.socket(&bob).await);
    phone.begin().await;
    laptop.begin().await;
    let conversation = format!("u:{}", ann.uid);
    phone.send(&json!({"type": "read", "conversation": conversation, "message_id": id})).await;
    for device in [&mut phone, &mut laptop] {
        let frame = device.expect("entries").await;
        let row = &frame["entries"][0];
        assert_eq!((&row["kind"], &row["body"]), (&json!("receipt"), &json!({"read_to": id})));
        assert_eq!(row["conversation"], conversation);
    }
    phone.send(&json!({"type": "read", "conversation": conversation, "message_id": id + 9})).await;
    assert_eq!(phone.expect("error").await["code"], "not_in_conversation");
}

#[tokio::test]
async fn a_refused_read_or_seen_names_its_conversation_and_row() {
    let app = TestApp::start().await;
    let (ann, bob) = two(&app).await;
    let id = app.say(&ann, &bob, 1, "hi").await;
    let mut socket = app.socket(&bob).await;
    socket.expect("welcome").await;
    let with_ann = format!("u:{}", ann.uid);
    for (frame, code) in [
        (json!({"type": "read", "conversation": with_ann, "message_id": id + 9}), "not_in_conversation"),
        (
            json!({"type": "seen", "conversation": with_ann, "message_id": id + 8, "state": "read"}),
            "not_in_conversation",
        ),
        (
            json!({"type": "seen", "conversation": with_ann, "message_id": id, "state": "heard"}),
            "invalid_body",
        ),
        (json!({"type": "seen", "conversation": "g:7", "message_id": 7, "state": "read"}), "invalid_body"),
    ] {
        socket.send(&frame).await;
        let error = socket.expect("error").await;
        assert_eq!(error["code"], code, "{error}");
        for field in ["conversation", "message_id"] {
            assert_eq!(error[field], frame[field], "{error}");
        }
        assert_eq!(error.get("client_id"), None, "{error}");
    }
    socket.send(&json!({"type": "read", "conversation": with_ann})).await;
    let error = socket.expect("error").await;
    assert_eq!((error.get("conversation"), error.get("message_id")), (None, None), "{error}");
}

#[tokio::test]
async fn frames_that_are_not_understood_are_refused_and_the_connection_stays() {
    let app = TestApp::start_with(|config| config.limits.frame_bytes = 2_000).await;
    let (ann, _) = two(&app).await;
    let mut socket = app.socket(&ann).await;
    socket.expect("welcome").await;
    for (text, code) in [
        ("".to_owned(), "malformed_json"),
        ("{".to_owned(), "malformed_json"),
        ("[]".to_owned(), "invalid_body"),
        ("7".to_owned(), "invalid_body"),
        (r#"{"type":"humming","seq":{}}"#.to_owned(), "unknown_type"),
        (r#"{"type":7}"#.to_owned(), "invalid_body"),
        (r#"{"type":"heartbeat","seq":"1"}"#.to_owned(), "invalid_body"),
        (r#"{"type":"send"}"#.to_owned(), "invalid_body"),
        (r#"{"type":"read","conversation":"x","message_id":1}"#.to_owned(), "invalid_body"),
        (format!(r#"{{"type":"heartbeat","seq":0,"pad":"{}"}}"#, "x".repeat(2_000)), "frame_too_large"),
    ] {
        socket.send_raw(Message::text(text.clone())).await;
        assert_eq!(socket.expect("error").await["code"], code, "{}", &text[..text.len().min(60)]);
    }
    socket.send_raw(Message::binary(vec![1, 2, 3])).await;
    assert_eq!(socket.expect("error").await["code"], "binary_frame");
    assert_eq!(socket.only_answer_to(0).await["type"], "alive");
}

#[tokio::test]
async fn a_frame_far_over_the_limit_closes_the_connection_and_no_other() {
    let app = TestApp::start_with(|config| config.limits.frame_bytes = 2_000).await;
    let (ann, bob) = two(&app).await;
    let (mut huge, mut calm) = (app.socket(&ann).await, app.socket(&bob).await);
    calm.begin().await;
    huge.expect("welcome").await;
    huge.try_send("x".repeat(9_000)).await;
    assert_eq!(huge.expect("error").await["code"], "frame_too_large");
    assert_eq!(huge.closed().await, 1009);
    assert_eq!(calm.only_answer_to(0).await["type"], "alive");
}

#[tokio::test]
async fn devices_that_were_away_get_exactly_what_they_missed() {
    let mut app = TestApp::start().await;
    let (ann, bob) = two(&app).await;
    let seen = app.say(&ann, &bob, 1, "seen").await;
    app.restart().await;
    app.say(&ann, &bob, 2, "missed").await;
    let mut socket = app.socket(&bob).await;
    socket.expect("welcome").await;
    let frame = socket.only_answer_to(seen).await;
    assert_eq!((rows(&frame), &frame["after"]), (vec!["missed"], &json!(seen)));
}

#[tokio::test]
async fn invalid_utf8_is_refused_and_closes() {
    let app = TestApp::start().await;
    let (ann, _) = two(&app).await;
    let mut socket = app.socket(&ann).await;
    socket.expect("welcome").await;
    socket.send_raw_text_bytes(&[b'"', 0xff, 0xfe, b'"']).await;
    assert_eq!(socket.expect("error").await["code"], "invalid_utf8");
    assert_eq!(socket.closed().await, 1007);
}

#[tokio::test]
async fn one_who_is_silent_for_three_heartbeats_is_closed() {
    let app = TestApp::start_with(|config| config.server.heartbeat_seconds = 1).await;
    let (ann, _) = two(&app).await;
    let mut socket: Socket = app.socket(&ann).await;
    assert_eq!(socket.expect("welcome").await["heartbeat_seconds"], 1);
    let began = std::time::Instant::now();
    assert_eq!(socket.closed().await, 1001);
    assert!(began.elapsed().as_secs_f64() > 2.5, "{:?}", began.elapsed());
}
