//! An etcd cluster of three for the tests (Debian `etcd-server`). All tests of a program share it; each takes a prefix of
//! its own.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Child;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{folder, hang, until_ready};

static CLUSTER: LazyLock<Cluster> = LazyLock::new(Cluster::start);
static PREFIXES: AtomicU32 = AtomicU32::new(0);

struct Cluster {
    endpoints: Vec<String>,
    _shells: Vec<Child>,
}

/// Where the members are.
pub(crate) fn endpoints() -> Vec<String> {
    CLUSTER.endpoints.clone()
}

/// A prefix of keys that nobody else uses.
pub(crate) fn fresh_prefix() -> String {
    format!("test/{}", PREFIXES.fetch_add(1, Ordering::Relaxed))
}

impl Cluster {
    fn start() -> Self {
        // Held until all are known, so that no two are the same.
        let held: Vec<_> = (0..6).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
        let url = |one: &TcpListener| format!("http://{}", one.local_addr().expect("it is bound"));
        let (clients, peers): (Vec<_>, Vec<_>) =
            held.chunks(2).map(|two| (url(&two[0]), url(&two[1]))).unzip();
        drop(held);
        let members = peers.iter().enumerate().map(|(index, peer)| format!("m{index}={peer}"));
        let members = members.collect::<Vec<_>>().join(",");
        let start = |(index, (client, peer)): (usize, (&String, &String))| {
            let folder = folder("etcd");
            let line = format!(
                "etcd --name m{index} --data-dir data --initial-cluster {members} --initial-cluster-state new \
                 --listen-client-urls {client} --advertise-client-urls {client} \
                 --listen-peer-urls {peer} --initial-advertise-peer-urls {peer} --logger zap --log-level warn"
            );
            (hang(&line, &folder), folder)
        };
        let started: Vec<_> = clients.iter().zip(&peers).enumerate().map(start).collect();
        for (client, (_, folder)) in clients.iter().zip(&started) {
            until_ready("etcd", folder, || is_healthy(client));
        }
        Self { endpoints: clients, _shells: started.into_iter().map(|(shell, _)| shell).collect() }
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
