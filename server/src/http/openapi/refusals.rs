//! Which refusals each operation may answer with. A handler names those of its own in `x-codes`; those that come from
//! what all handlers share follow from the operation's form: a body may be malformed, a session may have ended.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::http::codes::{Code, code};

/// Where an operation names the codes of its own. It is not served.
const OWN_CODES: &str = "x-codes";

/// Where the refusal of one message of a batch is described.
const REFUSED_MESSAGE: &str = "/components/schemas/Outcome/oneOf/1/properties/error";

/// Codes of everything that is written through a queue.
pub(in crate::http) fn writing<const N: usize>(own: [&'static str; N]) -> Vec<&'static str> {
    let shared =
        ["busy", "unavailable", "stopping", "exhausted", "rejected", "account_deleted", "quota_reached"];
    shared.into_iter().chain(own).collect()
}

/// Codes of one message that is refused.
pub(in crate::http) fn sending<const N: usize>(own: [&'static str; N]) -> Vec<&'static str> {
    let texts = ["text_empty", "text_too_long", "text_nul"];
    let sending = [
        "client_id_reused",
        "unknown_user",
        "unknown_group",
        "blocked",
        "blocks",
        "friends_only",
        "too_many_first_messages",
        "muted",
        "slow_mode",
    ];
    writing(own).into_iter().chain(texts).chain(sending).collect()
}

/// Adds to each operation of `document` an answer for each status with which it is refused.
pub(super) fn add(document: &mut Value) {
    let mut shared = Map::new();
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for (_, methods) in paths {
        for (method, operation) in methods.as_object_mut().into_iter().flatten() {
            for (status, codes) in by_status(method, operation) {
                let answer = answer(&codes);
                // One that many operations have in common stands once.
                let answer = match codes.as_slice() {
                    [only] => {
                        shared.insert(only.code.to_owned(), answer);
                        json!({"$ref": format!("#/components/responses/{}", only.code)})
                    }
                    _ => answer,
                };
                operation["responses"][status.to_string()] = answer;
            }
        }
    }
    document["components"]["responses"] = Value::Object(shared);
    // A message of a batch has codes, too.
    let refused = document.pointer_mut(REFUSED_MESSAGE).expect("a field of the results");
    *refused = of_codes(sending(["out_of_order", "malformed_json", "invalid_body", "unknown_file"]));
}

fn by_status(method: &str, operation: &mut Value) -> BTreeMap<u16, Vec<Code>> {
    let own = operation.as_object_mut().and_then(|operation| operation.remove(OWN_CODES));
    let own: Vec<String> = own.map(|own| serde_json::from_value(own).expect("a list")).unwrap_or_default();
    let mut codes: BTreeSet<&str> = own.iter().map(String::as_str).collect();
    codes.extend(["timeout", "internal"]);
    if method != "get" {
        codes.insert("foreign_origin");
    }
    if operation["parameters"].is_array() {
        codes.insert("invalid_query");
    }
    if operation["requestBody"].is_object() {
        codes.extend(["malformed_json", "invalid_utf8", "body_incomplete", "body_too_large", "invalid_body"]);
        codes.insert("busy");
    }
    // Without a word about it, one has to be logged in.
    if operation["security"].is_null() {
        codes.extend(["unauthorized", "unavailable", "busy"]);
    }
    let mut found: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for name in codes {
        let known = code(name).unwrap_or_else(|| panic!("the table of codes has no {name}"));
        found.entry(known.status).or_default().push(known);
    }
    found
}

fn answer(codes: &[Code]) -> Value {
    let described: Vec<String> = codes.iter().map(|code| format!("`{}`: {}", code.code, code.why)).collect();
    let mut answer = json!({
        "description": described.join("; "),
        "content": {"application/problem+json": {"schema": of_codes(codes.iter().map(|code| code.code))}},
    });
    if codes.iter().any(|code| code.retryable) {
        let seconds = json!({"type": "integer", "minimum": 1});
        answer["headers"] =
            json!({"Retry-After": {"description": "Seconds until the next try", "schema": seconds}});
    }
    answer
}

/// A problem document with one of these codes.
fn of_codes<'a>(codes: impl IntoIterator<Item = &'a str>) -> Value {
    let codes: Vec<&str> = codes.into_iter().collect();
    json!({"allOf": [
        {"$ref": "#/components/schemas/Problem"},
        {"type": "object", "properties": {"code": {"type": "string", "enum": codes}}},
    ]})
}
