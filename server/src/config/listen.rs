//! An address to listen on, as people write it: host and port, the host by name or by number.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

/// Host and port, such as `127.0.0.1:8080`, `[::1]:8080` or `localhost:8080`. A name is looked up when it is bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Listen(String);

impl Listen {
    /// Listens there: on the first address of the host that can be had.
    ///
    /// # Errors
    ///
    /// No host has this name, or none of its addresses can be had.
    pub async fn bind(&self) -> io::Result<TcpListener> {
        TcpListener::bind(self.0.as_str()).await
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Listen, String> {
        let text = text.trim();
        let named = |host: &str| {
            !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'))
        };
        let good = text.parse::<SocketAddr>().is_ok()
            || text.rsplit_once(':').is_some_and(|(host, port)| named(host) && port.parse::<u16>().is_ok());
        match good {
            true => Ok(Listen(text.to_owned())),
            false => Err(format!(
                "`{text}` is no address to listen on; write host and port, for example 127.0.0.1:8080 or \
                 localhost:8080"
            )),
        }
    }
}

impl TryFrom<String> for Listen {
    type Error = String;

    fn try_from(text: String) -> Result<Listen, String> {
        text.parse()
    }
}

impl From<Listen> for String {
    fn from(listen: Listen) -> String {
        listen.0
    }
}

impl From<([u8; 4], u16)> for Listen {
    fn from(address: ([u8; 4], u16)) -> Listen {
        Listen(SocketAddr::from(address).to_string())
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn hosts_are_written_by_name_or_by_number() {
        for good in ["127.0.0.1:0", "[::1]:8080", "localhost:8080", "chat-1.example.org:80"] {
            assert!(good.parse::<Listen>().is_ok(), "{good}");
        }
        for bad in ["nowhere", "127.0.0.1", ":8080", "localhost:", "localhost:99999", "http://localhost:80"] {
            let reported = bad.parse::<Listen>().expect_err(bad);
            assert!(reported.contains("localhost:8080"), "{reported}");
        }
        let bound = "localhost:0".parse::<Listen>().expect("good").bind().await.expect("this machine");
        assert!(bound.local_addr().expect("bound").ip().is_loopback());
    }
}
