//! Wires between the processes of a cluster, one for each pair that speaks, which can be cut in either direction.

use tidemark_test_support::gate::{Flow, Gate};

/// One wire. Dropping it ends its connections.
#[derive(Debug)]
pub struct ClusterLink {
    from: String,
    to: String,
    gate: Gate,
}

impl ClusterLink {
    /// A wire from `from` to the process called `to`, which listens on `target`.
    pub(super) async fn lay(from: &str, to: &str, target: &str) -> ClusterLink {
        ClusterLink { from: from.to_owned(), to: to.to_owned(), gate: Gate::before(target).await }
    }

    /// The process that calls over it.
    pub fn from(&self) -> &str {
        &self.from
    }

    /// The process that is called.
    pub fn to(&self) -> &str {
        &self.to
    }

    /// Where the caller finds it: `host:port`.
    pub fn addr(&self) -> String {
        self.gate.address()
    }

    /// Cuts or mends it.
    pub fn set(&self, flow: Flow) {
        self.gate.set(flow);
    }
}
