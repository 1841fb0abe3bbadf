//! The address at a push service that a browser got for one device. A holder of it may disturb that device, so it stays out of logs.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use hyper::Uri;

use super::address::{is_loopback_name, literal};

/// Bytes of the longest endpoint. Those of browsers have 150 to 600.
pub const MOST_ENDPOINT_BYTES: usize = 1_024;

/// See the module.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    uri: Uri,
    text: String,
}

/// The text is no endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an endpoint is an https address of at most {MOST_ENDPOINT_BYTES} characters, without a name or a password in it"
)]
pub struct BadEndpoint;

impl FromStr for Endpoint {
    type Err = BadEndpoint;

    fn from_str(text: &str) -> Result<Endpoint, BadEndpoint> {
        let is_plain = text.len() <= MOST_ENDPOINT_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic());
        let uri = text.parse().ok().filter(|_| is_plain && !text.contains('#'));
        let uri: Uri = uri.ok_or(BadEndpoint)?;
        let is_host = uri.authority().is_some_and(|authority| {
            let port = authority.as_str().rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
            let is_port = port.is_none_or(|(_, port)| port.parse().is_ok_and(|port: u16| port > 0));
            !authority.host().is_empty() && !authority.as_str().contains('@') && is_port
        });
        match uri.scheme_str() {
            Some("https") if is_host => Ok(Endpoint { uri, text: text.to_owned() }),
            _ => Err(BadEndpoint),
        }
    }
}

impl Endpoint {
    /// As the browser wrote it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The host's name or address, an address of IPv6 without its brackets.
    pub fn host(&self) -> &str {
        self.uri.host().unwrap_or_default().trim_matches(['[', ']'])
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.uri.port_u16().unwrap_or(443)
    }

    /// Host and port as the header `Host` has them.
    pub fn authority(&self) -> &str {
        self.uri.authority().map_or("", |authority| authority.as_str())
    }

    /// Path and query.
    pub fn path(&self) -> &str {
        self.uri.path_and_query().map_or("/", |path| path.as_str())
    }

    /// The origin, for which a token of this installation is made out.
    pub fn origin(&self) -> String {
        let authority = self.authority().to_ascii_lowercase();
        format!("https://{}", authority.strip_suffix(":443").unwrap_or(&authority))
    }

    /// The address that its host is without a question to the DNS, if it is one; that of `localhost` too.
    pub(super) fn literal(&self) -> Option<IpAddr> {
        match is_loopback_name(self.host()) {
            true => Some(IpAddr::from([127, 0, 0, 1])),
            false => literal(self.host()),
        }
    }
}

/// Without what is secret in it.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/…", self.origin())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_an_https_address() {
        let endpoint: Endpoint = "https://Push.example.org:8443/a/b?c=d".parse().expect("an endpoint");
        assert_eq!((endpoint.host(), endpoint.port()), ("Push.example.org", 8443));
        assert_eq!((endpoint.authority(), endpoint.path()), ("Push.example.org:8443", "/a/b?c=d"));
        assert_eq!(endpoint.origin(), "https://push.example.org:8443");
        assert_eq!(format!("{endpoint:?}"), "https://push.example.org:8443/…");
        let usual: Endpoint = "https://push.example.org:443".parse().expect("an endpoint");
        assert_eq!((usual.origin().as_str(), usual.path()), ("https://push.example.org", "/"));
        let six: Endpoint = "https://[::1]/x".parse().expect("an endpoint");
        assert_eq!((six.host(), six.port(), six.literal().is_some()), ("::1", 443, true));
    }

    #[test]
    fn what_is_no_endpoint_is_refused() {
        let long = format!("https://push.example.org/{}", "x".repeat(MOST_ENDPOINT_BYTES));
        for bad in [
            "",
            "push.example.org",
            "http://push.example.org/x",
            "wss://push.example.org/x",
            "https:///x",
            "https://:443/x",
            "https://ann:secret@push.example.org/x",
            "https://push.example.org@127.0.0.1/x",
            "https://push.example.org:0/x",
            "https://push.example.org:99999/x",
            "https://push.example.org:/x",
            "https://push.example.org/a b",
            "https://push.example.org/x#y",
            "https://push.example.org/\r\nHost: other",
            "https://推送.example.org/x",
            &long,
        ] {
            assert_eq!(bad.parse::<Endpoint>(), Err(BadEndpoint), "{bad}");
        }
    }

    #[test]
    fn an_address_in_place_of_a_name_is_seen_at_once() {
        let literal = |text: &str| text.parse::<Endpoint>().expect("an endpoint").literal();
        assert_eq!(literal("https://127.0.0.1/x"), Some(IpAddr::from([127, 0, 0, 1])));
        assert_eq!(literal("https://LocalHost/x"), Some(IpAddr::from([127, 0, 0, 1])));
        assert_eq!(literal("https://push.example.org/x"), None);
    }
}
