//! Address ranges in the usual notation, for naming the proxies that are believed.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// `10.0.0.0/8`, `::1` and the like: all addresses that agree in the first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cidr(IpNet);

impl Cidr {
    /// The range itself.
    pub fn net(&self) -> IpNet {
        self.0
    }

    /// Whether `address` lies in it. An IPv4 address mapped into IPv6 counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Cidr, String> {
        let range = text.parse().or_else(|_| text.parse().map(|address: IpAddr| IpNet::from(address)));
        range.map(Cidr).map_err(|_| format!("`{text}` is no address range; write 10.0.0.0/8 or ::1"))
    }
}

impl TryFrom<String> for Cidr {
    type Error = String;

    fn try_from(text: String) -> Result<Cidr, String> {
        text.parse()
    }
}

impl From<Cidr> for String {
    fn from(cidr: Cidr) -> String {
        cidr.to_string()
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_the_addresses_that_share_its_first_bits() {
        let holds = |range: &str, address: &str| {
            range.parse::<Cidr>().expect("a range").contains(address.parse().expect("an address"))
        };
        assert!(holds("10.0.0.0/8", "10.255.0.1"));
        assert!(!holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("127.0.0.1", "127.0.0.1"));
        assert!(!holds("127.0.0.1", "127.0.0.2"));
        assert!(holds("0.0.0.0/0", "203.0.113.9"));
        assert!(holds("fd00::/8", "fd12::1"));
        assert!(!holds("fd00::/8", "10.0.0.1"));
        assert!(holds("10.0.0.0/8", "::ffff:10.1.2.3"));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for bad in ["", "10.0.0.0/33", "10.0.0", "fd00::/129", "10.0.0.0/x"] {
            assert!(bad.parse::<Cidr>().is_err(), "{bad}");
        }
    }
}
