//! How an AllocSvr raises ceilings: one call at a time for each assignment. The core of the real raiser decides the meaning of an
//! answer and the pause after a failure.

use super::Alloc;
use crate::cx::Cx;
use crate::message::Tick;
use seqsvr_cluster::alloc::node::NodeEvent;
use seqsvr_core::alloc::raised::{After, Pauses, after};
use seqsvr_core::store::{Ceiling, Owner, RaiseError};

impl Alloc {
    pub(super) fn raise(&mut self, cx: &mut Cx<'_>) {
        let Some(life) = &mut self.life else { return };
        for owner in life.memory.owners_due() {
            if life.raising.insert(owner.epoch) {
                let targets = life.memory.due(owner);
                life.quorum.raise(cx, owner, targets);
            }
        }
    }

    pub(super) fn raised(
        &mut self,
        cx: &mut Cx<'_>,
        owner: Owner,
        targets: &[Ceiling],
        outcomes: Vec<Result<u64, RaiseError>>,
    ) {
        let flaws = self.setup.access.flaws;
        let mut lost = Vec::new();
        let mut failed = false;
        let Some(life) = &mut self.life else { return };
        for (target, outcome) in targets.iter().zip(outcomes) {
            match after(*target, outcome, flaws) {
                After::Confirmed(max) => life.memory.confirm(owner, Ceiling { max, ..*target }),
                After::Lost { .. } => lost.push(target.section),
                After::Again { to, .. } => {
                    life.memory.want(owner, Ceiling { max: to, ..*target });
                    failed = true;
                }
            }
        }
        for section in lost {
            self.feed(cx, NodeEvent::Lost { owner, section });
        }
        let Some(life) = &mut self.life else { return };
        let (first, longest) = self.setup.pauses;
        let pauses = life.pauses.entry(owner.epoch).or_insert_with(|| Pauses::new(first, longest));
        if failed {
            cx.tick(cx.now + pauses.failed(), Tick::Raise(owner));
        } else {
            pauses.succeeded();
            life.raising.remove(&owner.epoch);
        }
        // Waiting requests look again, each as if it had come now.
        for (_, request) in std::mem::take(&mut life.waiting) {
            self.ask(cx, request);
        }
        self.raise(cx);
    }
}
