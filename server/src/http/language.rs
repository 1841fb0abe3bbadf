//! In which language a page is: the one that the person chose on this device, else (in the chat) the one that the person chose last on
//! another, else the first that the browser asks for and the page speaks.
//!
//! The choice is a cookie, set by the form that `/language` takes, so that pages without scripts see it too. The chat keeps it as a
//! setting as well.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use tidemark_web::Language;

use super::cookies::LANGUAGE;
use super::proxy::Caller;
use super::state::Settings;
use crate::app::People;
use crate::domain::Uid;
use crate::store::StoreError;

/// For how long a choice is kept.
const YEAR_SECONDS: u64 = 365 * 24 * 60 * 60;

/// Ranges of `accept-language` that are looked at; browsers send fewer.
const MOST_RANGES: usize = 20;

/// The language of the page that a request asks for.
pub(super) struct Reads(pub(super) Language);

impl<S: Send + Sync> FromRequestParts<S> for Reads {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Reads, Infallible> {
        Ok(Reads(read_by(&parts.headers)))
    }
}

/// The language for the sender of these headers.
pub(super) fn read_by(headers: &HeaderMap) -> Language {
    chosen(headers).or_else(|| accepted(headers)).unwrap_or(Language::ENGLISH)
}

/// The language that the person chose on this device.
pub(super) fn chosen(headers: &HeaderMap) -> Option<Language> {
    LANGUAGE.any(headers).and_then(Language::tagged)
}

/// The language that `uid` chose on this device, else the one that is set for all devices.
pub(super) async fn chosen_by(
    uid: Uid,
    headers: &HeaderMap,
    people: &People,
) -> Result<Option<Language>, StoreError> {
    match chosen(headers) {
        Some(language) => Ok(Some(language)),
        None => Ok(people.language(uid).await?.and_then(|tag| Language::tagged(&tag))),
    }
}

/// The language that the browser prefers among those that the pages have (RFC 9110, 12.5.4). `zh` serves `zh-TW`, too.
fn accepted(headers: &HeaderMap) -> Option<Language> {
    let lists = headers.get_all(header::ACCEPT_LANGUAGE).iter().filter_map(|list| list.to_str().ok());
    let ranges = lists.flat_map(|list| list.split(',')).take(MOST_RANGES).filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let tag = parts.next()?.split('-').next()?.to_ascii_lowercase();
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let weight: f32 = weight.map_or(Some(1.0), |weight| weight.parse().ok())?;
        Some((Language::tagged(&tag)?, weight)).filter(|_| weight > 0.0)
    });
    // Of equal ones the first.
    ranges.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(language, _)| language)
}

/// The fields of the form.
#[derive(Deserialize)]
pub(super) struct Choice {
    /// The tag of a language; anything else lets the browser say again.
    language: String,
    /// The page that the form stood on.
    #[serde(default)]
    next: String,
}

/// `POST /language`: chooses, and shows the page anew.
pub(super) async fn choose(
    State(settings): State<Arc<Settings>>,
    caller: Caller,
    form: Result<Form<Choice>, FormRejection>,
) -> Response {
    let Ok(Form(Choice { language, next })) = form else { return Redirect::to("/").into_response() };
    let secure = settings.is_secure(caller);
    let mut response = Redirect::to(if is_own_page(&next) { &next } else { "/" }).into_response();
    let cookies: Vec<_> = match Language::tagged(&language) {
        Some(language) => vec![LANGUAGE.set(language.tag(), YEAR_SECONDS, secure)],
        None => LANGUAGE.clear(secure).collect(),
    };
    for cookie in cookies {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// Whether an address leads to a page of this server: `//evil` and `/\evil` would lead away.
fn is_own_page(address: &str) -> bool {
    let mut bytes = address.bytes();
    bytes.next() == Some(b'/')
        && !matches!(bytes.next(), Some(b'/' | b'\\'))
        && address.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn read(pairs: &[(header::HeaderName, &'static str)]) -> &'static str {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, HeaderValue::from_static(value));
        }
        read_by(&headers).tag()
    }

    #[test]
    fn the_browser_says_which_language_until_the_person_does() {
        for (asked, answered) in [
            ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
            ("ZH-hant-TW", "zh"),
            ("de-DE, de;q=0.9, zh;q=0.3, en;q=0.2", "zh"),
            ("en;q=0.5, zh;q=0.7", "zh"),
            ("zh;q=0, en;q=0.1", "en"),
            ("en, zh", "en"),
            ("de, fr", "en"),
            ("zh;q=much", "en"),
            ("*", "en"),
            ("", "en"),
        ] {
            assert_eq!(read(&[(header::ACCEPT_LANGUAGE, asked)]), answered, "{asked}");
        }
        assert_eq!(read(&[]), "en");
        let choice = |cookie| read(&[(header::ACCEPT_LANGUAGE, "zh"), (header::COOKIE, cookie)]);
        assert_eq!(choice("tidemark_language=en"), "en");
        assert_eq!(choice("tidemark_language=xx"), "zh", "a language of another version");
    }

    #[test]
    fn a_form_leads_back_to_pages_of_this_server_alone() {
        for own in ["/", "/login?next=/c/u:10001", "/c/g:7"] {
            assert!(is_own_page(own), "{own}");
        }
        for away in
            ["", "//evil.example", "/\\evil.example", "https://evil.example", "/a\r\nb", "/ü", "login"]
        {
            assert!(!is_own_page(away), "{away:?}");
        }
    }
}
