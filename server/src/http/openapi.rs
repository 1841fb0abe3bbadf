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

fn parsed() -> Value {
    serde_json::from_str(DOCUMENT).expect("a test reads it")
}

/// Every call with its method, path, summary and answers.
fn render(document: &Value) -> String {
    let text = |value: &Value| escape(value.as_str().unwrap_or_default());
    // Without the chat's style sheet, which is made for a window that does not scroll.
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Tidemark: the calls</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\
         <main><h1>{}</h1><p>{}</p><p><a href=\"/api/v1/openapi.json\">OpenAPI document</a></p>",
        text(&document["info"]["title"]),
        text(&document["info"]["description"]),
    );
    for (path, method, call) in calls(document) {
        let method = method.to_uppercase();
        let summary = text(&call["summary"]);
        let _ = write!(page, "<h2><code>{method} {}</code></h2><p>{summary}</p><ul>", escape(path));
        for (status, answer) in call["responses"].as_object().into_iter().flatten() {
            let said = text(&resolved(document, answer)["description"]);
            let _ = write!(page, "<li><code>{}</code> {said}</li>", escape(status));
        }
        page.push_str("</ul>");
    }
    page.push_str("</main></html>");
    page
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
    }
}
