//! The rounds that ask everybody one question and count: release, promise, write, acting, newest epoch.

use std::sync::Arc;

use super::{Ask, PendingQuestions, Round, Step, to_all};
use seqsvr_core::ids::Epoch;
use seqsvr_core::routing::Table;
use seqsvr_core::store::Sizes;
use seqsvr_core::store::StoreError;
use seqsvr_core::store::message::{Answer, Question};
use seqsvr_core::store::tables::WriteError;

/// Notes a release on W replicas.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReleaseRound {
    question: Question,
    sizes: Sizes,
    open: PendingQuestions,
    noted: usize,
}

impl ReleaseRound {
    /// `question` is a release.
    pub fn new(question: Question, sizes: Sizes) -> Self {
        Self { question, sizes, open: PendingQuestions::new(), noted: 0 }
    }
}

impl Round for ReleaseRound {
    type Outcome = Result<(), StoreError>;

    fn open(&mut self) -> Vec<Ask> {
        self.open.asked(to_all(self.sizes.n(), &self.question))
    }

    fn on(&mut self, from: usize, answer: Result<Answer, String>) -> Step<Self::Outcome> {
        self.open.out -= 1;
        match answer {
            Ok(Answer::Released) => self.noted += 1,
            Ok(_) => self.open.wrong(from),
            Err(why) => self.open.failed(from, &why),
        }
        if self.noted >= self.sizes.w() {
            return Step::Done(Ok(()));
        }
        if self.noted + self.open.out < self.sizes.w() {
            return Step::Done(Err(StoreError::Unavailable(self.open.why(self.noted, self.sizes.w()))));
        }
        Step::WAIT
    }
}

/// Asks W replicas to follow no lower term, and takes the newest table of those answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PromiseRound {
    term: u64,
    sizes: Sizes,
    open: PendingQuestions,
    promises: usize,
    newest: Option<Arc<Table>>,
}

impl PromiseRound {
    /// Asks for `term`.
    pub fn new(term: u64, sizes: Sizes) -> Self {
        Self { term, sizes, open: PendingQuestions::new(), promises: 0, newest: None }
    }
}

impl Round for PromiseRound {
    type Outcome = Result<Option<Arc<Table>>, WriteError>;

    fn open(&mut self) -> Vec<Ask> {
        self.open.asked(to_all(self.sizes.n(), &Question::Promise { term: self.term }))
    }

    fn on(&mut self, from: usize, answer: Result<Answer, String>) -> Step<Self::Outcome> {
        self.open.out -= 1;
        match answer {
            Ok(Answer::Promised(table)) => {
                self.promises += 1;
                self.newest = newer(self.newest.take(), table);
            }
            // A higher bid is about: this one could at best be useless.
            Ok(Answer::Outranked(term)) => return Step::Done(Err(WriteError::Outranked(term))),
            Ok(_) => self.open.wrong(from),
            Err(why) => self.open.failed(from, &why),
        }
        if self.promises >= self.sizes.w() {
            return Step::Done(Ok(self.newest.take()));
        }
        if self.promises + self.open.out < self.sizes.w() {
            return Step::Done(Err(WriteError::Unknown(self.open.why(self.promises, self.sizes.w()))));
        }
        Step::WAIT
    }
}

/// The newer of two tables.
pub(super) fn newer(one: Option<Arc<Table>>, other: Option<Arc<Table>>) -> Option<Arc<Table>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.version > one.version { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// Writes a table to W replicas. A refusal of some is no failure while W others can still accept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WriteRound {
    table: Arc<Table>,
    sizes: Sizes,
    open: PendingQuestions,
    written: usize,
    outranked: Option<u64>,
    newer: Option<Epoch>,
}

impl WriteRound {
    /// Writes `table`.
    pub fn new(table: Arc<Table>, sizes: Sizes) -> Self {
        Self { table, sizes, open: PendingQuestions::new(), written: 0, outranked: None, newer: None }
    }

    fn failure(&self) -> WriteError {
        match (self.outranked, self.newer) {
            (Some(term), _) => WriteError::Outranked(term),
            (None, Some(version)) => WriteError::Older(version),
            (None, None) => WriteError::Unknown(self.open.why(self.written, self.sizes.w())),
        }
    }
}

impl Round for WriteRound {
    type Outcome = Result<(), WriteError>;

    fn open(&mut self) -> Vec<Ask> {
        self.open.asked(to_all(self.sizes.n(), &Question::Write(Arc::clone(&self.table))))
    }

    fn on(&mut self, from: usize, answer: Result<Answer, String>) -> Step<Self::Outcome> {
        self.open.out -= 1;
        match answer {
            Ok(Answer::Written) => self.written += 1,
            Ok(Answer::Outranked(term)) => self.outranked = self.outranked.max(Some(term)),
            Ok(Answer::Newer(version)) => self.newer = self.newer.max(Some(version)),
            Ok(_) => self.open.wrong(from),
            Err(why) => self.open.failed(from, &why),
        }
        if self.written >= self.sizes.w() {
            return Step::Done(Ok(()));
        }
        if self.written + self.open.out < self.sizes.w() {
            return Step::Done(Err(self.failure()));
        }
        Step::WAIT
    }
}

/// Tells everybody that the arbiter of a term is alive, and collects the largest promised term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ActingRound {
    term: u64,
    sizes: Sizes,
    open: PendingQuestions,
    answers: usize,
    promised: u64,
}

impl ActingRound {
    /// Tells of `term`.
    pub fn new(term: u64, sizes: Sizes) -> Self {
        Self { term, sizes, open: PendingQuestions::new(), answers: 0, promised: 0 }
    }
}

impl Round for ActingRound {
    type Outcome = Result<u64, StoreError>;

    fn open(&mut self) -> Vec<Ask> {
        self.open.asked(to_all(self.sizes.n(), &Question::Acting { term: self.term }))
    }

    fn on(&mut self, from: usize, answer: Result<Answer, String>) -> Step<Self::Outcome> {
        self.open.out -= 1;
        match answer {
            Ok(Answer::Acting(promised)) => {
                self.answers += 1;
                self.promised = self.promised.max(promised);
            }
            Ok(_) => self.open.wrong(from),
            Err(why) => self.open.failed(from, &why),
        }
        // W of them meet every promise that W gave.
        if self.answers >= self.sizes.w() {
            return Step::Done(Ok(self.promised));
        }
        if self.answers + self.open.out < self.sizes.w() {
            return Step::Done(Err(StoreError::Unavailable(self.open.why(self.answers, self.sizes.w()))));
        }
        Step::WAIT
    }
}

/// The newest epoch that W replicas know of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EpochRound {
    sizes: Sizes,
    open: PendingQuestions,
    copies: usize,
    newest: Epoch,
}

impl EpochRound {
    pub(crate) fn new(sizes: Sizes) -> Self {
        Self { sizes, open: PendingQuestions::new(), copies: 0, newest: Epoch::default() }
    }
}

impl Round for EpochRound {
    type Outcome = Result<Epoch, StoreError>;

    fn open(&mut self) -> Vec<Ask> {
        self.open.asked(to_all(self.sizes.n(), &Question::Copy))
    }

    fn on(&mut self, from: usize, answer: Result<Answer, String>) -> Step<Self::Outcome> {
        self.open.out -= 1;
        match answer {
            Ok(Answer::Copy(copy)) => {
                self.copies += 1;
                let owners = copy.sections.iter().filter_map(|(_, state)| state.owner);
                self.newest = owners.map(|held| held.owner.epoch).fold(self.newest, Epoch::max);
            }
            Ok(_) => self.open.wrong(from),
            Err(why) => self.open.failed(from, &why),
        }
        if self.copies >= self.sizes.w() {
            return Step::Done(Ok(self.newest));
        }
        if self.copies + self.open.out < self.sizes.w() {
            return Step::Done(Err(StoreError::Unavailable(self.open.why(self.copies, self.sizes.w()))));
        }
        Step::WAIT
    }
}
