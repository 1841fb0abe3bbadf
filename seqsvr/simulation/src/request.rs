//! A caller's request to a simulated AllocSvr, how far it is answered from memory, and how many numbers each section hands out.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Place;
use super::memory::{AllocMemory, TakeOutcome};
use super::message::Reply;
use seqsvr_core::clock::Moment;
use seqsvr_core::ids::{Epoch, Granted, SectionId};
use seqsvr_rpc::v1;
use seqsvr_rpc::v1::stream_request::Call;

/// A caller's wish for a uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Want {
    /// So many numbers.
    Next(u32),
    /// One number for each of the uids.
    Each,
    /// To go on above that.
    Advance(u64),
    /// An upper bound of what was handed out for each of the uids.
    Current,
}

/// A request that has arrived.
#[derive(Clone, Debug)]
pub(super) struct CallerRequest {
    pub(super) from: Place,
    /// On which of its streams.
    pub(super) stream: u64,
    pub(super) id: u64,
    /// One, but for a call for several.
    pub(super) uids: Vec<u32>,
    pub(super) want: Want,
    /// The table that the caller goes by.
    pub(super) known: Epoch,
    /// Of a call for several: the numbers of the first ones.
    pub(super) taken: Vec<Granted>,
}

impl CallerRequest {
    /// The request in a frame; `None`: nothing that is simulated.
    pub(super) fn read(from: Place, stream: u64, frame: v1::StreamRequest) -> Option<Self> {
        let (uids, want, route) = match frame.call? {
            Call::Next(v1::NextRequest { uid, count, route }) => (vec![uid], Want::Next(count), route),
            Call::NextEach(v1::NextEachRequest { uids, route }) => (uids, Want::Each, route),
            Call::Current(v1::CurrentRequest { uids, route }) => (uids, Want::Current, route),
            Call::Advance(v1::AdvanceRequest { uid, at_least, route }) => {
                (vec![uid], Want::Advance(at_least), route)
            }
        };
        let v1::Route { term, version, .. } = route.unwrap_or_default();
        let known = Epoch { term, version };
        Some(Self { from, stream, id: frame.id, uids, want, known, taken: Vec::new() })
    }

    /// Takes what it wants, as far as that goes without a raise. A call for several uids that are not all served takes nothing.
    pub(super) fn take(&mut self, memory: &mut AllocMemory) -> Option<Reply> {
        let first = self.uids[0];
        Some(match self.want {
            Want::Current => {
                let bounds = self.uids.iter().map(|&uid| Some(memory.bound(uid)?.1));
                bounds.collect::<Option<_>>().map_or(Reply::NotOwner, Reply::Bounds)
            }
            Want::Next(count) => match memory.take(first, count) {
                TakeOutcome::Granted(granted) => granted.into(),
                TakeOutcome::Advanced | TakeOutcome::NotServed => Reply::NotOwner,
                TakeOutcome::Raise(_) => return None,
            },
            Want::Advance(at_least) => match memory.advance(first, at_least) {
                TakeOutcome::Advanced => Reply::Advanced,
                TakeOutcome::Granted(_) | TakeOutcome::NotServed => Reply::NotOwner,
                TakeOutcome::Raise(_) => return None,
            },
            Want::Each => {
                if self.uids.iter().any(|&uid| memory.bound(uid).is_none()) {
                    return Some(Reply::NotOwner);
                }
                while let Some(&uid) = self.uids.get(self.taken.len()) {
                    match memory.take(uid, 1) {
                        TakeOutcome::Granted(granted) => self.taken.push(granted),
                        TakeOutcome::Advanced | TakeOutcome::NotServed => return Some(Reply::NotOwner),
                        TakeOutcome::Raise(_) => return None,
                    }
                }
                Reply::Each(std::mem::take(&mut self.taken))
            }
        })
    }
}

/// Numbers a second by section, as answers to probes tell them.
#[derive(Debug)]
pub(super) struct ProbedRates {
    since: Moment,
    counts: BTreeMap<SectionId, u64>,
    rates: Vec<(SectionId, u64)>,
}

impl ProbedRates {
    pub(super) fn since(now: Moment) -> Self {
        Self { since: now, counts: BTreeMap::new(), rates: Vec::new() }
    }

    /// Counts what is about to be answered.
    pub(super) fn count(&mut self, section_size: u32, request: &CallerRequest, reply: &Reply) {
        for (uid, granted) in request.uids.iter().zip(reply.granted()) {
            let count = self.counts.entry(SectionId::new(uid / section_size)).or_default();
            *count += granted.last - granted.first + 1;
        }
    }

    /// Those of the last second or longer.
    pub(super) fn at(&mut self, now: Moment) -> Vec<(SectionId, u64)> {
        let passed = now.since(self.since);
        if passed >= Duration::from_secs(1) {
            let rate = |count: u64| count * 1_000 / passed.as_millis() as u64;
            let counts = std::mem::take(&mut self.counts).into_iter();
            self.rates = counts.map(|(section, count)| (section, rate(count))).collect();
            self.rates.retain(|(_, rate)| *rate > 0);
            self.since = now;
        }
        self.rates.clone()
    }
}
