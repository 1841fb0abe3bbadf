//! The Admin service: operators' changes over gRPC, handed to the arbiter that runs in this process. Owns nothing;
//! `cli::arbiter` adds it to the gRPC server.

use std::time::Duration;

use tokio::time::timeout;
use tonic::{Request, Response, Status, async_trait};

use super::core::{Change, ChangeOutcome};
use super::run::Handle;
use seqsvr_rpc::security::Call;
use seqsvr_rpc::text;
use seqsvr_rpc::v1::admin_server::Admin;
use seqsvr_rpc::v1::allocator_client::AllocatorClient;
use seqsvr_rpc::v1::{ChangeReply, ChangeRequest, NotActing, ProbeRequest, change_reply, change_request};

/// How long a new AllocSvr may take to answer.
const THERE: Duration = Duration::from_secs(2);
/// How long a caller is kept waiting for the stores.
const PATIENCE: Duration = Duration::from_secs(10);

/// The service `Admin` of one arbiter.
pub struct AdminService {
    handle: Handle,
    set: u32,
    call: Call,
}

impl AdminService {
    /// Takes changes of Set `set`; `call` says which nodes could be reached at all.
    pub fn new(handle: Handle, set: u32, call: Call) -> Self {
        Self { handle, set, call }
    }

    /// Whether this arbiter carries changes out; one that stands by has nothing to check.
    fn acts(&self) -> bool {
        self.handle.view().borrow().acting.is_some()
    }

    /// Makes sure that the AllocSvr `name` answers at `addr`: a wrong address in the table would be dialled by every caller.
    async fn check_there(&self, name: &str, addr: &str) -> Result<(), String> {
        let asked = async {
            let endpoint = self.call.endpoint(addr).map_err(|error| error.to_string())?;
            let channel = endpoint.connect().await.map_err(|error| text(&error))?;
            let mut allocator = AllocatorClient::with_interceptor(channel, self.call.pass());
            let reply = allocator.probe(ProbeRequest { set: self.set, detail: false }).await;
            Ok::<_, String>(reply.map_err(|status| status.message().to_owned())?.into_inner().node)
        };
        let answered =
            timeout(THERE, asked).await.unwrap_or_else(|_| Err(format!("no answer within {THERE:?}")));
        let there = answered.map_err(|why| {
            format!("{name} does not answer at {addr} ({why}); start it first, or add it with --force")
        })?;
        if there == name {
            Ok(())
        } else {
            Err(format!("the AllocSvr at {addr} is called {there}, not {name}; correct one of them"))
        }
    }

    fn read(&self, request: ChangeRequest) -> Result<Change, String> {
        if request.set != self.set {
            return Err(format!("this arbiter is of Set {}, not {}", self.set, request.set));
        }
        match request.change {
            Some(change_request::Change::Drain(node)) => Ok(Change::Drain(node)),
            Some(change_request::Change::Add(node)) => {
                self.call.endpoint(&node.addr).map_err(|error| error.to_string())?;
                Ok(Change::Add { name: node.name, addr: node.addr })
            }
            Some(change_request::Change::Remove(node)) => Ok(Change::Remove(node)),
            Some(change_request::Change::Rebalance(_)) => Ok(Change::Rebalance),
            None => Err("the request lacks a change".to_owned()),
        }
    }
}

#[async_trait]
impl Admin for AdminService {
    async fn change(&self, request: Request<ChangeRequest>) -> Result<Response<ChangeReply>, Status> {
        let request = request.into_inner();
        let force = request.force;
        let read = match self.read(request) {
            Ok(Change::Add { name, addr }) if !force && self.acts() => {
                self.check_there(&name, &addr).await.map(|()| Change::Add { name, addr })
            }
            read => read,
        };
        // An answer about the nodes, which have no leases now, would mislead.
        let lost = self.handle.view().borrow().lost.clone().filter(|_| read.is_ok());
        if let Some(why) = lost {
            let line = format!(
                "the stores do not answer this arbiter ({why}); nothing can be changed until they do"
            );
            return Err(Status::unavailable(line));
        }
        let outcome = match read {
            Err(line) => ChangeOutcome::Refused(line),
            Ok(change) => timeout(PATIENCE, self.handle.change(change))
                .await
                .map_err(|_| {
                    Status::unavailable("the stores do not confirm the change; run the command again")
                })?
                .ok_or_else(|| Status::unavailable("this arbiter is stopping; ask another"))?,
        };
        let outcome = match outcome {
            ChangeOutcome::Done(table) => change_reply::Outcome::Done((&*table).into()),
            ChangeOutcome::NotActing(term) => change_reply::Outcome::NotActing(NotActing { term }),
            ChangeOutcome::Refused(line) => change_reply::Outcome::Refused(line),
        };
        Ok(Response::new(ChangeReply { outcome: Some(outcome) }))
    }
}
