//! `io`: how often a ceiling is persisted for each number that a hot uid is given.

use tempfile::TempDir;

use super::lasting;
use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::cluster::{Cluster, Shape};
use crate::{Result, grpc};

pub(in crate::bench::scenario) struct Io {
    cluster: Cluster,
    _folder: TempDir,
}

impl Measured for Io {
    const NAME: &'static str = "io";
    const ABOUT: &'static str = "cluster: persisted raises for each number of a hot uid";

    async fn prepare(context: &Context) -> Result<Self> {
        let folder = context.fresh()?;
        let cluster = Cluster::start(&context.sequence_binary()?, folder.path(), &Shape::new(1, 1)).await?;
        Ok(Io { cluster, _folder: folder })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let alloc = &self.cluster.allocators[0];
        let before =
            (alloc.metric("seqsvr_allocated_total").await?, alloc.metric("seqsvr_raises_total").await?);
        let load = grpc::Load { uids: 1, in_flight: 256, lasting: lasting(context) };
        grpc::streams(&alloc.url(), 1, load).await?;
        let numbers = alloc.metric("seqsvr_allocated_total").await? - before.0;
        let raises = alloc.metric("seqsvr_raises_total").await? - before.1;
        // The raise ahead of need is there before the numbers that it is for.
        let raises = (raises - 1.0).max(0.0);
        Ok(vec![
            Sample::new("numbers of one uid", numbers, "numbers"),
            Sample::new("persisted raises per 10,000 of them", raises / numbers * 1e4, "raises")
                .target(Target::AtMost(1.0)),
        ])
    }
}
