//! Asks AllocSvrs whether they live, over gRPC. Owns one connection for each address; the shell calls it.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::timeout;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tracing::debug;

use super::core::{Event, Probe};
use crate::ids::SectionId;
use crate::rpc::security::{Call, Pass};
use crate::rpc::v1::allocator_client::AllocatorClient;
use crate::rpc::v1::{ProbeReply, ProbeRequest};

type Client = AllocatorClient<InterceptedService<Channel, Pass>>;

/// Connections that are kept; addresses change only by an operator's hand.
const KEPT: usize = 2_048;

/// See the module.
pub(crate) struct Prober {
    call: Call,
    set: u32,
    patience: Duration,
    clients: HashMap<String, Client>,
}

impl Prober {
    /// Probes on behalf of Set `set`; what takes longer than `patience` is no answer.
    pub(crate) fn new(call: Call, set: u32, patience: Duration) -> Self {
        Self { call, set, patience, clients: HashMap::new() }
    }

    /// Asks `node` at `addr`, and tells the core what came of it.
    pub(crate) fn probe(&mut self, node: String, addr: &str) -> BoxFuture<'static, Event> {
        let client = self.client(addr);
        let (set, patience) = (self.set, self.patience);
        Box::pin(async move {
            let asked = async {
                let reply = client?.probe(ProbeRequest { set }).await;
                Ok(reply.map_err(|status| status.message().to_owned())?.into_inner())
            };
            let outcome = timeout(patience, asked).await.unwrap_or_else(|_| Err("no answer".to_owned()));
            let outcome = outcome.map(Probe::from).map_err(|why: String| {
                debug!(node, why, "a probe failed");
            });
            Event::Probed { node, outcome }
        })
    }

    fn client(&mut self, addr: &str) -> Result<Client, String> {
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
            leaving: reply.leaving,
            // A float becomes the nearest integer in range; what is not a number becomes 0.
            rates: rates.map(|(section, rate)| (SectionId::new(section), rate as u64)).collect(),
        }
    }
}
