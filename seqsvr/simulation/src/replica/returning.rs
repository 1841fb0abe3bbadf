//! A replica that comes back after it lost its disk: the real core, which says when to ask whom and when that is enough, over the
//! simulated network. It answers nobody meanwhile, since it does not listen yet.

use std::collections::{BTreeMap, BTreeSet};

use super::ReplicaSetup;
use crate::cx::Cx;
use crate::message::{Input, Packet, Tick};
use seqsvr_cluster::replica::rejoin_plan::{Bid, Event, RejoinPlan, Step};
use seqsvr_core::clock::Moment;
use seqsvr_core::store::Address;
use seqsvr_core::store::message::Copy;
use seqsvr_core::store::message::{Answer, Question};

/// See the module.
pub(crate) struct Returning {
    setup: ReplicaSetup,
    core: RejoinPlan,
    next: u64,
    /// Questions that are out, to which of the others.
    out: BTreeMap<u64, usize>,
    /// Those of them that are about a promise: the copy is asked for when they end.
    bids: BTreeSet<u64>,
    wake: Option<Moment>,
}

impl Returning {
    pub(crate) fn new(cx: &mut Cx<'_>, setup: ReplicaSetup, kept: Option<Copy>) -> Self {
        let core = RejoinPlan::new(setup.sizes, cx.now, setup.rejoin_wait, kept, setup.flaws);
        // No answer to an earlier attempt is taken for one to this.
        let next = cx.chance.number() >> 8;
        let mut new = Self { setup, core, next, out: BTreeMap::new(), bids: BTreeSet::new(), wake: None };
        new.set_wake(cx);
        new
    }

    /// Answers what it votes by from now on, once that is known.
    pub(crate) fn on(&mut self, cx: &mut Cx<'_>, input: Input) -> Option<Copy> {
        let event = match input {
            Input::Packet(_, Packet::Answer { id, answer: Answer::Copy(copy) }) => {
                Event::Answered { from: self.out.remove(&id)?, copy: Some(copy) }
            }
            Input::Packet(_, Packet::Answer { id, .. }) | Input::Tick(Tick::Late(id))
                if self.bids.remove(&id) =>
            {
                let other = self.out.remove(&id)?;
                self.ask(cx, other, None, Question::Copy);
                return None;
            }
            Input::Tick(Tick::Late(id)) => Event::Answered { from: self.out.remove(&id)?, copy: None },
            Input::Tick(Tick::Wake) => {
                self.wake = None;
                Event::Wake
            }
            _ => return None,
        };
        match self.core.on(cx.now, event) {
            Ok(Step::Vote(copy)) => return Some(copy),
            Ok(Step::Ask(others, bid)) => {
                for other in others {
                    match bid {
                        None => self.ask(cx, other, None, Question::Copy),
                        Some(Bid { number, term }) => {
                            let to = Some(Address { number, member: 0 });
                            self.ask(cx, other, to, Question::Promise { term });
                            self.bids.insert(self.next);
                        }
                    }
                }
            }
            Err(why) => unreachable!("all are set up alike: {why}"),
        }
        self.set_wake(cx);
        None
    }

    fn ask(&mut self, cx: &mut Cx<'_>, other: usize, to: Option<Address>, question: Question) {
        self.next += 1;
        self.out.insert(self.next, other);
        cx.send(self.setup.others[other], Packet::Question { id: self.next, to, question });
        cx.tick(cx.now + self.setup.patience, Tick::Late(self.next));
    }

    fn set_wake(&mut self, cx: &mut Cx<'_>) {
        if let Some(at) = self.core.wake_at()
            && self.wake.is_none_or(|set| at < set)
        {
            self.wake = Some(at);
            cx.tick(at, Tick::Wake);
        }
    }
}
