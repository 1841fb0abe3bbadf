//! `stream`: one uid a request on streams with 256 in flight, against a bare stream that answers the same messages.

use std::time::Duration;

use tempfile::TempDir;

use super::{UIDS, touch};
use crate::bench::Context;
use crate::bench::baseline::process::BareProcess;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::cluster::{Cluster, Shape};
use crate::{Result, grpc, program};

const IN_FLIGHT: usize = 256;
const LASTING_MS: usize = 3_000;

pub(in crate::bench::scenario) struct Stream {
    cluster: Cluster,
    bare: BareProcess,
    _folder: TempDir,
}

impl Measured for Stream {
    const NAME: &'static str = "stream";
    const ABOUT: &'static str = "cluster: one uid a request, 256 in flight, 1 and 8 streams";

    async fn prepare(context: &Context) -> Result<Self> {
        let folder = context.fresh()?;
        let cluster = Cluster::start(&program("seqsvr")?, folder.path(), &Shape::new(1, 1)).await?;
        touch(&cluster).await?;
        let bare = BareProcess::start(&["grpc"]).await?;
        Ok(Stream { cluster, bare, _folder: folder })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let lasting = Duration::from_millis(context.scaled(LASTING_MS) as u64);
        let load = grpc::Load { uids: UIDS, in_flight: IN_FLIGHT, lasting };
        let mut samples = Vec::new();
        for streams in [1, 8] {
            let bare = grpc::streams(&format!("http://{}", self.bare.address()), streams, load).await?;
            let ours = grpc::streams(&self.cluster.allocators[0].url(), streams, load).await?;
            samples.push(
                Sample::new(format!("one number a request, streams: {streams}"), ours, "numbers/s")
                    .against("bare tonic stream", bare)
                    .target(Target::RatioAtLeast(0.7)),
            );
        }
        Ok(samples)
    }
}
