//! Which addresses of Redis are taken.

use redis::{Client, ConnectionAddr};
use seqsvr_rpc::security::is_loopback;

/// A client of the Redis at `url`, which is not connected to yet: `redis://[user:password@]host:port[/database]`, or
/// `rediss://…` for TLS with the authorities that the system trusts. A password goes beyond loopback over TLS alone.
///
/// # Errors
///
/// A text that says how the URL is wrong and how to write it. The URL is left out, since it may hold a password.
pub(crate) fn client(url: &str) -> Result<Client, String> {
    let client = Client::open(url).map_err(|error| {
        format!("a Redis URL is invalid ({error}); write redis://host:port, or rediss://host:port for TLS")
    })?;
    let info = client.get_connection_info();
    match info.addr() {
        ConnectionAddr::Tcp(host, _) if info.redis_settings().password().is_some() && !is_loopback(host) => {
            Err(format!(
                "the password of the Redis at {host} would cross the network in plain text; write rediss:// for TLS"
            ))
        }
        ConnectionAddr::TcpTls { host, insecure: true, .. } => Err(format!(
            "the certificate of the Redis at {host} is always checked; remove #insecure from its URL, and make the \
             system trust the authority that signed it (SSL_CERT_FILE=FILE)"
        )),
        _ => Ok(client),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_goes_beyond_loopback_over_tls_alone() {
        for taken in [
            "redis://127.0.0.1",
            "redis://10.0.0.1:6380/2",
            "redis://:secret@localhost",
            "redis://:secret@[::1]:6379",
            "redis+unix:///run/redis.sock?pass=secret",
            "rediss://user:secret@10.0.0.1",
        ] {
            assert!(client(taken).is_ok(), "{taken}");
        }
        for (refused, why) in [
            ("redis://:secret@10.0.0.1", "the password of the Redis at 10.0.0.1 would cross the network"),
            ("redis://user:secret@redis.example/1", "write rediss:// for TLS"),
            ("rediss://:secret@10.0.0.1/#insecure", "remove #insecure from its URL"),
            ("http://:secret@10.0.0.1", "a Redis URL is invalid"),
        ] {
            let told = client(refused).expect_err(refused);
            assert!(told.contains(why) && !told.contains("secret"), "{told}");
        }
    }
}
