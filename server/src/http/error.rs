//! The one place where failures become answers: RFC 9457 problem details with a stable `code`.

use std::borrow::Cow;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::{AccountError, InviteError, NumberError, ReadersError, ReportError, SendError};
use crate::domain::RangeError;
use crate::store::StoreError;

/// A refusal, as HTTP and WebSocket both tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    /// Stable, for programs.
    pub(super) code: &'static str,
    /// The reason and the remedy, for people.
    pub(super) detail: Cow<'static, str>,
    /// Whether the same request may succeed later.
    pub(super) retryable: bool,
    /// When it may, if that is known.
    pub(super) after: Option<Duration>,
}

impl Problem {
    /// A refusal that stays one however often the request is repeated.
    pub(super) fn new(
        status: StatusCode,
        code: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Problem {
        Problem { status, code, detail: one_line(detail.into()), retryable: false, after: None }
    }

    /// A refusal of this moment.
    pub(super) fn passing(
        status: StatusCode,
        code: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Problem {
        Problem { retryable: true, ..Problem::new(status, code, detail) }
    }

    /// Nobody is logged in.
    pub(super) fn unauthorized() -> Problem {
        let detail = "log in first: the token is missing, wrong, expired or ended";
        Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
    }

    /// Too many requests; `wait` until the next may pass.
    pub(super) fn rate_limited(wait: Duration) -> Problem {
        let detail = format!("too many requests; try again in {} s", whole_seconds(wait));
        let problem = Problem::passing(StatusCode::TOO_MANY_REQUESTS, "rate_limited", detail);
        Problem { after: Some(wait), ..problem }
    }

    /// One connection says too much, or too much that is wrong; it is closed.
    pub(super) fn flood() -> Problem {
        let detail = "too many frames, or too many refused ones; connect again and send fewer";
        Problem::passing(StatusCode::TOO_MANY_REQUESTS, "flood", detail)
    }

    /// The body is not what the call takes.
    pub(super) fn invalid_body(why: impl std::fmt::Display) -> Problem {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body", why.to_string())
    }

    /// The address or query is not what the call takes.
    pub(super) fn invalid_query(why: impl Into<Cow<'static, str>>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "invalid_query", why)
    }

    /// Nothing lies at this address.
    pub(super) fn not_found(detail: &'static str) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    /// Something lies here, but not for this method.
    pub(super) fn method_not_allowed() -> Problem {
        let detail = "this address needs another method; /docs lists all calls";
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
    }

    /// The refusal for an error of a JSON reader.
    pub(super) fn from_json(error: &serde_json::Error) -> Problem {
        match error.classify() {
            serde_json::error::Category::Data => Problem::invalid_body(plain(&error.to_string())),
            _ => {
                let detail = format!("the JSON is malformed: {error}");
                Problem::new(StatusCode::BAD_REQUEST, "malformed_json", detail)
            }
        }
    }

    /// The text is not UTF-8.
    pub(super) fn invalid_utf8() -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "invalid_utf8", "the text is not UTF-8; JSON is sent as UTF-8")
    }

    /// A fault of ours, already logged.
    pub(super) fn internal() -> Problem {
        let detail = "something went wrong here; the server's log says what";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }
}

/// A complaint in one line, also where it repeats words of the caller that have line breaks or other control characters.
fn one_line(detail: Cow<'static, str>) -> Cow<'static, str> {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    if detail.contains(breaks) { detail.replace(breaks, " ").into() } else { detail }
}

/// Characters of the caller's own words that a complaint repeats.
const REPEATED: usize = 100;

/// The beginning of a text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(REPEATED) {
        Some((at, _)) => format!("{} …", &text[..at]),
        None => text.to_owned(),
    }
}

/// The complaint of serde, in the words of JSON and not of Rust. Text that it repeats from the caller is cut.
fn plain(complaint: &str) -> String {
    let (reported, place) = match complaint.rfind(" at line ") {
        Some(at) => complaint.split_at(at),
        None => (complaint, ""),
    };
    let quoted = |rest: &str| rest.split('`').next().unwrap_or_default().to_owned();
    if let Some(field) = reported.strip_prefix("missing field `") {
        return format!("the field `{}` is missing", quoted(field));
    }
    if let Some(field) = reported.strip_prefix("duplicate field `") {
        return format!("the field `{}` is there twice{place}", quoted(field));
    }
    let kinds = reported.strip_prefix("invalid type: ").or_else(|| reported.strip_prefix("invalid value: "));
    let Some((found, expected)) = kinds.and_then(|kinds| kinds.rsplit_once(", expected ")) else {
        return cut(reported) + place;
    };
    let found = match found {
        "sequence" => "an array".to_owned(),
        "map" => "an object".to_owned(),
        other => cut(other),
    };
    let expected = match expected {
        "u32" => "a whole number from 0 to 4294967295",
        "u64" => "a whole number of 0 or more",
        "a sequence" => "an array",
        "a formatted UUID string" => "a UUID",
        other => other,
    };
    format!("expected {expected}, found {found}{place}")
}

/// Why something was refused (RFC 9457).
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub(super) struct Document<'a> {
    /// Where the code is explained, at this server.
    #[schema(example = "/docs#code-rate_limited", pattern = "^/docs#code-[a-z0-9_]+$")]
    r#type: String,
    /// The status in words.
    title: &'static str,
    /// The status of the answer; of a message in a batch, that which it would have alone.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// Stable, for programs.
    #[schema(example = "rate_limited")]
    code: &'static str,
    /// The reason and the remedy, for people.
    detail: &'a str,
    /// Whether the same request may succeed later.
    retryable: bool,
    /// Seconds after which it may, or after which another request like it may; absent where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    retry_after: Option<u64>,
    /// The request's name in the server's log, also in `x-request-id`. A message in a batch has none of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    trace_id: Option<String>,
}

tokio::task_local! {
    /// The name of the request that is being answered; set by `layers::request_context`.
    pub(super) static REQUEST_ID: String;
}

/// The header of every answer that tells it.
pub(super) const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

impl Problem {
    /// Seconds until it may succeed, if that is known.
    pub(super) fn retry_after(&self) -> Option<u64> {
        self.after.map(|after| whole_seconds(after).max(1))
    }

    pub(super) fn document(&self) -> Document<'_> {
        Document {
            r#type: format!("/docs#code-{}", self.code),
            title: self.status.canonical_reason().unwrap_or("Refused"),
            status: self.status.as_u16(),
            code: self.code,
            detail: &self.detail,
            retryable: self.retryable,
            retry_after: self.retry_after(),
            trace_id: None,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let trace_id = REQUEST_ID.try_with(Clone::clone).ok();
        let after = self.retry_after();
        let body = Document { trace_id, ..self.document() };
        let body = serde_json::to_vec(&body).expect("texts and numbers are JSON");
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.retryable {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(after.unwrap_or(1)));
        }
        response
    }
}

fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        tracing::warn!(%error, "a request is refused: storage failed");
        match error {
            StoreError::Unavailable(_) => {
                let detail = "storage does not answer right now; try again in a moment";
                Problem::passing(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail)
            }
            StoreError::Busy => {
                let detail = "too many are reading right now; try again in a moment";
                Problem::passing(StatusCode::SERVICE_UNAVAILABLE, "busy", detail)
            }
            StoreError::Corrupt(_) => Problem::internal(),
        }
    }
}

impl From<SendError> for Problem {
    fn from(error: SendError) -> Problem {
        let status = match &error {
            SendError::Busy | SendError::Unavailable | SendError::OutOfOrder | SendError::Stopping => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            SendError::ClientIdReused
            | SendError::AlreadyMember
            | SendError::GroupChanged
            | SendError::OwnerStays => StatusCode::CONFLICT,
            SendError::NotYours
            | SendError::NotYourMoment
            | SendError::TooLate(_)
            | SendError::Blocked
            | SendError::Blocks
            | SendError::FriendsOnly
            | SendError::AdministratorsOnly
            | SendError::OwnerOnly
            | SendError::Banned
            | SendError::FriendsAddOnly
            | SendError::Muted { .. }
            | SendError::MutedForGood
            | SendError::RemovedSince => StatusCode::FORBIDDEN,
            SendError::TooMuchStored(wait) | SendError::TooManyStrangers { wait, .. } => {
                let problem =
                    Problem::passing(StatusCode::TOO_MANY_REQUESTS, error.code(), error.to_string());
                return Problem { after: Some(*wait), ..problem };
            }
            // Final for a message: what is behind it does not wait for another day, nor for a slow group.
            SendError::TooManyFirstMessages { .. }
            | SendError::QuotaReached { .. }
            | SendError::SlowMode { .. } => StatusCode::TOO_MANY_REQUESTS,
            SendError::Recalled | SendError::AccountDeleted(_) => StatusCode::GONE,
            SendError::UnknownUser(_)
            | SendError::UnknownGroup
            | SendError::UnknownMoment
            | SendError::UnknownFile
            | SendError::NotMember => StatusCode::NOT_FOUND,
            SendError::Text(_)
            | SendError::NotInConversation
            | SendError::NoMessage
            | SendError::NoConversation(_)
            | SendError::OtherText
            | SendError::Emoji(_)
            | SendError::Setting(_)
            | SendError::Social(_)
            | SendError::TooManyFriends(_)
            | SendError::GroupName
            | SendError::GroupTopic
            | SendError::TooManyPins(_)
            | SendError::TooManyStars(_)
            | SendError::TooManyBans(_)
            | SendError::TooManyMutes(_)
            | SendError::GroupFull(_) => StatusCode::UNPROCESSABLE_ENTITY,
            SendError::Exhausted | SendError::Rejected => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let problem = Problem::new(status, error.code(), error.to_string());
        Problem { retryable: error.is_retryable(), after: error.wait(), ..problem }
    }
}

impl From<AccountError> for Problem {
    fn from(error: AccountError) -> Problem {
        let (status, code, retryable) = match error {
            AccountError::Store(error) => return error.into(),
            AccountError::Number(error) => return error.into(),
            AccountError::TooOften(wait) => return Problem::rate_limited(wait),
            AccountError::RenamedLately(wait) => {
                let problem =
                    Problem::passing(StatusCode::TOO_MANY_REQUESTS, "renamed_lately", error.to_string());
                return Problem { after: Some(wait), ..problem };
            }
            AccountError::SignUpClosed => (StatusCode::FORBIDDEN, "sign_up_closed", false),
            AccountError::NotInvited => (StatusCode::FORBIDDEN, "not_invited", false),
            AccountError::WrongRecoveryCode => (StatusCode::UNAUTHORIZED, "wrong_recovery_code", false),
            AccountError::BadLabel => (StatusCode::UNPROCESSABLE_ENTITY, "bad_device_name", false),
            AccountError::InviteTerms { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "bad_terms", false),
            AccountError::TooManyInvites(_) => (StatusCode::UNPROCESSABLE_ENTITY, "too_many_invites", false),
            AccountError::KeyReused => (StatusCode::CONFLICT, "client_id_reused", false),
            AccountError::BadName => (StatusCode::UNPROCESSABLE_ENTITY, "bad_name", false),
            AccountError::BadPassword => (StatusCode::UNPROCESSABLE_ENTITY, "bad_password", false),
            AccountError::CommonPassword => (StatusCode::UNPROCESSABLE_ENTITY, "common_password", false),
            AccountError::NameTaken => (StatusCode::CONFLICT, "name_taken", false),
            AccountError::NameResembles => (StatusCode::CONFLICT, "name_resembles", false),
            AccountError::WrongCredentials | AccountError::WrongPassword => {
                (StatusCode::UNAUTHORIZED, "wrong_credentials", false)
            }
            AccountError::Unknown(_) | AccountError::NoAccount(_) => {
                (StatusCode::NOT_FOUND, "unknown_user", false)
            }
            AccountError::Deleted(_) => (StatusCode::GONE, "account_deleted", false),
            AccountError::Busy(_) => (StatusCode::SERVICE_UNAVAILABLE, "busy", true),
            AccountError::TooManyTickets(_) => (StatusCode::TOO_MANY_REQUESTS, "too_many_tickets", true),
        };
        Problem { retryable, ..Problem::new(status, code, error.to_string()) }
    }
}

impl From<NumberError> for Problem {
    fn from(error: NumberError) -> Problem {
        tracing::warn!(%error, "a request is refused: no id is available");
        match error {
            NumberError::Unavailable(_) => {
                let detail = "no ids are available right now; try again in a moment";
                Problem::passing(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail)
            }
            NumberError::Exhausted => Problem::internal(),
        }
    }
}

impl From<InviteError> for Problem {
    fn from(error: InviteError) -> Problem {
        let (status, code) = match error {
            InviteError::Group(error) => return error.into(),
            InviteError::Number(error) => return error.into(),
            InviteError::Store(error) => return error.into(),
            InviteError::Terms => (StatusCode::UNPROCESSABLE_ENTITY, "bad_terms"),
            InviteError::Unknown => (StatusCode::NOT_FOUND, "unknown_invite"),
            InviteError::Expired => (StatusCode::GONE, "expired_invite"),
            InviteError::UsedUp => (StatusCode::GONE, "used_up_invite"),
        };
        Problem::new(status, code, error.to_string())
    }
}

impl From<ReportError> for Problem {
    fn from(error: ReportError) -> Problem {
        let (status, code) = match error {
            ReportError::Send(error) => return error.into(),
            ReportError::Store(error) => return error.into(),
            ReportError::Words | ReportError::Oneself => (StatusCode::UNPROCESSABLE_ENTITY, "bad_report"),
            ReportError::Unknown => (StatusCode::NOT_FOUND, "unknown_report"),
            ReportError::TooMany => (StatusCode::TOO_MANY_REQUESTS, "too_many_reports"),
        };
        Problem::new(status, code, error.to_string())
    }
}

impl From<ReadersError> for Problem {
    fn from(error: ReadersError) -> Problem {
        let (status, code) = match error {
            ReadersError::Store(error) => return error.into(),
            ReadersError::UnknownGroup => (StatusCode::NOT_FOUND, "unknown_group"),
            ReadersError::NoMessage => (StatusCode::UNPROCESSABLE_ENTITY, "no_message"),
            ReadersError::NotYours => (StatusCode::FORBIDDEN, "not_yours"),
            ReadersError::TooManyMembers => (StatusCode::UNPROCESSABLE_ENTITY, "too_many_members"),
        };
        Problem::new(status, code, error.to_string())
    }
}

impl From<RangeError> for Problem {
    fn from(error: RangeError) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "bad_range", error.to_string())
    }
}

#[cfg(test)]
mod tests;
