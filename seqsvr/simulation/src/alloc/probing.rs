//! An AllocSvr's answers to probes, as the real one gives them: how much it serves, for how long it could have served the rest, and
//! whether it reads tables at all. Also the ailments that may keep it from serving.

use super::Alloc;
use crate::Place;
use crate::cx::Cx;
use crate::message::Packet;
use seqsvr_cluster::arbiter::core::Probe;
use seqsvr_core::clock::Moment;

/// An ailment of a node that answers: it keeps it from serving, or from serving well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ailment {
    /// Its disk is full: the sections that it serves cannot be recorded.
    FullDisk,
    /// Its claims are refused, like the claims of a node that is configured otherwise.
    Refused,
}

/// Since when it has read tables without a break, and until when they are good.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hears {
    since: Moment,
    until: Moment,
}

impl Hears {
    /// Nothing yet.
    pub(super) fn since(now: Moment) -> Self {
        Self { since: now, until: now }
    }

    /// A table was read, and is good until then.
    pub(super) fn note(&mut self, now: Moment, until: Moment) {
        if now >= self.until {
            self.since = now;
        }
        self.until = until;
    }
}

impl Alloc {
    pub(super) fn probe(&mut self, cx: &mut Cx<'_>, from: Place, id: u64) {
        let now = cx.now;
        let Some(life) = &mut self.life else { return };
        let rates = life.rates.at(now);
        let Hears { since, until } = life.hears;
        let waiting = life.node.waiting();
        let unserved = waiting.iter().map(|one| one.sections.count()).sum();
        let lapsed = now >= until;
        let overdue = waiting.iter().filter(|_| !lapsed).map(|one| now.since(one.due.max(since))).max();
        let probe = Probe {
            node: self.setup.name.clone(),
            incarnation: life.incarnation,
            version: life.table.as_ref().map(|table| table.version).unwrap_or_default(),
            lapsed,
            draining: life.draining_on.is_some(),
            served: life.node.held().count() - unserved,
            unserved,
            overdue: overdue.unwrap_or_default(),
            rates,
        };
        cx.send(from, Packet::Probed { id, probe });
    }
}
