//! The configuration files of a cluster on the loopback: one for each process, one for clients. Ports are chosen free
//! beforehand, since the processes name each other and come back to the same address after a restart.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use seqsvr::store::{Stores, StoresConfig};

use super::member::{Member, Role};
use crate::{Failure, Result};

const CLUSTER: &str = "trial";

/// How many processes of each role.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// StoreSvrs; a majority must answer.
    pub stores: usize,
    /// AllocSvrs.
    pub allocators: usize,
    /// Arbiters.
    pub arbiters: usize,
    /// How quickly the cluster notices.
    pub timing: Timing,
}

impl Shape {
    /// Three stores and these.
    pub fn new(allocators: usize, arbiters: usize) -> Shape {
        Shape { stores: 3, allocators, arbiters, timing: Timing::default() }
    }
}

/// What detection and takeover hang on; the defaults are those of the programs.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long a read of the table lets an AllocSvr serve.
    pub lease: Duration,
    /// Between two probes of an AllocSvr.
    pub probe_every: Duration,
    /// Probes in a row without an answer that make it dead.
    pub dead_after: u32,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing { lease: Duration::from_secs(2), probe_every: Duration::from_millis(200), dead_after: 3 }
    }
}

impl Timing {
    /// The time without service that a lost AllocSvr may cost: detection and 1.1 times the lease.
    pub fn takeover(self) -> Duration {
        self.probe_every * self.dead_after + self.lease.mul_f64(1.1)
    }
}

/// The processes to be, with their files written.
pub(super) struct Plan {
    pub(super) stores: Vec<Member>,
    pub(super) allocators: Vec<Member>,
    pub(super) arbiters: Vec<Member>,
    pub(super) client_config: PathBuf,
}

impl Plan {
    pub(super) fn write(binary: &Path, folder: &Path, shape: &Shape) -> Result<Plan> {
        let mut ports = free_ports(shape.stores + 2 * shape.allocators + shape.arbiters)?.into_iter();
        let mut next = || ports.next().ok_or_else(|| Failure::new("a port is missing"));
        let mut named = |word: &str, count: usize| -> Result<Vec<(String, String)>> {
            (1..=count)
                .map(|index| Ok((format!("{word}{index}"), format!("127.0.0.1:{}", next()?))))
                .collect()
        };
        let stores = named("store", shape.stores)?;
        let allocators = named("alloc", shape.allocators)?;
        let metrics = named("metrics", shape.allocators)?;
        let arbiters = named("arbiter", shape.arbiters)?;
        let write = |name: &str, text: String| -> Result<PathBuf> {
            let path = folder.join(format!("{name}.toml"));
            fs::write(&path, text)?;
            Ok(path)
        };
        let member = |role, name: &str, addr: &str, text: String| -> Result<Member> {
            Ok(Member::new(name.to_owned(), role, addr.to_owned(), binary, write(name, text)?))
        };
        let addresses = stores_section(&stores);
        let Timing { lease, probe_every, dead_after } = shape.timing;
        let mut plan = Plan {
            stores: Vec::new(),
            allocators: Vec::new(),
            arbiters: Vec::new(),
            client_config: PathBuf::new(),
        };
        for (name, addr) in &stores {
            let directory = folder.join(name);
            let peers = others(&stores, name);
            let text = format!(
                "cluster = {CLUSTER:?}\nname = {name:?}\nlisten = {addr:?}\ndirectory = {directory:?}\n\n\
                 [peers]\nreplicas = {peers}\n"
            );
            plan.stores.push(member(Role::Store, name, addr, text)?);
        }
        for ((name, addr), (_, metrics)) in allocators.iter().zip(&metrics) {
            let directory = folder.join(name);
            let text = format!(
                "cluster = {CLUSTER:?}\nname = {name:?}\nlisten = {addr:?}\nmetrics_listen = {metrics:?}\n\
                 directory = {directory:?}\n\n[[sets]]\nlease_ms = {}\n\n[sets.stores]\n{addresses}",
                lease.as_millis()
            );
            let alloc = member(Role::Alloc, name, addr, text)?;
            plan.allocators.push(alloc.with_metrics(metrics.clone()));
        }
        let known: String = allocators
            .iter()
            .map(|(name, addr)| format!("\n[[allocators]]\nname = {name:?}\naddr = \"http://{addr}\"\n"))
            .collect();
        for (number, (name, addr)) in arbiters.iter().enumerate() {
            let text = format!(
                "cluster = {CLUSTER:?}\nnumber = {number}\nlisten = {addr:?}\n\n[set]\n\n[stores]\n{addresses}\n\
                 [timing]\nprobe_every_ms = {}\ndead_after = {dead_after}\n{known}",
                probe_every.as_millis()
            );
            plan.arbiters.push(member(Role::Arbiter, name, addr, text)?);
        }
        let urls = |members: &[(String, String)]| quoted(members.iter().map(|(_, addr)| addr));
        let client =
            format!("[[sets]]\nallocators = {}\narbiters = {}\n", urls(&allocators), urls(&arbiters));
        plan.client_config = write("client", client)?;
        Ok(plan)
    }
}

/// The stores of the cluster in `members`, for a caller in this process.
pub(super) fn open_stores(members: &[Member]) -> Result<Stores> {
    let config = StoresConfig {
        replicas: members.iter().map(Member::url).collect(),
        read: None,
        write: None,
        patience_ms: 5_000,
        security: Default::default(),
        etcd: None,
    };
    Ok(config.open(CLUSTER, 0)?)
}

fn stores_section(stores: &[(String, String)]) -> String {
    format!("replicas = {}\n", quoted(stores.iter().map(|(_, addr)| addr)))
}

fn others(stores: &[(String, String)], but: &str) -> String {
    quoted(stores.iter().filter(|(name, _)| name != but).map(|(_, addr)| addr))
}

/// A TOML list of URLs.
fn quoted<'a>(addresses: impl Iterator<Item = &'a String>) -> String {
    let urls: Vec<String> = addresses.map(|addr| format!("\"http://{addr}\"")).collect();
    format!("[{}]", urls.join(", "))
}

/// All are held until the last is found, so that they differ.
fn free_ports(count: usize) -> Result<Vec<u16>> {
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<std::io::Result<_>>()?;
    Ok(listeners
        .iter()
        .map(TcpListener::local_addr)
        .map(|addr| addr.map(|addr| addr.port()))
        .collect::<std::io::Result<_>>()?)
}
