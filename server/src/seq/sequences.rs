//! Which sequences serve this server: its own, or those of a cluster. Opened once at boot; the queues and the
//! operator's commands see a [`Sequencer`] either way.

use std::ops::Deref;
use std::sync::Arc;

use seqsvr_client::ClusterSequencer;
use seqsvr_core::Sequencer;
use seqsvr_core::alloc::Embedded;

/// The sequences of the installation.
#[derive(Clone)]
pub enum Sequences {
    /// Inside this process, with their ceilings in a file beside the database.
    Embedded(Arc<Embedded>),
    /// In a seqsvr cluster; its operators look after it.
    Cluster(Arc<ClusterSequencer>),
}

impl Sequences {
    /// For those who take numbers.
    pub fn sequencer(&self) -> Arc<dyn Sequencer> {
        match self {
            Sequences::Embedded(embedded) => Arc::<Embedded>::clone(embedded),
            Sequences::Cluster(cluster) => Arc::<ClusterSequencer>::clone(cluster),
        }
    }

    /// Stops what runs in this process.
    pub async fn shutdown(&self) {
        if let Sequences::Embedded(embedded) = self {
            embedded.shutdown().await;
        }
    }
}

impl Deref for Sequences {
    type Target = dyn Sequencer;

    fn deref(&self) -> &Self::Target {
        match self {
            Sequences::Embedded(embedded) => &**embedded,
            Sequences::Cluster(cluster) => &**cluster,
        }
    }
}
