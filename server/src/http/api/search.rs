//! Search in the caller's own messages and moments.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::conversations::page_rows;
use super::reading::Reads;
use crate::app::{Found, Search, SearchRequest};
use crate::domain::{Conversation, MessageId, SearchError, SearchWords, Timestamp, Uid};
use crate::http::error::Problem;
use crate::http::extract::{Params, Session};
use crate::http::proxy::Caller;
use crate::http::state::Settings;
use crate::http::wire::{EntryForm, put, write_entry};
use crate::workers::{ROW, aside};

/// What is looked for. At least one of `q`, `conversation`, `sender`, `from` and `to` is given.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct Looking {
    /// Words and parts of words, each of which the text has, in any order; case and accents do not matter. At most 200 characters and 20
    /// words. All other characters stand for spaces.
    #[param(example = "tide")]
    q: Option<String>,
    /// In this conversation alone; `u:0`: among moments.
    #[param(value_type = Option<String>, pattern = "^[ug]:[0-9]+$")]
    conversation: Option<String>,
    /// Of this user alone.
    sender: Option<u32>,
    /// Sent at this time or later: milliseconds since 1970-01-01 UTC.
    from: Option<u64>,
    /// Sent before this time.
    to: Option<u64>,
    /// Only rows with smaller ids: `next_before` of the page before.
    before: Option<u64>,
    /// The largest number of hits; more than 200 is taken as that.
    #[param(value_type = Option<u64>, minimum = 1, default = 50)]
    limit: Option<String>,
}

/// A row that was found.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what is written by hand")]
struct SearchHit {
    /// The row as it stands.
    row: EntryForm,
    /// Where the words stand in `row.body.text`: from which character up to before which, counted in code points of Unicode. In order,
    /// at most 100; none without `q`.
    #[schema(max_items = 100, example = json!([[4, 8]]))]
    marks: Vec<Vec<u32>>,
}

/// A page of hits, newest first.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what is written by hand")]
struct SearchPage {
    /// What was found, newest first.
    #[schema(max_items = 200)]
    hits: Vec<SearchHit>,
    /// `before` for the next page, which there may be even if this one has few hits or none; `null`: there is nothing more.
    #[schema(required)]
    next_before: Option<u64>,
    /// `false`: the index has much to catch up with, and messages that were edited lately may be missing on this page.
    complete: bool,
}

impl Looking {
    fn request(&self, most: usize) -> Result<SearchRequest, Problem> {
        let time = |time: u64| Timestamp(time.try_into().unwrap_or(i64::MAX));
        let conversation = self.conversation.as_deref().map(str::parse::<Conversation>);
        let conversation = conversation
            .transpose()
            .map_err(|_| Problem::invalid_query("conversation must be u:UID or g:GID"))?;
        let request = SearchRequest {
            words: self.q.as_deref().map(SearchWords::new).transpose()?,
            conversation,
            sender: self.sender.map(Uid),
            from: self.from.map(time),
            to: self.to.map(time),
            // An id beyond every row sets no bound.
            before: self.before.and_then(MessageId::new),
            limit: page_rows(self.limit.as_deref(), most)?,
        };
        let SearchRequest { words, conversation, sender, from, to, .. } = &request;
        if words.is_none() && conversation.is_none() && sender.is_none() && from.is_none() && to.is_none() {
            return Err(SearchError::NoWord.into());
        }
        Ok(request)
    }
}

impl From<SearchError> for Problem {
    fn from(error: SearchError) -> Problem {
        let code = match error {
            SearchError::TooLong { .. } | SearchError::TooManyWords { .. } => "search_too_long",
            SearchError::NoWord => "search_empty",
        };
        Problem::new(StatusCode::BAD_REQUEST, code, error.to_string())
    }
}

/// Search the caller's own messages and moments, newest first.
///
/// They are found as they stand: edited ones by their new text, recalled, deleted and expired ones never. What is looked through counts as
/// rows that are read.
#[utoipa::path(
    get, path = "/api/v1/search", operation_id = "search", tag = "Conversations",
    params(Looking),
    responses((status = 200, body = SearchPage, description = "A page; it may end early, and `next_before` goes on")),
    extensions(("x-codes" = json!(["rate_limited", "search_empty", "search_too_long"]))),
)]
pub(in crate::http) async fn search(
    State(search): State<Search>,
    State(settings): State<Arc<Settings>>,
    State(reads): State<Reads>,
    caller: Caller,
    Session(session): Session,
    Params(looking): Params<Looking>,
) -> Result<Response, Problem> {
    let request = looking.request(settings.limits.page_rows)?;
    let reading = reads.begin(session.uid, caller, request.limit).await?;
    let found = search.find(session.uid, &request).await?;
    let bytes = found.hits.iter().map(|hit| hit.row.weight() + ROW).sum();
    reading.looked_through(found.looked_through).answer(aside(bytes, || text(&found)).await)
}

/// A [`SearchPage`].
fn text(found: &Found) -> String {
    let mut text = String::from("{\"hits\":[");
    for (at, hit) in found.hits.iter().enumerate() {
        text.push_str(if at > 0 { ",{\"row\":" } else { "{\"row\":" });
        write_entry(&mut text, &hit.row);
        text.push_str(",\"marks\":[");
        for (at, (start, end)) in hit.marks.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            put(&mut text, format_args!("{comma}[{start},{end}]"));
        }
        text.push_str("]}");
    }
    match found.next_before {
        Some(next) => put(&mut text, format_args!("],\"next_before\":{next}")),
        None => text.push_str("],\"next_before\":null"),
    }
    put(&mut text, format_args!(",\"complete\":{}}}", found.is_complete));
    text
}
