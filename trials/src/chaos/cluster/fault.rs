//! Faults of the processes and wires of a cluster, and how they are mended.

use std::fmt;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use tidemark_test_support::gate::Flow;
use tokio::time::sleep;

use crate::Result;
use crate::cluster::{Cluster, ClusterMember, ProcessRole};

/// The damage to a process.
#[derive(Clone, Copy, Debug)]
pub(super) enum Deed {
    /// SIGKILL, and a start afterwards.
    Kill,
    /// SIGTERM, and a start afterwards.
    Stop,
    /// SIGSTOP, then SIGCONT: it wakes up late and does not know.
    Pause,
    /// All its wires.
    Isolate(Flow),
    /// SIGKILL, and its disk is gone: a StoreSvr that comes back as a new member.
    Lose,
}

/// One fault.
#[derive(Clone, Debug)]
pub(super) enum ClusterFault {
    /// Of a process, by its place among all.
    Process { index: usize, name: String, deed: Deed },
    /// Of one wire, by its place among all.
    Wire { index: usize, name: String, flow: Flow },
}

impl fmt::Display for ClusterFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClusterFault::Process { name, deed, .. } => write!(f, "{deed:?} {name}"),
            ClusterFault::Wire { name, flow, .. } => write!(f, "{flow:?} {name}"),
        }
    }
}

/// Draws one to three faults, of different processes.
pub(super) fn draw(cluster: &mut Cluster, random: &mut StdRng) -> Vec<ClusterFault> {
    if cluster.stores[0].role() == ProcessRole::Store && random.random_range(0..12) == 0 {
        // Alone: to take it in again needs all others.
        let index = random.random_range(0..cluster.stores.len());
        let name = cluster.stores[index].name().to_owned();
        return vec![ClusterFault::Process { index, name, deed: Deed::Lose }];
    }
    let names: Vec<String> = cluster.members().map(|member| member.name().to_owned()).collect();
    let count = *[1, 1, 1, 2, 2, 3].choose(random).expect("not empty");
    let mut faults: Vec<ClusterFault> = Vec::new();
    for (index, name) in names.into_iter().enumerate().collect::<Vec<_>>().sample(random, count).cloned() {
        let flow = *[Flow::Cut, Flow::Cut, Flow::Thither, Flow::Hither].choose(random).expect("not empty");
        if random.random_range(0..5) == 0 {
            let index = random.random_range(0..cluster.links.len());
            let link = &cluster.links[index];
            faults
                .push(ClusterFault::Wire { index, name: format!("{} → {}", link.from(), link.to()), flow });
            continue;
        }
        let deed = match random.random_range(0..8) {
            0..3 => Deed::Kill,
            3..4 => Deed::Stop,
            4..6 => Deed::Pause,
            _ => Deed::Isolate(flow),
        };
        faults.push(ClusterFault::Process { index, name, deed });
    }
    // Mended in the order of a start: stores first, since others need them.
    faults.sort_by_key(|fault| match fault {
        ClusterFault::Process { index, .. } => *index,
        ClusterFault::Wire { .. } => 0,
    });
    faults
}

/// Does it, holds on, and mends it.
pub(super) async fn carry_out(cluster: &mut Cluster, faults: &[ClusterFault], hold: Duration) -> Result<()> {
    for fault in faults {
        match fault {
            ClusterFault::Wire { index, flow, .. } => cluster.links[*index].set(*flow),
            ClusterFault::Process { index, name, deed } => match deed {
                Deed::Kill => member(cluster, *index).kill().await?,
                Deed::Stop => member(cluster, *index).stop().await?,
                Deed::Pause => member(cluster, *index).pause()?,
                Deed::Isolate(flow) => isolate(cluster, name, *flow),
                Deed::Lose => member(cluster, *index).lose_disk().await?,
            },
        }
    }
    sleep(hold).await;
    for link in &cluster.links {
        link.set(Flow::Open);
    }
    for fault in faults {
        let ClusterFault::Process { index, deed, .. } = fault else { continue };
        match deed {
            Deed::Kill | Deed::Stop => member(cluster, *index).start().await?,
            Deed::Pause => member(cluster, *index).resume()?,
            Deed::Isolate(_) => {}
            Deed::Lose => {
                let lost = member(cluster, *index);
                lost.start_with(&["--init"]).await?;
                let (name, url) = (lost.name().to_owned(), lost.url());
                cluster.operate_stores(&["store", "replace", &name, &url]).await?;
            }
        }
    }
    Ok(())
}

fn member(cluster: &mut Cluster, index: usize) -> &mut ClusterMember {
    cluster.members().nth(index).expect("drawn among them")
}

/// Questions to it pass, or those that it asks, or none.
fn isolate(cluster: &Cluster, name: &str, flow: Flow) {
    for link in &cluster.links {
        if link.to() == name {
            link.set(flow);
        } else if link.from() == name {
            link.set(match flow {
                Flow::Thither => Flow::Hither,
                Flow::Hither => Flow::Thither,
                flow => flow,
            });
        }
    }
}
