//! The packets between the simulated processes, and the ticks that a process sets itself to wake for. Plain values, hashed into the
//! history.

use super::Place;
use seqsvr_cluster::arbiter::core::{Change, Probe};
use seqsvr_core::ids::{Epoch, Granted};
use seqsvr_core::routing::Table;
use seqsvr_core::store::message::{Answer, Question};
use seqsvr_core::store::{Address, Owner};
use seqsvr_rpc::v1;
use std::sync::Arc;

/// An event that a process handles.
#[derive(Clone, Debug, Hash)]
pub(crate) enum Input {
    /// A new life begins.
    Start,
    /// Something came over the network, from there.
    Packet(Place, Packet),
    /// The time came that it had set.
    Tick(Tick),
}

/// A packet; `id`s are the asker's.
#[derive(Clone, Debug, Hash)]
pub(crate) enum Packet {
    /// To a replica: which member is meant, and for which configuration it counts.
    Question { id: u64, to: Option<Address>, question: Question },
    /// From a replica.
    Answer { id: u64, answer: Answer },
    /// From a caller to an AllocSvr, on that stream.
    Ask { stream: u64, frame: v1::StreamRequest },
    /// From a caller that has ended a stream: it waits for nothing else of it.
    Ended { stream: u64 },
    /// From people to an AllocSvr: stop in good order.
    Leave,
    /// From an AllocSvr to a caller, with the table when the caller's is older.
    Reply { stream: u64, id: u64, reply: Reply, table: Option<Arc<Table>> },
    /// From an arbiter to an AllocSvr.
    Probe { id: u64 },
    /// From an AllocSvr to an arbiter.
    Probed { id: u64, probe: Probe },
    /// From people to an arbiter.
    Change { id: u64, change: Change },
}

/// The answer to a caller.
#[derive(Clone, Debug, Hash)]
pub(crate) enum Reply {
    /// Numbers.
    Granted { first: u64, last: u64, epoch: Epoch },
    /// One number for each uid, in the order of the question.
    Each(Vec<Granted>),
    /// An upper bound for each uid.
    Bounds(Vec<u64>),
    /// The uid goes on above what was wished for.
    Advanced,
    /// Somebody else owns the uid.
    NotOwner,
    /// Not now: no lease, a gained section still waits, or the ceiling cannot be raised.
    Unavailable,
}

impl Reply {
    /// The numbers in it, by uid of the question.
    pub(crate) fn granted(&self) -> Vec<Granted> {
        match self {
            &Self::Granted { first, last, epoch } => vec![Granted { first, last, epoch }],
            Self::Each(each) => each.clone(),
            Self::Bounds(_) | Self::Advanced | Self::NotOwner | Self::Unavailable => Vec::new(),
        }
    }
}

impl From<Granted> for Reply {
    fn from(Granted { first, last, epoch }: Granted) -> Self {
        Self::Granted { first, last, epoch }
    }
}

/// An alarm that a process sets itself.
#[derive(Clone, Debug, Hash)]
pub(crate) enum Tick {
    /// A core's own moment.
    Wake,
    /// A question was not answered in time.
    Late(u64),
    /// A replica: everything written up to here is durable.
    Synced(u64),
    /// A replica: a reader has waited long enough.
    Held(u64),
    /// An AllocSvr: the record is durable.
    Recorded(u64),
    /// An AllocSvr whose claims are refused: one was.
    Refused(Owner),
    /// An AllocSvr: a handler reaches its answer.
    Leave(u64),
    /// An AllocSvr: a request has waited long enough for a raise.
    GiveUp(u64),
    /// An AllocSvr: raise again what was not confirmed.
    Raise(Owner),
    /// An AllocSvr that was told to stop: nobody took its sections in time.
    DrainBy,
    /// An AllocSvr: the timer that a flawed one relies on.
    LeaseOver,
    /// A caller: ask for something.
    Next,
    /// A caller: the connection to that AllocSvr takes frames.
    Write(Place),
    /// A caller: its questions have become older.
    Age,
    /// An arbiter: a probe was not answered in time.
    Missed(u64),
}
