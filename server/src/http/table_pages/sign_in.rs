//! The card that asks for an access key, and what takes it. The secret is compared and forgotten.

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{OriginalUri, Query as Decoded, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::Deserialize;
use tidemark_web as web;

use super::session::{LIFETIME_SECONDS, Token, is_key_id, issue};
use super::{RefusalPage, reader};
use crate::http::cookies::TABLES;
use crate::http::error::Problem;
use crate::http::proxy::Caller;
use crate::http::state::{BrowsedTables, HttpState};

/// The page after a sign-in that names no other page.
const HOME: &str = "/tables";

/// The query of the card's address.
#[derive(Default, Deserialize)]
struct SignInQuery {
    #[serde(default)]
    next: String,
    ended: Option<String>,
}

/// The form that the card sends.
#[derive(Default, Deserialize)]
pub(in crate::http) struct Shown {
    access_key_id: String,
    access_key_secret: String,
    #[serde(default)]
    next: String,
}

/// `GET /tables/sign-in`: the card.
pub(in crate::http) async fn card(
    State(state): State<HttpState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, RefusalPage> {
    switched_on(&state)?;
    let SignInQuery { next, ended } =
        Decoded::try_from_uri(&uri).map_or_else(|_| SignInQuery::default(), |Decoded(wanted)| wanted);
    let problem = ended.map(|_| "Your sign-in has ended, or the key was revoked. Sign in again.");
    Ok(Html(render("", &next, problem)).into_response())
}

/// `POST /tables/sign-in`: in, and on to what was asked for.
pub(in crate::http) async fn sign_in(
    State(state): State<HttpState>,
    caller: Caller,
    form: Result<Form<Shown>, FormRejection>,
) -> Result<Response, RefusalPage> {
    let tables = switched_on(&state)?;
    let Ok(Form(Shown { access_key_id, access_key_secret, next })) = form else {
        let problem = "The form did not arrive whole. Fill it in and send it again.";
        return Ok((StatusCode::BAD_REQUEST, Html(render("", "", Some(problem)))).into_response());
    };
    let (id, secret) = (access_key_id.trim(), access_key_secret.trim());
    if let Err(problem) = count(&state, caller, id).await {
        let said = format!("Not signed in: {}.", problem.detail);
        let mut response = (problem.status, Html(render(id, &next, Some(&said)))).into_response();
        if let Some(after) = problem.after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(after.as_secs() + 1));
        }
        return Ok(response);
    }
    let now = state.clock.now();
    let found = match is_key_id(id) {
        true => tables.keys.access_key(id).await.map_err(Problem::from)?,
        false => None,
    };
    // A token that the typed secret signs is checked with the stored secret, as in each request afterwards.
    let sign_outs = found.as_ref().map_or(0, |key| key.sign_outs);
    let token = issue(id, secret, sign_outs, now);
    let is_right =
        |key: &str| Token::read(&token, now).is_some_and(|token| token.is_signed_by(key, sign_outs));
    if !found.is_some_and(|key| is_right(&key.secret)) {
        let problem = "Not signed in: the access key does not exist, or its secret is wrong.";
        return Ok((StatusCode::UNAUTHORIZED, Html(render(id, &next, Some(problem)))).into_response());
    }
    let mut response = Redirect::to(destination(&next)).into_response();
    let cookie = TABLES.set(&token, LIFETIME_SECONDS.into(), state.settings.is_secure(caller));
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

/// `POST /tables/sign-out`: out, everywhere where somebody signed in with the same key, and back to the card.
pub(in crate::http) async fn sign_out(
    State(state): State<HttpState>,
    caller: Caller,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Response, RefusalPage> {
    let tables = switched_on(&state)?;
    match reader(&state, caller, &uri, &headers).await {
        Ok((_, reader)) => tables.keys.sign_out(&reader.key.id).await.map_err(Problem::from)?,
        // It has ended already.
        Err(RefusalPage::SignIn { .. }) => {}
        Err(refused) => return Err(refused),
    }
    let mut response = Redirect::to("/tables/sign-in").into_response();
    for cookie in TABLES.clear(state.settings.is_secure(caller)) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Whether another attempt may be made: an address and a key have as many as for log-ins.
async fn count(state: &HttpState, caller: Caller, id: &str) -> Result<(), Problem> {
    let attempts = state.rates.sign_in(caller.address, id)?;
    Ok(state.accounts.count(&attempts).await?)
}

fn switched_on(state: &HttpState) -> Result<&BrowsedTables, RefusalPage> {
    state.tables.as_ref().ok_or_else(RefusalPage::switched_off)
}

fn render(key_id: &str, next: &str, problem: Option<&str>) -> String {
    let key_id = if is_key_id(key_id) { key_id } else { "" };
    web::tables_sign_in(&web::TablesSignIn { key_id, next: destination(next), problem })
}

/// Only a page of tables: `//evil` and the like would lead away.
fn destination(next: &str) -> &str {
    let beneath = next.strip_prefix(HOME).filter(|_| next.bytes().all(|byte| byte.is_ascii_graphic()));
    let is_page = beneath.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
    if is_page { next } else { HOME }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_goes_on_to_pages_of_tables_alone() {
        for page in ["/tables", "/tables/orders?k1=a%20b&go=to", "/tables?x"] {
            assert_eq!(destination(page), page);
        }
        for elsewhere in
            ["", "/", "//evil", "/tables@evil", "https://evil/tables", "/tables/\r\nx", "/tables/é"]
        {
            assert_eq!(destination(elsewhere), HOME);
        }
    }
}
