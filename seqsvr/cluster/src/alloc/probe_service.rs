//! The service `Allocator`: the state of this process for the arbiter. A process that is about to end says so, so that
//! the arbiter moves its sections elsewhere while it still serves them.

use std::sync::Arc;
use std::time::Duration;

use tonic::{Request, Response, Status};

use crate::alloc::set_server::SetServer;
use seqsvr_rpc::store::to_range;
use seqsvr_rpc::v1;

/// The most runs of unserved sections that an answer lists.
const LISTED: usize = 256;

/// Answers probes for the Sets of this process.
#[derive(Clone)]
pub struct ProbeService {
    servers: Arc<[Arc<SetServer>]>,
}

impl ProbeService {
    /// Answers for the Sets that `servers` serve.
    pub fn new(servers: Vec<Arc<SetServer>>) -> Self {
        Self { servers: servers.into() }
    }
}

#[tonic::async_trait]
impl v1::allocator_server::Allocator for ProbeService {
    async fn probe(&self, request: Request<v1::ProbeRequest>) -> Result<Response<v1::ProbeReply>, Status> {
        let v1::ProbeRequest { set, detail } = request.into_inner();
        let server = self.servers.iter().find(|server| server.set == set);
        let server =
            server.ok_or_else(|| Status::invalid_argument(format!("Set {set} is not served here")))?;
        let version = server.view().table().map(|table| table.version.into());
        let rates = server.rates();
        let given = server.given();
        let overdue = given.waiting.iter().map(|one| server.overdue(one)).max().unwrap_or_default();
        let (unserved, runs) = (given.unserved(), if detail { LISTED } else { 0 });
        let waiting = given.waiting.iter().flat_map(|one| {
            let (ago, why) = server.why(one);
            one.sections.ranges().iter().map(move |run| v1::UnservedSections {
                sections: Some(to_range(run)),
                given_ms_ago: millis(ago),
                why: why.clone(),
            })
        });
        Ok(Response::new(v1::ProbeReply {
            node: server.node.clone(),
            incarnation: server.incarnation,
            version,
            sections: rates.iter().map(|(section, _)| section.get()).collect(),
            rates: rates.iter().map(|&(_, rate)| rate).collect(),
            lapsed: server.is_lapsed(),
            draining: server.is_draining(),
            lease_remaining_ms: millis(server.lease_remaining()),
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
