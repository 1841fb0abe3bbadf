//! The events that an arbiter reacts to, and the actions that it asks for. The core takes events and answers with
//! actions; the runtime and the simulation carry the actions out and bring their results back as events.

use std::sync::Arc;
use std::time::Duration;

use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::routing::Table;
use seqsvr_core::store::StoreError;
use seqsvr_core::store::tables::{Reading, Revisions, WriteError};

/// The answer of an AllocSvr to a probe.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Probe {
    /// Its name; an answer under another name than was asked for counts as none.
    pub node: String,
    /// Which life of it.
    pub incarnation: u64,
    /// The table that it goes by.
    pub version: Epoch,
    /// It has read no table for longer than its lease: it lives, but cannot serve.
    pub lapsed: bool,
    /// It serves, but is about to end: its sections should move while it still does.
    pub draining: bool,
    /// How many of the sections that it was given it serves.
    pub served: u32,
    /// How many it does not serve.
    pub unserved: u32,
    /// For how long the oldest of these could have been served.
    pub overdue: Duration,
    /// Numbers a second, of the sections that handed out any lately.
    pub rates: Vec<(SectionId, u64)>,
}

/// A change that an operator may ask for; asking again changes nothing more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// Move everything away from this node, and give it nothing more.
    Drain(String),
    /// Take the node in, or back.
    Add {
        /// Its name.
        name: String,
        /// `http://host:port` or `https://host:port`.
        addr: String,
    },
    /// Forget the node, which serves nothing.
    Remove(String),
    /// Spread the sections evenly, regardless of their homes.
    Rebalance,
}

/// The outcome of a change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ChangeOutcome {
    /// This table, which counts, carries it out.
    Done(Arc<Table>),
    /// Ask the arbiter of this term, whose number is the term's remainder by 256; 0: none is known.
    NotActing(u64),
    /// One line for the operator.
    Refused(String),
}

/// An event that the arbiter reacts to.
#[derive(Debug)]
pub enum ArbiterEvent {
    /// The arbiter runs; the first event.
    Start,
    /// The time of [`Arbiter::wake_at`](super::core::Arbiter::wake_at) has come.
    Wake,
    /// The stores were read.
    Read {
        /// Their contents.
        outcome: Result<Reading, StoreError>,
    },
    /// The stores were asked for a promise.
    Promised {
        /// The term.
        term: u64,
        /// The newest table that may count.
        outcome: Result<Option<Arc<Table>>, WriteError>,
    },
    /// The stores were given a table.
    Written {
        /// Its version.
        version: Epoch,
        /// Whether it counts.
        outcome: Result<(), WriteError>,
    },
    /// The stores were told that this arbiter acts.
    Acted {
        /// The largest promised term that was seen.
        outcome: Result<u64, StoreError>,
    },
    /// A node was probed.
    Probed {
        /// Its name.
        node: String,
        /// Its answer, if it gave one.
        outcome: Result<Probe, ()>,
    },
    /// An operator asks for a change.
    Change {
        /// Told again with the answer.
        id: u64,
        /// The change.
        change: Change,
    },
}

/// An action that the arbiter asks for. Each but the last two is answered by one event, sooner or later.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Read the stores.
    Read {
        /// The revisions that are known already.
        revisions: Revisions,
        /// How long to wait for a change.
        wait: Duration,
    },
    /// Ask the stores for a promise.
    Promise {
        /// The term.
        term: u64,
    },
    /// Give the stores this table, of a term that was promised.
    Write(Arc<Table>),
    /// Tell the stores that the arbiter acts.
    Acting {
        /// Its term.
        term: u64,
    },
    /// Probe a node.
    Probe {
        /// Its name.
        node: String,
        /// Where it is.
        addr: String,
    },
    /// Answer an operator.
    Answer {
        /// Which change.
        id: u64,
        /// Its outcome.
        outcome: ChangeOutcome,
    },
    /// The stored table is of another shape than this arbiter was configured with: stop, and tell the operator.
    Misfit(String),
}
