//! The calls under `/api/v1`, one file for each thing that they are about.

pub(super) mod accounts;
pub(super) mod amendments;
pub(super) mod conversations;
pub(super) mod data;
pub(super) mod friends;
pub(super) mod groups;
pub(super) mod invites;
pub(super) mod keep;
pub(super) mod messages;
pub(super) mod moderation;
pub(super) mod moments;
pub(super) mod people;
pub(super) mod push;
pub(super) mod range;
pub(super) mod readers;
pub(super) mod reading;
pub(super) mod recovery;
pub(super) mod reports;
pub(super) mod search;
pub(super) mod sessions;
pub(super) mod settings;
pub(super) mod sign_up_invites;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// A JSON answer.
fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let text = serde_json::to_string(body).expect("texts and numbers are JSON");
    json_text(status, text)
}

/// A JSON answer that is written already.
fn json_text(status: StatusCode, text: impl IntoResponse) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}
