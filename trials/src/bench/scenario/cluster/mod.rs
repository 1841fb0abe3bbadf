//! The measurements of the sequence service as a cluster: three stores, and as many AllocSvrs as the question needs,
//! all real processes.

mod batch;
mod current;
mod drain;
mod failover;
mod io;
mod latency;
mod load;
mod stream;
mod tasks;
mod unary;

pub(super) use batch::Batch;
pub(super) use current::Current;
pub(super) use drain::Drain;
pub(super) use failover::Failover;
pub(super) use io::Io;
pub(super) use latency::Latency;
pub(super) use load::Load;
pub(super) use stream::Stream;
pub(super) use tasks::Tasks;
pub(super) use unary::Unary;

use std::time::Duration;

use seqsvr_core::Uid;
use tempfile::TempDir;

use crate::Result;
use crate::bench::Context;
use crate::bench::baseline::grpc::BareGrpc;
use crate::cluster::{Cluster, Shape};

/// Uids are drawn from so many.
const UIDS: u32 = 100_000;

/// A cluster with one AllocSvr, and the bare server to compare it with.
struct Compared {
    cluster: Cluster,
    bare: BareGrpc,
    _folder: TempDir,
}

impl Compared {
    async fn start(context: &Context) -> Result<Compared> {
        let folder = context.fresh()?;
        let cluster = Cluster::start(&context.sequence_binary()?, folder.path(), &Shape::new(1, 1)).await?;
        touch(&cluster).await?;
        let bare = BareGrpc::start(&std::env::current_exe()?).await?;
        Ok(Compared { cluster, bare, _folder: folder })
    }

    fn url(&self) -> String {
        self.cluster.allocators[0].url()
    }
}

/// Every uid once, so that what is measured is the steady state.
async fn touch(cluster: &Cluster) -> Result<()> {
    let client = cluster.client()?;
    let uids: Vec<Uid> = (0..UIDS).map(Uid::new).collect();
    for some in uids.chunks(1_000) {
        client.next_each(some).await?;
    }
    Ok(())
}

/// How long each figure is measured.
pub(super) fn lasting(context: &Context) -> Duration {
    Duration::from_millis(context.scaled(3_000) as u64)
}
