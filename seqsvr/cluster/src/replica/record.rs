//! The changes that a replica keeps in its journal. A record is a message of the wire, of which the journal uses a
//! part. `tests` pin the stored bytes: a message may get fields that the journal leaves out, and nothing else may change
//! in it.

use std::sync::Arc;

use seqsvr_core::routing::Table;
use seqsvr_rpc::WireError;
use seqsvr_rpc::store::question::{claimed, owner};
use seqsvr_rpc::store::{MOST_SECTIONS, ceilings, range, to_ceilings, to_range};
use seqsvr_rpc::v1;
use seqsvr_rpc::v1::store_request::Request;

use super::state::StateChange;

/// Stored, must stay readable: the log of a replica holds these.
impl From<&StateChange> for Request {
    fn from(change: &StateChange) -> Request {
        match change {
            StateChange::Claim { sections, owner, layout } => Request::Claim(v1::ClaimRequest {
                sections: sections.iter().map(to_range).collect(),
                owner: Some((*owner).into()),
                layout: Some((*layout).into()),
            }),
            StateChange::Raise(ceilings) => {
                let (sections, ceilings) = to_ceilings(ceilings);
                Request::Raise(v1::RaiseRequest { owner: None, sections, ceilings })
            }
            StateChange::Release { owner, sections } => Request::Release(v1::ReleaseRequest {
                owner: Some((*owner).into()),
                sections: sections.iter().map(to_range).collect(),
            }),
            StateChange::Promise(term) => Request::Promise(v1::PromiseRequest { term: *term }),
            StateChange::Write(table) => Request::WriteTable(table.as_ref().into()),
            StateChange::Whole(copy) => {
                Request::Install(v1::InstallRequest { next: None, copy: Some(copy.as_ref().into()) })
            }
        }
    }
}

impl TryFrom<Request> for StateChange {
    type Error = WireError;

    fn try_from(request: Request) -> Result<StateChange, WireError> {
        Ok(match request {
            Request::Claim(claim) => {
                let (sections, owner, layout) = claimed(claim)?;
                StateChange::Claim { sections, owner, layout }
            }
            Request::Raise(raise) => {
                StateChange::Raise(ceilings(&raise.sections, &raise.ceilings, MOST_SECTIONS)?)
            }
            // The runs in which it was noted may be more than a question may name.
            Request::Release(release) => StateChange::Release {
                owner: owner(release.owner)?,
                sections: release.sections.into_iter().map(range).collect::<Result<_, _>>()?,
            },
            Request::Promise(promise) => StateChange::Promise(promise.term),
            Request::WriteTable(table) => StateChange::Write(Arc::new(Table::try_from(table)?)),
            Request::Install(install) => {
                StateChange::Whole(Box::new(install.copy.ok_or(WireError::Missing("copy"))?.try_into()?))
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
pub(super) mod tests;
