//! Answers to the wire and back.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use super::super::convert::WireError;
use super::super::v1;
use super::configuration::{accepted, configured, plain, wire};
use super::{ceilings, range, to_ceilings, to_range};
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::routing::Table;
use seqsvr_core::store::message::{Answer, Earlier};
use seqsvr_core::store::message::{Copy, Description, Held, Raised, SectionState};
use seqsvr_core::store::{MAX_CEILING, Owner};
use v1::claim_reply::Outcome;
use v1::store_reply::Reply;

/// A claim may cover every section there is.
const MOST: usize = u32::MAX as usize / super::SMALLEST_SECTION as usize + 1;

impl From<&Answer> for Reply {
    fn from(answer: &Answer) -> Reply {
        let claim = |outcome| Reply::Claim(v1::ClaimReply { outcome: Some(outcome) });
        match answer {
            Answer::Claimed { ceilings, earlier } => {
                let (sections, ceilings) = to_ceilings(ceilings);
                let earlier = earlier.iter().map(v1::Earlier::from).collect();
                claim(Outcome::Accepted(v1::ClaimAccepted { sections, ceilings, earlier }))
            }
            Answer::Outclaimed(epoch) => claim(Outcome::Claimed((*epoch).into())),
            Answer::OtherLayout(layout) => claim(Outcome::Layout((*layout).into())),
            Answer::Raised(raised) => {
                Reply::Raise(v1::RaiseReply { raised: raised.iter().map(v1::Raised::from).collect() })
            }
            Answer::Released => Reply::Release(v1::ReleaseReply {}),
            Answer::Promised(table) => Reply::Promise(v1::PromiseReply { table: wire_table(table) }),
            Answer::Outranked(term) => Reply::Outranked(*term),
            Answer::Written => Reply::WriteTable(v1::WriteReply { newer: None }),
            Answer::Newer(version) => Reply::WriteTable(v1::WriteReply { newer: Some((*version).into()) }),
            Answer::Table { revision, table, promised, acting } => {
                let ms = |ago: &Duration| u32::try_from(ago.as_millis()).unwrap_or(u32::MAX);
                Reply::Read(v1::ReadReply {
                    revision: *revision,
                    table: wire_table(table),
                    promised_term: *promised,
                    acting_ms_ago: acting.as_ref().map(ms),
                    same_table: false,
                })
            }
            Answer::Acting(term) => Reply::Acting(v1::ActingReply { term: *term }),
            Answer::Copy(copy) => Reply::Copy(copy.into()),
            Answer::Described(what) => Reply::Describe(what.into()),
            Answer::Sealed { accepted, copy } => Reply::Seal(v1::SealReply {
                accepted_ballot: accepted.as_ref().map_or(0, |(ballot, _)| *ballot),
                accepted: accepted.as_ref().map(|(_, next)| next.as_ref().into()),
                copy: Some(copy.into()),
            }),
            Answer::Accepted => Reply::Accept(v1::AcceptReply {}),
            Answer::Outbid(ballot) => Reply::Outbid(*ballot),
            Answer::Installed => Reply::Install(v1::InstallReply {}),
            Answer::Misaddressed { why, configuration } => Reply::Misaddressed(v1::Misaddressed {
                reason: v1::misaddressed::Reason::from(*why).into(),
                configuration: wire(configuration),
            }),
        }
    }
}

impl TryFrom<Reply> for Answer {
    type Error = WireError;

    fn try_from(reply: Reply) -> Result<Answer, WireError> {
        Ok(match reply {
            Reply::Claim(claim) => match claim.outcome.ok_or(WireError::Missing("outcome"))? {
                Outcome::Accepted(accepted) => Answer::Claimed {
                    ceilings: ceilings(&accepted.sections, &accepted.ceilings, MOST)?,
                    earlier: accepted.earlier.into_iter().map(Earlier::try_from).collect::<Result<_, _>>()?,
                },
                Outcome::Claimed(epoch) => Answer::Outclaimed(epoch.into()),
                Outcome::Layout(layout) => Answer::OtherLayout(layout.try_into()?),
            },
            Reply::Raise(raise) => {
                Answer::Raised(raise.raised.into_iter().map(Raised::try_from).collect::<Result<_, _>>()?)
            }
            Reply::Release(v1::ReleaseReply {}) => Answer::Released,
            Reply::Promise(promise) => Answer::Promised(table(promise.table)?),
            Reply::Outranked(term) => Answer::Outranked(term),
            Reply::WriteTable(v1::WriteReply { newer: None }) => Answer::Written,
            Reply::WriteTable(v1::WriteReply { newer: Some(version) }) => Answer::Newer(version.into()),
            Reply::Read(read) => Answer::Table {
                revision: read.revision,
                table: table(read.table)?,
                promised: read.promised_term,
                acting: read.acting_ms_ago.map(|ms| Duration::from_millis(ms.into())),
            },
            Reply::Acting(acting) => Answer::Acting(acting.term),
            Reply::Copy(copy) => Answer::Copy(copy.try_into()?),
            Reply::Describe(what) => Answer::Described(what.try_into()?),
            Reply::Seal(seal) => Answer::Sealed {
                accepted: accepted(seal.accepted_ballot, seal.accepted)?,
                copy: seal.copy.ok_or(WireError::Missing("copy"))?.try_into()?,
            },
            Reply::Accept(v1::AcceptReply {}) => Answer::Accepted,
            Reply::Outbid(ballot) => Answer::Outbid(ballot),
            Reply::Install(v1::InstallReply {}) => Answer::Installed,
            Reply::Misaddressed(reported) => {
                let why = reported.reason().into();
                Answer::Misaddressed { why, configuration: plain(reported.configuration)? }
            }
            Reply::Refused(_) => return Err(WireError::Wrong("answer: it is a refusal")),
        })
    }
}

impl From<&Raised> for v1::Raised {
    fn from(raised: &Raised) -> v1::Raised {
        use v1::raised::Outcome;
        let outcome = match *raised {
            Raised::Confirmed(ceiling) => Outcome::Confirmed(ceiling),
            Raised::Smaller(stored) => Outcome::Smaller(stored),
            Raised::NotOwner(newest) => Outcome::NotOwner(newest.into()),
        };
        v1::Raised { outcome: Some(outcome) }
    }
}

impl TryFrom<v1::Raised> for Raised {
    type Error = WireError;

    fn try_from(raised: v1::Raised) -> Result<Raised, WireError> {
        use v1::raised::Outcome;
        let checked =
            |ceiling| if ceiling > MAX_CEILING { Err(WireError::Wrong("ceiling")) } else { Ok(ceiling) };
        Ok(match raised.outcome.ok_or(WireError::Missing("outcome"))? {
            Outcome::Confirmed(ceiling) => Raised::Confirmed(checked(ceiling)?),
            Outcome::Smaller(stored) => Raised::Smaller(checked(stored)?),
            Outcome::NotOwner(newest) => Raised::NotOwner(newest.into()),
        })
    }
}

impl From<&Earlier> for v1::Earlier {
    fn from(earlier: &Earlier) -> v1::Earlier {
        v1::Earlier {
            sections: Some(to_range(&earlier.sections)),
            owner: Some(earlier.owner.into()),
            released: earlier.released,
        }
    }
}

impl TryFrom<v1::Earlier> for Earlier {
    type Error = WireError;

    fn try_from(earlier: v1::Earlier) -> Result<Earlier, WireError> {
        Ok(Earlier {
            sections: range(earlier.sections.ok_or(WireError::Missing("sections"))?)?,
            owner: earlier.owner.ok_or(WireError::Missing("owner"))?.try_into()?,
            released: earlier.released,
        })
    }
}

impl From<&Description> for v1::DescribeReply {
    fn from(what: &Description) -> v1::DescribeReply {
        v1::DescribeReply {
            name: what.name.clone(),
            id: what.id,
            layout: what.layout.map(v1::Layout::from),
            configuration: wire(&what.configuration),
            sealed: what.sealed,
        }
    }
}

impl TryFrom<v1::DescribeReply> for Description {
    type Error = WireError;

    fn try_from(what: v1::DescribeReply) -> Result<Description, WireError> {
        Ok(Description {
            name: what.name,
            id: what.id,
            layout: what.layout.map(TryInto::try_into).transpose()?,
            configuration: plain(what.configuration)?,
            sealed: what.sealed,
        })
    }
}

/// Stored, must stay readable: a replica's files begin with one.
impl From<&Copy> for v1::CopyReply {
    fn from(copy: &Copy) -> v1::CopyReply {
        let section = |(sections, state): &(RangeInclusive<SectionId>, SectionState)| v1::SectionState {
            sections: Some(to_range(sections)),
            ceiling: state.ceiling,
            owner: state.owner.map(|held| held.owner.into()),
            released: state.owner.is_some_and(|held| held.released),
            earlier: state.earlier.map(|held| held.owner.into()),
            earlier_released: state.earlier.is_some_and(|held| held.released),
        };
        v1::CopyReply {
            promised_term: copy.promised,
            table: wire_table(&copy.table),
            layout: copy.layout.map(v1::Layout::from),
            sections: copy.sections.iter().map(section).collect(),
            configuration: wire(&copy.configured.current),
            ballot: copy.configured.ballot,
            accepted_ballot: copy.configured.accepted.as_ref().map_or(0, |(ballot, _)| *ballot),
            accepted: copy.configured.accepted.as_ref().map(|(_, next)| next.as_ref().into()),
        }
    }
}

impl TryFrom<v1::CopyReply> for Copy {
    type Error = WireError;

    fn try_from(mut copy: v1::CopyReply) -> Result<Copy, WireError> {
        let configured = configured(&mut copy)?;
        let sections: Vec<_> = copy.sections.into_iter().map(section).collect::<Result<_, _>>()?;
        if sections.windows(2).any(|pair| pair[0].0.end() >= pair[1].0.start()) {
            return Err(WireError::Wrong("order of sections"));
        }
        Ok(Copy {
            promised: copy.promised_term,
            table: table(copy.table)?,
            layout: copy.layout.map(TryInto::try_into).transpose()?,
            sections,
            configured,
        })
    }
}

fn section(one: v1::SectionState) -> Result<(RangeInclusive<SectionId>, SectionState), WireError> {
    let (owner, earlier) = (held(one.owner, one.released)?, held(one.earlier, one.earlier_released)?);
    let epoch = |held: &Option<Held>| held.map(|held| held.owner.epoch).unwrap_or_default();
    if one.ceiling > MAX_CEILING || epoch(&owner) == Epoch::default() || epoch(&owner) < epoch(&earlier) {
        return Err(WireError::Wrong("state of a section"));
    }
    let sections = range(one.sections.ok_or(WireError::Missing("sections"))?)?;
    Ok((sections, SectionState { ceiling: one.ceiling, owner, earlier }))
}

fn held(owner: Option<v1::Owner>, released: bool) -> Result<Option<Held>, WireError> {
    let owner = owner.map(Owner::try_from).transpose()?;
    Ok(owner.map(|owner| Held { owner, released }))
}

fn wire_table(table: &Option<Arc<Table>>) -> Option<v1::Table> {
    table.as_deref().map(v1::Table::from)
}

fn table(table: Option<v1::Table>) -> Result<Option<Arc<Table>>, WireError> {
    Ok(table.map(Table::try_from).transpose()?.map(Arc::new))
}
