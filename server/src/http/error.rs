//! The one place where failures become answers: RFC 9457 problem details with a stable `code`.

use std::borrow::Cow;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::{AccountError, InviteError, NumberError, ReadersError, SendError};
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
    pub(super) fn document(&self) -> Document<'_> {
        Document {
            r#type: format!("/docs#code-{}", self.code),
            title: self.status.canonical_reason().unwrap_or("Refused"),
            status: self.status.as_u16(),
            code: self.code,
            detail: &self.detail,
            retryable: self.retryable,
            trace_id: None,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let trace_id = REQUEST_ID.try_with(Clone::clone).ok();
        let body = Document { trace_id, ..self.document() };
        let body = serde_json::to_vec(&body).expect("texts and numbers are JSON");
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(after) = self.after.or_else(|| self.retryable.then_some(Duration::from_secs(1))) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(whole_seconds(after)));
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
            | SendError::RemovedSince => StatusCode::FORBIDDEN,
            SendError::TooMuchStored(wait) | SendError::TooManyStrangers { wait, .. } => {
                let problem =
                    Problem::passing(StatusCode::TOO_MANY_REQUESTS, error.code(), error.to_string());
                return Problem { after: Some(*wait), ..problem };
            }
            // Final for a message: what is behind it does not wait for another day.
            SendError::TooManyFirstMessages { .. } | SendError::QuotaReached { .. } => {
                StatusCode::TOO_MANY_REQUESTS
            }
            SendError::Recalled | SendError::AccountDeleted(_) => StatusCode::GONE,
            SendError::UnknownUser(_)
            | SendError::UnknownGroup
            | SendError::UnknownMoment
            | SendError::NotMember => StatusCode::NOT_FOUND,
            SendError::Text(_)
            | SendError::NotInConversation
            | SendError::NoMessage
            | SendError::Emoji(_)
            | SendError::Setting(_)
            | SendError::Social(_)
            | SendError::TooManyFriends(_)
            | SendError::GroupName
            | SendError::GroupTopic
            | SendError::TooManyPins(_)
            | SendError::TooManyStars(_)
            | SendError::TooManyBans(_)
            | SendError::GroupFull(_) => StatusCode::UNPROCESSABLE_ENTITY,
            SendError::Exhausted | SendError::Rejected => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let problem = Problem::new(status, error.code(), error.to_string());
        Problem { retryable: error.is_retryable(), ..problem }
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
            AccountError::Unknown(_) => (StatusCode::NOT_FOUND, "unknown_user", false),
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
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_a_document_with_code_and_retryable() {
        let problem = Problem::rate_limited(Duration::from_millis(1_200));
        let document = serde_json::to_value(problem.document()).expect("JSON");
        assert_eq!(document["type"], "/docs#code-rate_limited");
        assert_eq!(document["status"], 429);
        assert_eq!(document["title"], "Too Many Requests");
        assert_eq!(document["code"], "rate_limited");
        assert_eq!(document["retryable"], true);
        let response = problem.into_response();
        assert_eq!(response.headers()[header::RETRY_AFTER], "2");
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/problem+json");
    }

    #[test]
    fn what_is_wrong_with_a_body_is_reported_in_the_words_of_json() {
        #[derive(Debug, serde::Deserialize)]
        struct Example {
            #[expect(dead_code, reason = "only its absence is looked at")]
            uid: u32,
        }
        for (text, reported) in [
            ("{}", "the field `uid` is missing"),
            ("null", "expected an object, found null at line 1 column 4"),
            ("[7]", "expected an object, found an array at line 1 column 0"),
            (
                r#"{"uid":"x"}"#,
                "expected a whole number from 0 to 4294967295, found string \"x\" at line 1 column 10",
            ),
            (
                r#"{"uid":-1}"#,
                "expected a whole number from 0 to 4294967295, found integer `-1` at line 1 column 9",
            ),
            (r#"{"uid":1,"uid":2}"#, "the field `uid` is there twice at line 1 column 14"),
        ] {
            let error = crate::http::object::from_text::<Example>(text).expect_err(text);
            assert_eq!(Problem::from_json(&error).detail, reported);
        }
    }

    #[test]
    fn malformed_json_and_a_wrong_type_are_distinguished() {
        let fault = |text| Problem::from_json(&serde_json::from_str::<[u8; 1]>(text).expect_err("bad"));
        assert_eq!(fault("[1").code, "malformed_json");
        assert_eq!(fault("[\"x\"]").code, "invalid_body");
    }
}
