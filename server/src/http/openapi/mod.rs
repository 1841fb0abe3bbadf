//! The description of the HTTP interface, made from the code: for programs as an OpenAPI document, for people as a
//! page.
//!
//! Types are described where they are defined, operations at their handlers, refusals by the table of codes. [`Docs`]
//! puts them together, with the limits that are configured, when somebody first asks.

use std::sync::{Arc, OnceLock};

use axum::extract::State;
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use serde_json::{Value, json};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use super::BATCH;
use crate::config::LimitsSection;
use crate::domain::{LONGEST_INVITE_SECONDS, MOST_INVITE_USES};
use crate::workers::aside;

mod guide;
mod page;
pub(super) mod refusals;

/// The description without its operations, which the routers have.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tidemark",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
        description = "Chat in which every device stays in step. A device keeps the latest id that it has and asks for what \
                       is newer. Every refusal is a problem document with a stable `code` and `retryable`. A body is a JSON \
                       object; fields that are not described are ignored. The limits that are shown are those of this server."
    ),
    security(("bearer" = []), ("cookie" = [])),
    tags(
        (name = "Accounts", description = "Signing up, logging in and out."),
        (name = "People", description = "The caller and other people."),
        (name = "Messages", description = "Sending."),
        (name = "Rows", description = "The caller's inbox by id."),
        (name = "Conversations", description = "The list, histories and read markers."),
        (name = "Groups", description = "Making groups, members and invitations."),
        (name = "Reports", description = "Telling administrators and operators what is wrong."),
        (name = "Moments", description = "Posts that friends share."),
        (name = "Files", description = "Uploads, by tus 1.0, and downloads."),
        (name = "Settings", description = "The caller's settings."),
        (name = "WebSocket", description = "New rows at once, and sending, over one connection."),
        (name = "Operation", description = "For operators, load balancers and programs that read this description."),
    ),
    components(schemas(super::error::Document<'_>))
)]
struct Described;

/// The document and its page, made once they are asked for.
pub(super) struct Docs {
    limits: LimitsSection,
    made: OnceLock<Made>,
}

struct Made {
    document: String,
    page: String,
}

impl Docs {
    pub(super) fn new(limits: &LimitsSection) -> Docs {
        Docs { limits: limits.clone(), made: OnceLock::new() }
    }

    /// Made when it is asked for first, which takes some ten milliseconds.
    async fn made(&self) -> &Made {
        let make = || {
            let document = describe(&self.limits);
            Made { page: page::render(&document), document: document.to_string() }
        };
        match self.made.get() {
            Some(made) => made,
            None => aside(usize::MAX, || self.made.get_or_init(make)).await,
        }
    }
}

/// The OpenAPI description of this interface.
#[utoipa::path(
    get, path = "/api/v1/openapi.json", operation_id = "openapi", tag = "Operation", security(),
    responses((status = 200, description = "This document", body = Value)),
)]
pub(super) async fn document(State(docs): State<Arc<Docs>>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], docs.made().await.document.clone()).into_response()
}

/// `GET /docs`
pub(super) async fn page(State(docs): State<Arc<Docs>>) -> Html<String> {
    Html(docs.made().await.page.clone())
}

/// `GET /docs/websocket`
pub(super) async fn websocket() -> Html<&'static str> {
    Html(guide::websocket())
}

/// The whole document.
fn describe(limits: &LimitsSection) -> Value {
    let described = OpenApiRouter::with_openapi(Described::openapi());
    let described =
        described.merge(super::calls()).merge(super::file_calls()).merge(super::services()).into_openapi();
    let mut document = serde_json::to_value(described).expect("it is JSON");
    document["components"]["securitySchemes"] = json!({
        "bearer": {"type": "http", "scheme": "bearer"},
        "cookie": {
            "type": "apiKey", "in": "cookie", "name": "tidemark_session",
            "description": "Under https its name is `__Host-tidemark_session`. With it, changing requests must carry an Origin \
                            of this server, or one that it allows.",
        },
    });
    refusals::add(&mut document);
    for (place, limit) in limited(limits) {
        let (schema, keyword) = place.rsplit_once('/').expect("a keyword of a schema");
        document.pointer_mut(schema).unwrap_or_else(|| panic!("nothing lies at {schema}"))[keyword] =
            limit.into();
    }
    numbers(&mut document);
    document
}

/// Where the limits stand that are in force.
fn limited(limits: &LimitsSection) -> Vec<(&'static str, u64)> {
    let [text, members, people, sessions, conversations, rows] = [
        limits.text_characters,
        limits.group_members,
        limits.search_results,
        limits.listed_sessions,
        limits.conversations,
        limits.page_rows,
    ]
    .map(|limit| limit as u64);
    vec![
        ("/components/schemas/NewText/properties/text/maxLength", text),
        ("/components/schemas/NewGroup/properties/members/maxItems", members),
        ("/components/schemas/Batch/properties/messages/maxItems", BATCH as u64),
        ("/components/schemas/Results/properties/results/maxItems", BATCH as u64),
        ("/components/schemas/Terms/properties/expires_in_seconds/maximum", LONGEST_INVITE_SECONDS.into()),
        ("/components/schemas/Terms/properties/uses/maximum", MOST_INVITE_USES.into()),
        (
            "/components/schemas/SignUpTerms/properties/expires_in_seconds/maximum",
            LONGEST_INVITE_SECONDS.into(),
        ),
        ("/components/schemas/HistoryPage/properties/rows/maxItems", rows),
        ("/paths/~1api~1v1~1users/get/responses/200/content/application~1json/schema/maxItems", people),
        ("/paths/~1api~1v1~1sessions/get/responses/200/content/application~1json/schema/maxItems", sessions),
        (
            "/paths/~1api~1v1~1conversations/get/responses/200/content/application~1json/schema/maxItems",
            conversations,
        ),
        ("/components/schemas/EditedText/properties/text/maxLength", text),
        ("/components/schemas/NewMoment/properties/text/maxLength", text),
        ("/components/schemas/NewComment/properties/text/maxLength", text),
        ("/components/schemas/NewMoment/properties/except/maxItems", limits.friends as u64),
        ("/components/schemas/MomentsPage/properties/rows/maxItems", rows),
    ]
}

/// Gives whole numbers their range in place of a format that means signed ones: uids have 32 bits, all others are below 2^53.
fn numbers(part: &mut Value) {
    match part {
        Value::Object(fields) => {
            let most = match fields.get("format").and_then(Value::as_str) {
                Some("int32") => Some(u64::from(u32::MAX)),
                Some("int64") => Some((1 << 53) - 1),
                _ => None,
            };
            if let Some(most) = most {
                fields.remove("format");
                fields.entry("maximum").or_insert(most.into());
            }
            fields.values_mut().for_each(numbers);
        }
        Value::Array(parts) => parts.iter_mut().for_each(numbers),
        _ => {}
    }
}

/// Every operation with its path and method.
fn operations(document: &Value) -> impl Iterator<Item = (&String, &String, &Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths.flat_map(|(path, methods)| {
        methods.as_object().into_iter().flatten().map(move |(method, operation)| (path, method, operation))
    })
}

/// The target of `part`, where `part` is a reference.
fn resolved<'a>(document: &'a Value, part: &'a Value) -> &'a Value {
    let pointer = part["$ref"].as_str().and_then(|text| text.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(part)
}

#[cfg(test)]
mod tests;
