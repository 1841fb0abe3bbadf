//! `unary`: one number a call, 8 connections with 8 in flight each, against a bare unary call with the same messages.

use super::{Compared, UIDS, lasting};
use crate::Result;
use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::grpc;

pub(in crate::bench::scenario) struct Unary(Compared);

impl Measured for Unary {
    const NAME: &'static str = "unary";
    const ABOUT: &'static str = "cluster: one number a call, 8 × 8 in flight";

    async fn prepare(context: &Context) -> Result<Self> {
        Ok(Unary(Compared::start(context).await?))
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let load = grpc::Load { uids: UIDS, in_flight: 8, lasting: lasting(context) };
        let bare = grpc::unary(&self.0.bare.url(), 8, load, grpc::next).await?;
        let ours = grpc::unary(&self.0.url(), 8, load, grpc::next).await?;
        Ok(vec![
            Sample::new("calls for one number, 8 × 8 in flight", ours, "calls/s")
                .against("bare tonic unary", bare)
                .target(Target::RatioAtLeast(0.9)),
        ])
    }
}
