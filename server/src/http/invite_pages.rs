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
use crate::app::SignUp;
use crate::domain::{LONGEST_INVITE_SECONDS, MOST_INVITE_USES};

const DAY: u32 = 24 * 60 * 60;

/// The longest life of an invitation, as the form takes it.
const MOST_DAYS: u32 = LONGEST_INVITE_SECONDS / DAY;

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
        let terms = TypedTerms { days: "7".to_owned(), uses: "10".to_owned() };
        Ok(form((&group.settings.name, group.gid.0), &terms, None, language))
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
    /// Both as numbers within the limits, or the field that is not.
    fn check(&self) -> Result<(u32, u32), web::Misfit> {
        let within = |text: &str, most| text.trim().parse().ok().filter(|number| (1..=most).contains(number));
        let days = within(&self.days, MOST_DAYS).ok_or(web::Misfit::Days)?;
        let uses = within(&self.uses, MOST_INVITE_USES).ok_or(web::Misfit::Uses)?;
        Ok((days, uses))
    }
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
        let Form(terms) =
            terms.unwrap_or_else(|_| Form(TypedTerms { days: String::new(), uses: String::new() }));
        let group = state.groups.get(session.uid, gid(&path)?).await?;
        let (days, uses) = match terms.check() {
            Ok(terms) => terms,
            Err(misfit) => {
                return Ok(form((&group.settings.name, group.gid.0), &terms, Some(misfit), language));
            }
        };
        state.rates.send(session.uid, 1)?;
        let made = state.invites.create(session.uid, group.gid, Some(days * DAY), Some(uses), None).await?;
        let link = format!("{}/invites/{}", origin(&state, caller, &headers), made.code);
        let page = web::InviteLink { group: &group.settings.name, gid: group.gid.0, link: &link };
        Ok(Html(web::invite_link(&page, language)).into_response())
    };
    made.await.unwrap_or_else(|problem: Problem| failure(&problem, language))
}

fn form(
    (group, gid): (&str, u64),
    TypedTerms { days, uses }: &TypedTerms,
    misfit: Option<web::Misfit>,
    language: web::Language,
) -> Response {
    let page =
        web::NewInvite { group, gid, most_days: MOST_DAYS, most_uses: MOST_INVITE_USES, days, uses, misfit };
    let status = if misfit.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    (status, Html(web::new_invite(&page, language))).into_response()
}

/// Where this server is for the one who asks.
fn origin(state: &HttpState, caller: Caller, headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let scheme = if caller.https { "https" } else { "http" };
    state.settings.origins.public.clone().unwrap_or_else(|| format!("{scheme}://{host}"))
}
