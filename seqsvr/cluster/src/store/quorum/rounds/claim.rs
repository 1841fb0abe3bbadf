//! The round that takes sections. The taker starts from the answers that accept the claim: a raise of an earlier owner
//! that was confirmed by W replicas lies in at least one of them, and none can be confirmed afterwards. A separate read
//! would not do: between the two an earlier raise can be confirmed on replicas that the read misses.

use std::collections::BTreeMap;

use super::{Ask, PendingQuestions, Round, Step, to_all};
use seqsvr_core::flaws::{Flaw, Flaws};
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::store::Sizes;
use seqsvr_core::store::message::{Answer, Earlier, Question};
use seqsvr_core::store::{Ceiling, Claimed, Layout, StoreError};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClaimRound {
    question: Question,
    sizes: Sizes,
    flaws: Flaws,
    open: PendingQuestions,
    accepted: usize,
    read: usize,
    ceilings: BTreeMap<SectionId, u64>,
    earlier: Vec<Vec<Earlier>>,
    outclaimed: Option<Epoch>,
    layout: Option<Layout>,
}

impl ClaimRound {
    /// `question` is a claim.
    pub fn new(question: Question, sizes: Sizes, flaws: Flaws) -> Self {
        Self {
            question,
            sizes,
            flaws,
            open: PendingQuestions::new(),
            accepted: 0,
            read: 0,
            ceilings: BTreeMap::new(),
            earlier: Vec::new(),
            outclaimed: None,
            layout: None,
        }
    }

    fn merge(&mut self, ceilings: Vec<Ceiling>) {
        for Ceiling { section, max } in ceilings {
            let largest = self.ceilings.entry(section).or_default();
            *largest = max.max(*largest);
        }
    }

    fn done(&mut self) -> Step<Result<Claimed, StoreError>> {
        let ceilings = self.ceilings.iter().map(|(&section, &max)| Ceiling { section, max }).collect();
        Step::Done(Ok(Claimed { ceilings, floor: 0, earlier: highest(&self.earlier) }))
    }

    fn failure(&self) -> StoreError {
        match (self.outclaimed, self.layout, &self.question) {
            (Some(newest), _, _) => StoreError::Claimed { newest },
            (None, Some(stored), Question::Claim { layout, .. }) => {
                StoreError::Layout { stored, configured: *layout }
            }
            _ => StoreError::Unavailable(self.open.why(self.accepted, self.sizes.w())),
        }
    }

    /// The step of the flawed protocol, which claims, and then reads.
    fn read_instead(&mut self, from: usize, answer: Answer) -> Step<Result<Claimed, StoreError>> {
        let Answer::Copy(copy) = answer else {
            self.open.wrong(from);
            return Step::WAIT;
        };
        self.read += 1;
        for (sections, state) in copy.sections {
            let ids = sections.start().get()..=sections.end().get();
            self.merge(ids.map(|id| Ceiling { section: SectionId::new(id), max: state.ceiling }).collect());
        }
        if self.read >= self.sizes.w() { self.done() } else { Step::WAIT }
    }
}

impl Round for ClaimRound {
    type Outcome = Result<Claimed, StoreError>;

    fn open(&mut self) -> Vec<Ask> {
        self.open.asked(to_all(self.sizes.n(), &self.question))
    }

    fn on(&mut self, from: usize, answer: Result<Answer, String>) -> Step<Self::Outcome> {
        self.open.out -= 1;
        let flawed = self.flaws.has(Flaw::FenceFromRead);
        match answer {
            Ok(Answer::Claimed { ceilings, earlier }) => {
                self.accepted += 1;
                self.earlier.push(earlier);
                if !flawed {
                    self.merge(ceilings);
                }
            }
            Ok(Answer::Outclaimed(epoch)) => self.outclaimed = self.outclaimed.max(Some(epoch)),
            Ok(Answer::OtherLayout(layout)) => self.layout = Some(layout),
            Ok(answer) if flawed => return self.read_instead(from, answer),
            Ok(_) => self.open.wrong(from),
            Err(why) => self.open.failed(from, &why),
        }
        if flawed && self.accepted == self.sizes.w() {
            return Step::Ask(self.open.asked(to_all(self.sizes.n(), &Question::Copy)));
        }
        if !flawed && self.accepted >= self.sizes.w() {
            return self.done();
        }
        let hopeless =
            if flawed { self.open.out == 0 } else { self.accepted + self.open.out < self.sizes.w() };
        if hopeless { Step::Done(Err(self.failure())) } else { Step::WAIT }
    }
}

/// For each section the highest earlier owner in any of the answers; released if any answer says so of exactly that one.
fn highest(answers: &[Vec<Earlier>]) -> Vec<Earlier> {
    let mut cuts: Vec<u32> = Vec::new();
    for run in answers.iter().flatten() {
        cuts.push(run.sections.start().get());
        cuts.extend(run.sections.end().get().checked_add(1));
    }
    cuts.sort_unstable();
    cuts.dedup();
    let mut merged: Vec<Earlier> = Vec::new();
    let mut next = vec![0; answers.len()];
    for (index, &first) in cuts.iter().enumerate() {
        let mut top: Option<Earlier> = None;
        let last = cuts.get(index + 1).map_or(u32::MAX, |cut| cut - 1);
        for (runs, next) in answers.iter().zip(&mut next) {
            // Runs are sorted, and so are the cuts: each list is walked once.
            while runs.get(*next).is_some_and(|run| run.sections.end().get() < first) {
                *next += 1;
            }
            if let Some(run) = runs.get(*next)
                && run.sections.contains(&SectionId::new(first))
            {
                top = Some(higher(top, run));
            }
        }
        let Some(mut top) = top else { continue };
        top.sections = SectionId::new(first)..=SectionId::new(last);
        match merged.last_mut() {
            Some(before)
                if (before.owner, before.released) == (top.owner, top.released)
                    && before.sections.end().get() + 1 == first =>
            {
                before.sections = *before.sections.start()..=*top.sections.end();
            }
            _ => merged.push(top),
        }
    }
    merged
}

fn higher(top: Option<Earlier>, other: &Earlier) -> Earlier {
    match top {
        Some(top) if top.owner.epoch > other.owner.epoch => top,
        Some(top) if top.owner.epoch == other.owner.epoch => {
            // Two incarnations under one epoch are somebody's mistake: neither counts as having left.
            let released = top.owner == other.owner && (top.released || other.released);
            Earlier { released, ..top }
        }
        _ => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seqsvr_core::store::Owner;

    fn earlier(first: u32, last: u32, version: u64, released: bool) -> Earlier {
        let owner = Owner { epoch: Epoch { term: 1, version }, incarnation: version };
        Earlier { sections: SectionId::new(first)..=SectionId::new(last), owner, released }
    }

    #[test]
    fn the_highest_earlier_owner_of_each_section_counts() {
        let answers =
            [vec![earlier(0, 9, 1, true), earlier(20, 29, 3, false)], vec![earlier(5, 24, 2, false)]];
        let expected = [earlier(0, 4, 1, true), earlier(5, 19, 2, false), earlier(20, 29, 3, false)];
        assert_eq!(highest(&answers), expected);
    }

    #[test]
    fn a_release_seen_by_one_replica_counts() {
        let answers = [vec![earlier(0, 9, 2, false)], vec![earlier(3, 4, 2, true)]];
        assert_eq!(
            highest(&answers),
            [earlier(0, 2, 2, false), earlier(3, 4, 2, true), earlier(5, 9, 2, false)]
        );
    }

    #[test]
    fn the_release_of_a_lower_owner_does_not_count() {
        let answers = [vec![earlier(0, u32::MAX, 1, true)], vec![earlier(7, 7, 2, false)]];
        assert_eq!(
            highest(&answers),
            [earlier(0, 6, 1, true), earlier(7, 7, 2, false), earlier(8, u32::MAX, 1, true)]
        );
    }
}
