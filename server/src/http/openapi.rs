//! The description of the HTTP interface: for programs as OpenAPI, for people as a plain page.

use std::fmt::Write as _;
use std::sync::LazyLock;

use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use serde_json::Value;

const DOCUMENT: &str = include_str!("openapi.json");

/// `GET /api/v1/openapi.json`
pub(super) async fn document() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT).into_response()
}

/// `GET /docs`
pub(super) async fn page() -> Html<&'static str> {
    static PAGE: LazyLock<String> = LazyLock::new(|| render(&parsed()));
    Html(PAGE.as_str())
}

/// `GET /docs/websocket`
pub(super) async fn websocket() -> Response {
    const TEXT: &str = include_str!("../../../docs/PROTOCOL.md");
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], TEXT).into_response()
}

fn parsed() -> Value {
    serde_json::from_str(DOCUMENT).expect("a test reads it")
}

/// Every call with its method, path, summary, parameters, body and answers.
fn render(document: &Value) -> String {
    let text = |value: &Value| escape(value.as_str().unwrap_or_default());
    // Without the chat's style sheet, which is made for a window that does not scroll.
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Tidemark: the calls</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\
         <main><h1>{}</h1><p>{}</p><p><a href=\"/api/v1/openapi.json\">OpenAPI document</a>, \
         <a href=\"/docs/websocket\">the WebSocket</a></p>",
        text(&document["info"]["title"]),
        text(&document["info"]["description"]),
    );
    for (path, method, call) in calls(document) {
        let method = method.to_uppercase();
        let summary = text(&call["summary"]);
        let _ = write!(page, "<h2><code>{method} {}</code></h2><p>{summary}</p>", escape(path));
        if let Some(more) = call["description"].as_str() {
            let _ = write!(page, "<p>{}</p>", escape(more));
        }
        parameters(&mut page, document, call);
        body(&mut page, document, call);
        page.push_str("<h3>Answers</h3><ul>");
        for (status, answer) in call["responses"].as_object().into_iter().flatten() {
            let said = text(&resolved(document, answer)["description"]);
            let _ = write!(page, "<li><code>{}</code> {said}</li>", escape(status));
        }
        page.push_str("</ul>");
    }
    page.push_str("</main></html>");
    page
}

fn parameters(page: &mut String, document: &Value, call: &Value) {
    let Some(parameters) = call["parameters"].as_array() else { return };
    page.push_str("<h3>Parameters</h3><ul>");
    for parameter in parameters {
        let place = escape(parameter["in"].as_str().unwrap_or_default());
        let needed = if parameter["required"] == true { ", required" } else { "" };
        let name = escape(parameter["name"].as_str().unwrap_or_default());
        let kind = kind_of(document, &parameter["schema"]);
        let about = escape(parameter["description"].as_str().unwrap_or_default());
        let _ = write!(page, "<li><code>{name}</code> in the {place}, {kind}{needed}. {about}</li>");
    }
    page.push_str("</ul>");
}

fn body(page: &mut String, document: &Value, call: &Value) {
    let schema = &call["requestBody"]["content"]["application/json"]["schema"];
    if !schema.is_null() {
        page.push_str("<h3>Body</h3>");
        fields(page, document, schema);
    }
}

/// The fields of an object, and of the objects in it.
fn fields(page: &mut String, document: &Value, schema: &Value) {
    let schema = resolved(document, schema);
    let required = schema["required"].as_array().into_iter().flatten();
    let required: Vec<&str> = required.filter_map(Value::as_str).collect();
    page.push_str("<ul>");
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let field = resolved(document, field);
        let needed = if required.contains(&name.as_str()) { ", required" } else { "" };
        let about = escape(field["description"].as_str().unwrap_or_default());
        let kind = kind_of(document, field);
        let _ = write!(page, "<li><code>{}</code> {kind}{needed}. {about}", escape(name));
        for inner in field["oneOf"].as_array().into_iter().flatten().chain([field, &field["items"]]) {
            if resolved(document, inner)["properties"].is_object() {
                fields(page, document, inner);
            }
        }
        page.push_str("</li>");
    }
    page.push_str("</ul>");
}

/// The type of a value in words, with its limits.
fn kind_of(document: &Value, schema: &Value) -> String {
    let schema = resolved(document, schema);
    let mut words = match (&schema["type"], schema["oneOf"].is_array()) {
        (_, true) => "one of these".to_owned(),
        (Value::String(one), _) => one.clone(),
        (Value::Array(several), _) => {
            several.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        _ => "any value".to_owned(),
    };
    if let Some(choices) = schema["enum"].as_array() {
        let choices: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
        let _ = write!(words, " ({})", choices.join(", "));
    }
    if let Some(format) = schema["format"].as_str() {
        let _ = write!(words, " ({format})");
    }
    for (least, most, unit) in [
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
    ] {
        match (schema[least].as_u64(), schema[most].as_u64()) {
            (Some(least), Some(most)) => drop(write!(words, ", {least} to {most}{unit}")),
            (Some(least), None) => drop(write!(words, ", from {least}{unit} up")),
            (None, Some(most)) => drop(write!(words, ", at most {most}{unit}")),
            (None, None) => {}
        }
    }
    escape(&words)
}

/// What `part` stands for, where it is a reference.
fn resolved<'a>(document: &'a Value, part: &'a Value) -> &'a Value {
    let pointer = part["$ref"].as_str().and_then(|text| text.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(part)
}

fn calls(document: &Value) -> impl Iterator<Item = (&String, &String, &Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths.flat_map(|(path, methods)| {
        methods.as_object().into_iter().flatten().map(move |(method, call)| (path, method, call))
    })
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::Config;
    use crate::http::state::Settings;
    use crate::http::{API, routes};

    #[test]
    fn every_call_is_described_and_every_description_is_a_call() {
        let settings = Settings::new(&Config::default());
        let served: BTreeSet<(String, String)> = routes(&settings)
            .iter()
            .filter(|route| !route.path.starts_with('/') && route.path != "openapi.json")
            .map(|route| (format!("{API}{}", route.path), route.method.to_owned()))
            .collect();
        let described: BTreeSet<(String, String)> = calls(&parsed())
            .filter(|(path, ..)| path.starts_with(API))
            .map(|(path, method, _)| (path.clone(), method.clone()))
            .collect();
        assert_eq!(described, served);
    }

    #[test]
    fn every_reference_points_at_something() {
        let document = parsed();
        for part in DOCUMENT.split("\"$ref\": \"#").skip(1) {
            let pointer = part.split('"').next().expect("the text ends");
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }

    #[test]
    fn the_page_lists_the_calls_and_needs_no_script() {
        let page = render(&parsed());
        assert!(page.contains("<code>POST /api/v1/messages</code>") && !page.contains("<script"));
        for part in [
            "<code>direction</code> in the query, string (forward, backward)",
            "<code>client_id</code>",
            "<code>text</code> string, 1 to 8000 characters, required",
            "href=\"/docs/websocket\"",
        ] {
            assert!(page.contains(part), "{part}");
        }
    }
}
