//! The caller's settings, for one conversation or for all, and stars. The WebSocket takes the same, as a frame.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::json;
use super::messages::Sent;
use super::reading::Reads;
use crate::app::messages::SendAck;
use crate::app::{People, Pictures};
use crate::domain::{ClientId, Conversation, Entry, Setting};
use crate::http::error::Problem;
use crate::http::extract::{Json, Params, Segment, Segments, Session};
use crate::http::limits::Rates;
use crate::http::openapi::refusals::writing;
use crate::http::proxy::Caller;
use crate::http::wire::{write_entry, write_text};

/// Settings of a page.
pub(super) const PAGE: usize = 500;

/// A new value of a setting.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NewValue {
    /// The idempotency key, a new one for each change: the same again gets the first answer.
    pub(in crate::http) client_id: Uuid,
    /// The value; `null` clears the setting.
    #[schema(value_type = Object, nullable = true, example = json!({"until": 1_795_261_438_042_u64}))]
    pub(in crate::http) value: Box<RawValue>,
}

/// Set a setting that is the same for all conversations.
///
/// The picture is a file that the caller has uploaded; others get its middle, as a small square.
#[utoipa::path(
    put, path = "/api/v1/settings/{name}", operation_id = "setForAll", tag = "Settings",
    params(("name" = String, Path, description = "`privacy`, `profile`, `picture` or `language`")),
    request_body = NewValue,
    responses(
        (status = 201, body = Sent, description = "Accepted: it survives a power cut"),
        (status = 200, body = Sent, description = "It was accepted before under this `client_id`: the first answer"),
    ),
    extensions(("x-codes" = json!(writing([
        "rate_limited", "client_id_reused", "bad_setting", "unknown_file", "no_picture", "bad_picture", "picture_too_large",
        "files_unavailable", "no_room",
    ])))),
)]
pub(in crate::http) async fn set_for_all(
    State(people): State<People>,
    State(pictures): State<Pictures>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segment(name): Segment<String>,
    Json(NewValue { client_id, value }): Json<NewValue>,
) -> Result<Response, Problem> {
    let setting = named(&name, None)?;
    rates.send(session.uid, 1)?;
    if setting == Setting::Picture {
        return answer(pictures.set_own(session.uid, ClientId(client_id), &value).await?);
    }
    answer(
        people
            .set(session.uid, ClientId(client_id), setting, Conversation::User(session.uid), &value)
            .await?,
    )
}

/// Set a setting of one conversation.
#[utoipa::path(
    put, path = "/api/v1/conversations/{id}/settings/{name}", operation_id = "set", tag = "Settings",
    params(
        ("id" = String, Path, pattern = "^[ug]:[0-9]+$", description = "`u:UID` or `g:GID`"),
        ("name" = String, Path, description = "`draft`, `mute`, `pin`, `archive`, `hide`, `unread` or `block`"),
    ),
    request_body = NewValue,
    responses(
        (status = 201, body = Sent, description = "Accepted: it survives a power cut"),
        (status = 200, body = Sent, description = "It was accepted before under this `client_id`: the first answer"),
    ),
    extensions(("x-codes" = json!(writing([
        "rate_limited", "client_id_reused", "bad_setting", "unknown_user", "unknown_group",
    ])))),
)]
pub(in crate::http) async fn set(
    State(people): State<People>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments((conversation, name)): Segments<(String, String)>,
    Json(NewValue { client_id, value }): Json<NewValue>,
) -> Result<Response, Problem> {
    let refuse = |error| Problem::invalid_query(format!("{conversation}: {error}"));
    let conversation: Conversation = conversation.parse().map_err(refuse)?;
    let setting = named(&name, Some(conversation))?;
    rates.send(session.uid, 1)?;
    answer(people.set(session.uid, ClientId(client_id), setting, conversation, &value).await?)
}

/// The setting with this name, of one conversation or for all.
pub(in crate::http) fn named(name: &str, of: Option<Conversation>) -> Result<Setting, Problem> {
    let setting: Setting = name.parse().map_err(|error| Problem::invalid_query(format!("{error}")))?;
    match (setting.is_for_all(), of) {
        (true, Some(_)) => Err(Problem::invalid_query(format!(
            "{name} is set for all conversations, at /api/v1/settings/{name}"
        ))),
        (false, None) => Err(Problem::invalid_query(format!(
            "{name} is set for each conversation, at /api/v1/conversations/ID/settings/{name}"
        ))),
        (false, Some(Conversation::MOMENTS)) => Err(Problem::invalid_query("u:0 has no settings")),
        _ => Ok(setting),
    }
}

pub(super) fn answer(ack: SendAck) -> Result<Response, Problem> {
    let status = if ack.repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok(json(status, &Sent::from(ack)))
}

/// Which part of the settings, or of the stars.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct After {
    /// `next_after` of the page before.
    #[serde(default)]
    pub(super) after: String,
}

/// The caller's settings: the newest row of each.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what is written by hand")]
struct SettingsPage {
    /// Rows of the kind `setting`; a cleared setting has the value `null`.
    rows: Vec<crate::http::wire::EntryForm>,
    /// `after` for the next page; `null`: there is nothing more.
    #[schema(required)]
    next_after: Option<String>,
}

/// Get the caller's settings.
#[utoipa::path(
    get, path = "/api/v1/settings", operation_id = "settings", tag = "Settings",
    params(After),
    responses((status = 200, body = SettingsPage, description = "At most 500 of them")),
    extensions(("x-codes" = json!(["rate_limited"]))),
)]
pub(in crate::http) async fn list(
    State(people): State<People>,
    State(reads): State<Reads>,
    caller: Caller,
    Session(session): Session,
    Params(After { after }): Params<After>,
) -> Result<Response, Problem> {
    let reading = reads.begin(session.uid, caller, PAGE).await?;
    reading.answer(page(people.settings(session.uid, &after, PAGE + 1).await?))
}

/// The caller's stars: the newest row of each message that was ever starred.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what is written by hand")]
struct StarsPage {
    /// Rows of the kind `star`; where a star was taken away, `starred` is `false`.
    rows: Vec<crate::http::wire::EntryForm>,
    /// `after` for the next page; `null`: there is nothing more.
    #[schema(required)]
    next_after: Option<String>,
}

/// Get the caller's stars.
///
/// They are in no order that matters. A device asks for them when it is new; after that it follows their rows.
#[utoipa::path(
    get, path = "/api/v1/stars", operation_id = "stars", tag = "Settings",
    params(After),
    responses((status = 200, body = StarsPage, description = "At most 500 of them")),
    extensions(("x-codes" = json!(["rate_limited"]))),
)]
pub(in crate::http) async fn stars(
    State(people): State<People>,
    State(reads): State<Reads>,
    caller: Caller,
    Session(session): Session,
    Params(After { after }): Params<After>,
) -> Result<Response, Problem> {
    let reading = reads.begin(session.uid, caller, PAGE).await?;
    reading.answer(page(people.stars(session.uid, &after, PAGE + 1).await?))
}

/// A page of rows by their keys, of which one more was read than it has.
pub(super) fn page(mut rows: Vec<(String, Entry)>) -> String {
    let more = rows.len() > PAGE;
    rows.truncate(PAGE);
    let mut text = String::from("{\"rows\":[");
    for (at, (_, entry)) in rows.iter().enumerate() {
        text.push_str(if at > 0 { "," } else { "" });
        write_entry(&mut text, entry);
    }
    text.push_str("],\"next_after\":");
    match rows.last().filter(|_| more) {
        Some((key, _)) => write_text(&mut text, key),
        None => text.push_str("null"),
    }
    text.push('}');
    text
}
