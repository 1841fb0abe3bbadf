//! The configuration files of a cluster on the loopback: one for each process, one for clients. Ports are chosen free
//! beforehand, since the processes name each other and come back to the same address after a restart.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use seqsvr::store::{Stores, StoresConfig};

use super::etcd::EtcdMember;
use super::links::Link;
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
    /// What keeps ceilings and tables.
    pub keeper: Keeper,
    /// Whether the processes speak over wires that can be cut.
    pub wired: bool,
    /// How quickly the cluster notices.
    pub timing: Timing,
}

impl Shape {
    /// Three stores and these.
    pub fn new(allocators: usize, arbiters: usize) -> Shape {
        Shape {
            stores: 3,
            allocators,
            arbiters,
            keeper: Keeper::Quorum,
            wired: false,
            timing: Timing::default(),
        }
    }
}

/// What keeps ceilings and tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeper {
    /// StoreSvrs.
    Quorum,
    /// An etcd cluster; needs the program `etcd`, and `seqsvr` built with the feature `etcd`.
    Etcd,
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
    pub(super) links: Vec<Link>,
    pub(super) client_config: PathBuf,
}

impl Plan {
    pub(super) fn write(binary: &Path, folder: &Path, shape: &Shape) -> Result<Plan> {
        let mut ports = free_ports(2 * shape.stores + 2 * shape.allocators + shape.arbiters)?.into_iter();
        let mut next = || ports.next().ok_or_else(|| Failure::new("a port is missing"));
        let mut named = |word: &str, count: usize| -> Result<Vec<(String, String)>> {
            (1..=count)
                .map(|index| Ok((format!("{word}{index}"), format!("127.0.0.1:{}", next()?))))
                .collect()
        };
        let stores = named(if shape.keeper == Keeper::Etcd { "etcd" } else { "store" }, shape.stores)?;
        let peers = named("peer", shape.stores)?;
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
        let mut wires = Wires { wired: shape.wired, links: Vec::new() };
        let Timing { lease, probe_every, dead_after } = shape.timing;
        let mut plan = Plan {
            stores: match shape.keeper {
                Keeper::Quorum => Vec::new(),
                Keeper::Etcd => etcd_members(&stores, &peers, folder, &mut wires)?,
            },
            allocators: Vec::new(),
            arbiters: Vec::new(),
            links: Vec::new(),
            client_config: PathBuf::new(),
        };
        // A store that cannot be reached must cost less than a lease.
        let patience = (lease / 4).as_millis();
        // Longer than any caller counts the answers to one question.
        let settle = (5 * patience).max(1_000);
        if shape.keeper == Keeper::Quorum {
            for (name, addr) in &stores {
                let directory = folder.join(name);
                let peers = others(&stores, name);
                let text = format!(
                    "cluster = {CLUSTER:?}\nname = {name:?}\nlisten = {addr:?}\ndirectory = {directory:?}\n\n\
                     [peers]\nreplicas = {peers}\nsettle_ms = {settle}\n"
                );
                plan.stores.push(member(Role::Store, name, addr, text)?);
            }
        }
        for ((name, addr), (_, metrics)) in allocators.iter().zip(&metrics) {
            let directory = folder.join(name);
            let keeper = keeper_keys(shape.keeper, &wires.lay_all(name, &stores)?);
            let text = format!(
                "cluster = {CLUSTER:?}\nname = {name:?}\nlisten = {addr:?}\nmetrics_listen = {metrics:?}\n\
                 directory = {directory:?}\n\n[[sets]]\nlease_ms = {}\n\n\
                 [sets.stores]\npatience_ms = {patience}\n{keeper}",
                lease.as_millis()
            );
            let alloc = member(Role::Alloc, name, addr, text)?;
            plan.allocators.push(alloc.with_metrics(metrics.clone()));
        }
        // Callers and probes find an AllocSvr by the same address, that in the table.
        let allocators = wires.lay_all("callers", &allocators)?;
        let known: String = allocators
            .iter()
            .map(|(name, addr)| format!("\n[[allocators]]\nname = {name:?}\naddr = \"http://{addr}\"\n"))
            .collect();
        for (number, (name, addr)) in arbiters.iter().enumerate() {
            let keeper = keeper_keys(shape.keeper, &wires.lay_all(name, &stores)?);
            let text = format!(
                "cluster = {CLUSTER:?}\nnumber = {number}\nlisten = {addr:?}\n\n[set]\n\n\
                 [timing]\nprobe_every_ms = {}\ndead_after = {dead_after}\n\n\
                 [stores]\npatience_ms = {patience}\n{keeper}{known}",
                probe_every.as_millis()
            );
            plan.arbiters.push(member(Role::Arbiter, name, addr, text)?);
        }
        plan.links = wires.links;
        let urls = |members: &[(String, String)]| quoted(members.iter().map(|(_, addr)| addr));
        let client =
            format!("[[sets]]\nallocators = {}\narbiters = {}\n", urls(&allocators), urls(&arbiters));
        plan.client_config = write("client", client)?;
        Ok(plan)
    }
}

/// Lays wires, or does not.
struct Wires {
    wired: bool,
    links: Vec<Link>,
}

impl Wires {
    /// Where `from` finds the process called `to` that listens on `addr`.
    fn lay(&mut self, from: &str, to: &str, addr: &str) -> Result<String> {
        if !self.wired {
            return Ok(addr.to_owned());
        }
        let link = Link::lay(from, to, addr)?;
        let addr = link.addr();
        self.links.push(link);
        Ok(addr)
    }

    fn lay_all(&mut self, from: &str, all: &[(String, String)]) -> Result<Vec<(String, String)>> {
        all.iter().map(|(name, addr)| Ok((name.clone(), self.lay(from, name, addr)?))).collect()
    }
}

fn etcd_members(
    members: &[(String, String)],
    peers: &[(String, String)],
    folder: &Path,
    wires: &mut Wires,
) -> Result<Vec<Member>> {
    let mut all = Vec::new();
    for ((name, addr), (_, peer)) in members.iter().zip(peers) {
        let peer_seen = wires.lay("members", name, peer)?;
        all.push(EtcdMember { name: name.clone(), addr: addr.clone(), peer: peer.clone(), peer_seen });
    }
    let member =
        |one: &EtcdMember| Member::etcd(one.name.clone(), one.addr.clone(), one.words(&all, folder), folder);
    Ok(all.iter().map(member).collect())
}

/// The keys of a section that names the stores.
fn keeper_keys(keeper: Keeper, stores: &[(String, String)]) -> String {
    let urls = quoted(stores.iter().map(|(_, addr)| addr));
    match keeper {
        Keeper::Quorum => format!("replicas = {urls}\n"),
        Keeper::Etcd => format!("etcd = {{ endpoints = {urls} }}\n"),
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
