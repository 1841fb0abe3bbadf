//! Plain values to wire messages and back. Input counts as hostile: a message that is incomplete or breaks the rules of
//! its plain value becomes a [`WireError`], never a half-filled value.

use thiserror::Error;

use super::v1;
use seqsvr_core::error::Refusal;
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::routing::{Assignment, Node, NodeState, Table, TableError};
use seqsvr_core::store::Owner;
use seqsvr_core::store::tables::StoreHealth;

/// Why a message could not be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WireError {
    /// A field that must be there is not.
    #[error("the message lacks {0}")]
    Missing(&'static str),
    /// A field is out of its range.
    #[error("the message has a wrong {0}")]
    Wrong(&'static str),
    /// The table in the message breaks its own rules.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl From<Epoch> for v1::Epoch {
    fn from(epoch: Epoch) -> v1::Epoch {
        v1::Epoch { term: epoch.term, version: epoch.version }
    }
}

impl From<v1::Epoch> for Epoch {
    fn from(epoch: v1::Epoch) -> Epoch {
        Epoch { term: epoch.term, version: epoch.version }
    }
}

impl From<Owner> for v1::Owner {
    fn from(owner: Owner) -> v1::Owner {
        v1::Owner { epoch: Some(owner.epoch.into()), incarnation: owner.incarnation }
    }
}

impl TryFrom<v1::Owner> for Owner {
    type Error = WireError;

    fn try_from(owner: v1::Owner) -> Result<Owner, WireError> {
        let epoch = owner.epoch.ok_or(WireError::Missing("epoch"))?.into();
        Ok(Owner { epoch, incarnation: owner.incarnation })
    }
}

impl From<&Refusal> for v1::Refused {
    fn from(refusal: &Refusal) -> v1::Refused {
        let limit = match refusal {
            Refusal::Exhausted { limit } => *limit,
            _ => 0,
        };
        v1::Refused { reason: refusal.to_string(), limit }
    }
}

impl From<&Table> for v1::Table {
    fn from(table: &Table) -> v1::Table {
        v1::Table {
            set: table.set,
            version: Some(table.version.into()),
            section_size: table.section_size,
            first_uid: *table.uids.start(),
            last_uid: *table.uids.end(),
            nodes: table.nodes.iter().map(v1::Node::from).collect(),
            assignments: table.assignments.iter().map(v1::Assignment::from).collect(),
        }
    }
}

impl TryFrom<v1::Table> for Table {
    type Error = WireError;

    fn try_from(table: v1::Table) -> Result<Table, WireError> {
        let table = Table {
            set: table.set,
            version: table.version.ok_or(WireError::Missing("version"))?.into(),
            section_size: table.section_size,
            uids: table.first_uid..=table.last_uid,
            nodes: table.nodes.into_iter().map(Node::try_from).collect::<Result<_, _>>()?,
            assignments: table.assignments.into_iter().map(Assignment::try_from).collect::<Result<_, _>>()?,
        };
        table.check()?;
        Ok(table)
    }
}

impl From<&Node> for v1::Node {
    fn from(node: &Node) -> v1::Node {
        let state = match node.state {
            NodeState::Active => v1::NodeState::Active,
            NodeState::Drained => v1::NodeState::Drained,
        };
        v1::Node { name: node.name.clone(), addr: node.addr.clone(), state: state.into() }
    }
}

impl TryFrom<v1::Node> for Node {
    type Error = WireError;

    fn try_from(node: v1::Node) -> Result<Node, WireError> {
        let state = match v1::NodeState::try_from(node.state) {
            Ok(v1::NodeState::Active) => NodeState::Active,
            Ok(v1::NodeState::Drained) => NodeState::Drained,
            Err(_) => return Err(WireError::Wrong("node state")),
        };
        Ok(Node { name: node.name, addr: node.addr, state })
    }
}

impl From<&Assignment> for v1::Assignment {
    fn from(one: &Assignment) -> v1::Assignment {
        v1::Assignment {
            first_section: one.sections.start().get(),
            last_section: one.sections.end().get(),
            node: one.node,
            home: one.home,
            incarnation: one.incarnation,
            epoch: Some(one.epoch.into()),
        }
    }
}

impl TryFrom<v1::Assignment> for Assignment {
    type Error = WireError;

    fn try_from(one: v1::Assignment) -> Result<Assignment, WireError> {
        Ok(Assignment {
            sections: SectionId::new(one.first_section)..=SectionId::new(one.last_section),
            node: one.node,
            home: one.home,
            incarnation: one.incarnation,
            epoch: one.epoch.ok_or(WireError::Missing("epoch"))?.into(),
        })
    }
}
impl From<&StoreHealth> for v1::StoreHealth {
    fn from(store: &StoreHealth) -> Self {
        let addr = store.addr.clone();
        match &store.state {
            Err(why) => Self { addr, lost: why.clone(), ..Self::default() },
            Ok(state) => Self {
                addr,
                lost: String::new(),
                promised_term: state.promised,
                table_version: Some(state.version().into()),
                sections_behind: state.sections_behind,
                revisions_behind: state.revisions_behind,
            },
        }
    }
}
