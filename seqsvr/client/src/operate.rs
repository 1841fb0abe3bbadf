//! The requests of operators to a cluster: the owners of sections, and changes of them (S13). Each is a call of its own over a connection
//! of its own; the arbiter that acts carries changes out.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep, timeout_at};
use tonic::{Code, Status};

use super::Client;
use super::error::CallError;
use super::peer::unanswered;
use super::retry::{FIRST_PAUSE, LONGEST_PAUSE};
use seqsvr_core::ids::Uid;
use seqsvr_core::routing::Table;
use seqsvr_rpc::text;
use seqsvr_rpc::v1::admin_client::AdminClient;
use seqsvr_rpc::v1::sequence_client::SequenceClient;
use seqsvr_rpc::v1::{self, change_reply, change_request};

/// The changes that operators can ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Move everything away from a node, and give it nothing more.
    Drain {
        /// Its name.
        node: String,
    },
    /// Take a node in, or back after a drain.
    Add {
        /// Its name.
        node: String,
        /// Where callers reach it; `None` for one that the table knows.
        addr: Option<String>,
        /// Also when it does not answer the arbiter.
        force: bool,
    },
    /// Forget a node that serves nothing.
    Remove {
        /// Its name.
        node: String,
    },
    /// Spread the sections evenly, regardless of their homes.
    Rebalance,
}

impl Client {
    /// The numbers of the configured Sets, by uid.
    pub fn set_numbers(&self) -> Vec<u32> {
        self.inner.sets.iter().map(|(_, set)| set.number()).collect()
    }

    /// The newest routing table of a Set that any of its configured AllocSvrs knows.
    ///
    /// # Errors
    ///
    /// [`CallError::Refused`] for a Set that is not configured, [`CallError::Unavailable`] when none answers.
    pub async fn route(&self, set: u32) -> Result<Arc<Table>, CallError> {
        let at = self.numbered(set)?;
        let deadline = self.deadline();
        let asked = at.seeds().iter().map(|addr| async move {
            let answered = timeout_at(deadline.at, async {
                let channel = at.call().endpoint(addr).map_err(|error| text(&error))?;
                let channel = channel.connect().await.map_err(|error| text(&error))?;
                let mut peer = SequenceClient::with_interceptor(channel, at.call().pass());
                let asked = peer.route(v1::RouteRequest { set }).await;
                let table = asked.map_err(|status| unanswered(addr, &status))?;
                Table::try_from(table.into_inner()).map_err(|error| error.to_string())
            });
            answered
                .await
                .unwrap_or_else(|_| Err("no answer".to_owned()))
                .map_err(|why| format!("{addr}: {why}"))
        });
        let answered = join_all(asked).await;
        let newest =
            answered.iter().filter_map(|answered| answered.as_ref().ok()).max_by_key(|table| table.version);
        if let Some(table) = newest {
            return Ok(Arc::new(table.clone()));
        }
        let why: Vec<String> = answered.into_iter().filter_map(Result::err).collect();
        Err(CallError::late(
            deadline.patience,
            format!("no AllocSvr of Set {set} answered ({})", why.join("; ")),
        ))
    }

    /// Has the acting arbiter of a Set carry out `change`; answers with the table that does. Asking again does no harm.
    ///
    /// # Errors
    ///
    /// [`CallError::Refused`] when the change makes no sense, such as an unknown node; [`CallError::Unavailable`] when no arbiter
    /// acts: the change may or may not have been made.
    pub async fn change(&self, set: u32, change: Change) -> Result<Arc<Table>, CallError> {
        let at = self.numbered(set)?;
        if at.arbiters().is_empty() {
            let why = format!("no arbiters of Set {set} are configured; add `arbiters` to its section");
            return Err(CallError::Refused(why));
        }
        let force = matches!(change, Change::Add { force: true, .. });
        let change = self.on_wire(set, change).await?;
        let deadline = self.deadline();
        let mut why = String::new();
        let mut pause = FIRST_PAUSE;
        loop {
            for addr in at.arbiters() {
                let request = v1::ChangeRequest { set, force, change: Some(change.clone()) };
                let asked = timeout_at(deadline.at, async {
                    let channel = at.call().endpoint(addr).map_err(|error| text(&error))?;
                    let channel = channel.connect().await.map_err(|error| text(&error))?;
                    let mut arbiter = AdminClient::with_interceptor(channel, at.call().admin_pass());
                    Ok::<_, String>(arbiter.change(request).await)
                });
                match asked.await {
                    Ok(Ok(Ok(reply))) => match reply.into_inner().outcome {
                        Some(change_reply::Outcome::Done(table)) => {
                            let table = Table::try_from(table);
                            return table.map(Arc::new).map_err(|why| CallError::Refused(why.to_string()));
                        }
                        Some(change_reply::Outcome::Refused(why)) => return Err(CallError::Refused(why)),
                        _ => why = format!("{addr} does not act"),
                    },
                    Ok(Ok(Err(status))) if is_lasting(&status) => {
                        return Err(CallError::Refused(format!("{addr}: {}", unanswered(addr, &status))));
                    }
                    Ok(Ok(Err(status))) => why = format!("{addr}: {}", unanswered(addr, &status)),
                    Ok(Err(reported)) => why = format!("{addr}: {reported}"),
                    Err(_) if why.is_empty() => why = format!("{addr}: no answer"),
                    // The last attempt was cut off; what was said before tells more.
                    Err(_) => {}
                }
            }
            if Instant::now() + pause >= deadline.at {
                return Err(CallError::late(
                    deadline.patience,
                    format!("no arbiter of Set {set} acted ({why})"),
                ));
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn on_wire(&self, set: u32, change: Change) -> Result<change_request::Change, CallError> {
        let (name, addr) = match change {
            Change::Drain { node } => return Ok(change_request::Change::Drain(node)),
            Change::Rebalance => return Ok(change_request::Change::Rebalance(v1::Rebalance {})),
            Change::Remove { node } => return Ok(change_request::Change::Remove(node)),
            Change::Add { node, addr, .. } => (node, addr),
        };
        let addr = match addr {
            Some(addr) => addr,
            None => {
                let table = self.route(set).await?;
                let known = table.nodes.iter().find(|known| known.name == name);
                let unknown = || {
                    CallError::Refused(format!(
                        "node {name} is not in the table of Set {set}; give its address"
                    ))
                };
                known.ok_or_else(unknown)?.addr.clone()
            }
        };
        let state = v1::NodeState::Active.into();
        Ok(change_request::Change::Add(v1::Node { name, addr, state }))
    }

    /// The number of the Set that holds `uid`.
    pub fn set_of(&self, uid: Uid) -> Option<u32> {
        self.inner.set(uid).map(|index| self.inner.sets[index].1.number())
    }

    pub(super) fn numbered(&self, number: u32) -> Result<&super::SetClient, CallError> {
        let found = self.inner.sets.iter().map(|(_, set)| set).find(|set| set.number() == number);
        found.ok_or_else(|| {
            let known: Vec<String> = self.set_numbers().iter().map(u32::to_string).collect();
            CallError::Refused(format!("Set {number} is not configured; there are {}", known.join(", ")))
        })
    }
}

/// Whether asking another arbiter cannot help.
fn is_lasting(status: &Status) -> bool {
    matches!(status.code(), Code::InvalidArgument | Code::Unauthenticated | Code::PermissionDenied)
}
