//! Questions to the wire and back.

use std::sync::Arc;
use std::time::Duration;

use super::super::convert::WireError;
use super::super::v1;
use super::configuration::there;
use super::{MOST_SECTIONS, ceilings, ranges, to_ceilings, to_range};
use seqsvr_core::ids::Epoch;
use seqsvr_core::routing::Table;
use seqsvr_core::store::message::Question;
use seqsvr_core::store::{Layout, Owner};
use v1::store_request::Request;

impl From<&Question> for Request {
    fn from(question: &Question) -> Request {
        match question {
            Question::Claim { sections, owner, layout } => Request::Claim(v1::ClaimRequest {
                sections: sections.iter().map(to_range).collect(),
                owner: Some((*owner).into()),
                layout: Some((*layout).into()),
            }),
            Question::Raise { owner, ceilings } => {
                let (sections, ceilings) = to_ceilings(ceilings);
                Request::Raise(v1::RaiseRequest { owner: Some((*owner).into()), sections, ceilings })
            }
            Question::Release { owner, sections } => Request::Release(v1::ReleaseRequest {
                owner: Some((*owner).into()),
                sections: sections.iter().map(to_range).collect(),
            }),
            Question::Promise { term } => Request::Promise(v1::PromiseRequest { term: *term }),
            Question::Write(table) => Request::WriteTable(table.as_ref().into()),
            Question::Read { revision, wait, releases } => {
                let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
                let table_only = !releases;
                Request::Read(v1::ReadRequest { revision: *revision, wait_ms, known: None, table_only })
            }
            Question::Acting { term } => Request::Acting(v1::ActingRequest { term: *term }),
            Question::Copy => Request::Copy(v1::CopyRequest {}),
            Question::Describe => Request::Describe(v1::DescribeRequest {}),
            Question::Seal { number, ballot } => {
                Request::Seal(v1::SealRequest { number: *number, ballot: *ballot })
            }
            Question::Accept { number, ballot, next } => Request::Accept(v1::AcceptRequest {
                number: *number,
                ballot: *ballot,
                next: Some(next.as_ref().into()),
            }),
            Question::Install { next, copy } => Request::Install(v1::InstallRequest {
                next: Some(next.as_ref().into()),
                copy: Some(copy.as_ref().into()),
            }),
        }
    }
}

impl TryFrom<Request> for Question {
    type Error = WireError;

    fn try_from(request: Request) -> Result<Question, WireError> {
        Ok(match request {
            Request::Claim(claim) => {
                let (sections, owner, layout) = claimed(claim)?;
                Question::Claim { sections, owner, layout }
            }
            Request::Raise(raise) => Question::Raise {
                owner: owner(raise.owner)?,
                ceilings: ceilings(&raise.sections, &raise.ceilings, MOST_SECTIONS)?,
            },
            Request::Release(release) => {
                Question::Release { owner: owner(release.owner)?, sections: ranges(release.sections)? }
            }
            Request::Promise(promise) => Question::Promise { term: promise.term },
            Request::WriteTable(table) => Question::Write(Arc::new(Table::try_from(table)?)),
            Request::Read(read) => Question::Read {
                revision: read.revision,
                wait: Duration::from_millis(read.wait_ms.into()),
                releases: !read.table_only,
            },
            Request::Acting(acting) => Question::Acting { term: acting.term },
            Request::Copy(v1::CopyRequest {}) => Question::Copy,
            Request::Describe(v1::DescribeRequest {}) => Question::Describe,
            Request::Seal(seal) => Question::Seal { number: seal.number, ballot: seal.ballot },
            Request::Accept(accept) => {
                Question::Accept { number: accept.number, ballot: accept.ballot, next: there(accept.next)? }
            }
            Request::Install(install) => Question::Install {
                next: there(install.next)?,
                copy: Arc::new(install.copy.ok_or(WireError::Missing("copy"))?.try_into()?),
            },
        })
    }
}

/// The contents of a claim: sections, an owner and a layout.
pub type Claim = (Vec<std::ops::RangeInclusive<seqsvr_core::ids::SectionId>>, Owner, Layout);

/// Sections within the uid space, an owner and a layout.
///
/// # Errors
///
/// A field is missing or out of range.
pub fn claimed(claim: v1::ClaimRequest) -> Result<Claim, WireError> {
    let layout: Layout = claim.layout.ok_or(WireError::Missing("layout"))?.try_into()?;
    let sections = ranges(claim.sections)?;
    let last = u32::MAX / layout.section_size;
    if sections.iter().any(|range| range.end().get() > last) {
        return Err(WireError::Wrong("range of sections: it ends behind the last uid"));
    }
    Ok((sections, owner(claim.owner)?, layout))
}

/// An owner of at least one section.
///
/// # Errors
///
/// It is missing, or its epoch is the one of no owner.
pub fn owner(owner: Option<v1::Owner>) -> Result<Owner, WireError> {
    let owner: Owner = owner.ok_or(WireError::Missing("owner"))?.try_into()?;
    // The one epoch under which nothing is owned.
    if owner.epoch == Epoch::default() {
        return Err(WireError::Wrong("epoch"));
    }
    Ok(owner)
}
