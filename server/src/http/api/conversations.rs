//! The conversation list, the history of one conversation, and read markers.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::range::limit;
use super::reading::Reads;
use crate::app::{Conversations, History, Messages, NamedConversation, Place};
use crate::domain::{ClientId, Conversation, MOST_PINS, MessageId, Timestamp, Uid};
use crate::http::error::Problem;
use crate::http::extract::{Json, Params, Segment, Session};
use crate::http::limits::Rates;
use crate::http::openapi::refusals::writing;
use crate::http::proxy::Caller;
use crate::http::state::Settings;
use crate::http::wire::{EntryForm, put, weight, write_entries, write_entry, write_text};
use crate::store::Summary;
use crate::workers::{ROW, aside};

/// Rows of a page when nothing is said.
const PAGE_ROWS: usize = 50;

/// A line of the list.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what is written by hand")]
struct ConversationLine {
    /// `u:UID` or `g:GID`.
    #[schema(pattern = "^[ug]:[0-9]+$", example = "u:10002")]
    id: String,
    /// The name of the other user, or of the group.
    title: String,
    /// The account of the other user is deleted; absent otherwise.
    #[schema(nullable = false)]
    deleted: Option<bool>,
    /// The picture of the group, at `/files/pictures/{id}/{picture}`.
    #[schema(nullable = false)]
    picture: Option<Uuid>,
    /// Its newest row.
    last: EntryForm,
    /// Messages of others beyond `read_to`, counted up to 1,000.
    #[schema(maximum = 1_000)]
    unread: u32,
    /// Those among the newest 1,000 of them that name the caller; in a group.
    #[schema(maximum = 1_000)]
    mentions: u32,
    /// The read marker; 0: nothing is read.
    read_to: u64,
    /// How far the caller's messages have come: the newest `seen` row of each state.
    #[schema(max_items = 2)]
    seen: Vec<EntryForm>,
}

/// Which part of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct Listing {
    /// Only conversations whose newest row has a smaller id: the `message_id` of the last line of the page before.
    after: Option<u64>,
    /// At most so many; without it, and at most, 1,000.
    #[param(value_type = Option<u64>, minimum = 1)]
    limit: Option<String>,
}

/// Get the caller's conversations, newest first.
///
/// There is a next page, with `after`, until one is empty. A full page names it in the header `Link`, too (`rel="next"`).
#[utoipa::path(
    get, path = "/api/v1/conversations", operation_id = "conversations", tag = "Conversations",
    params(Listing),
    responses((
        status = 200, body = Vec<ConversationLine>, description = "One line each, at most 1,000",
    )),
    extensions(("x-codes" = json!(["rate_limited"]))),
)]
pub(in crate::http) async fn list(
    State(conversations): State<Conversations>,
    State(reads): State<Reads>,
    State(settings): State<Arc<Settings>>,
    caller: Caller,
    Session(session): Session,
    Params(Listing { after, limit: asked }): Params<Listing>,
) -> Result<Response, Problem> {
    let most = settings.limits.conversations;
    let limit = match asked.as_deref().map(limit).transpose()? {
        Some(0) => return Err(Problem::invalid_query("limit must be a whole number of 1 or more")),
        asked => asked.map_or(most, |asked| asked.min(most)),
    };
    // An id beyond every row sets no bound.
    let before = after.and_then(MessageId::new);
    let reading = reads.begin(session.uid, caller, limit).await?;
    let lines = conversations.list(session.uid, before, Some(limit)).await?;
    let bytes = lines.iter().map(|line| line.summary.last.weight() + weight(&line.seen) + ROW).sum();
    let mut answer = reading.answer(aside(bytes, || list_text(&lines)).await)?;
    if let Some(last) = lines.last().filter(|_| lines.len() == limit) {
        let next = format!(
            "</api/v1/conversations?limit={limit}&after={}>; rel=\"next\"",
            last.summary.last.message_id
        );
        let next = HeaderValue::try_from(next).expect("digits and signs");
        answer.headers_mut().insert(header::LINK, next);
    }
    Ok(answer)
}

/// A list of [`ConversationLine`].
fn list_text(lines: &[NamedConversation]) -> String {
    let mut text = String::from("[");
    for (at, line) in lines.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        put(&mut text, format_args!("{comma}{{\"id\":\"{}\",\"title\":", line.summary.conversation));
        write_text(&mut text, &line.title);
        text.push_str(if line.is_deleted { ",\"deleted\":true" } else { "" });
        if let Some(picture) = line.picture {
            put(&mut text, format_args!(",\"picture\":\"{picture}\""));
        }
        text.push_str(",\"last\":");
        write_entry(&mut text, &line.summary.last);
        let Summary { unread, mentions, read_to, .. } = line.summary;
        put(&mut text, format_args!(",\"unread\":{unread},\"mentions\":{mentions},\"read_to\":{read_to}"));
        text.push_str(",\"seen\":");
        write_entries(&mut text, &line.seen);
        text.push('}');
    }
    text.push(']');
    text
}

/// Rows of a page: as many as were asked for, up to `most`.
pub(super) fn page_rows(asked: Option<&str>, most: usize) -> Result<usize, Problem> {
    match asked.map(limit).transpose()? {
        None => Ok(PAGE_ROWS.min(most)),
        Some(0) => Err(Problem::invalid_query("limit must be a whole number of 1 or more")),
        Some(asked) => Ok(asked.min(most)),
    }
}

/// Which part of a history.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct HistoryQuery {
    /// Only rows with smaller ids.
    before: Option<u64>,
    /// The rows that follow this id.
    after: Option<u64>,
    /// The rows on both sides of this id, in halves; its own row, if there is one, is the oldest of the newer half.
    around: Option<u64>,
    /// The rows on both sides of the first one that was sent at this time or later: milliseconds since 1970-01-01 UTC.
    since: Option<u64>,
    /// The rows on both sides of the message of this sender, with `client_id`.
    sender: Option<u32>,
    /// The key under which that message was sent.
    client_id: Option<Uuid>,
    /// The largest number of rows; more than 200 is taken as that.
    #[param(value_type = Option<u64>, minimum = 1, default = 50)]
    limit: Option<String>,
}

impl HistoryQuery {
    fn place(&self) -> Result<Place, Problem> {
        // An id beyond every row stands behind all of them.
        let row = |id| MessageId::new(id).unwrap_or(MessageId::MAX);
        match (self.after, self.around, self.since, self.sender, self.client_id) {
            (None, None, None, None, None) => Ok(Place::End),
            (Some(id), None, None, None, None) => Ok(Place::After(row(id))),
            (None, Some(id), None, None, None) => Ok(Place::Around(row(id))),
            (None, None, Some(time), None, None) => {
                Ok(Place::Since(Timestamp(time.try_into().unwrap_or(i64::MAX))))
            }
            (None, None, None, Some(sender), Some(client_id)) => {
                Ok(Place::Message((Uid(sender), ClientId(client_id))))
            }
            _ => Err(Problem::invalid_query(
                "give one of after, around and since, or sender together with client_id",
            )),
        }
    }
}

/// Rows of one conversation, newest first.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what is written by hand")]
struct HistoryPage {
    #[schema(max_items = 200)]
    rows: Vec<EntryForm>,
    /// `before` for the page below; `null`: there is nothing older, or `after` was given.
    #[schema(required)]
    next_before: Option<u64>,
    /// `after` for the page above; `null`: there is nothing newer below `before`, or no place but that was given.
    #[schema(required)]
    next_after: Option<u64>,
}

/// Get rows of one conversation, newest first.
///
/// Without a place they are the newest. A place is `after`, `around`, `since`, or `sender` with `client_id`; each of them can be bounded by
/// `before`.
#[utoipa::path(
    get, path = "/api/v1/conversations/{id}/messages", operation_id = "history", tag = "Conversations",
    params(("id" = String, Path, pattern = "^[ug]:[0-9]+$", description = "`u:UID` or `g:GID`"), HistoryQuery),
    responses((status = 200, body = HistoryPage, description = "A page")),
    extensions(("x-codes" = json!(["rate_limited", "unknown_message"]))),
)]
pub(in crate::http) async fn messages(
    State(conversations): State<Conversations>,
    State(settings): State<Arc<Settings>>,
    State(reads): State<Reads>,
    caller: Caller,
    Session(session): Session,
    Segment(conversation): Segment<Conversation>,
    Params(query): Params<HistoryQuery>,
) -> Result<Response, Problem> {
    let rows = page_rows(query.limit.as_deref(), settings.limits.page_rows)?;
    let place = query.place()?;
    // An id beyond every row sets no bound.
    let before = query.before.and_then(MessageId::new);
    let reading = reads.begin(session.uid, caller, rows).await?;
    let page = conversations.history(session.uid, conversation, place, before, rows).await?;
    let page = page.ok_or_else(|| {
        let detail = "you have no copy of that message in this conversation";
        Problem::new(StatusCode::NOT_FOUND, "unknown_message", detail)
    })?;
    reading.answer(aside(weight(&page.rows), || history_text(&page)).await)
}

/// A [`HistoryPage`].
fn history_text(page: &History) -> String {
    let mut text = String::from("{\"rows\":");
    write_entries(&mut text, &page.rows);
    let oldest = page.rows.last().filter(|_| page.has_older);
    let newest = page.rows.first().filter(|_| page.has_newer);
    for (name, row) in [("next_before", oldest), ("next_after", newest)] {
        match row {
            Some(row) => put(&mut text, format_args!(",\"{name}\":{}", row.message_id)),
            None => put(&mut text, format_args!(",\"{name}\":null")),
        }
    }
    text.push('}');
    text
}

/// Messages that are pinned in a conversation.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what is written by hand")]
struct Pinned {
    /// The caller's copies of them, the oldest first.
    #[schema(max_items = 50)]
    rows: Vec<EntryForm>,
}

/// Get the messages that are pinned in a conversation.
#[utoipa::path(
    get, path = "/api/v1/conversations/{id}/pins", operation_id = "pins", tag = "Conversations",
    params(("id" = String, Path, pattern = "^[ug]:[0-9]+$", description = "`u:UID` or `g:GID`")),
    responses((status = 200, body = Pinned, description = "At most 50 of them; those of which the caller has no copy are left out")),
    extensions(("x-codes" = json!(["rate_limited"]))),
)]
pub(in crate::http) async fn pins(
    State(conversations): State<Conversations>,
    State(reads): State<Reads>,
    caller: Caller,
    Session(session): Session,
    Segment(conversation): Segment<Conversation>,
) -> Result<Response, Problem> {
    let reading = reads.begin(session.uid, caller, MOST_PINS).await?;
    let rows = conversations.pinned(session.uid, conversation).await?;
    let mut text = String::from("{\"rows\":");
    write_entries(&mut text, &rows);
    text.push('}');
    reading.answer(text)
}

/// How far one has read.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct ReadMarker {
    /// A row of that conversation in the caller's inbox.
    message_id: u64,
}

/// Move the caller's read marker; it only grows.
#[utoipa::path(
    put, path = "/api/v1/conversations/{id}/read", operation_id = "markRead", tag = "Conversations",
    params(("id" = String, Path, pattern = "^[ug]:[0-9]+$", description = "`u:UID` or `g:GID`")),
    request_body = ReadMarker,
    responses((status = 204, description = "Moved, or it stood there or further already")),
    extensions(("x-codes" = json!(writing(["rate_limited", "not_in_conversation"])))),
)]
pub(in crate::http) async fn read(
    State(messages): State<Messages>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segment(conversation): Segment<Conversation>,
    Json(ReadMarker { message_id }): Json<ReadMarker>,
) -> Result<Response, Problem> {
    let message_id = MessageId::new(message_id)
        .ok_or_else(|| Problem::invalid_body("message_id is larger than the id of any row"))?;
    rates.send(session.uid, 1)?;
    messages.mark_read(session.uid, conversation, message_id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
