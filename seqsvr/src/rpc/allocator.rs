//! The service `Allocator`: what the arbiter learns of this process. A process that is about to end says so, so that the arbiter
//! moves its sections elsewhere while it still serves them.

use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::v1;
use crate::alloc::hall::Hall;

/// Answers probes for the Sets of this process.
#[derive(Clone)]
pub(crate) struct Pulse {
    halls: Arc<[Arc<Hall>]>,
}

impl Pulse {
    /// Answers for the Sets of `halls`.
    pub(crate) fn new(halls: Vec<Arc<Hall>>) -> Self {
        Self { halls: halls.into() }
    }
}

#[tonic::async_trait]
impl v1::allocator_server::Allocator for Pulse {
    async fn probe(&self, request: Request<v1::ProbeRequest>) -> Result<Response<v1::ProbeReply>, Status> {
        let set = request.into_inner().set;
        let hall = self.halls.iter().find(|hall| hall.set == set);
        let hall = hall.ok_or_else(|| Status::invalid_argument(format!("Set {set} is not served here")))?;
        let version = hall.view().table().map(|table| table.version.into());
        let rates = hall.rates();
        Ok(Response::new(v1::ProbeReply {
            node: hall.node.clone(),
            incarnation: hall.incarnation,
            version,
            sections: rates.iter().map(|(section, _)| section.get()).collect(),
            rates: rates.iter().map(|&(_, rate)| rate).collect(),
            lapsed: hall.is_lapsed(),
            leaving: hall.is_leaving(),
        }))
    }
}
