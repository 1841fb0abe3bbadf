//! An HAProxy of one test's own (Debian `haproxy`), on free ports of the loopback, with the configuration that the
//! repository offers.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use crate::ports::free_port;

use super::certificates::Certificates;
use super::{Hanging, folder, until_ready};

/// Where it takes commands, in its folder.
const SOCKET: &str = "admin.sock";

/// A running proxy. Dropping it ends it.
pub struct Proxy {
    hanging: Hanging,
    port: u16,
}

impl Proxy {
    /// Starts one with `configuration`, written for a whole machine. Its servers are replaced by those at `servers`,
    /// called `chat-1` and so on; it listens in plain text on one port, and changes no user.
    ///
    /// # Panics
    /// When the configuration does not have the lines that are replaced, or the proxy does not start.
    pub fn before(configuration: &str, servers: &[String]) -> Self {
        let (port, folder) = (free_port(), folder("haproxy"));
        let socket = folder.join(SOCKET);
        let replaced = |words: &[&str]| match *words {
            ["bind", ":80"] => Some(format!("    bind 127.0.0.1:{}", free_port())),
            ["bind", ":443", "ssl", ..] => Some(format!("    bind 127.0.0.1:{port}")),
            ["stats", "socket", ..] => Some(format!("    stats socket {} level admin", socket.display())),
            ["server", "chat-1", _] => Some(listed("chat-", servers)),
            _ => None,
        };
        let text = here(configuration, replaced, &["stats socket", "server chat-1 "], port);
        Self::start(&text, port, folder)
    }

    /// Starts one that ends TLS before the server at `HOST:PORT`, and knows nothing of what it passes on.
    pub fn with_tls(certificates: &Certificates, server: &str) -> Self {
        let (port, folder) = (free_port(), folder("haproxy"));
        let pair =
            [&certificates.certificate, &certificates.key].map(|file| fs::read(file).expect("was issued"));
        let pem = folder.join("pair.pem");
        fs::write(&pem, pair.concat()).expect("the folder is there");
        let text = format!(
            "defaults\n    mode tcp\n    timeout connect 30s\n    timeout client 1m\n    timeout server 1m\n\
             listen tls\n    bind 127.0.0.1:{port} ssl crt {}\n    server one {server}\n",
            pem.display()
        );
        Self::start(&text, port, folder)
    }

    /// Starts one that leads to the PostgreSQL whose Patroni says that it is the primary, with `configuration`, written for other
    /// machines. `nodes`: the ports of both.
    ///
    /// # Panics
    /// When the configuration does not have the lines that are replaced, or the proxy does not start.
    pub fn to_primary(configuration: &str, nodes: &[(u16, u16)]) -> Self {
        let (port, folder) = (free_port(), folder("haproxy"));
        let nodes: Vec<String> =
            nodes.iter().map(|(postgres, rest)| format!("127.0.0.1:{postgres} port {rest}")).collect();
        let replaced = |words: &[&str]| match *words {
            ["bind", "127.0.0.1:5432"] => Some(format!("    bind 127.0.0.1:{port}")),
            ["server", "node1", ..] => Some(listed("node", &nodes)),
            _ => None,
        };
        let text = here(configuration, replaced, &["server node1 127.0.0.1:"], port);
        Self::start(&text, port, folder)
    }

    fn start(text: &str, port: u16, folder: PathBuf) -> Self {
        let file = folder.join("haproxy.cfg");
        fs::write(&file, text).expect("the folder is there");
        let line = format!("/usr/sbin/haproxy -db -f {}", file.display());
        let proxy = Self { hanging: Hanging::start(line, "TERM", folder.clone()), port };
        // It listens for people before it listens for commands.
        let listens = || {
            let is_told = !text.contains("stats socket") || UnixStream::connect(folder.join(SOCKET)).is_ok();
            is_told && TcpStream::connect(("127.0.0.1", port)).is_ok()
        };
        until_ready("HAProxy", &folder, listens);
        proxy
    }

    /// Where it listens, `http://HOST:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Where it listens, `HOST:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// HAProxy's status for the server of this name: `UP`, `DOWN`, `DRAIN` and others.
    pub fn status(&self, server: &str) -> String {
        let table = self.tell("show stat");
        let mut rows = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let heads = rows.next().expect("a line of headings");
        let column = |name: &str| heads.iter().position(|head| *head == name).expect("such a column");
        let (names, states) = (column("svname"), column("status"));
        let row = rows.find(|row| row.get(names) == Some(&server)).expect("such a server");
        row[states].to_owned()
    }

    /// Gives it a command over its socket; answers what it says.
    pub fn tell(&self, command: &str) -> String {
        let mut socket = UnixStream::connect(self.hanging.folder.join(SOCKET)).expect("it listens");
        writeln!(socket, "{command}").expect("it reads");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("it answers in text");
        answer
    }
}

/// The configuration for this machine, where no user is changed. `replaced`: what stands in the place of a line with these words, if
/// something does. `needed`: what must stand there then, beside the port.
fn here(
    configuration: &str,
    replaced: impl Fn(&[&str]) -> Option<String>,
    needed: &[&str],
    port: u16,
) -> String {
    let mut text = String::new();
    for line in configuration.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (replaced(&words), words.first()) {
            (Some(instead), _) => text += &instead,
            (None, Some(&("chroot" | "user" | "group" | "server"))) => continue,
            (None, _) => text += line,
        }
        text.push('\n');
    }
    let address = format!("127.0.0.1:{port}");
    let mut needed = needed.iter().copied().chain([address.as_str()]);
    assert!(needed.all(|part| text.contains(part)), "a line to replace is missing: {text}");
    text
}

/// A line for each of these servers.
fn listed(prefix: &str, servers: &[String]) -> String {
    let line = |(at, server): (usize, &String)| format!("    server {prefix}{} {server}\n", at + 1);
    servers.iter().enumerate().map(line).collect()
}
