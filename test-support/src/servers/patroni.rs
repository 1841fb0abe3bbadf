//! PostgreSQL under Patroni (Debian `patroni`), set up as docs/OPERATING.md says: nodes over the etcd of the tests, each as it would be on
//! a machine of its own, and the HAProxy that leads to the primary.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::haproxy::Proxy;
use super::{Hanging, command, etcd, folder, give_away, postgres};
use crate::ports::free_port;
use crate::until::until;

/// The primary, its synchronous standby, and one more: without it nobody could confirm a commit after a failover.
pub const NODES: usize = 3;

const SCOPE: &str = "tidemark";
const PROXY: &str = include_str!("../../../docs/operating/haproxy-patroni.cfg");

/// Between two looks at the nodes: Patroni is slow to answer.
const PAUSE: Duration = Duration::from_millis(200);
/// How long a node may take to answer, which stands still otherwise.
const A_WHILE: Duration = Duration::from_secs(5);

/// Whether all of it is there to be started.
pub fn is_installed() -> bool {
    let all = ["/usr/bin/patroni", "/usr/bin/etcd", "/usr/sbin/haproxy"];
    postgres::is_installed() && all.iter().all(|program| Path::new(program).is_file())
}

/// One machine: Patroni and its PostgreSQL.
struct Node {
    hanging: Hanging,
    home: PathBuf,
    postgres: u16,
    rest: u16,
}

/// All of them. Dropping it ends them.
pub struct PatroniCluster {
    nodes: Vec<Node>,
    proxy: Proxy,
}

impl PatroniCluster {
    /// Starts an empty cluster, and waits until it could fail over.
    pub async fn start() -> Self {
        let prefix = etcd::fresh_prefix();
        let nodes: Vec<Node> = (0..NODES).map(|at| Node::new(at, &prefix)).collect();
        let ports: Vec<_> = nodes.iter().map(|node| (node.postgres, node.rest)).collect();
        let cluster = Self { proxy: Proxy::to_primary(PROXY, &ports), nodes };
        cluster.until_whole().await;
        cluster
    }

    /// The URL of a new, empty database, which leads to whatever node is the primary.
    pub async fn new_database(&self) -> String {
        let url = format!("postgres://postgres@{}", self.proxy.address());
        let create = format!("CREATE DATABASE {SCOPE} ENCODING 'UTF8' TEMPLATE template0");
        until("the proxy leads to the primary", async || {
            let Ok(mut connection) = PgConnection::connect(&format!("{url}/postgres")).await else {
                return pause().await;
            };
            connection.execute(sqlx::AssertSqlSafe(create.as_str())).await.expect("the name is new");
            true
        })
        .await;
        format!("{url}/{SCOPE}")
    }

    /// Which node says that it is the primary.
    pub async fn primary(&self) -> Option<usize> {
        for at in 0..NODES {
            if self.is(at, "primary").await {
                return Some(at);
            }
        }
        None
    }

    /// Waits until there is a primary. Answers which node.
    pub async fn until_primary(&self) -> usize {
        let mut found = None;
        until("a node is the primary", async || {
            found = self.primary().await;
            found.is_some() || pause().await
        })
        .await;
        found.expect("just found")
    }

    /// Waits until the primary is another one than this.
    pub async fn until_moved(&self, before: usize) {
        until("another node is the primary", async || {
            self.primary().await.is_some_and(|now| now != before) || pause().await
        })
        .await;
    }

    /// Waits until all nodes follow the primary, and one of them would take over.
    pub async fn until_whole(&self) {
        until("all nodes follow the primary", async || self.is_whole().await || pause().await).await;
    }

    async fn is_whole(&self) -> bool {
        let Some(primary) = self.primary().await else { return false };
        for at in 0..NODES {
            if self.is(at, "synchronous").await {
                let followers = "SELECT count(*) FROM pg_stat_replication
                                 WHERE state = 'streaming' AND application_name LIKE 'node%'";
                return self.count(primary, followers).await == Some(NODES - 1);
            }
        }
        false
    }

    /// Waits until a commit waits for a standby on this node.
    pub async fn until_a_commit_waits(&self, at: usize) {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        until("a commit waits for a standby", async || {
            self.count(at, waiting).await.is_some_and(|waiting| waiting > 0) || pause().await
        })
        .await;
    }

    async fn count(&self, at: usize, query: &'static str) -> Option<usize> {
        let asked = async {
            let url = format!("postgres://postgres@127.0.0.1:{}/postgres", self.nodes[at].postgres);
            let mut connection = PgConnection::connect(&url).await?;
            sqlx::query_scalar::<_, i64>(query).fetch_one(&mut connection).await
        };
        usize::try_from(timeout(A_WHILE, asked).await.ok()?.ok()?).ok()
    }

    /// Whether Patroni tells load balancers that its node is this.
    async fn is(&self, at: usize, what: &str) -> bool {
        let asked = async {
            let mut connection = TcpStream::connect(("127.0.0.1", self.nodes[at].rest)).await?;
            connection.write_all(format!("GET /{what} HTTP/1.0\r\n\r\n").as_bytes()).await?;
            let mut answer = Vec::new();
            connection.read_to_end(&mut answer).await?;
            Ok::<_, io::Error>(answer)
        };
        matches!(timeout(A_WHILE, asked).await, Ok(Ok(answer)) if answer.starts_with(b"HTTP/1.0 200 "))
    }

    /// Ends a node at once, as a machine without power does.
    pub fn kill(&self, at: usize) {
        self.nodes[at].hanging.kill();
    }

    /// Ends the PostgreSQL of a node. Its Patroni is there and sees to it.
    pub fn crash(&self, at: usize) {
        let pid = postgres::pid_of(&self.nodes[at].home.join("data"));
        signal("-KILL", &[pid.to_string()]);
    }

    /// Lets a node stand still.
    pub fn stop(&self, at: usize) {
        signal("-STOP", &processes(&self.nodes[at].home));
    }

    /// Starts a node that was killed, or lets one go on that stands still.
    pub fn run(&self, at: usize) {
        let Node { hanging, home, .. } = &self.nodes[at];
        match hanging.is_running() {
            true => signal("-CONT", &processes(home)),
            false => hanging.run(),
        }
    }

    /// The same for all nodes.
    pub fn revive(&self) {
        (0..NODES).for_each(|at| self.run(at));
    }

    /// Asks for another primary, until there is one.
    pub async fn switch_over(&self) {
        let before = self.until_primary().await;
        until("the primary is another one", async || {
            let mut command = command("patronictl", &self.nodes[before].home);
            command.args(["-c", "patroni.yml", "switchover", "--force", SCOPE]);
            let asked = tokio::task::spawn_blocking(move || command.output()).await;
            asked.expect("no panic").expect("patronictl runs");
            self.primary().await.is_some_and(|now| now != before) || pause().await
        })
        .await;
    }

    /// Copies the logs of all nodes into this folder.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn keep_logs(&self, to: &Path) -> io::Result<()> {
        for (at, node) in self.nodes.iter().enumerate() {
            fs::copy(node.hanging.folder.join("log"), to.join(name(at)).with_extension("log"))?;
        }
        Ok(())
    }
}

impl Drop for PatroniCluster {
    fn drop(&mut self) {
        // The logs tell of steps that did not come in time.
        if std::thread::panicking()
            && let Ok(folder) = tempfile::Builder::new().prefix("patroni-logs").tempdir()
            && self.keep_logs(folder.path()).is_ok()
        {
            eprintln!("the logs of Patroni are in {}", folder.keep().display());
        }
    }
}

impl Node {
    fn new(at: usize, prefix: &str) -> Self {
        let folder = folder("patroni");
        let home = folder.join("node");
        fs::create_dir(&home).expect("the folder is new");
        give_away(&home);
        let (postgres, rest) = (free_port(), free_port());
        let file = home.join("patroni.yml");
        fs::write(&file, settings(at, prefix, &home, postgres, rest).to_string())
            .expect("the folder is there");
        give_away(&file);
        let kept = home.display();
        // A Patroni that ends leaves its PostgreSQL alone, each process of which is in a group of its own. So all go that are at home here.
        let end = format!(
            "cd /; while all=$(find /proc -maxdepth 2 -name cwd -lname '{kept}*' 2>/dev/null | tr -dc '0-9\\n'); [ -n \"$all\" ]; \
             do kill -KILL $all; done"
        );
        let hanging = Hanging::ending(format!("{{ cd {kept}; exec patroni patroni.yml; }}"), end, folder);
        hanging.run();
        Self { hanging, home, postgres, rest }
    }
}

/// As docs/OPERATING.md has it, with the shortest times that Patroni takes.
fn settings(at: usize, prefix: &str, home: &Path, postgres: u16, rest: u16) -> Value {
    let here = |port: u16| format!("127.0.0.1:{port}");
    let hosts: Vec<String> = etcd::endpoints().iter().map(|url| url.replace("http://", "")).collect();
    let user = json!({ "username": "postgres" });
    json!({
        "scope": SCOPE,
        "namespace": format!("/{prefix}/"),
        "name": name(at),
        "restapi": { "listen": here(rest), "connect_address": here(rest) },
        "etcd": { "hosts": hosts },
        "bootstrap": {
            "dcs": {
                "ttl": 20,
                "loop_wait": 1,
                "retry_timeout": 3,
                "synchronous_mode": true,
                "synchronous_mode_strict": true,
                "postgresql": { "use_pg_rewind": true, "parameters": { "max_connections": 200 } },
            },
            "initdb": ["data-checksums", "no-sync", { "encoding": "UTF8" }, { "locale": "C" }, { "auth": "trust" }],
        },
        "postgresql": {
            "listen": here(postgres),
            "connect_address": here(postgres),
            "bin_dir": postgres::programs(),
            "data_dir": home.join("data"),
            "pgpass": home.join("pgpass"),
            "authentication": { "superuser": user, "replication": user, "rewind": user },
            "basebackup": ["no-slot", "no-sync", { "checkpoint": "fast" }],
            "remove_data_directory_on_rewind_failure": true,
            "remove_data_directory_on_diverged_timelines": true,
            "pg_hba": ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"],
            "parameters": { "unix_socket_directories": "" },
        },
    })
}

fn name(at: usize) -> String {
    format!("node{}", at + 1)
}

/// The processes that are at home in this folder.
fn processes(home: &Path) -> Vec<String> {
    let all = fs::read_dir("/proc").expect("there is a list of processes").flatten();
    let here = all.filter(|one| fs::read_link(one.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(home)));
    here.map(|one| one.file_name().to_string_lossy().into_owned()).collect()
}

/// One that has ended meanwhile is not told.
fn signal(name: &str, processes: &[String]) {
    Command::new("kill").arg(name).args(processes).output().expect("kill runs");
}

/// Before the next look, which is to come.
async fn pause() -> bool {
    sleep(PAUSE).await;
    false
}
