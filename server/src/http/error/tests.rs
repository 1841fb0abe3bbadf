//! Refusals as callers read them.

use super::*;

#[test]
fn a_problem_is_a_document_with_code_and_retryable() {
    let problem = Problem::rate_limited(Duration::from_millis(1_200));
    let document = serde_json::to_value(problem.document()).expect("JSON");
    assert_eq!(document["type"], "/docs#code-rate_limited");
    assert_eq!(document["status"], 429);
    assert_eq!(document["title"], "Too Many Requests");
    assert_eq!(document["code"], "rate_limited");
    assert_eq!((&document["retryable"], &document["retry_after"]), (&true.into(), &2.into()));
    let response = problem.into_response();
    assert_eq!(response.headers()[header::RETRY_AFTER], "2");
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/problem+json");
}

#[test]
fn what_is_wrong_with_a_body_is_reported_in_the_words_of_json() {
    #[derive(Debug, serde::Deserialize)]
    struct Example {
        #[expect(dead_code, reason = "only its absence is looked at")]
        uid: u32,
    }
    for (text, reported) in [
        ("{}", "the field `uid` is missing"),
        ("null", "expected an object, found null at line 1 column 4"),
        ("[7]", "expected an object, found an array at line 1 column 0"),
        (
            r#"{"uid":"x"}"#,
            "expected a whole number from 0 to 4294967295, found string \"x\" at line 1 column 10",
        ),
        (
            r#"{"uid":-1}"#,
            "expected a whole number from 0 to 4294967295, found integer `-1` at line 1 column 9",
        ),
        (r#"{"uid":1,"uid":2}"#, "the field `uid` is there twice at line 1 column 14"),
    ] {
        let error = crate::http::object::from_text::<Example>(text).expect_err(text);
        assert_eq!(Problem::from_json(&error).detail, reported);
    }
}

#[test]
fn malformed_json_and_a_wrong_type_are_distinguished() {
    let fault = |text| Problem::from_json(&serde_json::from_str::<[u8; 1]>(text).expect_err("bad"));
    assert_eq!(fault("[1").code, "malformed_json");
    assert_eq!(fault("[\"x\"]").code, "invalid_body");
}
