//! `[server]`: where it listens, how the world sees it, and how long a stop may take.

use std::time::Duration;

use axum::http::Uri;
use serde::{Deserialize, Serialize};

use super::{Cidr, ConfigError, Listen, within};

/// Where it listens and how the world sees it. What is skipped is no setting, as in `[limits]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSection {
    /// The address to serve on; port 0 picks a free one.
    pub listen: Listen,
    /// The address that browsers use, `https://chat.example.org`; empty: whatever they used to get here.
    pub public_url: String,
    /// Other pages that may use people's sessions, `https://app.example.org`: those that are trusted like this server's own. A page that
    /// shows a token in the `Authorization` header need not be among them.
    pub allowed_origins: Vec<String>,
    /// Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed.
    pub trusted_proxies: Vec<Cidr>,
    /// How often a client should heartbeat; after three times that in silence its socket is closed.
    pub heartbeat_seconds: u32,
    /// How long one HTTP request may take, its body included, and an operation on tables that writes nothing.
    pub request_seconds: u32,
    /// How long a stop waits for what was accepted before it gives up.
    pub shutdown_seconds: u32,
    /// Tells the names that this server gives to requests from those of another one: 0 to 1,023.
    pub machine_id: u32,

    /// How long the other end may take to read some of what is sent to it; then its connection is closed.
    #[serde(skip)]
    pub write_seconds: u32,
}

impl Default for ServerSection {
    fn default() -> Self {
        ServerSection {
            listen: Listen::from(([127, 0, 0, 1], 8080)),
            public_url: String::new(),
            allowed_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            heartbeat_seconds: 30,
            request_seconds: 30,
            shutdown_seconds: 20,
            machine_id: 0,
            write_seconds: 20,
        }
    }
}

impl ServerSection {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        within("server", "heartbeat_seconds", self.heartbeat_seconds, 1..=3_600)?;
        within("server", "request_seconds", self.request_seconds, 1..=3_600)?;
        within("server", "shutdown_seconds", self.shutdown_seconds, 1..=3_600)?;
        within("server", "machine_id", self.machine_id, 0..=1_023)?;
        if !self.public_url.is_empty() && self.public_origin().is_none() {
            let why = "write scheme and host alone, for example https://chat.example.org".into();
            return Err(ConfigError::Value { section: "server", key: "public_url", why });
        }
        if let Some(wrong) = self.allowed_origins.iter().find(|&one| origin_of(one).as_ref() != Some(one)) {
            let why = format!("write each as a browser does, such as https://app.example.org, not {wrong:?}");
            return Err(ConfigError::Value { section: "server", key: "allowed_origins", why });
        }
        Ok(())
    }

    /// The one origin that pages are served from, as browsers write it; `None` when it is not fixed.
    pub fn public_origin(&self) -> Option<String> {
        origin_of(&self.public_url)
    }

    /// How often a client should heartbeat.
    pub fn heartbeat(&self) -> Duration {
        Duration::from_secs(self.heartbeat_seconds.into())
    }
}

/// The origin of an address that is scheme and host alone, as browsers write it.
fn origin_of(url: &str) -> Option<String> {
    let uri: Uri = url.parse().ok()?;
    let scheme = uri.scheme_str().filter(|scheme| matches!(*scheme, "http" | "https"))?;
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
    let bare = matches!(uri.path(), "" | "/") && uri.query().is_none();
    let default_port = if scheme == "https" { ":443" } else { ":80" };
    let host = authority.as_str().to_ascii_lowercase();
    let host = host.strip_suffix(default_port).unwrap_or(&host);
    bare.then(|| format!("{scheme}://{host}"))
}

#[cfg(test)]
mod tests {
    use super::origin_of as origin;

    #[test]
    fn an_origin_is_written_as_browsers_write_it() {
        assert_eq!(origin("https://Chat.example.org/").as_deref(), Some("https://chat.example.org"));
        assert_eq!(origin("https://chat.example.org:443").as_deref(), Some("https://chat.example.org"));
        assert_eq!(origin("http://10.0.0.1:8080").as_deref(), Some("http://10.0.0.1:8080"));
    }

    #[test]
    fn a_public_url_is_scheme_and_host_alone() {
        for bad in ["chat.example.org", "ftp://x", "https://x/chat", "https://me@x", "https://x?y"] {
            assert_eq!(origin(bad), None, "{bad}");
        }
    }
}
