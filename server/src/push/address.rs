//! Which addresses lie outside every private network. A push goes nowhere else: a person chooses the endpoint, and the server may reach
//! what that person cannot.

use std::net::IpAddr;
use std::sync::LazyLock;

use ipnet::IpNet;

/// Ranges of which no address is that of a server on the internet, as IANA's registries of special addresses list them. Of IPv6 all that
/// lies outside 2000::/3 is closed as well.
const CLOSED: [&str; 23] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "192.175.48.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "2620:4f:8000::/48",
    "3fff::/20",
];

static CLOSED_NETS: LazyLock<Vec<IpNet>> =
    LazyLock::new(|| CLOSED.iter().map(|range| range.parse().expect("a range of addresses")).collect());

/// Whether a server on the internet may have this address. One of IPv4 that is written as one of IPv6 counts as what it leads to.
pub fn is_public(address: IpAddr) -> bool {
    let address = leads_to(address.to_canonical());
    let is_in_use = match address {
        IpAddr::V4(_) => true,
        IpAddr::V6(address) => address.segments()[0] & 0xe000 == 0x2000,
    };
    is_in_use && CLOSED_NETS.iter().all(|range| !range.contains(&address))
}

/// The address of IPv4 to which a translator leads (64:ff9b::/96, RFC 6052), as networks without IPv4 have one.
fn leads_to(address: IpAddr) -> IpAddr {
    const TRANSLATED: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];
    match address {
        IpAddr::V6(six) if six.segments()[..6] == TRANSLATED => {
            let [.., high, low] = six.segments();
            let [high, low] = [high, low].map(u16::to_be_bytes);
            IpAddr::from([high[0], high[1], low[0], low[1]])
        }
        other => other,
    }
}

/// `localhost` and its like never need to be asked for.
pub(super) fn is_loopback_name(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

/// The address that stands in the place of a host's name, if one does.
pub(super) fn literal(host: &str) -> Option<IpAddr> {
    host.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_inside_a_network_is_public() {
        for inside in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.170",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(inside.parse().expect("an address")), "{inside}");
        }
    }

    #[test]
    fn a_server_on_the_internet_is_public() {
        for outside in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.169.0.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2001:4860:4860::8888",
            "2a00:1450:4001:80b::200a",
        ] {
            assert!(is_public(outside.parse().expect("an address")), "{outside}");
        }
    }

    #[test]
    fn names_of_this_machine_are_known_without_asking() {
        assert!(["localhost", "LOCALHOST.", "a.localhost"].into_iter().all(is_loopback_name));
        assert!(!is_loopback_name("localhost.example.org") && !is_loopback_name("push.example.org"));
    }
}
