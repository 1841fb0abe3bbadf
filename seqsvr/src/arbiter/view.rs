//! What an arbiter shows of itself: to the log as it changes, and as metrics. Plain data, made after each event.

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tracing::{info, warn};

use super::core::Arbiter;
use super::plan::Status;
use crate::ids::Epoch;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// The term under which it acts.
    pub(crate) acting: Option<u64>,
    version: Epoch,
    nodes: Vec<NodeView>,
    moves: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NodeView {
    name: String,
    status: Status,
    sections: u64,
}

impl View {
    /// What `arbiter` shows now.
    pub(crate) fn of(arbiter: &Arbiter) -> Self {
        let Some(reign) = arbiter.reign() else { return Self::default() };
        let sections = |name: &str| {
            let runs = reign.table().into_iter().flat_map(|table| table.of(name));
            runs.map(|one| u64::from(one.sections.end().get() - one.sections.start().get()) + 1).sum()
        };
        let nodes = reign.statuses();
        Self {
            acting: arbiter.acting(),
            version: reign.table().map(|table| table.version).unwrap_or_default(),
            nodes: nodes
                .map(|(name, status)| NodeView { name: name.to_owned(), status, sections: sections(name) })
                .collect(),
            moves: reign.moves(),
        }
    }

    /// Shows itself, and logs how it differs from what was shown before.
    pub(crate) fn publish(self, to: &watch::Sender<View>) {
        if *to.borrow() == self {
            return;
        }
        self.log(&to.borrow());
        to.send_replace(self);
    }

    fn log(&self, before: &View) {
        match (before.acting, self.acting) {
            (None, Some(term)) => info!(term, "this arbiter acts"),
            (Some(term), None) => return warn!(term, "another arbiter acts; this one stands by"),
            _ => {}
        }
        for node in &self.nodes {
            let old = before.nodes.iter().find(|old| old.name == node.name).map(|old| old.status);
            match (old.unwrap_or(Status::Unknown), node.status) {
                (old, new) if old == new => {}
                (_, Status::Live(incarnation)) => info!(node = node.name, incarnation, "a node is live"),
                (Status::Live(_) | Status::Unknown, Status::Dead) => {
                    warn!(node = node.name, "a node is dead");
                }
                (_, Status::Dead | Status::Answering(_) | Status::Unknown) => {}
            }
        }
        if self.version != before.version && self.version != Epoch::default() {
            let sections = self.nodes.iter().map(|node| format!("{} {}", node.name, node.sections));
            let sections = sections.collect::<Vec<_>>().join(", ");
            info!(version = %self.version, moved = self.moves.saturating_sub(before.moves), sections, "a new table counts");
        }
    }

    /// The metrics page: `seqsvr_arbiter_acting`, `seqsvr_arbiter_term` (0 while it stands by), `seqsvr_route_version`,
    /// `seqsvr_arbiter_nodes_live`, `seqsvr_arbiter_sections{node}`, `seqsvr_arbiter_moves` (during this term).
    pub(crate) fn render(&self) -> String {
        let mut registry = Registry::default();
        let mut gauge = |name: &str, help: &str, value: u64| {
            let gauge = Gauge::<i64>::default();
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
            registry.register(name, help, gauge);
        };
        let live = self.nodes.iter().filter(|node| matches!(node.status, Status::Live(_))).count();
        gauge("seqsvr_arbiter_acting", "Whether this arbiter acts", u64::from(self.acting.is_some()));
        gauge("seqsvr_arbiter_term", "The term under which it acts", self.acting.unwrap_or_default());
        gauge("seqsvr_route_version", "Count of changes of the routing table", self.version.version);
        gauge("seqsvr_arbiter_nodes_live", "Nodes that are trusted to serve", live as u64);
        gauge("seqsvr_arbiter_moves", "Sections that changed their owner during this term", self.moves);
        let sections = Family::<[(&'static str, String); 1], Gauge>::default();
        for node in &self.nodes {
            let gauge = sections.get_or_create_owned(&[("node", node.name.clone())]);
            gauge.set(i64::try_from(node.sections).unwrap_or(i64::MAX));
        }
        registry.register("seqsvr_arbiter_sections", "Sections that a node is assigned", sections);
        let mut text = String::new();
        encode(&mut text, &registry).expect("writing to a string does not fail");
        text
    }
}
