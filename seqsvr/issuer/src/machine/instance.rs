//! The name under which a process is registered: unchanged across its restarts, different for each process.

use std::fmt;
use std::net::IpAddr;

use thiserror::Error;

/// The most bytes of a name.
const LONGEST: usize = 128;

/// The name of a process: `sequence-client:8112:3232235742` (application, port, address as an integer), or a given
/// one. Also the name of its local files, so no name leads out of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instance(String);

/// A name that cannot be an [`Instance`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "bad instance name {0:?}: use 1 to {LONGEST} of A-Z, a-z, 0-9, '_', '-', ':' and '.', and do not begin with '.'"
)]
pub struct BadInstance(String);

impl Instance {
    /// A given name.
    ///
    /// # Errors
    ///
    /// [`BadInstance`] for a name that cannot also be the name of a file.
    pub fn named(name: &str) -> Result<Self, BadInstance> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b':' | b'.');
        if (1..=LONGEST).contains(&name.len()) && name.bytes().all(fits) && !name.starts_with('.') {
            return Ok(Self(name.to_owned()));
        }
        Err(BadInstance(name.chars().take(LONGEST + 1).collect()))
    }

    /// The name made of an application, its port and the machine's address.
    ///
    /// # Errors
    ///
    /// [`BadInstance`] for an application name that cannot be in the name of a file.
    pub fn of(application: &str, port: u16, address: IpAddr) -> Result<Self, BadInstance> {
        let address = match address {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        };
        Self::named(&format!("{application}:{port}:{address}"))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn an_instance_is_named_by_application_port_and_address() {
        let address = IpAddr::V4(Ipv4Addr::new(192, 168, 1, 222));
        let instance = Instance::of("sequence-client", 8112, address).unwrap();
        assert_eq!(instance.as_str(), "sequence-client:8112:3232235998");
        let local = Instance::of("a", 1, IpAddr::V6(Ipv6Addr::LOCALHOST)).unwrap();
        assert_eq!(local.as_str(), "a:1:1");
    }

    #[test]
    fn names_that_lead_out_of_a_folder_are_refused() {
        let long = "a".repeat(129);
        for name in ["", "..", ".hidden", "a/b", "a b", "é", long.as_str()] {
            let error = Instance::named(name).unwrap_err().to_string();
            assert!(error.starts_with("bad instance name") && error.len() < 300, "{error}");
        }
        assert!(Instance::named(&long[1..]).is_ok());
    }
}
