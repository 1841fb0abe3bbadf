//! The service `Sequence`: callers' requests, answered from memory by the servers of the Sets. Owns nothing but the
//! limits; single calls are here, `stream` answers many on one stream, `replies` knows the wire.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use crate::alloc::each::Each;
use crate::alloc::set_server::SetServer;
use crate::alloc::view::{Denied, ServedView};
use seqsvr_core::error::Refusal;
use seqsvr_core::ids::Uid;
use seqsvr_rpc::v1;

mod replies;
mod stream;
#[cfg(test)]
mod tests;

use replies::Reply;
use stream::Answers;

/// The largest request, in bytes.
pub const LARGEST_REQUEST: usize = 1 << 20;

/// How much callers may ask for.
#[derive(Clone, Copy, Debug)]
pub struct SequenceLimits {
    /// Uids in one call.
    pub uids: usize,
    /// Requests of one stream that wait for a raise.
    pub waiting: usize,
    /// Streams at a time.
    pub streams: usize,
}

impl Default for SequenceLimits {
    fn default() -> Self {
        Self { uids: 10_000, waiting: 4_096, streams: 10_000 }
    }
}

/// The service `Sequence` over the Sets of this process, with the limits of what callers may ask.
#[derive(Clone)]
pub struct SequenceService {
    servers: Arc<[Arc<SetServer>]>,
    limits: SequenceLimits,
    streams: Arc<Semaphore>,
    stop: CancellationToken,
}

impl SequenceService {
    /// Answers for the Sets that `servers` serve. After `stop` streams end once their requests are answered.
    pub fn new(servers: Vec<Arc<SetServer>>, limits: SequenceLimits, stop: CancellationToken) -> Self {
        let streams = Arc::new(Semaphore::new(limits.streams));
        Self { servers: servers.into(), limits, streams, stop }
    }

    /// The server of the Set that the caller names, else of the one that has `uid`.
    fn server(&self, route: Option<&v1::Route>, uid: u32) -> Result<&Arc<SetServer>, Denied> {
        let found = match route {
            Some(route) => self.servers.iter().find(|server| server.set == route.set),
            None if self.servers.len() == 1 => self.servers.first(),
            None => self.servers.iter().find(|server| server.view().covers(Uid::new(uid))),
        };
        found.ok_or_else(|| {
            let what = route.map_or_else(|| format!("uid {uid}"), |route| format!("Set {}", route.set));
            Denied::Refused(Refusal::Cluster(format!(
                "{what} is not served by this process; correct the Sets of the caller"
            )))
        })
    }

    fn check_uids(&self, uids: &[u32]) -> Result<(), Denied> {
        if (1..=self.limits.uids).contains(&uids.len()) {
            return Ok(());
        }
        let (count, most) = (uids.len(), self.limits.uids);
        Err(Denied::Refused(Refusal::Cluster(format!("asked for {count} uids; ask for 1 to {most}"))))
    }
}

/// A request, so far as it was carried out.
enum RequestWork {
    Next(v1::NextRequest),
    Each { each: Each, route: Option<v1::Route> },
    Current(v1::CurrentRequest),
    Advance(v1::AdvanceRequest),
}

impl RequestWork {
    /// The uid that says which Set is meant, if the route does not.
    fn address(&self) -> (Option<&v1::Route>, u32) {
        match self {
            Self::Next(request) => (request.route.as_ref(), request.uid),
            Self::Each { each, route } => (route.as_ref(), each.uids().first().copied().unwrap_or_default()),
            Self::Current(request) => {
                (request.route.as_ref(), request.uids.first().copied().unwrap_or_default())
            }
            Self::Advance(request) => (request.route.as_ref(), request.uid),
        }
    }

    /// Whether it may be carried out at all, and where.
    fn admit<'a>(&self, service: &'a SequenceService) -> Result<&'a Arc<SetServer>, Denied> {
        match self {
            Self::Each { each, .. } => service.check_uids(each.uids())?,
            Self::Current(request) => service.check_uids(&request.uids)?,
            Self::Next(_) | Self::Advance(_) => {}
        }
        let (route, uid) = self.address();
        service.server(route, uid)
    }

    /// Carries it out, or as much of it as goes without waiting. The answer holds only if the deadline has not passed since.
    fn attempt(&mut self, view: &ServedView) -> Result<Reply, Denied> {
        match self {
            Self::Next(request) => view.take(Uid::new(request.uid), request.count).map(Reply::granted),
            Self::Each { each, .. } => each.proceed(view).map(|()| Reply::granted_each(each.take())),
            Self::Current(request) => {
                let numbers = request.uids.iter().map(|&uid| view.current(Uid::new(uid)));
                numbers.collect::<Result<_, _>>().map(Reply::upper_bounds)
            }
            Self::Advance(request) => {
                view.advance(Uid::new(request.uid), request.at_least).map(|()| Reply::advanced())
            }
        }
    }

    /// The answer that says no.
    fn denied(&self, denied: &Denied) -> Reply {
        match self {
            Self::Next(_) => Reply::next_denied(denied),
            Self::Each { .. } => Reply::each_denied(denied),
            Self::Current(_) => Reply::current_denied(denied),
            Self::Advance(_) => Reply::advance_denied(denied),
        }
    }

    /// Carries it out, waiting for raises if need be.
    async fn finish(&mut self, server: &SetServer) -> Reply {
        let outcome = server.wait(|view| self.attempt(view)).await;
        let mut reply = outcome.unwrap_or_else(|denied| {
            server.count(&denied);
            self.denied(&denied)
        });
        reply.attach(&server.view(), self.address().0);
        reply
    }
}

/// A call by itself: wrong requests are a status.
async fn single(service: &SequenceService, mut work: RequestWork) -> Result<Reply, Status> {
    let server = work.admit(service).map_err(|denied| Status::invalid_argument(replies::text(&denied)))?;
    let reply = work.finish(server).await;
    match reply.refusal() {
        Some(reason) => Err(Status::invalid_argument(reason)),
        None => Ok(reply),
    }
}

#[tonic::async_trait]
impl v1::sequence_server::Sequence for SequenceService {
    type StreamStream = Answers<Streaming<v1::StreamRequest>>;

    async fn next(&self, request: Request<v1::NextRequest>) -> Result<Response<v1::NextReply>, Status> {
        let reply = single(self, RequestWork::Next(request.into_inner())).await?;
        Ok(Response::new(reply.into_next()))
    }

    async fn next_each(
        &self,
        request: Request<v1::NextEachRequest>,
    ) -> Result<Response<v1::NextEachReply>, Status> {
        let reply = single(self, RequestWork::each(request.into_inner())).await?;
        Ok(Response::new(reply.into_each()))
    }

    async fn current(
        &self,
        request: Request<v1::CurrentRequest>,
    ) -> Result<Response<v1::CurrentReply>, Status> {
        let reply = single(self, RequestWork::Current(request.into_inner())).await?;
        Ok(Response::new(reply.into_current()))
    }

    async fn advance(
        &self,
        request: Request<v1::AdvanceRequest>,
    ) -> Result<Response<v1::AdvanceReply>, Status> {
        let reply = single(self, RequestWork::Advance(request.into_inner())).await?;
        Ok(Response::new(reply.into_advance()))
    }

    async fn route(&self, request: Request<v1::RouteRequest>) -> Result<Response<v1::Table>, Status> {
        let set = request.into_inner().set;
        let server = self.servers.iter().find(|server| server.set == set);
        let server =
            server.ok_or_else(|| Status::invalid_argument(format!("Set {set} is not served here")))?;
        let view = server.view();
        let table =
            view.table().ok_or_else(|| Status::unavailable("no routing table was read yet; try again"))?;
        Ok(Response::new(v1::Table::from(&**table)))
    }

    async fn stream(
        &self,
        request: Request<Streaming<v1::StreamRequest>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        let Ok(permit) = Arc::clone(&self.streams).try_acquire_owned() else {
            let most = self.limits.streams;
            return Err(Status::resource_exhausted(format!("{most} streams are open already; use fewer")));
        };
        Ok(Response::new(Answers::new(self.clone(), request.into_inner(), permit)))
    }
}

impl RequestWork {
    fn each(request: v1::NextEachRequest) -> Self {
        Self::Each { each: Each::new(request.uids), route: request.route }
    }
}
