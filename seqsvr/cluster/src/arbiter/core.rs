//! All decisions of an arbiter, as a pure machine: events in, actions out; the shell (`run`) and the simulation carry
//! them out. It is in one of three roles: *watching* another arbiter act, *bidding* for a term of its own, or *acting*
//! (`leadership`). Two that believe to act do no harm, at any timing: the stores follow the higher term only
//! (docs/CLUSTER.md, "Tables").
//!
//! Terms are unique: round × 256 + the arbiter's number.

use std::sync::Arc;
use std::time::Duration;

pub use super::event::{Action, ArbiterEvent, Change, ChangeOutcome, Probe};
use super::leadership::{Beat, Leadership};
pub use super::rules::{ArbiterRules, Seed};
use seqsvr_core::clock::Moment;
use seqsvr_core::routing::Table;
use seqsvr_core::store::StoreError;
use seqsvr_core::store::tables::{Reading, Revisions, WriteError};

/// One arbiter.
#[derive(Clone, Debug)]
pub struct Arbiter {
    rules: ArbiterRules,
    /// The largest term that was heard of.
    promised: u64,
    /// The last own term.
    own: u64,
    revisions: Revisions,
    reading: bool,
    /// The stored Set was found to be as configured.
    fits: bool,
    role: ArbiterRole,
}

#[derive(Clone, Debug)]
enum ArbiterRole {
    /// `since` when the arbiter of `promised` may have been silent, as far as the stores do not know better; when to read next.
    Watching {
        since: Moment,
        read_at: Moment,
    },
    Bidding,
    Acting(Box<Leadership>),
}

impl Arbiter {
    /// An arbiter that has seen nothing yet.
    pub fn new(rules: ArbiterRules) -> Self {
        let start = Moment::default();
        let role = ArbiterRole::Watching { since: start, read_at: start };
        Self {
            rules,
            promised: 0,
            own: 0,
            revisions: Revisions::default(),
            reading: false,
            fits: false,
            role,
        }
    }

    /// Takes an event at `now`, and returns the actions that follow, in order.
    pub fn on(&mut self, now: Moment, event: ArbiterEvent) -> Vec<Action> {
        let mut actions = Vec::new();
        match event {
            ArbiterEvent::Start => self.watch(now),
            ArbiterEvent::Wake => {}
            ArbiterEvent::Read { outcome } => self.read(now, outcome, &mut actions),
            ArbiterEvent::Promised { term, outcome } => self.promised(now, term, outcome, &mut actions),
            ArbiterEvent::Acted { outcome } => {
                outcome.iter().for_each(|&term| self.promised = self.promised.max(term));
                if let ArbiterRole::Acting(leadership) = &mut self.role {
                    leadership.acted();
                }
            }
            ArbiterEvent::Written { version, outcome } => {
                if let Err(WriteError::Outranked(term)) = outcome {
                    self.promised = self.promised.max(term);
                }
                if let ArbiterRole::Acting(leadership) = &mut self.role
                    && leadership.written(now, &self.rules, version, outcome, &mut actions).is_err()
                {
                    self.step_down(now, &mut actions);
                }
            }
            ArbiterEvent::Probed { node, outcome } => {
                if let ArbiterRole::Acting(leadership) = &mut self.role {
                    leadership.probed(now, &self.rules, &node, outcome);
                }
            }
            ArbiterEvent::Change { id, change } => match &mut self.role {
                ArbiterRole::Acting(leadership) => leadership.change(now, id, change, &mut actions),
                _ => actions.push(Action::Answer { id, outcome: ChangeOutcome::NotActing(self.promised) }),
            },
        }
        self.go_on(now, &mut actions);
        actions
    }

    /// When the next [`ArbiterEvent::Wake`] is due.
    pub fn wake_at(&self) -> Option<Moment> {
        match &self.role {
            ArbiterRole::Watching { read_at, .. } => (!self.reading).then_some(*read_at),
            ArbiterRole::Bidding => None,
            ArbiterRole::Acting(leadership) => Some(leadership.wake_at()),
        }
    }

    /// The largest term that it has heard of.
    pub(crate) fn heard_of(&self) -> u64 {
        self.promised
    }

    /// The term under which it acts.
    pub(crate) fn acting(&self) -> Option<u64> {
        matches!(self.role, ArbiterRole::Acting(_)).then_some(self.own)
    }

    /// The leadership, while it acts.
    pub(crate) fn leadership(&self) -> Option<&Leadership> {
        match &self.role {
            ArbiterRole::Acting(leadership) => Some(leadership),
            _ => None,
        }
    }

    fn go_on(&mut self, now: Moment, actions: &mut Vec<Action>) {
        if self.acting().is_some_and(|term| self.promised > term) {
            self.step_down(now, actions);
        }
        match &mut self.role {
            ArbiterRole::Watching { read_at, .. } if !self.reading && now >= *read_at => {
                self.reading = true;
                // Polled: a standby arbiter is in no hurry, and a held call would tell it the age of the acting one late.
                actions.push(Action::Read { revisions: self.revisions.clone(), wait: Duration::ZERO });
            }
            ArbiterRole::Acting(leadership) => {
                match leadership.beat(now, &self.rules) {
                    Some(Beat::Act) => actions.push(Action::Acting { term: self.own }),
                    Some(Beat::Listen) if !self.reading => {
                        self.reading = true;
                        actions
                            .push(Action::Read { revisions: self.revisions.clone(), wait: Duration::ZERO });
                    }
                    _ => {}
                }
                leadership.go_on(now, &self.rules, actions);
            }
            _ => {}
        }
    }

    fn read(&mut self, now: Moment, outcome: Result<Reading, StoreError>, actions: &mut Vec<Action>) {
        self.reading = false;
        let pause = self.rules.takeover / 8;
        let ArbiterRole::Watching { since, read_at } = &mut self.role else {
            outcome.iter().for_each(|reading| self.promised = self.promised.max(reading.promised));
            return;
        };
        *read_at = now + pause;
        let turn = pause * u32::from(self.rules.number);
        let read = outcome.is_ok();
        if let Ok(reading) = outcome {
            let uids = reading.bounds.as_ref().map(|bounds| &bounds.uids);
            if let Some(table) = &reading.table {
                match self.rules.seed.misfit(table, uids.unwrap_or(&table.uids)) {
                    Some(misfit) if !self.fits => actions.push(Action::Misfit(misfit)),
                    _ => self.fits = true,
                }
            }
            self.revisions = reading.revisions;
            if reading.promised > self.promised {
                self.promised = reading.promised;
                *since = now;
            }
            if let Some(ago) = reading.acting
                && reading.promised == self.promised
            {
                *since = now.before(ago);
            }
        }
        let silent = now.since(*since);
        // Its own earlier life is not worth waiting for.
        let mine = self.own == 0 && self.promised % 256 == u64::from(self.rules.number);
        let patience = match self.promised {
            // A table that is half written, when a higher term was promised to an arbiter that then fell silent, cannot be read
            // by any arbiter: only a new term mends that.
            _ if !read => self.rules.takeover + turn,
            0 => turn,
            _ if mine => Duration::ZERO,
            _ => self.rules.takeover + turn,
        };
        if silent >= patience {
            let round = self.promised.max(self.own) / 256 + 1;
            self.own = round * 256 + u64::from(self.rules.number);
            self.role = ArbiterRole::Bidding;
            actions.push(Action::Promise { term: self.own });
        }
    }

    fn promised(
        &mut self,
        now: Moment,
        term: u64,
        outcome: Result<Option<Arc<Table>>, WriteError>,
        actions: &mut Vec<Action>,
    ) {
        if !matches!(self.role, ArbiterRole::Bidding) || term != self.own {
            return;
        }
        match outcome {
            Ok(table) => {
                let misfit = |table: &Table| self.rules.seed.misfit(table, &table.uids);
                if let Some(misfit) = table.as_deref().filter(|_| !self.fits).and_then(misfit) {
                    actions.push(Action::Misfit(misfit));
                    return self.watch(now);
                }
                self.fits = true;
                self.promised = self.promised.max(term);
                self.role =
                    ArbiterRole::Acting(Box::new(Leadership::new(now, &self.rules, term, table, actions)));
            }
            Err(WriteError::Outranked(by)) => {
                self.promised = self.promised.max(by);
                self.watch(now);
            }
            // The next bid is for a higher term, since this one may be half promised.
            Err(WriteError::Unknown(_) | WriteError::Older(_)) => self.watch(now),
        }
    }

    fn step_down(&mut self, now: Moment, actions: &mut Vec<Action>) {
        if let ArbiterRole::Acting(leadership) = &mut self.role {
            for id in leadership.waiting() {
                actions.push(Action::Answer { id, outcome: ChangeOutcome::NotActing(self.promised) });
            }
        }
        self.watch(now);
    }

    fn watch(&mut self, now: Moment) {
        self.role = ArbiterRole::Watching { since: now, read_at: now + self.rules.takeover / 8 };
    }
}
