//! Frames that are read and refused, and what a refusal names.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Fields that frames have, each with any value.
fn objects() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(json!("11111111-1111-4111-8111-111111111111")),
        Just(json!("u:10001")),
        Just(json!({"user": 10_001})),
        any::<String>().prop_map(Value::from),
        "[a-z]{0,5000}".prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    let value = leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,8}|text|user|group", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    let field =
        prop::sample::select(vec!["seq", "client_id", "to", "body", "conversation", "message_id", "of"]);
    let kind = prop_oneof![
        3 => prop::sample::select(vec!["heartbeat", "send", "read", "seen", "typing", "presence"]).prop_map(Value::from),
        1 => value.clone(),
    ];
    (kind, prop::collection::btree_map(field, value, 0..6)).prop_map(|(kind, fields)| {
        let mut object: serde_json::Map<_, _> =
            fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        object.insert("type".to_owned(), kind);
        Value::Object(object).to_string()
    })
}

/// Frames that a stranger may send: any text, objects, and objects with a piece of text in their middle.
fn texts() -> impl Strategy<Value = String> {
    let broken = (objects(), any::<prop::sample::Index>(), any::<String>()).prop_map(|(text, at, piece)| {
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let (before, after) = text.split_at(places[at.index(places.len())]);
        format!("{before}{piece}{after}")
    });
    prop_oneof![any::<String>(), objects(), broken]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_a_frame_or_refused_in_one_short_line(text in texts()) {
        if let Err(BadFrame { problem, about }) = parse(&text) {
            let frame = error(&problem, about);
            let frame: Value = serde_json::from_str(&frame).expect("what is answered is JSON");
            let detail = frame["detail"].as_str().expect("a text");
            prop_assert!(!detail.contains(char::is_control) && detail.chars().count() < 500, "{detail}");
        }
    }
}

#[test]
fn a_refusal_that_repeats_the_clients_words_is_one_line() {
    let bad = parse("{\"type\":\"se\\n\\u2028\\u001bd\"}").expect_err("no such frame");
    assert_eq!(bad.problem.detail, "there is no frame `se   d`; /docs/websocket lists all frames");
}

fn refusal(text: &str) -> (&'static str, bool) {
    let bad = parse(text).expect_err(text);
    (bad.problem.code, bad.about.is_some())
}

#[test]
fn heartbeats_of_any_size_are_read_and_unknown_fields_ignored() {
    for (text, seq) in [
        (r#"{"type":"heartbeat","seq":41}"#, 41),
        (r#"{ "seq" : 0, "mood": {"a": [1]}, "type" : "heartbeat" }"#, 0),
        (r#"{"type":"heartbeat","seq":18446744073709551615}"#, u64::MAX),
    ] {
        assert!(matches!(parse(text), Ok(ClientFrame::Heartbeat(n)) if n == seq), "{text}");
    }
}

#[test]
fn frames_that_are_not_understood_are_refused_by_what_is_wrong() {
    const ID: &str = "11111111-1111-4111-8111-111111111111";
    for (text, code, named) in [
        (r#"{"type":"heartbeat","seq":-1}"#.to_owned(), "invalid_body", false),
        (r#"{"type":"heartbeat"}"#.to_owned(), "invalid_body", false),
        (r#"{"type":"heartbeat","seq":4"#.to_owned(), "malformed_json", false),
        (r#"[1]"#.to_owned(), "invalid_body", false),
        (r#"["heartbeat",41]"#.to_owned(), "invalid_body", false),
        (r#"{"seq":1}"#.to_owned(), "invalid_body", false),
        (r#"{"type":"humming","seq":"odd"}"#.to_owned(), "unknown_type", false),
        (r#"{"type":"typing","conversation":"u:x"}"#.to_owned(), "invalid_body", false),
        (r#"{"type":"presence","of":[-1]}"#.to_owned(), "invalid_body", false),
        (r#"{"type":"send","client_id":"x"}"#.to_owned(), "invalid_body", false),
        (format!(r#"{{"type":"send","client_id":"{ID}","body":{{"text":"hi"}}}}"#), "invalid_body", true),
        (
            format!(r#"{{"type":"send","client_id":"{ID}","to":{{}},"body":{{"text":"hi"}}}}"#),
            "invalid_body",
            true,
        ),
        (r#"{"type":"read","conversation":"7","message_id":1}"#.to_owned(), "invalid_body", false),
        (r#"{"type":"read","conversation":"g:7","message_id":-1}"#.to_owned(), "invalid_body", false),
        (r#"{"type":"seen","conversation":"u:7","state":"read"}"#.to_owned(), "invalid_body", false),
        (r#"{"type":"typing","conversation":7,"message_id":1}"#.to_owned(), "invalid_body", false),
        (
            r#"{"type":"read","conversation":"g:7","message_id":9007199254740992}"#.to_owned(),
            "invalid_body",
            false,
        ),
    ] {
        assert_eq!(refusal(&text), (code, named), "{text}");
    }
}

#[test]
fn an_error_frame_names_the_message_that_it_is_about() {
    let id = ClientId(Uuid::nil());
    let text = error(&Problem::invalid_body("a \"quote\""), Some(Subject::Send(id)));
    let frame: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(frame["type"], "error");
    assert_eq!(frame["detail"], "a \"quote\"");
    assert_eq!(frame["retryable"], false);
    assert_eq!(frame["client_id"], id.to_string());
}

#[test]
fn a_wrong_read_or_seen_is_refused_under_its_conversation_and_row() {
    for text in [
        r#"{"type":"seen","conversation":"g:7","message_id":9,"state":"read"}"#,
        r#"{"type":"seen","conversation":"g:7","message_id":9,"state":"heard"}"#,
        r#"{"type":"seen","conversation":"g:7","message_id":9}"#,
    ] {
        let bad = parse(text).expect_err(text);
        assert_eq!(bad.problem.code, "invalid_body", "{text}");
        let frame: Value = serde_json::from_str(&error(&bad.problem, bad.about)).expect("JSON");
        assert_eq!((&frame["conversation"], &frame["message_id"]), (&json!("g:7"), &json!(9)), "{text}");
        assert_eq!(frame.get("client_id"), None, "{text}");
    }
}

#[test]
fn what_is_read_or_seen_is_kept_for_its_refusal() {
    for (text, conversation) in [
        (r#"{"type":"read","conversation":"g:7","message_id":9}"#, "g:7"),
        (r#"{"type":"seen","conversation":"u:7","message_id":9,"state":"delivered"}"#, "u:7"),
    ] {
        let Ok(ClientFrame::Mark(_, subject)) = parse(text) else { panic!("not read: {text}") };
        let frame: Value =
            serde_json::from_str(&error(&Problem::invalid_body(""), Some(subject))).expect("JSON");
        assert_eq!((&frame["conversation"], &frame["message_id"]), (&json!(conversation), &json!(9)));
    }
}

#[test]
fn an_error_about_nothing_in_particular_names_nothing() {
    let frame: Value = serde_json::from_str(&error(&Problem::flood(), None)).expect("JSON");
    let fields: Vec<&str> = frame.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(fields, ["code", "detail", "retryable", "type"]);
}
