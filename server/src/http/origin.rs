//! The page from which a request comes: keeps other sites out.
//!
//! Every changing request and every `/ws` passes [`check`]. A browser adds a cookie by itself, so a cookie counts only from the server's
//! own pages and from those that the configuration allows. A token was given to the caller that shows it, so it counts from any page.

use std::time::Duration;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use tower_http::cors::{AllowCredentials, AllowOrigin, CorsLayer};

use super::cookies::{SESSION, TABLES};
use super::error::{Problem, REQUEST_ID_HEADER};
use super::proxy::Caller;

/// The header with the name that a caller gives to what it makes.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The headers of uploads (`files/tus.rs`), as pages of other sites may send and read them.
pub(super) const TUS_RESUMABLE: HeaderName = HeaderName::from_static("tus-resumable");
pub(super) const UPLOAD_LENGTH: HeaderName = HeaderName::from_static("upload-length");
pub(super) const UPLOAD_OFFSET: HeaderName = HeaderName::from_static("upload-offset");
pub(super) const UPLOAD_METADATA: HeaderName = HeaderName::from_static("upload-metadata");
pub(super) const UPLOAD_EXPIRES: HeaderName = HeaderName::from_static("upload-expires");

/// How long a browser remembers what another site may ask.
const PREFLIGHT: Duration = Duration::from_secs(3_600);

/// The pages whose cookies count.
#[derive(Clone, Debug, Default)]
pub(super) struct Origins {
    /// The server's own, where the configuration fixes it.
    pub(super) public: Option<String>,
    /// Others that people of this server trust as they trust its own.
    pub(super) allowed: Vec<String>,
}

/// Where a request that passed comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// One of our own pages, or one that is allowed.
    OwnPage,
    /// No browser page, or one that shows a token: a program.
    NoPage,
}

/// Refuses requests from other sites.
pub(super) fn check(headers: &HeaderMap, caller: Caller, origins: &Origins) -> Result<Source, Problem> {
    let mut sent = headers.get_all(header::ORIGIN).iter();
    let (first, second) = (sent.next(), sent.next());
    let has_cookie = SESSION.any(headers).is_some() || TABLES.any(headers).is_some();
    match (first, second) {
        (Some(origin), None) if is_own(origin, headers, caller, origins) => Ok(Source::OwnPage),
        (None, _) if !has_cookie => Ok(Source::NoPage),
        _ if !has_cookie && headers.contains_key(header::AUTHORIZATION) => Ok(Source::NoPage),
        _ => {
            let detail = "the request does not come from this server's own page; send its Origin, or use a token \
                          in the Authorization header and no cookie";
            Err(Problem::new(StatusCode::FORBIDDEN, "foreign_origin", detail))
        }
    }
}

/// Lets the pages of other sites read what the calls of the API answer: with a token, or with cookies if they are allowed.
pub(super) fn cross_origin(origins: &Origins) -> CorsLayer {
    let allowed = origins.allowed.clone();
    let is_allowed = move |origin: &HeaderValue, _: &Parts| allowed.iter().any(|allowed| origin == allowed);
    CorsLayer::new()
        .allow_origin(AllowOrigin::mirror_request())
        .allow_credentials(AllowCredentials::predicate(is_allowed))
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers([header::AUTHORIZATION, header::CONTENT_TYPE, IDEMPOTENCY_KEY])
        .expose_headers([header::RETRY_AFTER, REQUEST_ID_HEADER])
        .max_age(PREFLIGHT)
}

/// The same of files: with the headers of tus.
pub(super) fn cross_origin_of_files(origins: &Origins) -> CorsLayer {
    cross_origin(origins)
        .allow_methods([Method::GET, Method::HEAD, Method::POST, Method::PATCH, Method::DELETE])
        .allow_headers([
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            header::RANGE,
            TUS_RESUMABLE,
            UPLOAD_LENGTH,
            UPLOAD_METADATA,
            UPLOAD_OFFSET,
        ])
        .expose_headers([
            header::RETRY_AFTER,
            REQUEST_ID_HEADER,
            header::LOCATION,
            header::CONTENT_RANGE,
            header::CONTENT_DISPOSITION,
            TUS_RESUMABLE,
            UPLOAD_EXPIRES,
            UPLOAD_LENGTH,
            UPLOAD_OFFSET,
        ])
}

fn is_own(origin: &HeaderValue, headers: &HeaderMap, caller: Caller, origins: &Origins) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    if origins.allowed.iter().any(|allowed| origin.eq_ignore_ascii_case(allowed)) {
        return true;
    }
    if let Some(public) = &origins.public {
        return origin.eq_ignore_ascii_case(public);
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let scheme = if caller.https { "https://" } else { "http://" };
    let named = origin.strip_prefix(scheme);
    matches!((named, host), (Some(named), Some(host)) if named.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECT: Caller =
        Caller { address: std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), https: false, proxied: false };

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn verdict(pairs: &[(&'static str, &'static str)], public: Option<&str>) -> Option<Source> {
        let origins =
            Origins { public: public.map(str::to_owned), allowed: vec!["https://app.example".to_owned()] };
        check(&headers(pairs), DIRECT, &origins).ok()
    }

    #[test]
    fn a_missing_origin_passes_only_without_a_cookie() {
        assert_eq!(verdict(&[("host", "a")], None), Some(Source::NoPage));
        assert_eq!(verdict(&[("host", "a"), ("cookie", "theme=dark")], None), Some(Source::NoPage));
        for cookie in ["tidemark_session=x", "__Host-tidemark_tables=x"] {
            assert_eq!(verdict(&[("host", "a"), ("cookie", cookie)], None), None);
        }
    }

    #[test]
    fn only_the_own_origin_passes() {
        let own = [("host", "chat:8080"), ("origin", "http://chat:8080"), ("cookie", "tidemark_session=x")];
        assert_eq!(verdict(&own, None), Some(Source::OwnPage));
        assert_eq!(verdict(&own, Some("https://chat.example.org")), None);
        for foreign in ["http://evil", "https://chat:8080", "null", "http://chat:8080.evil", "chat:8080"] {
            assert_eq!(verdict(&[("host", "chat:8080"), ("origin", foreign)], None), None, "{foreign}");
        }
        let twice = [("host", "a"), ("origin", "http://a"), ("origin", "http://evil")];
        assert_eq!(verdict(&twice, None), None);
        let public = [("host", "10.0.0.1"), ("origin", "https://chat.example.org")];
        assert_eq!(verdict(&public, Some("https://chat.example.org")), Some(Source::OwnPage));
    }

    #[test]
    fn a_token_counts_from_any_page_and_a_cookie_from_allowed_ones() {
        let token = ("authorization", "Bearer x");
        for origin in ["https://elsewhere.example", "null"] {
            assert_eq!(verdict(&[("host", "a"), ("origin", origin), token], None), Some(Source::NoPage));
            let both = [("host", "a"), ("origin", origin), token, ("cookie", "tidemark_session=x")];
            assert_eq!(verdict(&both, None), None, "{origin}");
        }
        let allowed = [("host", "a"), ("origin", "https://app.example"), ("cookie", "tidemark_session=x")];
        assert_eq!(verdict(&allowed, None), Some(Source::OwnPage));
        assert_eq!(verdict(&allowed, Some("https://chat.example.org")), Some(Source::OwnPage));
    }

    #[test]
    fn behind_https_the_own_origin_is_https() {
        let https = Caller { https: true, proxied: true, ..DIRECT };
        let page = headers(&[("host", "chat"), ("origin", "https://chat")]);
        assert_eq!(check(&page, https, &Origins::default()).ok(), Some(Source::OwnPage));
    }
}
