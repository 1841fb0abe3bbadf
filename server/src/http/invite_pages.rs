//! The pages of invitations: the one that a guest opens, and those on which a member makes a link. Plain forms; a script copies the
//! link.

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{OriginalUri, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::Deserialize;
use tidemark_web as web;

use super::api::groups::gid;
use super::error::Problem;
use super::extract::session;
use super::language::Reads;
use super::pages::{failure, to_log_in};
use super::proxy::Caller;
use super::state::HttpState;
use crate::config::{LimitsSection, SignUp};

const DAY: u32 = 24 * 60 * 60;

/// `GET /invites/{code}`: what the link leads to.
pub(super) async fn look(
    State(state): State<HttpState>,
    caller: Caller,
    Path(code): Path<String>,
    Reads(language): Reads,
    headers: HeaderMap,
) -> Response {
    let shown = async {
        let view = state.invites.look(&code).await?;
        let guest = match session(&headers, caller, &state).await? {
            Some(session) => Some(state.accounts.name(session.uid).await?.unwrap_or_default()),
            None => None,
        };
        let page = web::Invite {
            group: &view.group,
            from: &view.from.name,
            code: &code,
            guest: guest.as_deref(),
            sign_up_is_open: state.settings.sign_up == SignUp::Open,
        };
        Ok(Html(web::invite(&page, language)).into_response())
    };
    shown.await.unwrap_or_else(|problem: Problem| failure(&problem, language))
}

/// `POST /invites/{code}`: in, and on to the group.
pub(super) async fn join(
    State(state): State<HttpState>,
    caller: Caller,
    Path(code): Path<String>,
    Reads(language): Reads,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Response {
    let joined = async {
        let Some(session) = session(&headers, caller, &state).await? else {
            return Ok(to_log_in(&uri, &headers));
        };
        state.rates.send(session.uid, 1)?;
        let gid = state.invites.accept(session.uid, &code).await?;
        Ok(Redirect::to(&format!("/c/g:{}", gid.0)).into_response())
    };
    joined.await.unwrap_or_else(|problem: Problem| failure(&problem, language))
}

/// `GET /groups/{gid}/invite`: for how long, for how many?
pub(super) async fn ask(
    State(state): State<HttpState>,
    caller: Caller,
    path: Path<String>,
    Reads(language): Reads,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Response {
    let shown = async {
        let Some(session) = session(&headers, caller, &state).await? else {
            return Ok(to_log_in(&uri, &headers));
        };
        let group = state.groups.get(session.uid, gid(&path)?).await?;
        let terms = TypedTerms::usual(&state.settings.limits);
        Ok(form(&state, (&group.settings.name, group.gid.0), &terms, None, language))
    };
    shown.await.unwrap_or_else(|problem: Problem| failure(&problem, language))
}

/// The fields of the form, as they were typed.
#[derive(Deserialize)]
pub(super) struct TypedTerms {
    days: String,
    uses: String,
}

impl TypedTerms {
    /// The values that the form begins with.
    fn usual(limits: &LimitsSection) -> TypedTerms {
        let (days, uses) = (most_days(limits).min(7), limits.invite_uses.min(10));
        TypedTerms { days: days.to_string(), uses: uses.to_string() }
    }

    /// Both as numbers within the limits, or the field that is not.
    fn check(&self, limits: &LimitsSection) -> Result<(u32, u32), web::Misfit> {
        let within = |text: &str, most| text.trim().parse().ok().filter(|number| (1..=most).contains(number));
        let days = within(&self.days, most_days(limits)).ok_or(web::Misfit::Days)?;
        let uses = within(&self.uses, limits.invite_uses).ok_or(web::Misfit::Uses)?;
        Ok((days, uses))
    }
}

fn most_days(limits: &LimitsSection) -> u32 {
    (limits.invite_seconds / DAY).max(1)
}

/// `POST /groups/{gid}/invite`: here is the link.
pub(super) async fn make(
    State(state): State<HttpState>,
    caller: Caller,
    path: Path<String>,
    Reads(language): Reads,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    terms: Result<Form<TypedTerms>, FormRejection>,
) -> Response {
    let made = async {
        let Some(session) = session(&headers, caller, &state).await? else {
            return Ok(to_log_in(&uri, &headers));
        };
        let limits = &state.settings.limits;
        let Form(terms) =
            terms.unwrap_or_else(|_| Form(TypedTerms { days: String::new(), uses: String::new() }));
        let group = state.groups.get(session.uid, gid(&path)?).await?;
        let (days, uses) = match terms.check(limits) {
            Ok(terms) => terms,
            Err(misfit) => {
                return Ok(form(&state, (&group.settings.name, group.gid.0), &terms, Some(misfit), language));
            }
        };
        state.rates.send(session.uid, 1)?;
        // A configuration may allow less than a day.
        let seconds = (days * DAY).min(limits.invite_seconds);
        let made = state.invites.create(session.uid, group.gid, Some(seconds), Some(uses), None).await?;
        let link = format!("{}/invites/{}", origin(&state, caller, &headers), made.code);
        let page = web::InviteLink { group: &group.settings.name, gid: group.gid.0, link: &link };
        Ok(Html(web::invite_link(&page, language)).into_response())
    };
    made.await.unwrap_or_else(|problem: Problem| failure(&problem, language))
}

fn form(
    state: &HttpState,
    (group, gid): (&str, u64),
    TypedTerms { days, uses }: &TypedTerms,
    misfit: Option<web::Misfit>,
    language: web::Language,
) -> Response {
    let limits = &state.settings.limits;
    let page = web::NewInvite {
        group,
        gid,
        most_days: most_days(limits),
        most_uses: limits.invite_uses,
        days,
        uses,
        misfit,
    };
    let status = if misfit.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    (status, Html(web::new_invite(&page, language))).into_response()
}

/// Where this server is for the one who asks.
fn origin(state: &HttpState, caller: Caller, headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let scheme = if caller.https { "https" } else { "http" };
    state.settings.origins.public.clone().unwrap_or_else(|| format!("{scheme}://{host}"))
}
