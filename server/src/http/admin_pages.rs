//! The pages of operators under `/admin`: people and their sessions, locking accounts, reports, and the audit log. Plain forms and links, no
//! script. They are shown to accounts that a command on the machine has made operators' (`tidemark user operator`); for everybody else
//! there is no such page. A form of another site is refused before it comes here (`layers::own_origin`).

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{OriginalUri, Path, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::Deserialize;
use tidemark_web as web;

use super::error::Problem;
use super::extract::{Params, session};
use super::pages::{page_not_found, to_log_in};
use super::proxy::Caller;
use super::state::HttpState;
use crate::app::{InspectedPerson, NamedAuditLine, NamedReport, OpenSession, OperatorError, SignUp};
use crate::config::LimitsSection;
use crate::domain::{Timestamp, Uid};
use crate::store::{ListedAccount, StoreError};

/// Lines of a page of the audit log.
const LINES: usize = 100;

/// Reports of a page.
const REPORTS: usize = 50;

/// The query of the list of people.
#[derive(Deserialize)]
pub(super) struct PeopleQuery {
    #[serde(default)]
    q: String,
}

/// The query of the audit log.
#[derive(Deserialize)]
pub(super) struct AuditQuery {
    /// The number of a line.
    before: Option<u64>,
}

/// The query of the list of reports.
#[derive(Deserialize)]
pub(super) struct ReportsQuery {
    /// The number of a report.
    #[serde(default)]
    after: u64,
}

/// The form of the list of reports.
#[derive(Deserialize)]
pub(super) struct Closing {
    /// The number of a report.
    close: u64,
}

/// The form of the page of a person.
#[derive(Deserialize)]
pub(super) struct Wish {
    /// `lock`, `unlock`, or `end`: all sessions.
    r#do: Option<String>,
    /// The session to end.
    session: Option<String>,
}

/// An operator who is logged in.
struct Operator {
    uid: Uid,
    name: String,
}

/// The page that is shown instead of the one that was asked for.
pub(super) struct OtherPage(Box<Response>);

impl IntoResponse for OtherPage {
    fn into_response(self) -> Response {
        *self.0
    }
}

impl From<Response> for OtherPage {
    fn from(page: Response) -> OtherPage {
        OtherPage(Box::new(page))
    }
}

impl OtherPage {
    /// A card that says why. Pages have no codes, as answers of the API have.
    fn refused(status: StatusCode, detail: &str) -> OtherPage {
        let title = status.canonical_reason().unwrap_or("Refused");
        let on = Some(("/admin", "Back"));
        let view = web::CardFailure { status: status.as_u16(), title, detail, on };
        (status, Html(web::card_failure(&view))).into_response().into()
    }
}

impl From<Problem> for OtherPage {
    fn from(Problem { status, detail, .. }: Problem) -> OtherPage {
        OtherPage::refused(status, &detail)
    }
}

impl From<StoreError> for OtherPage {
    fn from(error: StoreError) -> OtherPage {
        Problem::from(error).into()
    }
}

impl From<OperatorError> for OtherPage {
    fn from(error: OperatorError) -> OtherPage {
        let detail = error.to_string();
        match error {
            OperatorError::Store(error) => error.into(),
            OperatorError::Unknown(_) => OtherPage::refused(StatusCode::NOT_FOUND, &detail),
            OperatorError::IsOperator(_) => OtherPage::refused(StatusCode::FORBIDDEN, &detail),
        }
    }
}

/// The operator who asks. Others get the page that is shown for any unknown address.
async fn operator(
    state: &HttpState,
    caller: Caller,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Operator, OtherPage> {
    let Some(session) = session(headers, caller, state).await? else {
        return Err(to_log_in(uri, headers).into());
    };
    if !state.operators.is_operator(session.uid).await? {
        return Err(page_not_found(headers).into());
    }
    let name = state.accounts.name(session.uid).await?.unwrap_or_default();
    Ok(Operator { uid: session.uid, name })
}

/// `GET /admin`: finding people, and who may make an account.
pub(super) async fn people(
    State(state): State<HttpState>,
    caller: Caller,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    Params(PeopleQuery { q }): Params<PeopleQuery>,
) -> Result<Html<String>, OtherPage> {
    let operator = operator(&state, caller, &uri, &headers).await?;
    let found: Vec<_> = state.operators.find(&q).await?.into_iter().map(account).collect();
    let sign_up = match state.settings.sign_up {
        SignUp::Open => "Everybody who reaches this server may make one (`[accounts] sign_up = \"open\"`).",
        SignUp::Invitation => {
            "People with an invitation may make one (`[accounts] sign_up = \"invitation\"`)."
        }
        SignUp::Closed => "`tidemark user add` alone makes one (`[accounts] sign_up = \"closed\"`).",
    };
    let limits = allowances(&state.settings.limits);
    let view = web::AdminPeople {
        operator: &operator.name,
        query: q.trim(),
        found: &found,
        sign_up,
        limits: &limits,
    };
    Ok(Html(web::admin_people(&view)))
}

/// `GET /admin/people/{uid}`: an account, its sessions, and the reports about it.
pub(super) async fn person(
    State(state): State<HttpState>,
    caller: Caller,
    Path(uid): Path<String>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Html<String>, OtherPage> {
    let operator = operator(&state, caller, &uri, &headers).await?;
    let uid: Uid = uid.parse().map_err(|_| page_not_found(&headers))?;
    let InspectedPerson { account: listed, sessions, reports } = state.operators.person(uid).await?;
    let sessions: Vec<_> = sessions.into_iter().map(shown_session).collect();
    let reports: Vec<_> = reports.into_iter().map(shown_report).collect();
    let view = web::AdminPerson {
        operator: &operator.name,
        account: &account(listed),
        sessions: &sessions,
        reports: &reports,
    };
    Ok(Html(web::admin_person(&view)))
}

/// `POST /admin/people/{uid}`: locks or unlocks the account, or ends sessions.
pub(super) async fn change(
    State(state): State<HttpState>,
    caller: Caller,
    Path(uid): Path<String>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    form: Result<Form<Wish>, FormRejection>,
) -> Result<Redirect, OtherPage> {
    let Operator { uid: by, .. } = operator(&state, caller, &uri, &headers).await?;
    let uid: Uid = uid.parse().map_err(|_| page_not_found(&headers))?;
    let broken = || Problem::invalid_query("the form did not arrive whole; load the page again");
    let Form(Wish { r#do, session }) = form.map_err(|_| broken())?;
    let operators = &state.operators;
    match (r#do.as_deref(), session) {
        (Some("lock"), None) => operators.lock(by, uid).await?,
        (Some("unlock"), None) => operators.unlock(by, uid).await?,
        (Some("end"), None) => operators.end_sessions(by, uid).await?,
        (None, Some(id)) => {
            let id = id.parse().map_err(|_| broken())?;
            operators.end_session(by, uid, id).await?;
        }
        _ => return Err(broken().into()),
    }
    Ok(Redirect::to(&format!("/admin/people/{uid}")))
}

/// `GET /admin/reports`: those that no operator has closed, oldest first.
pub(super) async fn reports(
    State(state): State<HttpState>,
    caller: Caller,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    Params(ReportsQuery { after }): Params<ReportsQuery>,
) -> Result<Html<String>, OtherPage> {
    let operator = operator(&state, caller, &uri, &headers).await?;
    let open = state.operators.reports().page(false, after, REPORTS).await?;
    let newer = open.last().filter(|_| open.len() == REPORTS).map(|last| last.report.number);
    let reports: Vec<_> = open.into_iter().map(shown_report).collect();
    let view = web::AdminReports { operator: &operator.name, reports: &reports, newer };
    Ok(Html(web::admin_reports(&view)))
}

/// `POST /admin/reports`: closes one.
pub(super) async fn close_report(
    State(state): State<HttpState>,
    caller: Caller,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    form: Result<Form<Closing>, FormRejection>,
) -> Result<Redirect, OtherPage> {
    let Operator { uid: by, .. } = operator(&state, caller, &uri, &headers).await?;
    let Form(Closing { close }) =
        form.map_err(|_| Problem::invalid_query("the form did not arrive whole; load the page again"))?;
    if !state.operators.reports().close(Some(by), close).await? {
        let gone = format!("there is no report {close} (any more)");
        return Err(OtherPage::refused(StatusCode::NOT_FOUND, &gone));
    }
    Ok(Redirect::to("/admin/reports"))
}

/// `GET /admin/audit`: what was done, newest first.
pub(super) async fn audit(
    State(state): State<HttpState>,
    caller: Caller,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    Params(AuditQuery { before }): Params<AuditQuery>,
) -> Result<Html<String>, OtherPage> {
    let operator = operator(&state, caller, &uri, &headers).await?;
    let lines = state.operators.audit().lines(before, LINES).await?;
    let older = lines.last().filter(|_| lines.len() == LINES).map(|last| last.line.number);
    let lines: Vec<_> = lines.into_iter().map(audit_line).collect();
    let view = web::AdminAudit { operator: &operator.name, lines: &lines, older };
    Ok(Html(web::admin_audit(&view)))
}

fn account(
    ListedAccount { uid, name, created_at, disabled, deleted, operator }: ListedAccount,
) -> web::AdminAccount {
    let state = match (deleted, disabled, operator) {
        (true, ..) => "deleted",
        (_, true, true) => "operator, locked",
        (_, true, false) => "locked",
        (_, false, true) => "operator",
        _ => "open",
    };
    web::AdminAccount { uid: uid.0, name, state, created_at: in_utc(created_at) }
}

fn shown_session(OpenSession { id, created_at, expires_at, label, .. }: OpenSession) -> web::AdminSession {
    let (created_at, expires_at) = (in_utc(created_at), in_utc(expires_at));
    web::AdminSession { id: id.to_string(), device: label, created_at, expires_at }
}

fn shown_report(NamedReport { report, about, reporter }: NamedReport) -> web::AdminReport {
    let (number, is_closed, complaint) = (report.number, report.is_closed, report.complaint);
    web::AdminReport {
        number,
        made_at: in_utc(complaint.made_at),
        reason: complaint.reason.as_str(),
        words: complaint.words,
        about: (about.uid.0, about.name),
        reporter: reporter.map(|person| (person.uid.0, person.name)),
        message: complaint.message.map(|message| web::AdminReported {
            group: message.gid.map(|gid| gid.0),
            text: message.text,
            sent_at: in_utc(message.sent_at),
        }),
        is_closed,
    }
}

/// How much one account may do: what, how much, and the setting that says so.
fn allowances(limits: &LimitsSection) -> Vec<(&'static str, String, &'static str)> {
    let by_the_day = |count: u32| format!("{count} a day");
    vec![
        (
            "Stored messages",
            format!("{} KiB a day", limits.stored_kib_per_account_per_day),
            "stored_kib_per_account_per_day",
        ),
        (
            "Strangers put into groups",
            by_the_day(limits.strangers_per_account_per_day),
            "strangers_per_account_per_day",
        ),
        (
            "Strangers written to",
            by_the_day(limits.first_messages_per_account_per_day),
            "first_messages_per_account_per_day",
        ),
        (
            "Messages and read markers",
            format!("{} a second", limits.sends_per_account_per_second),
            "sends_per_account_per_second",
        ),
        (
            "Rows stored with groups and friends",
            format!("{} KiB a second", limits.fan_out_kib_per_account_per_second),
            "fan_out_kib_per_account_per_second",
        ),
        (
            "Rows read",
            format!("{} KiB a second", limits.read_kib_per_account_per_second),
            "read_kib_per_account_per_second",
        ),
    ]
}

fn audit_line(NamedAuditLine { line, by, person }: NamedAuditLine) -> web::AdminAuditLine {
    web::AdminAuditLine {
        at: in_utc(line.at),
        by: line.by.map(|uid| uid.0).zip(by),
        action: line.action.replace('_', " "),
        person: line.person.map(|uid| uid.0).zip(person),
        group: line.group.map(|gid| gid.0),
        detail: line.detail,
    }
}

/// A time to the second, as people read it.
fn in_utc(time: Timestamp) -> String {
    let text = Timestamp(time.0 - time.0.rem_euclid(1_000)).to_rfc3339();
    text.replace('T', " ").replace('Z', " UTC")
}
