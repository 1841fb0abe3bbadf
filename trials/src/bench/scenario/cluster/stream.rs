//! `stream`: one uid a request on streams with 256 in flight, against a bare stream that answers the same messages.

use super::{Compared, UIDS, lasting};
use crate::Result;
use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::grpc;

const IN_FLIGHT: usize = 256;

pub(in crate::bench::scenario) struct Stream(Compared);

impl Measured for Stream {
    const NAME: &'static str = "stream";
    const ABOUT: &'static str = "cluster: one uid a request, 256 in flight, 1 and 8 streams";

    async fn prepare(context: &Context) -> Result<Self> {
        Ok(Stream(Compared::start(context).await?))
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let load = grpc::Load { uids: UIDS, in_flight: IN_FLIGHT, lasting: lasting(context) };
        let mut samples = Vec::new();
        for streams in [1, 8] {
            let bare = grpc::streams(&self.0.bare.url(), streams, load).await?;
            let ours = grpc::streams(&self.0.url(), streams, load).await?;
            samples.push(
                Sample::new(format!("one number a request, streams: {streams}"), ours, "numbers/s")
                    .against("bare tonic stream", bare)
                    .target(Target::RatioAtLeast(0.7)),
            );
        }
        Ok(samples)
    }
}
