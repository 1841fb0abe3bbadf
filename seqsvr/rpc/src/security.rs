//! Access control of calls: TLS and tokens, the same for every role. Owns the certificates and the digests of the
//! tokens that a process loaded at its start. A process that listens on a loopback address may do without; on any other
//! it must have both.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use sha2::{Digest, Sha256};
use thiserror::Error;
use tonic::metadata::MetadataValue;
use tonic::service::Interceptor;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, Server, ServerTlsConfig};
use tonic::{Request, Status};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// Bytes that one connection may have in flight before the other side has to read: enough for a busy stream.
const WINDOW: u32 = 4 << 20;

/// The section `[security]` of a role that listens.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListenConfig {
    /// PEM file: the certificate chain to show.
    pub certificate: Option<PathBuf>,
    /// PEM file: its private key.
    pub key: Option<PathBuf>,
    /// File with the token that every call must bring.
    pub token_file: Option<PathBuf>,
    /// File with the token that calls of operators must bring instead.
    pub admin_token_file: Option<PathBuf>,
}

/// How to call a role: part of the sections that name roles to call.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CallConfig {
    /// PEM file: the authority that signed the certificates of the roles called. With it every call beyond loopback goes over
    /// TLS.
    pub authority: Option<PathBuf>,
    /// File with the token to bring.
    pub token_file: Option<PathBuf>,
    /// File with the operator's token.
    pub admin_token_file: Option<PathBuf>,
}

/// A problem with certificates or tokens.
#[derive(Debug, Error)]
pub enum SecurityError {
    /// A file cannot be read.
    #[error("cannot read {}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The error of the system.
        why: std::io::Error,
    },
    /// A token is empty or not printable ASCII.
    #[error("the token in {} must be 16 to 512 printable ASCII characters", .0.display())]
    Token(PathBuf),
    /// One of certificate and key is missing.
    #[error("set both certificate and key, or neither")]
    Half,
    /// An address beyond loopback without protection.
    #[error(
        "{listen} is not a loopback address: set certificate, key and {missing} in [security], or listen on 127.0.0.1"
    )]
    Open {
        /// Where it should listen.
        listen: SocketAddr,
        /// The key of the missing token.
        missing: &'static str,
    },
    /// An address beyond loopback would be called without protection.
    #[error("{0} is not a loopback address: set authority and token_file to call it")]
    Unprotected(String),
    /// An address to call cannot be understood.
    #[error("the address {0} is invalid: write http://host:port or https://host:port")]
    Address(String),
    /// The certificates cannot be used.
    #[error("the certificates cannot be used: {}", super::text(.0))]
    Tls(tonic::transport::Error),
}

/// The certificate of a listening process, and the tokens by which it checks callers.
#[derive(Clone)]
pub struct Listen {
    /// PEM texts: the certificate chain, and its key.
    pem: Option<(String, String)>,
    token: Option<Fingerprint>,
    admin: Option<Fingerprint>,
}

impl Listen {
    /// Reads the files, and makes sure that `listen` is protected as it must be; `admin`: operators call this role, too.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn load(config: &ListenConfig, listen: SocketAddr, admin: bool) -> Result<Self, SecurityError> {
        let pem = match (&config.certificate, &config.key) {
            (Some(certificate), Some(key)) => Some((read(certificate)?, read(key)?)),
            (None, None) => None,
            _ => return Err(SecurityError::Half),
        };
        let token = config.token_file.as_deref().map(read_token).transpose()?;
        let admin_token = config.admin_token_file.as_deref().map(read_token).transpose()?;
        if !listen.ip().is_loopback() {
            let lacks = |missing| Err(SecurityError::Open { listen, missing });
            if pem.is_none() || token.is_none() {
                return lacks("token_file");
            }
            if admin && admin_token.is_none() {
                return lacks("admin_token_file");
            }
        }
        let loaded = Self {
            pem,
            token: token.map(|token| Fingerprint::of(&token)),
            admin: admin_token.map(|token| Fingerprint::of(&token)),
        };
        // Unusable certificates are reported before anything is opened.
        loaded.server()?;
        Ok(loaded)
    }

    /// A server that speaks TLS where certificates are given, with windows wide enough for busy streams.
    ///
    /// # Errors
    ///
    /// [`SecurityError::Tls`].
    pub fn server(&self) -> Result<Server, SecurityError> {
        let server = Server::builder()
            .tcp_nodelay(true)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .http2_keepalive_interval(Some(KEEP_ALIVE));
        match &self.pem {
            Some((certificate, key)) => server
                .tls_config(ServerTlsConfig::new().identity(Identity::from_pem(certificate, key)))
                .map_err(SecurityError::Tls),
            None => Ok(server),
        }
    }

    /// How an address of the server begins.
    pub fn scheme(&self) -> &'static str {
        if self.pem.is_some() { "https" } else { "http" }
    }

    /// The certificate chain to show and its key, as PEM, for a listener of another protocol.
    pub fn pem(&self) -> Option<(&str, &str)> {
        self.pem.as_ref().map(|(certificate, key)| (certificate.as_str(), key.as_str()))
    }

    /// Lets calls through that bring the token.
    pub fn guard(&self) -> Guard {
        Guard { token: self.token, key: "token_file" }
    }

    /// Lets calls of operators through.
    pub fn admin_guard(&self) -> Guard {
        Guard { token: self.admin, key: "admin_token_file" }
    }
}

/// The authority that a calling process trusts, and the tokens that it brings.
#[derive(Clone)]
pub struct Call {
    authority: Option<Certificate>,
    token: Option<String>,
    admin: Option<String>,
}

impl Call {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn load(config: &CallConfig) -> Result<Self, SecurityError> {
        let authority = config.authority.as_deref().map(read).transpose()?.map(Certificate::from_pem);
        let token = config.token_file.as_deref().map(read_token).transpose()?;
        let admin = config.admin_token_file.as_deref().map(read_token).transpose()?;
        Ok(Self { authority, token, admin })
    }

    /// The way to `addr`; nothing is connected yet. A token never leaves the machine in the clear.
    ///
    /// # Errors
    ///
    /// [`SecurityError::Address`], [`SecurityError::Unprotected`], [`SecurityError::Tls`].
    pub fn endpoint(&self, addr: &str) -> Result<Endpoint, SecurityError> {
        let wrong = || SecurityError::Address(addr.to_owned());
        let endpoint = Endpoint::from_shared(addr.to_owned()).map_err(|_| wrong())?;
        let uri = endpoint.uri().clone();
        let host = uri.host().ok_or_else(wrong)?.trim_matches(['[', ']']).to_owned();
        let endpoint = endpoint
            .tcp_nodelay(true)
            .connect_timeout(CONNECT_TIMEOUT)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(CONNECT_TIMEOUT)
            .keep_alive_while_idle(true);
        match (uri.scheme_str(), &self.authority) {
            (Some("https"), Some(authority)) => endpoint
                .tls_config(ClientTlsConfig::new().ca_certificate(authority.clone()))
                .map_err(SecurityError::Tls),
            (Some("http"), _) if is_loopback(&host) => Ok(endpoint),
            (Some("http" | "https"), _) => Err(SecurityError::Unprotected(addr.to_owned())),
            _ => Err(wrong()),
        }
    }

    /// Adds the token to each call.
    pub fn pass(&self) -> Pass {
        Pass::new(self.token.as_deref())
    }

    /// Adds the operator's token to each call.
    pub fn admin_pass(&self) -> Pass {
        Pass::new(self.admin.as_deref())
    }
}

/// Compared instead of the token, so that the time it takes says nothing about the token.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Fingerprint([u8; 32]);

impl Fingerprint {
    fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }
}

/// Refuses calls without the right token.
#[derive(Clone)]
pub struct Guard {
    token: Option<Fingerprint>,
    /// The configuration key under which callers set the token.
    key: &'static str,
}

impl Guard {
    /// Whether callers need no token: then this machine alone is listened to.
    pub fn is_open(&self) -> bool {
        self.token.is_none()
    }

    /// Whether `token` lets its bearer through.
    pub fn admits(&self, token: &str) -> bool {
        self.token.is_none_or(|expected| Fingerprint::of(token) == expected)
    }
}

impl Interceptor for Guard {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let Some(expected) = self.token else { return Ok(request) };
        let brought = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
        match brought.and_then(|value| value.strip_prefix("Bearer ")) {
            Some(token) if Fingerprint::of(token) == expected => Ok(request),
            Some(_) => Err(Status::unauthenticated(format!("the token is wrong; see {}", self.key))),
            None => Err(Status::unauthenticated(format!("a token is needed; set {}", self.key))),
        }
    }
}

/// Adds the token to calls.
#[derive(Clone)]
pub struct Pass {
    value: Option<MetadataValue<tonic::metadata::Ascii>>,
}

impl Pass {
    fn new(token: Option<&str>) -> Self {
        let value = |token| {
            let mut value =
                MetadataValue::try_from(format!("Bearer {token}")).expect("tokens are printable ASCII");
            value.set_sensitive(true);
            value
        };
        Self { value: token.map(value) }
    }
}

impl Interceptor for Pass {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.value {
            request.metadata_mut().insert("authorization", value.clone());
        }
        Ok(request)
    }
}

/// Whether data sent to `host`, a name or an address, stays on this machine.
pub fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn read(path: &Path) -> Result<String, SecurityError> {
    std::fs::read_to_string(path).map_err(|why| SecurityError::File { path: path.to_owned(), why })
}

fn read_token(path: &Path) -> Result<String, SecurityError> {
    let text = read(path)?;
    let token = text.trim();
    let fits = (16..=512).contains(&token.len()) && token.chars().all(|c| c.is_ascii_graphic());
    if fits { Ok(token.to_owned()) } else { Err(SecurityError::Token(path.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> (tempfile::NamedTempFile, PathBuf) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let path = file.path().to_owned();
        (file, path)
    }

    fn refusal(config: &ListenConfig, listen: &str) -> String {
        Listen::load(config, listen.parse().unwrap(), false).err().expect("it is refused").to_string()
    }

    #[test]
    fn beyond_loopback_tls_and_a_token_are_required() {
        assert!(Listen::load(&ListenConfig::default(), "127.0.0.1:0".parse().unwrap(), true).is_ok());
        assert!(Listen::load(&ListenConfig::default(), "[::1]:0".parse().unwrap(), true).is_ok());
        let refusal = refusal(&ListenConfig::default(), "0.0.0.0:0");
        assert!(refusal.contains("set certificate, key and token_file"), "{refusal}");
        let call = Call::load(&CallConfig::default()).unwrap();
        assert!(call.endpoint("http://127.0.0.1:1").is_ok());
        assert!(call.endpoint("http://localhost:1").is_ok());
        for open in ["http://10.0.0.1:1", "https://10.0.0.1:1"] {
            assert!(matches!(call.endpoint(open), Err(SecurityError::Unprotected(_))), "{open}");
        }
        for wrong in ["10.0.0.1", "ftp://10.0.0.1", ""] {
            assert!(matches!(call.endpoint(wrong), Err(SecurityError::Address(_))), "{wrong}");
        }
    }

    #[test]
    fn only_the_right_token_passes() {
        let (_kept, path) = written("correct-horse-battery\n");
        let config = ListenConfig { token_file: Some(path.clone()), ..ListenConfig::default() };
        let mut guard = Listen::load(&config, "127.0.0.1:0".parse().unwrap(), false).unwrap().guard();
        assert!(guard.call(Request::new(())).is_err());
        let right = Call::load(&CallConfig { token_file: Some(path), ..CallConfig::default() }).unwrap();
        assert!(guard.call(right.pass().call(Request::new(())).unwrap()).is_ok());
        assert!(guard.call(right.admin_pass().call(Request::new(())).unwrap()).is_err());
        let (_kept, other) = written("another-horse-battery");
        let wrong = Call::load(&CallConfig { token_file: Some(other), ..CallConfig::default() }).unwrap();
        assert!(guard.call(wrong.pass().call(Request::new(())).unwrap()).is_err());
    }

    #[test]
    fn a_short_token_and_half_a_pair_are_refused() {
        let (_kept, path) = written("short");
        let config = ListenConfig { token_file: Some(path.clone()), ..ListenConfig::default() };
        assert!(refusal(&config, "127.0.0.1:0").contains("16 to 512"));
        let config = ListenConfig { key: Some(path), ..ListenConfig::default() };
        assert!(refusal(&config, "127.0.0.1:0").contains("both"));
    }
}
