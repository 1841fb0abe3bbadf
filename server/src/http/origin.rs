//! Which page a request comes from: what keeps other sites out.
//!
//! Every changing request and every `/ws` passes [`check`]. A foreign `Origin` is refused whatever else the
//! request carries; a missing one passes only where no cookie is sent, since browsers send both.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};

use super::cookies::{SESSION, TABLES};
use super::error::Problem;
use super::proxy::Caller;

/// Where a request that passed comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// One of our own pages.
    OwnPage,
    /// No browser page: a program.
    NoPage,
}

/// Refuses what comes from another site. `public` is the origin that the configuration fixes, if it does.
pub(super) fn check(headers: &HeaderMap, caller: Caller, public: Option<&str>) -> Result<Source, Problem> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let (first, second) = (origins.next(), origins.next());
    match (first, second) {
        (None, _) if SESSION.of(headers).is_none() && TABLES.of(headers).is_none() => Ok(Source::NoPage),
        (Some(origin), None) if is_own(origin, headers, caller, public) => Ok(Source::OwnPage),
        _ => {
            let detail = "the request does not come from this server's own page; send its Origin, or use a token \
                          in the Authorization header and no cookie";
            Err(Problem::new(StatusCode::FORBIDDEN, "foreign_origin", detail))
        }
    }
}

fn is_own(origin: &HeaderValue, headers: &HeaderMap, caller: Caller, public: Option<&str>) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    if let Some(public) = public {
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
        check(&headers(pairs), DIRECT, public).ok()
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
    fn behind_https_the_own_origin_is_https() {
        let https = Caller { https: true, proxied: true, ..DIRECT };
        let page = headers(&[("host", "chat"), ("origin", "https://chat")]);
        assert_eq!(check(&page, https, None).ok(), Some(Source::OwnPage));
    }
}
