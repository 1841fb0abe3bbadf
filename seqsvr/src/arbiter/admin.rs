//! The Admin service: operators' changes over gRPC, handed to the arbiter that runs in this process. Owns nothing; `cli::arbiter`
//! puts it behind the door.

use std::time::Duration;

use tokio::time::timeout;
use tonic::{Request, Response, Status, async_trait};

use super::core::{Change, Outcome};
use super::run::Handle;
use crate::rpc::security::Call;
use crate::rpc::v1::admin_server::Admin;
use crate::rpc::v1::{ChangeReply, ChangeRequest, NotActing, change_reply, change_request};

/// How long a caller is kept waiting for the stores.
const PATIENCE: Duration = Duration::from_secs(10);

/// See the module.
pub(crate) struct Office {
    handle: Handle,
    set: u32,
    call: Call,
}

impl Office {
    /// Takes changes of Set `set`; `call` says which nodes could be reached at all.
    pub(crate) fn new(handle: Handle, set: u32, call: Call) -> Self {
        Self { handle, set, call }
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
            Some(change_request::Change::Rebalance(_)) => Ok(Change::Rebalance),
            None => Err("the request lacks a change".to_owned()),
        }
    }
}

#[async_trait]
impl Admin for Office {
    async fn change(&self, request: Request<ChangeRequest>) -> Result<Response<ChangeReply>, Status> {
        let outcome = match self.read(request.into_inner()) {
            Err(line) => Outcome::Refused(line),
            Ok(change) => timeout(PATIENCE, self.handle.change(change))
                .await
                .map_err(|_| Status::unavailable("the stores do not confirm; ask again, it does no harm"))?
                .ok_or_else(|| Status::unavailable("this arbiter stops; ask another"))?,
        };
        let outcome = match outcome {
            Outcome::Done(table) => change_reply::Outcome::Done((&*table).into()),
            Outcome::NotActing(term) => change_reply::Outcome::NotActing(NotActing { term }),
            Outcome::Refused(line) => change_reply::Outcome::Refused(line),
        };
        Ok(Response::new(ChangeReply { outcome: Some(outcome) }))
    }
}
