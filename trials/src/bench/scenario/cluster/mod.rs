//! The measurements of the sequence service as a cluster: three stores, and as many AllocSvrs as the question needs,
//! all real processes.

mod drain;
mod failover;
mod latency;
mod stream;

pub(super) use drain::Drain;
pub(super) use failover::Failover;
pub(super) use latency::Latency;
pub(super) use stream::Stream;

use seqsvr_core::Uid;

use crate::Result;
use crate::cluster::Cluster;

/// Uids are drawn from so many.
const UIDS: u32 = 100_000;

/// Every uid once, so that what is measured is the steady state.
async fn touch(cluster: &Cluster) -> Result<()> {
    let client = cluster.client()?;
    let uids: Vec<Uid> = (0..UIDS).map(Uid::new).collect();
    for some in uids.chunks(1_000) {
        client.next_each(some).await?;
    }
    Ok(())
}
