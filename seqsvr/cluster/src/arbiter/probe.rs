//! Asks AllocSvrs whether they live, over gRPC. Owns one connection for each address; the shell calls it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::timeout;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tracing::{debug, info};

use super::core::{ArbiterEvent, Probe};
use seqsvr_core::ids::SectionId;
use seqsvr_rpc::security::{Call, Pass};
use seqsvr_rpc::v1::allocator_client::AllocatorClient;
use seqsvr_rpc::v1::{ProbeReply, ProbeRequest};

type ProbeClient = AllocatorClient<InterceptedService<Channel, Pass>>;

/// Connections that are kept; addresses change only by an operator's hand.
const KEPT: usize = 2_048;

/// See the module.
pub struct Prober {
    call: Call,
    set: u32,
    patience: Duration,
    clients: HashMap<String, ProbeClient>,
    /// Nodes whose last probe failed: the log says why once, not with every probe.
    failing: Arc<Mutex<HashSet<String>>>,
}

impl Prober {
    /// Probes on behalf of Set `set`; an answer that takes longer than `patience` counts as none.
    pub fn new(call: Call, set: u32, patience: Duration) -> Self {
        Self { call, set, patience, clients: HashMap::new(), failing: Arc::default() }
    }

    /// Asks `node` at `addr`, and tells the core the outcome.
    pub(crate) fn probe(&mut self, node: String, addr: &str) -> BoxFuture<'static, ArbiterEvent> {
        let client = self.client(addr);
        let (set, patience, failing) = (self.set, self.patience, Arc::clone(&self.failing));
        Box::pin(async move {
            let asked = async {
                let reply = client?.probe(ProbeRequest { set, detail: false }).await;
                Ok(reply.map_err(|status| status.message().to_owned())?.into_inner())
            };
            let outcome = timeout(patience, asked).await.unwrap_or_else(|_| Err("no answer".to_owned()));
            let mut failing = failing.lock().unwrap_or_else(PoisonError::into_inner);
            let outcome = match outcome {
                Ok(reply) => {
                    failing.remove(&node);
                    Ok(Probe::from(reply))
                }
                Err(why) => {
                    match failing.len() < KEPT && failing.insert(node.clone()) {
                        true => info!(node, why, "a probe failed"),
                        false => debug!(node, why, "a probe failed again"),
                    }
                    Err(())
                }
            };
            drop(failing);
            ArbiterEvent::Probed { node, outcome }
        })
    }

    fn client(&mut self, addr: &str) -> Result<ProbeClient, String> {
        if let Some(client) = self.clients.get(addr) {
            return Ok(client.clone());
        }
        let endpoint = self.call.endpoint(addr).map_err(|error| error.to_string())?;
        let client = AllocatorClient::with_interceptor(endpoint.connect_lazy(), self.call.pass());
        if self.clients.len() >= KEPT {
            self.clients.clear();
        }
        self.clients.insert(addr.to_owned(), client.clone());
        Ok(client)
    }
}

impl From<ProbeReply> for Probe {
    fn from(reply: ProbeReply) -> Self {
        let rates = reply.sections.into_iter().zip(reply.rates);
        Self {
            node: reply.node,
            incarnation: reply.incarnation,
            version: reply.version.map(Into::into).unwrap_or_default(),
            lapsed: reply.lapsed,
            draining: reply.draining,
            served: reply.served,
            unserved: reply.unserved,
            overdue: Duration::from_millis(reply.overdue_ms.into()),
            // A float becomes the nearest integer in range; what is not a number becomes 0.
            rates: rates.map(|(section, rate)| (SectionId::new(section), rate as u64)).collect(),
        }
    }
}
