//! An etcd cluster of three for the tests (Debian `etcd-server`). All tests of a program share it; each takes a prefix
//! of its own. Every member listens twice: in plain text, and with TLS for callers who show a certificate.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::ports::free_port;

use super::certificates::{self, Certificates};
use super::{Hanging, folder, until_ready};

static CLUSTER: LazyLock<EtcdCluster> = LazyLock::new(EtcdCluster::start);
static PREFIXES: AtomicU32 = AtomicU32::new(0);

struct EtcdCluster {
    endpoints: Vec<String>,
    tls_endpoints: Vec<String>,
    certificates: Certificates,
    _members: Vec<Hanging>,
}

/// Where the members are.
pub fn endpoints() -> Vec<String> {
    CLUSTER.endpoints.clone()
}

/// Where the members speak TLS, and what they expect to be shown.
pub fn tls() -> (Vec<String>, &'static Certificates) {
    (CLUSTER.tls_endpoints.clone(), &CLUSTER.certificates)
}

/// A prefix of keys that nobody else uses.
pub fn fresh_prefix() -> String {
    format!("test/{}", PREFIXES.fetch_add(1, Ordering::Relaxed))
}

impl EtcdCluster {
    fn start() -> Self {
        let urls = |scheme: &str| {
            (0..3).map(|_| format!("{scheme}://127.0.0.1:{}", free_port())).collect::<Vec<_>>()
        };
        let (endpoints, tls_endpoints, peers) = (urls("http"), urls("https"), urls("http"));
        let folders = endpoints.iter().map(|_| folder("etcd")).collect::<Vec<_>>();
        // Goes with the first member's data.
        let certificates = certificates::issue(&folders[0]);
        let Certificates { authority, certificate, key } = &certificates;
        let members = peers.iter().enumerate().map(|(index, peer)| format!("m{index}={peer}"));
        let members = members.collect::<Vec<_>>().join(",");
        let start = |index: usize| {
            let (client, tls, peer) = (&endpoints[index], &tls_endpoints[index], &peers[index]);
            // The second version is for Patroni.
            let line = format!(
                "etcd --enable-v2 --name m{index} --data-dir data --initial-cluster {members} --initial-cluster-state new \
                 --listen-client-urls {client},{tls} --advertise-client-urls {client} \
                 --cert-file {} --key-file {} --client-cert-auth --trusted-ca-file {} \
                 --listen-peer-urls {peer} --initial-advertise-peer-urls {peer} --logger zap --log-level warn",
                certificate.display(),
                key.display(),
                authority.display()
            );
            Hanging::start(line, "KILL", folders[index].clone())
        };
        let _members = (0..endpoints.len()).map(start).collect();
        for (client, folder) in endpoints.iter().zip(&folders) {
            until_ready("etcd", folder, || is_healthy(client));
        }
        Self { endpoints, tls_endpoints, certificates, _members }
    }
}

fn is_healthy(url: &str) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut connection = TcpStream::connect(url.trim_start_matches("http://"))?;
        connection.write_all(b"GET /health HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.contains(r#""health":"true""#))
}
