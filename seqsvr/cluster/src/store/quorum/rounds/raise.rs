//! The round that raises ceilings. Each is confirmed by W replicas or not at all. A replica that was down during the
//! owner's claim refuses its raises; it is then given the claim (which is the owner's to repeat, if it stood) and asked
//! once more, so that any W live replicas serve.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::{Ask, PendingQuestions, Round, Step, to_all};
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::store::Sizes;
use seqsvr_core::store::message::Raised;
use seqsvr_core::store::message::{Answer, Question};
use seqsvr_core::store::{Ceiling, Layout, Owner, RaiseError};

/// A claim that W replicas accepted: the owner's to repeat where it was missed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StandingClaim {
    /// The owner that claimed.
    pub owner: Owner,
    /// Under which layout.
    pub layout: Layout,
    /// Which sections.
    pub sections: Vec<RangeInclusive<SectionId>>,
}

impl StandingClaim {
    /// This claim and an earlier one of the same owner: each stands for its own sections.
    pub fn with(mut self, earlier: Option<&StandingClaim>) -> Self {
        for range in earlier.iter().flat_map(|earlier| &earlier.sections) {
            let known =
                |one: &RangeInclusive<SectionId>| one.contains(range.start()) && one.contains(range.end());
            if !self.sections.iter().any(known) {
                self.sections.push(range.clone());
            }
        }
        self
    }

    fn covers(&self, section: SectionId) -> bool {
        self.sections.iter().any(|range| range.contains(&section))
    }
}

/// The answers about one of the ceilings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Tally {
    confirmed: usize,
    /// Replicas that may still confirm.
    open: usize,
    smaller: Option<u64>,
    not_owner: Option<Epoch>,
    /// Replicas that know another owner, or none.
    refused: usize,
}

impl Tally {
    fn refuse(&mut self, newest: Epoch) {
        self.refused += 1;
        self.not_owner = self.not_owner.max(Some(newest));
    }
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RaiseRound {
    owner: Owner,
    standing: Option<Arc<StandingClaim>>,
    ceilings: Vec<Ceiling>,
    sizes: Sizes,
    open: PendingQuestions,
    tallies: Vec<Tally>,
    /// For each replica: which of the ceilings it was asked for last.
    asked: Vec<Vec<usize>>,
    repaired: BTreeSet<usize>,
}

impl RaiseRound {
    /// `standing`: the owner's claim; without it, and for sections that it does not cover, nothing is mended.
    pub fn new(
        owner: Owner,
        standing: Option<Arc<StandingClaim>>,
        ceilings: Vec<Ceiling>,
        sizes: Sizes,
    ) -> Self {
        let all: Vec<usize> = (0..ceilings.len()).collect();
        Self {
            owner,
            standing,
            sizes,
            open: PendingQuestions::new(),
            tallies: vec![Tally { open: sizes.n(), ..Tally::default() }; ceilings.len()],
            asked: vec![all; sizes.n()],
            repaired: BTreeSet::new(),
            ceilings,
        }
    }

    fn question(&self, indices: &[usize]) -> Question {
        let ceilings = indices.iter().map(|&index| self.ceilings[index]).collect();
        Question::Raise { owner: self.owner, ceilings }
    }

    /// The claim for the sections that `from` refused because it has not heard of it.
    fn repair(&mut self, from: usize, missed: Vec<usize>, layout: Layout) -> Vec<Ask> {
        let each: BTreeSet<SectionId> = missed.iter().map(|&index| self.ceilings[index].section).collect();
        let mut sections: Vec<RangeInclusive<SectionId>> = Vec::new();
        for one in each {
            match sections.last_mut() {
                Some(run) if run.end().get() + 1 == one.get() => *run = *run.start()..=one,
                _ => sections.push(one..=one),
            }
        }
        self.asked[from] = missed;
        self.repaired.insert(from);
        vec![(from, Question::Claim { sections, owner: self.owner, layout })]
    }

    /// Notes the outcomes of `from`; answers which of them a claim would mend.
    fn note(&mut self, from: usize, outcomes: Vec<Raised>) -> Vec<usize> {
        let mut missed = Vec::new();
        let fresh = !self.repaired.contains(&from);
        let standing = self.standing.clone();
        let mends = |section| fresh && standing.as_ref().is_some_and(|standing| standing.covers(section));
        let asked = self.asked[from].clone();
        for (index, outcome) in asked.into_iter().zip(outcomes) {
            let tally = &mut self.tallies[index];
            tally.open -= 1;
            match outcome {
                Raised::Confirmed(ceiling) if ceiling >= self.ceilings[index].max => tally.confirmed += 1,
                Raised::Confirmed(_) => {}
                Raised::Smaller(stored) => tally.smaller = tally.smaller.max(Some(stored)),
                Raised::NotOwner(epoch)
                    if epoch < self.owner.epoch && mends(self.ceilings[index].section) =>
                {
                    tally.open += 1;
                    missed.push(index);
                }
                Raised::NotOwner(epoch) => tally.refuse(epoch),
            }
        }
        missed
    }

    /// `from` will not confirm the ceilings that it was asked for.
    fn give_up(&mut self, from: usize) {
        for &index in &self.asked[from] {
            self.tallies[index].open -= 1;
        }
    }

    fn outcomes(&self) -> Vec<Result<u64, RaiseError>> {
        self.tallies.iter().zip(&self.ceilings).map(|(tally, ceiling)| self.outcome(tally, ceiling)).collect()
    }

    fn outcome(&self, tally: &Tally, ceiling: &Ceiling) -> Result<u64, RaiseError> {
        if tally.confirmed >= self.sizes.w() {
            return Ok(ceiling.max);
        }
        match (self.lost(tally), tally.smaller) {
            (Some(newest), _) => Err(RaiseError::NotOwner { newest }),
            (_, Some(stored)) => Err(RaiseError::Smaller { stored }),
            _ => Err(RaiseError::Unknown(self.open.why(tally.confirmed, self.sizes.w()))),
        }
    }

    /// Under which epoch another holds the section, for sure. A claim that stands may be missed by N - W replicas, which then know
    /// an older owner: that is no loss.
    fn lost(&self, tally: &Tally) -> Option<Epoch> {
        let stands_nowhere = tally.refused > self.sizes.n() - self.sizes.w();
        tally.not_owner.filter(|newest| *newest >= self.owner.epoch || stands_nowhere)
    }

    fn decided(&self, tally: &Tally) -> bool {
        let w = self.sizes.w();
        // Whether the section is lost is told by those that have not answered.
        let unclear = tally.not_owner.is_some() && self.lost(tally).is_none() && tally.open > 0;
        tally.confirmed >= w || tally.confirmed + tally.open < w && !unclear
    }
}

impl Round for RaiseRound {
    type Outcome = Vec<Result<u64, RaiseError>>;

    fn open(&mut self) -> Vec<Ask> {
        let all: Vec<usize> = (0..self.ceilings.len()).collect();
        let asks = to_all(self.sizes.n(), &self.question(&all));
        self.open.asked(asks)
    }

    fn on(&mut self, from: usize, answer: Result<Answer, String>) -> Step<Self::Outcome> {
        self.open.out -= 1;
        let mut asks = Vec::new();
        match answer {
            Ok(Answer::Raised(outcomes)) if outcomes.len() == self.asked[from].len() => {
                let missed = self.note(from, outcomes);
                if let (Some(standing), false) = (&self.standing, missed.is_empty()) {
                    asks = self.repair(from, missed, standing.layout);
                }
            }
            Ok(Answer::Claimed { .. }) => asks = vec![(from, self.question(&self.asked[from]))],
            Ok(Answer::Outclaimed(newest)) => {
                for &index in &self.asked[from].clone() {
                    self.tallies[index].refuse(newest);
                }
                self.give_up(from);
            }
            Ok(_) => {
                self.open.wrong(from);
                self.give_up(from);
            }
            Err(why) => {
                self.open.failed(from, &why);
                self.give_up(from);
            }
        }
        let asks = self.open.asked(asks);
        match self.tallies.iter().all(|tally| self.decided(tally)) {
            true => Step::Done(self.outcomes()),
            false => Step::Ask(asks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: usize = 3;

    fn round(sections: &[u32]) -> RaiseRound {
        let owner = Owner { epoch: Epoch { term: 1, version: 5 }, incarnation: 7 };
        let ceilings = sections.iter().map(|&id| Ceiling { section: SectionId::new(id), max: 10 }).collect();
        let layout = Layout { section_size: 100_000, step: 10_000 };
        let sizes = Sizes::majority(ALL).expect("3 replicas have majorities");
        let sections = vec![SectionId::new(0)..=SectionId::new(9)];
        RaiseRound::new(owner, Some(Arc::new(StandingClaim { owner, layout, sections })), ceilings, sizes)
    }

    fn raised(outcomes: &[Raised]) -> Result<Answer, String> {
        Ok(Answer::Raised(outcomes.to_vec()))
    }

    #[test]
    fn two_of_three_confirm() {
        let mut round = round(&[1]);
        assert_eq!(round.open().len(), ALL);
        assert_eq!(round.on(0, raised(&[Raised::Confirmed(10)])), Step::WAIT);
        assert_eq!(round.on(2, raised(&[Raised::Confirmed(10)])), Step::Done(vec![Ok(10)]));
    }

    #[test]
    fn a_replica_that_missed_the_claim_is_given_it() {
        let mut round = round(&[1, 2]);
        round.open();
        assert_eq!(round.on(0, raised(&[Raised::Confirmed(10), Raised::Confirmed(10)])), Step::WAIT);
        assert_eq!(round.on(1, Err("down".to_owned())), Step::WAIT);
        let old = Raised::NotOwner(Epoch { term: 1, version: 4 });
        let Step::Ask(asks) = round.on(2, raised(&[Raised::Confirmed(10), old])) else {
            panic!("the replica can still be mended");
        };
        assert!(
            matches!(&asks[..], [(2, Question::Claim { sections, .. })] if sections.len() == 1),
            "{asks:?}"
        );
        let claimed = Answer::Claimed { ceilings: Vec::new(), earlier: Vec::new() };
        let Step::Ask(asks) = round.on(2, Ok(claimed)) else { panic!("it is asked once more") };
        assert!(
            matches!(&asks[..], [(2, Question::Raise { ceilings, .. })] if ceilings.len() == 1),
            "{asks:?}"
        );
        assert_eq!(round.on(2, raised(&[Raised::Confirmed(10)])), Step::Done(vec![Ok(10), Ok(10)]));
    }

    #[test]
    fn neighbours_that_were_missed_are_claimed_as_one_run() {
        let mut round = round(&[4, 2, 3, 7, 2]);
        round.open();
        assert_eq!(round.on(0, raised(&[Raised::Confirmed(10); 5])), Step::WAIT);
        let old = Raised::NotOwner(Epoch { term: 1, version: 4 });
        let Step::Ask(asks) = round.on(2, raised(&[old; 5])) else {
            panic!("the replica can still be mended")
        };
        let runs = [(2, 4), (7, 7)].map(|(first, last)| SectionId::new(first)..=SectionId::new(last));
        assert!(
            matches!(&asks[..], [(2, Question::Claim { sections, .. })] if sections[..] == runs),
            "{asks:?}"
        );
    }

    #[test]
    fn a_later_claim_of_other_sections_leaves_the_earlier_one_standing() {
        let range = |first, last| SectionId::new(first)..=SectionId::new(last);
        let owner = Owner { epoch: Epoch { term: 1, version: 5 }, incarnation: 7 };
        let layout = Layout { section_size: 100_000, step: 10_000 };
        let standing = |sections| StandingClaim { owner, layout, sections };
        let first = standing(vec![range(0, 3), range(7, 7)]);
        let both = standing(vec![range(2, 3), range(7, 9)]).with(Some(&first));
        assert_eq!(both.sections, [range(2, 3), range(7, 9), range(0, 3)]);
        assert!(both.covers(SectionId::new(0)) && !both.covers(SectionId::new(4)));
    }

    #[test]
    fn a_newer_owner_on_most_replicas_is_a_loss() {
        let mut round = round(&[1]);
        round.open();
        let newest = Epoch { term: 2, version: 1 };
        assert_eq!(round.on(0, raised(&[Raised::NotOwner(newest)])), Step::WAIT);
        assert_eq!(
            round.on(1, raised(&[Raised::NotOwner(newest)])),
            Step::Done(vec![Err(RaiseError::NotOwner { newest })])
        );
    }

    #[test]
    fn an_older_owner_on_a_replica_that_missed_the_claim_is_no_loss() {
        let mut round = round(&[77]);
        round.open();
        let old = Raised::NotOwner(Epoch { term: 1, version: 4 });
        assert_eq!(round.on(0, Err("down".to_owned())), Step::WAIT);
        assert_eq!(round.on(1, raised(&[old])), Step::WAIT);
        let Step::Done(outcome) = round.on(2, raised(&[Raised::Confirmed(10)])) else {
            panic!("nobody is left")
        };
        assert!(matches!(&outcome[..], [Err(RaiseError::Unknown(_))]), "{outcome:?}");
    }

    #[test]
    fn older_owners_on_so_many_replicas_that_no_claim_can_stand_are_a_loss() {
        let mut round = round(&[77]);
        round.open();
        let newest = Epoch { term: 1, version: 4 };
        assert_eq!(round.on(0, raised(&[Raised::NotOwner(newest)])), Step::WAIT);
        let lost = Step::Done(vec![Err(RaiseError::NotOwner { newest })]);
        assert_eq!(round.on(1, raised(&[Raised::NotOwner(newest)])), lost);
    }

    #[test]
    fn what_too_few_answered_is_unknown() {
        let mut round = round(&[1]);
        round.open();
        assert_eq!(round.on(0, raised(&[Raised::Confirmed(10)])), Step::WAIT);
        assert_eq!(round.on(1, Err("down".to_owned())), Step::WAIT);
        let Step::Done(outcome) = round.on(2, Err("down".to_owned())) else { panic!("nobody is left") };
        assert!(
            matches!(&outcome[..], [Err(RaiseError::Unknown(why))] if why.contains("1 of 2")),
            "{outcome:?}"
        );
    }
}
