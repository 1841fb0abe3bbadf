//! The round that reads the table. Its answer *counts*: W replicas have answered, and the newest of their tables was
//! seen on W, or has been written back to W. W answers meet every table that counted before the round began, and W
//! replicas with the answered one keep any later read from missing it; so a lease may be renewed from the moment before
//! the first question.

use std::sync::Arc;
use std::time::Duration;

use super::simple::newer;
use super::{Ask, PendingQuestions, Round, Step};
use seqsvr_core::flaws::{Flaw, Flaws};
use seqsvr_core::routing::Table;
use seqsvr_core::store::Sizes;
use seqsvr_core::store::StoreError;
use seqsvr_core::store::message::{Answer, Question};
use seqsvr_core::store::tables::{Reading, Revisions};

/// The known contents of a replica.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Replica {
    answered: bool,
    table: Option<Arc<Table>>,
    /// The newest table that it was asked to take over, if any.
    written_back: Option<Arc<Table>>,
    /// It has not answered about that one. An answer names no table, so a newer one is written back only after it. A failure may
    /// be the read's, so it counts as no answer: then a newer table is left to the next read.
    writing: bool,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReadRound {
    revisions: Revisions,
    wait: Duration,
    releases: bool,
    sizes: Sizes,
    flaws: Flaws,
    open: PendingQuestions,
    replicas: Vec<Replica>,
    promised: u64,
    acting: Option<Duration>,
}

impl ReadRound {
    /// `revisions`: those that the reader has seen; a short list means nothing of the replicas that it lacks.
    pub fn new(revisions: &Revisions, wait: Duration, sizes: Sizes, flaws: Flaws) -> Self {
        let mut revisions = revisions.clone();
        revisions.0.resize(sizes.n(), 0);
        let replicas = vec![Replica::default(); sizes.n()];
        let open = PendingQuestions::new();
        Self { revisions, wait, releases: true, sizes, flaws, open, replicas, promised: 0, acting: None }
    }

    /// The same for a reader that waits for no release.
    #[must_use]
    pub fn of_the_table_only(self) -> Self {
        Self { releases: false, ..self }
    }

    /// Only the acting arbiter of the largest term is of interest, and the shortest silence about it.
    fn heard(&mut self, promised: u64, acting: Option<Duration>) {
        if promised > self.promised {
            (self.promised, self.acting) = (promised, acting);
        } else if promised == self.promised {
            self.acting = [self.acting, acting].into_iter().flatten().min();
        }
    }

    /// Decides, or writes the newest table back where it is missing.
    fn next(&mut self) -> Step<Result<Reading, StoreError>> {
        let answered = self.replicas.iter().filter(|one| one.answered).count();
        if answered < self.sizes.w() {
            return match answered + self.open.out < self.sizes.w() {
                true => self.fail(answered, self.sizes.w()),
                false => Step::WAIT,
            };
        }
        let newest = self.replicas.iter().fold(None, |newest, one| newer(newest, one.table.clone()));
        let holders = self.replicas.iter().filter(|one| one.answered && one.table == newest).count();
        let needed = if self.flaws.has(Flaw::TableOnOne) { 1 } else { self.sizes.w() };
        let Some(table) = newest else { return self.done(None) };
        if holders >= needed {
            return self.done(Some(table));
        }
        let mut asks = Vec::new();
        for (index, one) in self.replicas.iter_mut().enumerate() {
            let holds = one.table.as_ref() == Some(&table);
            let tried = one.written_back.as_ref().is_some_and(|tried| tried.version >= table.version);
            let waits = one.writing && !self.flaws.has(Flaw::WriteBackUnanswered);
            if !holds && !tried && !waits {
                (one.written_back, one.writing) = (Some(Arc::clone(&table)), true);
                asks.push((index, Question::Write(Arc::clone(&table))));
            }
        }
        let asks = self.open.asked(asks);
        match self.open.out {
            0 => self.fail(holders, needed),
            _ => Step::Ask(asks),
        }
    }

    fn done(&self, table: Option<Arc<Table>>) -> Step<Result<Reading, StoreError>> {
        let (promised, acting) = (self.promised, self.acting);
        Step::Done(Ok(Reading { table, revisions: self.revisions.clone(), promised, acting, bounds: None }))
    }

    fn fail(&self, got: usize, needed: usize) -> Step<Result<Reading, StoreError>> {
        Step::Done(Err(StoreError::Unavailable(self.open.why(got, needed))))
    }
}

impl Round for ReadRound {
    type Outcome = Result<Reading, StoreError>;

    fn open(&mut self) -> Vec<Ask> {
        let (wait, releases) = (self.wait, self.releases);
        let read = |(index, &revision)| (index, Question::Read { revision, wait, releases });
        self.open.asked(self.revisions.0.iter().enumerate().map(read).collect())
    }

    fn on(&mut self, from: usize, answer: Result<Answer, String>) -> Step<Self::Outcome> {
        self.open.out -= 1;
        let replica = &mut self.replicas[from];
        match answer {
            Ok(Answer::Table { revision, table, promised, acting }) => {
                replica.answered = true;
                // A write-back may have overtaken this answer.
                replica.table = newer(replica.table.take(), table);
                self.revisions.0[from] = revision;
                self.heard(promised, acting);
            }
            Ok(Answer::Written) => {
                replica.answered = true;
                replica.table = newer(replica.table.take(), replica.written_back.clone());
                replica.writing = false;
            }
            Ok(Answer::Outranked(term)) => {
                replica.writing = false;
                self.open.failed(
                    from,
                    &format!("term {term} was promised to an arbiter that has written no table yet"),
                );
            }
            // Its own answer to the read, which is still out or was lost, would tell; the next read will.
            Ok(Answer::Newer(version)) => {
                replica.writing = false;
                self.open.failed(from, &format!("it holds table {version} by now"));
            }
            Ok(_) => self.open.wrong(from),
            Err(why) => self.open.failed(from, &why),
        }
        self.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seqsvr_core::ids::Epoch;

    fn table(version: u64) -> Option<Arc<Table>> {
        Some(Arc::new(Table {
            set: 0,
            version: Epoch { term: 1, version },
            section_size: 8,
            uids: 0..=7,
            nodes: Vec::new(),
            assignments: Vec::new(),
        }))
    }

    fn shows(version: u64) -> Result<Answer, String> {
        Ok(Answer::Table { revision: version, table: table(version), promised: 1, acting: None })
    }

    fn round(flaws: Flaws) -> ReadRound {
        let sizes = Sizes::majority(3).expect("3 replicas have majorities");
        let mut round = ReadRound::new(&Revisions::default(), Duration::ZERO, sizes, flaws);
        assert_eq!(round.open().len(), 3);
        round
    }

    /// Which replica is asked to take over which version.
    fn writes(step: Step<Result<Reading, StoreError>>) -> Vec<(usize, u64)> {
        let Step::Ask(asks) = step else { panic!("answers are out: {step:?}") };
        let version = |(to, question)| match question {
            Question::Write(table) => (to, table.version.version),
            other => panic!("{other:?}"),
        };
        asks.into_iter().map(version).collect()
    }

    fn done(step: Step<Result<Reading, StoreError>>) -> Option<Arc<Table>> {
        let Step::Done(Ok(reading)) = step else { panic!("W replicas have it: {step:?}") };
        reading.table
    }

    /// Of three versions the newest lies on one replica, whose arbiter ended; the middle one counts already.
    #[test]
    fn an_answer_about_an_older_table_confirms_no_newer_one() {
        let mut flawed = round(Flaws::only(Flaw::WriteBackUnanswered));
        let mut sound = round(Flaws::default());
        for round in [&mut flawed, &mut sound] {
            assert_eq!(writes(round.on(0, shows(2))), []);
            assert_eq!(writes(round.on(1, shows(1))), [(1, 2), (2, 2)]);
        }
        assert_eq!(writes(flawed.on(2, shows(3))), [(0, 3), (1, 3)]);
        assert_eq!(done(flawed.on(1, Ok(Answer::Written))), table(3), "but only one replica has it");
        assert_eq!(writes(sound.on(2, shows(3))), [(0, 3)]);
        assert_eq!(writes(sound.on(1, Ok(Answer::Written))), [(1, 3)]);
        assert_eq!(done(sound.on(1, Ok(Answer::Written))), table(3));
    }

    /// The failure may be the read's: the answer about the older table could still come.
    #[test]
    fn after_a_failure_of_unknown_origin_no_newer_table_is_written_back() {
        let mut round = round(Flaws::default());
        assert_eq!(writes(round.on(0, shows(2))), []);
        assert_eq!(writes(round.on(2, shows(1))), [(1, 2), (2, 2)]);
        assert_eq!(writes(round.on(1, Err("no answer in time".to_owned()))), []);
        assert_eq!(writes(round.on(2, Ok(Answer::Newer(Epoch { term: 1, version: 3 })))), []);
        assert_eq!(done(round.on(1, Ok(Answer::Written))), table(2));
    }

    #[test]
    fn an_answer_of_whatever_kind_lets_the_next_table_be_written_back() {
        for answer in [Answer::Written, Answer::Outranked(2), Answer::Newer(Epoch { term: 1, version: 2 })] {
            let mut round = round(Flaws::default());
            assert_eq!(writes(round.on(0, shows(2))), []);
            assert_eq!(writes(round.on(1, shows(1))), [(1, 2), (2, 2)]);
            assert_eq!(writes(round.on(2, shows(3))), [(0, 3)]);
            assert_eq!(writes(round.on(1, Ok(answer))), [(1, 3)]);
        }
    }
}
