//! The address of another server, and a connection there, plain or with TLS. Certificates are those that the system trusts;
//! `SSL_CERT_FILE` names others.

use std::io;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::tls_roots::trusting_the_system;

/// The byte stream of a connection.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send {}
impl<S: AsyncRead + AsyncWrite + Send> Stream for S {}

/// An address of a server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The host with the port, where that is not the usual one; as the header `Host` has it.
    pub(crate) host: String,
    is_tls: bool,
}

impl Address {
    /// Reads `http://HOST:PORT` or `https://HOST:PORT`, both with or without the port.
    pub(crate) fn of(endpoint: &str) -> Result<Address, String> {
        let schemes = [("http://", false), ("https://", true)];
        let found =
            schemes.into_iter().find_map(|(scheme, is_tls)| Some((endpoint.strip_prefix(scheme)?, is_tls)));
        let address = found.and_then(|(rest, is_tls)| {
            let host = rest.trim_end_matches('/');
            let is_host = !host.is_empty() && !host.contains(['/', '?', '#', '@']) && !host.starts_with(':');
            let address = Address { host: host.to_owned(), is_tls };
            (is_host && address.port().is_some()).then_some(address)
        });
        address.ok_or_else(|| {
            format!("{endpoint}: an address is http://HOST:PORT or https://HOST:PORT, with nothing behind the port")
        })
    }

    /// The host alone, and what stands behind its colon.
    fn parts(&self) -> (&str, Option<&str>) {
        match self.host.rsplit_once(':') {
            // The colons of an IPv6 address stand within brackets.
            Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
            _ => (&self.host, None),
        }
    }

    fn port(&self) -> Option<u16> {
        match self.parts().1 {
            Some(port) => port.parse().ok(),
            None => Some(if self.is_tls { 443 } else { 80 }),
        }
    }

    /// Connects, and with TLS checks the server's certificate and name.
    pub(crate) async fn connect(&self) -> io::Result<Pin<Box<dyn Stream>>> {
        let name = self.parts().0.trim_matches(['[', ']']);
        let port = self.port().ok_or(io::ErrorKind::InvalidInput)?;
        let stream = TcpStream::connect((name, port)).await?;
        if !self.is_tls {
            return Ok(Box::pin(stream));
        }
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        Ok(Box::pin(TlsConnector::from(trusting_the_system()?).connect(name, stream).await?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_scheme_a_host_and_perhaps_a_port() {
        let read = |endpoint| Address::of(endpoint).map(|address| (address.host.clone(), address.port()));
        for (endpoint, host, port) in [
            ("http://127.0.0.1:8081", "127.0.0.1:8081", 8081),
            ("http://tables.example.org/", "tables.example.org", 80),
            ("https://tables.example.org", "tables.example.org", 443),
            ("https://[::1]:8443", "[::1]:8443", 8443),
            ("https://[::1]", "[::1]", 443),
        ] {
            assert_eq!(read(endpoint), Ok((host.to_owned(), Some(port))), "{endpoint}");
        }
        for wrong in [
            "",
            "http://",
            "ftp://host",
            "http://host/path",
            "http://host:port",
            "http://:80",
            "http://a@host",
            "host:80",
        ] {
            let line = Address::of(wrong).expect_err(wrong);
            assert!(line.contains("https://HOST:PORT"), "{line}");
        }
    }
}
