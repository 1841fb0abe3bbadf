//! The state that an arbiter shows: to the log as it changes, and as metrics. Plain data, made after each event.

use std::sync::Arc;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tracing::{info, warn};

use super::core::Arbiter;
use super::health::Status;
use seqsvr_core::ids::Epoch;
use seqsvr_core::routing::Table;
use seqsvr_core::store::tables::StoreHealth;

/// One value for each node or store.
type Labelled = Family<[(&'static str, String); 1], Gauge>;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArbiterView {
    /// The term under which it acts.
    pub acting: Option<u64>,
    /// The largest term that it has heard of.
    pub(crate) promised: u64,
    /// The table that counts, while it acts and there is one.
    pub(crate) table: Option<Arc<Table>>,
    /// Why the stores do not answer.
    pub(crate) lost: Option<String>,
    version: Epoch,
    /// Sections that nobody serves, as far as this arbiter knows.
    unserved: u64,
    nodes: Vec<NodeView>,
    moves: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NodeView {
    name: String,
    status: Status,
    sections: u64,
    unserved: u64,
}

impl ArbiterView {
    /// The view of `arbiter` as it is now.
    pub(crate) fn of(arbiter: &Arbiter, lost: Option<String>) -> Self {
        let promised = arbiter.heard_of();
        let Some(leadership) = arbiter.leadership() else {
            return Self { promised, lost, ..Self::default() };
        };
        let sections = |name: &str| {
            let runs = leadership.table().into_iter().flat_map(|table| table.of(name));
            runs.map(|one| u64::from(one.sections.end().get() - one.sections.start().get()) + 1).sum()
        };
        let nodes: Vec<NodeView> = leadership
            .statuses()
            .map(|(name, status, unserved)| {
                let sections: u64 = sections(name);
                let unserved = if status == Status::Dead { sections } else { sections.min(unserved.into()) };
                NodeView { name: name.to_owned(), status, sections, unserved }
            })
            .collect();
        let all = leadership
            .table()
            .map_or(0, |table| u64::from(table.sections().end().get() - table.sections().start().get()) + 1);
        let given: u64 = nodes.iter().map(|node| node.sections).sum();
        Self {
            acting: arbiter.acting(),
            promised,
            table: leadership.table().cloned(),
            lost,
            unserved: all.saturating_sub(given) + nodes.iter().map(|node| node.unserved).sum::<u64>(),
            version: leadership.table().map(|table| table.version).unwrap_or_default(),
            nodes,
            moves: leadership.moves(),
        }
    }

    /// Each node with its status.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&str, Status)> {
        self.nodes.iter().map(|node| (node.name.as_str(), node.status))
    }

    /// Shows itself, and logs how it differs from the view before.
    pub(crate) fn publish(self, to: &watch::Sender<ArbiterView>) {
        if *to.borrow() == self {
            return;
        }
        self.log(&to.borrow());
        to.send_replace(self);
    }

    fn log(&self, before: &ArbiterView) {
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
            info!(version = %self.version, moved = self.moves.saturating_sub(before.moves), sections, "a new routing table is in force");
        }
    }

    /// The metrics page: `seqsvr_arbiter_acting`, `seqsvr_arbiter_term` (0 while it stands by), `seqsvr_route_version`,
    /// `seqsvr_arbiter_nodes_live`, `seqsvr_arbiter_sections{node}`, `seqsvr_arbiter_sections_unserved`, `seqsvr_arbiter_moves`
    /// (during this term), and of `stores` `seqsvr_arbiter_store_up{store}` and `seqsvr_arbiter_store_behind{store}`.
    pub fn render(&self, stores: &[StoreHealth]) -> String {
        let mut registry = Registry::default();
        let mut gauge = |name: &str, help: &str, value: u64| {
            let gauge = Gauge::<i64>::default();
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
            registry.register(name, help, gauge);
        };
        let live = self.nodes.iter().filter(|node| matches!(node.status, Status::Live(_))).count();
        gauge("seqsvr_arbiter_acting", "Whether this arbiter acts", u64::from(self.acting.is_some()));
        gauge("seqsvr_arbiter_term", "The term in which this arbiter acts", self.acting.unwrap_or_default());
        gauge("seqsvr_route_version", "Version of the routing table", self.version.version);
        gauge("seqsvr_arbiter_nodes_live", "Nodes that are trusted to serve", live as u64);
        gauge("seqsvr_arbiter_moves", "Sections that changed their owner during this term", self.moves);
        let help = "Sections that no AllocSvr serves, as far as the acting arbiter knows";
        gauge("seqsvr_arbiter_sections_unserved", help, self.unserved);
        let (up, behind) = (Labelled::default(), Labelled::default());
        for store in stores {
            let label = [("store", store.addr.clone())];
            up.get_or_create_owned(&label).set(i64::from(store.state.is_ok()));
            if let Ok(state) = &store.state {
                let far = u64::from(state.sections_behind).max(state.revisions_behind);
                behind.get_or_create_owned(&label).set(i64::try_from(far).unwrap_or(i64::MAX));
            }
        }
        registry.register("seqsvr_arbiter_store_up", "Whether a store answers", up);
        let help = "Sections (members of etcd: revisions) in which a store is behind the newest";
        registry.register("seqsvr_arbiter_store_behind", help, behind);
        let sections = Labelled::default();
        for node in &self.nodes {
            let gauge = sections.get_or_create_owned(&[("node", node.name.clone())]);
            gauge.set(i64::try_from(node.sections).unwrap_or(i64::MAX));
        }
        registry.register("seqsvr_arbiter_sections", "Sections that are assigned to a node", sections);
        let mut text = String::new();
        encode(&mut text, &registry).expect("writing to a string does not fail");
        text
    }
}
