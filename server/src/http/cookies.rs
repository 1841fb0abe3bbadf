//! The cookies that browsers get: out of reach of scripts, and under HTTPS of this host alone.
//!
//! Each is given by one handler and read by one extractor; [`origin`](super::origin) looks at all of them, since a request that carries
//! one may have been made by another site's page.

use axum::http::{HeaderMap, HeaderValue, header};

/// A cookie, by its names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cookie {
    name: &'static str,
    /// Its name under HTTPS, where no other counts: browsers take it from this host alone, never from a neighbour under the same domain.
    host_name: &'static str,
    same_site: &'static str,
}

/// Holds the token of a browser's session with the chat.
pub(super) const SESSION: Cookie =
    Cookie { name: "tidemark_session", host_name: "__Host-tidemark_session", same_site: "Lax" };

/// Says with which access key a browser looks at tables. Links of other sites to a page of tables come without it.
pub(super) const TABLES: Cookie =
    Cookie { name: "tidemark_tables", host_name: "__Host-tidemark_tables", same_site: "Strict" };

/// Says that somebody has logged in on this device before, and under whose account. It opens nothing: it tells the owner's attempts from
/// those of others who try the name.
pub(super) const DEVICE: Cookie =
    Cookie { name: "tidemark_device", host_name: "__Host-tidemark_device", same_site: "Strict" };

/// Says which language a person chose for the pages.
pub(super) const LANGUAGE: Cookie =
    Cookie { name: "tidemark_language", host_name: "__Host-tidemark_language", same_site: "Lax" };

impl Cookie {
    /// Its value in a request. `secure`: the request came by HTTPS.
    pub(super) fn of(self, headers: &HeaderMap, secure: bool) -> Option<&str> {
        named(headers, if secure { self.host_name } else { self.name })
    }

    /// Its value in a request, under either name: for uses that open nothing.
    pub(super) fn any(self, headers: &HeaderMap) -> Option<&str> {
        named(headers, self.host_name).or_else(|| named(headers, self.name))
    }

    /// The header that gives it. `value` holds letters, digits, `.` and `-`.
    pub(super) fn set(self, value: &str, lifetime_seconds: u64, secure: bool) -> HeaderValue {
        let (name, secure) = if secure { (self.host_name, "; Secure") } else { (self.name, "") };
        let same_site = self.same_site;
        let line = format!(
            "{name}={value}; Path=/; HttpOnly; SameSite={same_site}; Max-Age={lifetime_seconds}{secure}"
        );
        HeaderValue::from_str(&line).expect("letters and digits")
    }

    /// The headers that take it back, under whichever name it was given.
    pub(super) fn clear(self, secure: bool) -> impl Iterator<Item = HeaderValue> {
        [false, true].into_iter().filter(move |name| secure || !name).map(move |name| self.set("", 0, name))
    }
}

fn named<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    lines
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(name, value)| (name == wanted).then_some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::COOKIE, HeaderValue::from_static(line));
        }
        headers
    }

    #[test]
    fn a_cookie_is_found_among_others() {
        assert_eq!(SESSION.of(&headers(&["a=b; tidemark_session=abc", "c=d"]), false), Some("abc"));
        assert_eq!(SESSION.of(&headers(&["xtidemark_session=abc; tidemark_tables=x"]), false), None);
    }

    #[test]
    fn under_https_a_neighbour_under_the_same_domain_sets_none() {
        let both = headers(&["tidemark_session=planted; __Host-tidemark_session=own"]);
        assert_eq!((SESSION.of(&both, true), SESSION.any(&both)), (Some("own"), Some("own")));
        let planted = headers(&["tidemark_session=planted"]);
        assert_eq!((SESSION.of(&planted, true), SESSION.any(&planted)), (None, Some("planted")));
    }

    #[test]
    fn scripts_and_other_sites_do_not_get_it() {
        for (cookie, secure, parts) in [
            (
                SESSION,
                true,
                "__Host-tidemark_session=abc; Path=/; HttpOnly; SameSite=Lax; Max-Age=60; Secure",
            ),
            (
                TABLES,
                true,
                "__Host-tidemark_tables=abc; Path=/; HttpOnly; SameSite=Strict; Max-Age=60; Secure",
            ),
            (TABLES, false, "tidemark_tables=abc; Path=/; HttpOnly; SameSite=Strict; Max-Age=60"),
        ] {
            assert_eq!(cookie.set("abc", 60, secure).to_str().expect("text"), parts);
        }
        assert_eq!(TABLES.clear(true).count(), 2);
        assert_eq!(TABLES.clear(false).count(), 1);
    }
}
