//! Reports of messages and people, and what the administrators of a group do about those of its messages.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::groups::gid;
use super::json;
use super::messages::row;
use super::people::Person;
use crate::app::reports::Statement;
use crate::app::{GroupReport, Reports};
use crate::domain::{self, ClientId, Conversation, ReportedMessage, Uid};
use crate::http::error::Problem;
use crate::http::extract::{Json, Params, Segments, Session};
use crate::http::limits::Rates;

/// Reports of a page.
const PAGE: usize = 50;

/// What is wrong.
#[derive(Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Reason {
    /// Advertising and the like.
    Spam,
    /// Somebody is insulted or threatened.
    Harassment,
    /// A law is broken.
    Illegal,
    /// Something else, which `text` says.
    Other,
}

impl From<Reason> for domain::Reason {
    fn from(reason: Reason) -> domain::Reason {
        match reason {
            Reason::Spam => domain::Reason::Spam,
            Reason::Harassment => domain::Reason::Harassment,
            Reason::Illegal => domain::Reason::Illegal,
            Reason::Other => domain::Reason::Other,
        }
    }
}

impl From<domain::Reason> for Reason {
    fn from(reason: domain::Reason) -> Reason {
        match reason {
            domain::Reason::Spam => Reason::Spam,
            domain::Reason::Harassment => Reason::Harassment,
            domain::Reason::Illegal => Reason::Illegal,
            domain::Reason::Other => Reason::Other,
        }
    }
}

/// A report to be made.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NewReport {
    /// The idempotency key, a new one for each report.
    client_id: Uuid,
    /// What is wrong.
    reason: Reason,
    /// The same in the caller's own words.
    #[serde(default)]
    #[schema(max_length = 1_000)]
    text: String,
}

impl From<NewReport> for Statement {
    fn from(NewReport { client_id, reason, text }: NewReport) -> Statement {
        Statement { client_id: ClientId(client_id), reason: reason.into(), words: text }
    }
}

/// A message that was reported.
#[derive(Serialize, ToSchema)]
struct Reported {
    /// Its text when it was reported.
    text: String,
    /// When it was sent, in UTC.
    #[schema(format = DateTime)]
    sent_at: String,
    /// The caller's own copy; absent: it was taken back, or the caller has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    message_id: Option<u64>,
}

/// A report of a group's message.
#[derive(Serialize, ToSchema)]
struct OpenReport {
    /// Its number.
    #[schema(minimum = 1)]
    number: u64,
    /// When it was made, in UTC.
    #[schema(format = DateTime)]
    made_at: String,
    /// What is wrong.
    reason: Reason,
    /// The same in the reporter's own words; may be empty.
    #[schema(max_length = 1_000)]
    text: String,
    /// The sender of the message.
    about: Person,
    /// The message.
    message: Reported,
}

/// Reports, oldest first.
#[derive(Serialize, ToSchema)]
struct ReportPage {
    /// Those that nobody has dismissed.
    #[schema(max_items = 50)]
    reports: Vec<OpenReport>,
    /// `after` for the next page; `null`: there are no more.
    #[schema(required)]
    next: Option<u64>,
}

/// Which part of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct ReportPaging {
    /// Only what comes after this: `next` of the page before.
    #[param(value_type = Option<u64>, minimum = 1)]
    after: Option<String>,
}

/// Report somebody else's message.
///
/// Its text is kept with the report. One of a group's message goes to the group's owner and administrators, who do not learn who made
/// it, and to the operators of the server; any other one goes to the operators. A repetition with the same `client_id` makes no second
/// report.
#[utoipa::path(
    post, path = "/api/v1/conversations/{id}/messages/{message_id}/report", operation_id = "reportMessage", tag = "Reports",
    params(
        ("id" = String, Path, pattern = "^[ug]:[0-9]+$", description = "`u:UID` or `g:GID`"),
        ("message_id" = u64, Path, description = "The caller's own copy"),
    ),
    request_body = NewReport,
    responses((status = 204, description = "It is kept")),
    extensions(("x-codes" = json!([
        "rate_limited", "not_in_conversation", "no_message", "recalled", "bad_report", "too_many_reports", "client_id_reused",
    ]))),
)]
pub(in crate::http) async fn of_message(
    State(reports): State<Reports>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments((conversation, message_id)): Segments<(String, u64)>,
    Json(report): Json<NewReport>,
) -> Result<Response, Problem> {
    let refuse = |error| Problem::invalid_query(format!("{conversation}: {error}"));
    let conversation: Conversation = conversation.parse().map_err(refuse)?;
    let row = row(message_id)?;
    rates.send(session.uid, 1)?;
    reports.message(session.uid, conversation, row, report.into()).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Report a person to the operators of the server.
///
/// A repetition with the same `client_id` makes no second report.
#[utoipa::path(
    post, path = "/api/v1/users/{uid}/report", operation_id = "reportPerson", tag = "Reports",
    params(("uid" = u32, Path, description = "Who")),
    request_body = NewReport,
    responses((status = 204, description = "It is kept")),
    extensions(("x-codes" = json!([
        "rate_limited", "unknown_user", "account_deleted", "bad_report", "too_many_reports", "client_id_reused",
    ]))),
)]
pub(in crate::http) async fn of_person(
    State(reports): State<Reports>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments(uid): Segments<u32>,
    Json(report): Json<NewReport>,
) -> Result<Response, Problem> {
    rates.send(session.uid, 1)?;
    reports.person(session.uid, Uid(uid), report.into()).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// List the reports of a group's messages that nobody has dismissed, for its owner and administrators.
#[utoipa::path(
    get, path = "/api/v1/groups/{gid}/reports", operation_id = "groupReports", tag = "Reports",
    params(("gid" = u64, Path, description = "The group's number"), ReportPaging),
    responses((status = 200, body = ReportPage, description = "A page")),
    extensions(("x-codes" = json!(["unknown_group", "administrators_only"]))),
)]
pub(in crate::http) async fn of_group(
    State(reports): State<Reports>,
    Session(session): Session,
    Segments(path): Segments<String>,
    Params(ReportPaging { after }): Params<ReportPaging>,
) -> Result<Response, Problem> {
    let after = after.map_or(Ok(0), |after| number(&after))?;
    let mut open = reports.of_group(session.uid, gid(&path)?, after, PAGE + 1).await?;
    let next = (open.len() > PAGE).then(|| open[PAGE - 1].number);
    open.truncate(PAGE);
    Ok(json(StatusCode::OK, &ReportPage { reports: open.into_iter().filter_map(shown).collect(), next }))
}

/// Take a report off the list of a group.
///
/// Its owner and administrators may. The operators keep it on their list.
#[utoipa::path(
    delete, path = "/api/v1/groups/{gid}/reports/{number}", operation_id = "dismissReport", tag = "Reports",
    params(
        ("gid" = u64, Path, description = "The group's number"),
        ("number" = u64, Path, description = "The report"),
    ),
    responses((status = 204, description = "Done")),
    extensions(("x-codes" = json!(["rate_limited", "unknown_group", "administrators_only", "unknown_report"]))),
)]
pub(in crate::http) async fn dismiss(
    State(reports): State<Reports>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments((group, report)): Segments<(String, String)>,
) -> Result<Response, Problem> {
    let (gid, number) = (gid(&group)?, number(&report)?);
    rates.send(session.uid, 1)?;
    reports.dismiss(session.uid, gid, number).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A report in an answer; those of a group are about a message.
fn shown(GroupReport { number, complaint, about, copy }: GroupReport) -> Option<OpenReport> {
    let ReportedMessage { text, sent_at, .. } = complaint.message?;
    let message = Reported { text, sent_at: sent_at.to_rfc3339(), message_id: copy.map(|copy| copy.get()) };
    Some(OpenReport {
        number,
        made_at: complaint.made_at.to_rfc3339(),
        reason: complaint.reason.into(),
        text: complaint.words,
        about: Person { uid: about.uid.0, name: about.name },
        message,
    })
}

/// The number of a report. Databases have no larger ones.
fn number(text: &str) -> Result<u64, Problem> {
    let number = text.parse().ok().filter(|number| i64::try_from(*number).is_ok());
    number.ok_or_else(|| Problem::invalid_query(format!("{text} is not the number of a report")))
}
