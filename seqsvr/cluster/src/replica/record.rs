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
pub(super) mod tests;
