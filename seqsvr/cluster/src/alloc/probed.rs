//! The service `Allocator`: what the arbiter learns of this process. A process that is about to end says so, so that the arbiter
//! moves its sections elsewhere while it still serves them.

use std::sync::Arc;
use std::time::Duration;

use tonic::{Request, Response, Status};

use crate::alloc::hall::Hall;
use seqsvr_rpc::store::to_range;
use seqsvr_rpc::v1;

/// The most runs of unserved sections that an answer lists.
const LISTED: usize = 256;

/// Answers probes for the Sets of this process.
#[derive(Clone)]
pub struct Pulse {
    halls: Arc<[Arc<Hall>]>,
}

impl Pulse {
    /// Answers for the Sets of `halls`.
    pub fn new(halls: Vec<Arc<Hall>>) -> Self {
        Self { halls: halls.into() }
    }
}

#[tonic::async_trait]
impl v1::allocator_server::Allocator for Pulse {
    async fn probe(&self, request: Request<v1::ProbeRequest>) -> Result<Response<v1::ProbeReply>, Status> {
        let v1::ProbeRequest { set, detail } = request.into_inner();
        let hall = self.halls.iter().find(|hall| hall.set == set);
        let hall = hall.ok_or_else(|| Status::invalid_argument(format!("Set {set} is not served here")))?;
        let version = hall.view().table().map(|table| table.version.into());
        let rates = hall.rates();
        let given = hall.given();
        let overdue = given.waiting.iter().map(|one| hall.overdue(one)).max().unwrap_or_default();
        let (unserved, runs) = (given.unserved(), if detail { LISTED } else { 0 });
        let waiting = given.waiting.iter().flat_map(|one| {
            let (ago, why) = hall.why(one);
            one.sections.ranges().iter().map(move |run| v1::UnservedSections {
                sections: Some(to_range(run)),
                given_ms_ago: millis(ago),
                why: why.clone(),
            })
        });
        Ok(Response::new(v1::ProbeReply {
            node: hall.node.clone(),
            incarnation: hall.incarnation,
            version,
            sections: rates.iter().map(|(section, _)| section.get()).collect(),
            rates: rates.iter().map(|&(_, rate)| rate).collect(),
            lapsed: hall.is_lapsed(),
            leaving: hall.is_leaving(),
            lease_remaining_ms: millis(hall.lease_remaining()),
            served: given.all - unserved,
            unserved,
            overdue_ms: millis(overdue),
            waiting: waiting.take(runs).collect(),
        }))
    }
}

fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}
