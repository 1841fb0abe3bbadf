//! The conversation list, the history of one conversation, and read markers.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::range::limit;
use super::reading::Reads;
use crate::app::{Conversations, Messages};
use crate::domain::{Conversation, MessageId};
use crate::http::error::Problem;
use crate::http::extract::{Json, Params, Segment, Session};
use crate::http::limits::Rates;
use crate::http::proxy::Caller;
use crate::http::state::Settings;
use crate::http::wire::{put, write_entries, write_entry, write_text};

/// Rows of a page when nothing is said.
const PAGE_ROWS: usize = 50;

/// `GET /conversations`
pub(in crate::http) async fn list(
    State(conversations): State<Conversations>,
    State(reads): State<Reads>,
    State(settings): State<Arc<Settings>>,
    caller: Caller,
    Session(session): Session,
) -> Result<Response, Problem> {
    let reading = reads.begin(session.uid, caller, settings.limits.conversations).await?;
    let lines = conversations.list(session.uid).await?;
    let mut text = String::from("[");
    for (at, line) in lines.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        put(&mut text, format_args!("{comma}{{\"id\":\"{}\",\"title\":", line.summary.conversation));
        write_text(&mut text, &line.title);
        text.push_str(",\"last\":");
        write_entry(&mut text, &line.summary.last);
        let (unread, read_to) = (line.summary.unread, line.summary.read_to);
        put(&mut text, format_args!(",\"unread\":{unread},\"read_to\":{read_to}}}"));
    }
    text.push(']');
    reading.answer(text)
}

/// Which part of a history.
#[derive(Deserialize)]
pub(in crate::http) struct History {
    before: Option<u64>,
    limit: Option<String>,
}

/// `GET /conversations/{id}/messages`
pub(in crate::http) async fn messages(
    State(conversations): State<Conversations>,
    State(settings): State<Arc<Settings>>,
    State(reads): State<Reads>,
    caller: Caller,
    Session(session): Session,
    Segment(conversation): Segment<Conversation>,
    Params(History { before, limit: asked }): Params<History>,
) -> Result<Response, Problem> {
    let most = settings.limits.page_rows;
    let rows = match asked.as_deref().map(limit).transpose()? {
        None => PAGE_ROWS.min(most),
        Some(0) => return Err(Problem::invalid_query("limit is a whole number from 1 up")),
        Some(asked) => asked.min(most),
    };
    // Before what lies beyond every row is before nothing in particular.
    let before = before.and_then(MessageId::new);
    let reading = reads.begin(session.uid, caller, rows).await?;
    let page = conversations.messages(session.uid, conversation, before, rows).await?;
    let mut text = String::from("{\"rows\":");
    write_entries(&mut text, &page.rows);
    match page.rows.last().filter(|_| page.more) {
        Some(oldest) => put(&mut text, format_args!(",\"next_before\":{}}}", oldest.message_id)),
        None => text.push_str(",\"next_before\":null}"),
    }
    reading.answer(text)
}

/// How far one has read.
#[derive(Deserialize)]
pub(in crate::http) struct ReadMarker {
    message_id: u64,
}

/// `PUT /conversations/{id}/read`
pub(in crate::http) async fn read(
    State(messages): State<Messages>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segment(conversation): Segment<Conversation>,
    Json(ReadMarker { message_id }): Json<ReadMarker>,
) -> Result<Response, Problem> {
    let message_id =
        MessageId::new(message_id).ok_or_else(|| Problem::invalid_body("message_id is beyond every row"))?;
    rates.send(session.uid, 1)?;
    messages.mark_read(session.uid, conversation, message_id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
