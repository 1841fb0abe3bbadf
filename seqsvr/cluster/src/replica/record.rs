//! The changes that a replica keeps in its journal. A record is a message of the wire, of which the journal uses a part: what is
//! added to those messages must stay readable here.

use std::sync::Arc;

use seqsvr_core::routing::Table;
use seqsvr_rpc::WireError;
use seqsvr_rpc::store::question::{claimed, owner};
use seqsvr_rpc::store::{MOST_SECTIONS, ceilings, range, to_ceilings, to_range};
use seqsvr_rpc::v1;
use seqsvr_rpc::v1::store_request::Request;

use super::state::Change;

/// Stored, must stay readable: the log of a replica holds these.
impl From<&Change> for Request {
    fn from(change: &Change) -> Request {
        match change {
            Change::Claim { sections, owner, layout } => Request::Claim(v1::ClaimRequest {
                sections: sections.iter().map(to_range).collect(),
                owner: Some((*owner).into()),
                layout: Some((*layout).into()),
            }),
            Change::Raise(ceilings) => {
                let (sections, ceilings) = to_ceilings(ceilings);
                Request::Raise(v1::RaiseRequest { owner: None, sections, ceilings })
            }
            Change::Release { owner, sections } => Request::Release(v1::ReleaseRequest {
                owner: Some((*owner).into()),
                sections: sections.iter().map(to_range).collect(),
            }),
            Change::Promise(term) => Request::Promise(v1::PromiseRequest { term: *term }),
            Change::Write(table) => Request::WriteTable(table.as_ref().into()),
            Change::Whole(copy) => {
                Request::Install(v1::InstallRequest { next: None, copy: Some(copy.as_ref().into()) })
            }
        }
    }
}

impl TryFrom<Request> for Change {
    type Error = WireError;

    fn try_from(request: Request) -> Result<Change, WireError> {
        Ok(match request {
            Request::Claim(claim) => {
                let (sections, owner, layout) = claimed(claim)?;
                Change::Claim { sections, owner, layout }
            }
            Request::Raise(raise) => {
                Change::Raise(ceilings(&raise.sections, &raise.ceilings, MOST_SECTIONS)?)
            }
            // The runs in which it was noted may be more than a question may name.
            Request::Release(release) => Change::Release {
                owner: owner(release.owner)?,
                sections: release.sections.into_iter().map(range).collect::<Result<_, _>>()?,
            },
            Request::Promise(promise) => Change::Promise(promise.term),
            Request::WriteTable(table) => Change::Write(Arc::new(Table::try_from(table)?)),
            Request::Install(install) => {
                Change::Whole(Box::new(install.copy.ok_or(WireError::Missing("copy"))?.try_into()?))
            }
            Request::Read(_)
            | Request::Acting(_)
            | Request::Copy(_)
            | Request::Describe(_)
            | Request::Seal(_)
            | Request::Accept(_) => {
                return Err(WireError::Wrong("change: it changes nothing"));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use seqsvr_core::ids::{Epoch, SectionId};
    use seqsvr_core::routing::{Assignment, Node, NodeState};
    use seqsvr_core::store::{Ceiling, Layout, Owner};

    use super::*;

    #[test]
    fn changes_survive_the_journal() {
        let owner = Owner { epoch: Epoch { term: 7, version: 3 }, incarnation: u64::MAX };
        let layout = Layout { section_size: 100_000, step: 10_000 };
        let sections = |first, last| vec![SectionId::new(first)..=SectionId::new(last)];
        let node =
            Node { name: "a".to_owned(), addr: "http://127.0.0.1:1".to_owned(), state: NodeState::Active };
        let assignment = Assignment {
            sections: SectionId::new(2)..=SectionId::new(9),
            node: 0,
            home: 0,
            incarnation: 5,
            epoch: owner.epoch,
        };
        let table = Table {
            set: 0,
            version: owner.epoch,
            section_size: layout.section_size,
            uids: 0..=999_999,
            nodes: vec![node],
            assignments: vec![assignment],
        };
        for change in [
            Change::Claim { sections: sections(0, 9), owner, layout },
            Change::Raise(vec![Ceiling { section: SectionId::new(4), max: 7 }]),
            Change::Release { owner, sections: sections(0, 0) },
            Change::Promise(8),
            Change::Write(Arc::new(table)),
        ] {
            assert_eq!(Change::try_from(Request::from(&change)), Ok(change));
        }
        assert!(Change::try_from(Request::Copy(v1::CopyRequest {})).is_err());
    }
}
