//! `current`: upper bounds of 64 uids a call, as heartbeats would ask, against a bare unary call with the same bytes.

use super::{Compared, UIDS, lasting};
use crate::Result;
use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::grpc;

pub(in crate::bench::scenario) struct Current(Compared);

impl Measured for Current {
    const NAME: &'static str = "current";
    const ABOUT: &'static str = "cluster: look-ups of 64 uids each, 8 × 8 in flight";

    async fn prepare(context: &Context) -> Result<Self> {
        Ok(Current(Compared::start(context).await?))
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let load = grpc::Load { uids: UIDS - 64, in_flight: 8, lasting: lasting(context) };
        let bare = grpc::unary(&self.0.bare.url(), 8, load, grpc::current).await?;
        let ours = grpc::unary(&self.0.url(), 8, load, grpc::current).await?;
        Ok(vec![
            Sample::new("look-ups of 64 uids, 8 × 8 in flight", ours, "calls/s")
                .against("bare tonic unary, same bytes", bare)
                .target(Target::RatioAtLeast(0.7)),
        ])
    }
}
