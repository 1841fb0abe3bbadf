//! The configuration files of a cluster on the loopback: one for each process, one for clients. Ports are chosen free
//! beforehand, since the processes name each other and come back to the same address after a restart.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use tidemark_test_support::ports::free_port;

use super::etcd::EtcdMember;
use super::links::ClusterLink;
use super::member::{ClusterMember, ProcessRole};
use super::shape::{Certificates, KeeperKind, Shape, Timing};
use crate::Result;

const CLUSTER: &str = "trial";

/// The processes to be, with their files written.
pub(super) struct ClusterPlan {
    pub(super) stores: Vec<ClusterMember>,
    pub(super) allocators: Vec<ClusterMember>,
    pub(super) arbiters: Vec<ClusterMember>,
    pub(super) links: Vec<ClusterLink>,
    pub(super) client_config: PathBuf,
}

impl ClusterPlan {
    pub(super) async fn write(binary: &Path, folder: &Path, shape: &Shape) -> Result<ClusterPlan> {
        let writer = ConfigWriter::new(binary, folder, shape);
        let mut wires = Wires { wired: shape.wired, links: Vec::new() };
        let mut plan = ClusterPlan {
            stores: Vec::new(),
            allocators: Vec::new(),
            arbiters: Vec::new(),
            links: Vec::new(),
            client_config: PathBuf::new(),
        };
        for set in &writer.sets {
            match shape.keeper {
                KeeperKind::Quorum => plan.stores.extend(writer.stores(set)?),
                KeeperKind::Etcd => {
                    plan.stores.extend(etcd_members(&set.stores, &set.peers, folder, &mut wires).await)
                }
            }
        }
        for (alloc, metrics) in writer.allocators.iter().zip(&writer.metrics) {
            plan.allocators.push(writer.allocator(alloc, metrics, &mut wires).await?);
        }
        // Callers and probes find an AllocSvr by the same address, that in the table.
        let seen = wires.lay_all("callers", &writer.allocators).await;
        for set in &writer.sets {
            plan.arbiters.extend(writer.arbiters(set, &seen, &mut wires).await?);
        }
        plan.links = wires.links;
        plan.client_config = writer.client(&seen)?;
        Ok(plan)
    }
}

/// A process's name and where it listens: `host:port`.
type NamedAddress = (String, String);

/// The places of one Set.
struct SetPlaces {
    number: u32,
    uids: RangeInclusive<u32>,
    stores: Vec<NamedAddress>,
    peers: Vec<NamedAddress>,
    arbiters: Vec<NamedAddress>,
    arbiter_metrics: Vec<NamedAddress>,
}

/// Writes the files.
struct ConfigWriter<'a> {
    binary: &'a Path,
    folder: &'a Path,
    shape: &'a Shape,
    sets: Vec<SetPlaces>,
    allocators: Vec<NamedAddress>,
    metrics: Vec<NamedAddress>,
    /// How long a question to a store may take: one that cannot be reached must cost less than a lease.
    patience: u128,
}

impl<'a> ConfigWriter<'a> {
    fn new(binary: &'a Path, folder: &'a Path, shape: &'a Shape) -> Self {
        let named = |word: &str, count: usize, before: usize| -> Vec<NamedAddress> {
            let place = |index| (format!("{word}{index}"), format!("127.0.0.1:{}", free_port()));
            (before + 1..=before + count).map(place).collect()
        };
        let store = if shape.keeper == KeeperKind::Etcd { "etcd" } else { "store" };
        let mut sets = Vec::new();
        for (index, (number, uids)) in shape.sets.iter().enumerate() {
            let (stores, arbiters) = (index * shape.stores, index * shape.arbiters);
            sets.push(SetPlaces {
                number: *number,
                uids: uids.clone(),
                stores: named(store, shape.stores, stores),
                peers: named("peer", shape.stores, stores),
                arbiters: named("arbiter", shape.arbiters, arbiters),
                arbiter_metrics: named("metrics", shape.arbiters, arbiters),
            });
        }
        let (allocators, metrics) =
            (named("alloc", shape.allocators, 0), named("metrics", shape.allocators, 0));
        let patience = (shape.timing.lease / 4).as_millis();
        Self { binary, folder, shape, sets, allocators, metrics, patience }
    }

    fn stores(&self, set: &SetPlaces) -> Result<Vec<ClusterMember>> {
        let number = set.number;
        let one = |(name, addr): &NamedAddress| {
            let directory = self.folder.join(name);
            let text = format!(
                "cluster = {CLUSTER:?}\nset = {number}\nname = {name:?}\nlisten = {addr:?}\ndirectory = {directory:?}\n"
            );
            self.member(ProcessRole::Store, name, addr, text + &self.to_listen())
        };
        set.stores.iter().map(one).collect()
    }

    async fn allocator(
        &self,
        (name, addr): &NamedAddress,
        (_, metrics): &NamedAddress,
        wires: &mut Wires,
    ) -> Result<ClusterMember> {
        let directory = self.folder.join(name);
        let mut text = format!(
            "cluster = {CLUSTER:?}\nname = {name:?}\nlisten = {addr:?}\nmetrics_listen = {metrics:?}\n\
             directory = {directory:?}\n"
        );
        text += &self.to_listen();
        for set in &self.sets {
            text += &format!("\n[[sets]]\nnumber = {}\n", set.number);
            text += &self.keeper("sets.stores", &wires.lay_all(name, &set.stores).await);
        }
        let alloc = self.member(ProcessRole::Alloc, name, addr, text)?;
        Ok(alloc.with_metrics(metrics.clone()))
    }

    async fn arbiters(
        &self,
        set: &SetPlaces,
        allocators: &[NamedAddress],
        wires: &mut Wires,
    ) -> Result<Vec<ClusterMember>> {
        let known: String = allocators
            .iter()
            .map(|(name, addr)| format!("\n[[allocators]]\nname = {name:?}\naddr = \"{}\"\n", self.url(addr)))
            .collect();
        let Timing { probe_every, probe_patience, dead_after, .. } = self.shape.timing;
        let mut all = Vec::new();
        for (index, ((name, addr), (_, metrics))) in set.arbiters.iter().zip(&set.arbiter_metrics).enumerate()
        {
            let mut text = format!(
                "cluster = {CLUSTER:?}\nnumber = {index}\npolicy = {:?}\nlisten = {addr:?}\nmetrics_listen = {metrics:?}\n\n\
                 [set]\nnumber = {}\nfirst_uid = {}\nlast_uid = {}\nlease_ms = {}\n\n\
                 [timing]\nprobe_every_ms = {}\nprobe_patience_ms = {}\ndead_after = {dead_after}\n",
                self.shape.policy.word(),
                set.number,
                set.uids.start(),
                set.uids.end(),
                self.shape.timing.lease.as_millis(),
                probe_every.as_millis(),
                probe_patience.as_millis()
            );
            text += &self.shape.policy.balance();
            if let Some(certificates) = &self.shape.certificates {
                text += &(self.to_listen() + &certificates.of_operators());
            }
            text += &(self.to_call("call")
                + &self.keeper("stores", &wires.lay_all(name, &set.stores).await)
                + &known);
            all.push(self.member(ProcessRole::Arbiter, name, addr, text)?.with_metrics(metrics.clone()));
        }
        Ok(all)
    }

    /// The file that clients find the Sets by.
    fn client(&self, allocators: &[NamedAddress]) -> Result<PathBuf> {
        let mut text = String::new();
        if let Some(certificates) = &self.shape.certificates {
            text += &(self.to_call("security") + &certificates.of_operators());
        }
        let policy = self.shape.policy.word();
        for set in &self.sets {
            let (first, last) = (set.uids.start(), set.uids.end());
            text += &format!(
                "\n[[sets]]\nnumber = {}\nfirst_uid = {first}\nlast_uid = {last}\npolicy = {policy:?}\n\
                 allocators = {}\narbiters = {}\n",
                set.number,
                self.urls(allocators),
                self.urls(&set.arbiters)
            );
        }
        self.file("client", text)
    }

    /// The section that names the stores.
    fn keeper(&self, section: &str, stores: &[NamedAddress]) -> String {
        let (patience, urls) = (self.patience, self.urls(stores));
        let keeper = match self.shape.keeper {
            KeeperKind::Quorum => format!("replicas = {urls}\n"),
            KeeperKind::Etcd => format!("etcd = {{ endpoints = {urls} }}\n"),
        };
        format!("\n[{section}]\npatience_ms = {patience}\n{keeper}")
            + &self.to_call(&format!("{section}.security"))
    }

    fn to_listen(&self) -> String {
        self.shape.certificates.as_ref().map(Certificates::to_listen).unwrap_or_default()
    }

    fn to_call(&self, section: &str) -> String {
        let keys = self.shape.certificates.as_ref().map(Certificates::to_call);
        keys.map(|keys| format!("\n[{section}]\n{keys}")).unwrap_or_default()
    }

    fn url(&self, addr: &str) -> String {
        let scheme = if self.shape.certificates.is_some() { "https" } else { "http" };
        format!("{scheme}://{addr}")
    }

    /// A TOML list of URLs.
    fn urls(&self, places: &[NamedAddress]) -> String {
        let urls: Vec<String> = places.iter().map(|(_, addr)| format!("\"{}\"", self.url(addr))).collect();
        format!("[{}]", urls.join(", "))
    }

    fn member(&self, role: ProcessRole, name: &str, addr: &str, text: String) -> Result<ClusterMember> {
        Ok(ClusterMember::new(name.to_owned(), role, addr.to_owned(), self.binary, self.file(name, text)?))
    }

    fn file(&self, name: &str, text: String) -> Result<PathBuf> {
        let path = self.folder.join(format!("{name}.toml"));
        fs::write(&path, text)?;
        Ok(path)
    }
}

/// Lays wires, or does not.
struct Wires {
    wired: bool,
    links: Vec<ClusterLink>,
}

impl Wires {
    /// Where `from` finds the process called `to` that listens on `addr`.
    async fn lay(&mut self, from: &str, to: &str, addr: &str) -> String {
        if !self.wired {
            return addr.to_owned();
        }
        let link = ClusterLink::lay(from, to, addr).await;
        let addr = link.addr();
        self.links.push(link);
        addr
    }

    async fn lay_all(&mut self, from: &str, all: &[NamedAddress]) -> Vec<NamedAddress> {
        let mut seen = Vec::new();
        for (name, addr) in all {
            seen.push((name.clone(), self.lay(from, name, addr).await));
        }
        seen
    }
}

async fn etcd_members(
    members: &[NamedAddress],
    peers: &[NamedAddress],
    folder: &Path,
    wires: &mut Wires,
) -> Vec<ClusterMember> {
    let mut all = Vec::new();
    for ((name, addr), (_, peer)) in members.iter().zip(peers) {
        let peer_seen = wires.lay("members", name, peer).await;
        all.push(EtcdMember { name: name.clone(), addr: addr.clone(), peer: peer.clone(), peer_seen });
    }
    let member = |one: &EtcdMember| {
        ClusterMember::etcd(one.name.clone(), one.addr.clone(), one.words(&all, folder), folder)
    };
    all.iter().map(member).collect()
}
