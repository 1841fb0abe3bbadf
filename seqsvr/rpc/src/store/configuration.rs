//! Configurations and addresses to the wire and back.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use super::super::convert::WireError;
use super::super::v1;
use seqsvr_core::store::configuration::{Given, Taking};
use seqsvr_core::store::message::Misaddressed;
use seqsvr_core::store::{Address, Configuration, Configured, Member, Move, Moves};

/// The longest name or address of a member, in bytes.
const LONGEST: usize = 512;

impl From<v1::Address> for Address {
    fn from(v1::Address { number, member }: v1::Address) -> Address {
        Address { number, member }
    }
}

impl From<Address> for v1::Address {
    fn from(Address { number, member }: Address) -> v1::Address {
        v1::Address { number, member }
    }
}

/// Stored, must stay readable: the files of a replica hold these.
impl From<&Configuration> for v1::Configuration {
    fn from(one: &Configuration) -> v1::Configuration {
        let member = |one: &Member| v1::Member { id: one.id, name: one.name.clone(), addr: one.addr.clone() };
        let taking = |one: &Taking| v1::Taking { uids: Some(to_uids(&one.uids)), by: Some(to_move(&one.by)) };
        let given =
            |one: &Given| v1::Given { uids: Some(to_uids(&one.uids)), to: one.to, number: one.number };
        v1::Configuration {
            number: one.number,
            members: one.members.iter().map(member).collect(),
            write: one.write as u32,
            lease_ms: one.lease.as_millis() as u64,
            layout: Some(one.layout.into()),
            first_uid: *one.uids.start(),
            last_uid: *one.uids.end(),
            taking: one.taking.as_ref().map(taking),
            given: one.moves.given.iter().map(given).collect(),
            taken: one.moves.taken.iter().map(to_move).collect(),
        }
    }
}

impl TryFrom<v1::Configuration> for Configuration {
    type Error = WireError;

    fn try_from(one: v1::Configuration) -> Result<Configuration, WireError> {
        let fits = |member: &v1::Member| member.name.len() <= LONGEST && member.addr.len() <= LONGEST;
        if one.members.len() > 15 || !one.members.iter().all(fits) {
            return Err(WireError::Wrong("number of members"));
        }
        let member = |one: v1::Member| Member { id: one.id, name: one.name, addr: one.addr };
        let taking = |one: v1::Taking| Taking {
            uids: from_uids(&one.uids.unwrap_or_default()),
            by: from_move(&one.by.unwrap_or_default()),
        };
        let given = |one: v1::Given| Given {
            uids: from_uids(&one.uids.unwrap_or_default()),
            to: one.to,
            number: one.number,
        };
        let moves = Moves {
            given: one.given.into_iter().map(given).collect(),
            taken: one.taken.iter().map(from_move).collect(),
        };
        let configuration = Configuration {
            number: one.number,
            members: one.members.into_iter().map(member).collect(),
            write: one.write as usize,
            lease: Duration::from_millis(one.lease_ms),
            layout: one.layout.ok_or(WireError::Missing("layout"))?.try_into()?,
            uids: one.first_uid..=one.last_uid,
            taking: one.taking.map(taking),
            moves,
        };
        match configuration.problem() {
            Some(problem) => Err(WireError::Wrong(problem)),
            None => Ok(configuration),
        }
    }
}

fn to_move(one: &Move) -> v1::Move {
    v1::Move { from: one.from, number: one.number }
}

fn from_move(one: &v1::Move) -> Move {
    Move { from: one.from, number: one.number }
}

fn to_uids(uids: &RangeInclusive<u32>) -> v1::Uids {
    v1::Uids { first: *uids.start(), last: *uids.end() }
}

fn from_uids(uids: &v1::Uids) -> RangeInclusive<u32> {
    uids.first..=uids.last
}

pub(super) fn wire(one: &Option<Arc<Configuration>>) -> Option<v1::Configuration> {
    one.as_deref().map(v1::Configuration::from)
}

pub(super) fn plain(one: Option<v1::Configuration>) -> Result<Option<Arc<Configuration>>, WireError> {
    Ok(one.map(Configuration::try_from).transpose()?.map(Arc::new))
}

/// One that must be there.
pub(super) fn there(one: Option<v1::Configuration>) -> Result<Arc<Configuration>, WireError> {
    plain(one)?.ok_or(WireError::Missing("configuration"))
}

/// The accepted configuration, and its ballot.
pub(super) fn accepted(
    ballot: u64,
    one: Option<v1::Configuration>,
) -> Result<Option<(u64, Arc<Configuration>)>, WireError> {
    Ok(plain(one)?.map(|one| (ballot, one)))
}

pub(super) fn configured(copy: &mut v1::CopyReply) -> Result<Configured, WireError> {
    Ok(Configured {
        current: plain(copy.configuration.take())?,
        ballot: copy.ballot,
        accepted: accepted(copy.accepted_ballot, copy.accepted.take())?,
    })
}

impl From<Misaddressed> for v1::misaddressed::Reason {
    fn from(why: Misaddressed) -> Self {
        match why {
            Misaddressed::Member => Self::Member,
            Misaddressed::Unconfigured => Self::Unconfigured,
            Misaddressed::Removed => Self::Removed,
            Misaddressed::Sealed => Self::Sealed,
            Misaddressed::Behind => Self::Behind,
            Misaddressed::Newer => Self::Newer,
            Misaddressed::Taking => Self::Taking,
        }
    }
}

impl From<v1::misaddressed::Reason> for Misaddressed {
    fn from(why: v1::misaddressed::Reason) -> Self {
        use v1::misaddressed::Reason;
        match why {
            Reason::Member => Self::Member,
            Reason::Unconfigured => Self::Unconfigured,
            Reason::Removed => Self::Removed,
            Reason::Sealed => Self::Sealed,
            Reason::Behind => Self::Behind,
            Reason::Newer => Self::Newer,
            Reason::Taking => Self::Taking,
        }
    }
}
