//! Finds the client behind the proxies that the configuration trusts, and behind no others.

use std::net::IpAddr;

use axum::http::HeaderMap;

use crate::config::Cidr;

/// The way that a request came, as far as the server believes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    /// The client's address.
    pub(super) address: IpAddr,
    /// Whether the client spoke HTTPS to a trusted proxy.
    pub(super) https: bool,
    /// Whether a trusted proxy stands between.
    pub(super) proxied: bool,
}

/// Whether `address` is one of `trusted`.
pub(super) fn is_trusted(address: IpAddr, trusted: &[Cidr]) -> bool {
    trusted.iter().any(|range| range.contains(address))
}

/// Reads the forwarded headers of a request that came from `peer`, as far as they can be believed: each proxy adds
/// the address that it saw at the right end, so they are read from there until one is not a proxy of ours.
pub(super) fn caller(peer: IpAddr, headers: &HeaderMap, trusted: &[Cidr]) -> Caller {
    if !is_trusted(peer, trusted) {
        return Caller { address: peer.to_canonical(), https: false, proxied: false };
    }
    let mut address = peer;
    let lines: Vec<&str> =
        headers.get_all("x-forwarded-for").iter().filter_map(|v| v.to_str().ok()).collect();
    for hop in lines.iter().rev().flat_map(|line| line.rsplit(',')) {
        let Some(hop) = parse(hop) else { break };
        address = hop;
        if !is_trusted(hop, trusted) {
            break;
        }
    }
    let scheme = headers.get_all("x-forwarded-proto").iter().next_back().and_then(|v| v.to_str().ok());
    let https =
        scheme.and_then(|s| s.rsplit(',').next()).is_some_and(|s| s.trim().eq_ignore_ascii_case("https"));
    Caller { address: address.to_canonical(), https, proxied: true }
}

/// An address, with or without a port.
fn parse(hop: &str) -> Option<IpAddr> {
    let hop = hop.trim();
    hop.parse().ok().or_else(|| hop.parse::<std::net::SocketAddr>().ok().map(|socket| socket.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(peer: &str, forwarded: &[&str], proto: &str) -> Caller {
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append("x-forwarded-for", line.parse().expect("a value"));
        }
        headers.insert("x-forwarded-proto", proto.parse().expect("a value"));
        let trusted = ["10.0.0.0/8".parse().expect("a range")];
        caller(peer.parse().expect("an address"), &headers, &trusted)
    }

    fn address(caller: Caller) -> String {
        caller.address.to_string()
    }

    #[test]
    fn a_stranger_is_not_believed() {
        let stranger = from("203.0.113.9", &["198.51.100.1"], "https");
        assert_eq!(address(stranger), "203.0.113.9");
        assert!(!stranger.https && !stranger.proxied);
    }

    #[test]
    fn the_client_is_the_last_address_that_is_no_proxy_of_ours() {
        let seen = from("10.0.0.1", &["1.1.1.1, 198.51.100.1", "10.0.0.2"], "https");
        assert_eq!(address(seen), "198.51.100.1");
        assert!(seen.https && seen.proxied);
        assert_eq!(address(from("10.0.0.1", &["198.51.100.1:4711"], "http")), "198.51.100.1");
        assert_eq!(address(from("10.0.0.1", &["198.51.100.1, nonsense"], "http")), "10.0.0.1");
        assert_eq!(address(from("10.0.0.1", &[], "http")), "10.0.0.1");
    }
}
