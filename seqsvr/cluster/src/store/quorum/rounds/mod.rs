//! One round for each call of the quorum: its questions, and the outcome of the answers (docs/CLUSTER.md, "Claims", "Tables"
//! and "The configuration"). Pure: the shell in the folder above asks over the network, the simulation in virtual time; both only
//! carry out the steps of a round. A round ends as soon as its outcome is certain; answers that come later are dropped.

use seqsvr_core::store::message::{Answer, Question};

mod change;
mod claim;
mod raise;
mod read;
mod simple;

pub use change::{ChangeError, ChangeRound, asked};
pub use claim::ClaimRound;
pub use raise::{RaiseRound, StandingClaim};
pub use read::ReadRound;
pub use simple::{ActingRound, EpochRound, PromiseRound, ReleaseRound, WriteRound};

/// Asks the replica of this index.
pub type Ask = (usize, Question);

/// The next step of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// These questions, none if it only waits, and the answers still out.
    Ask(Vec<Ask>),
    /// Nothing more: this is the outcome.
    Done(T),
}

impl<T> Step<T> {
    pub(super) const WAIT: Self = Self::Ask(Vec::new());
}

/// One call of the quorum.
pub trait Round {
    /// The outcome of the call.
    type Outcome;

    /// The first questions. Called once, at the start.
    fn open(&mut self) -> Vec<Ask>;

    /// The answer of a replica; an error text when it did not answer, refused to, or took too long. Exactly one for each question.
    fn on(&mut self, from: usize, answer: Result<Answer, String>) -> Step<Self::Outcome>;
}

/// The same question to each of `n` replicas.
fn to_all(n: usize, question: &Question) -> Vec<Ask> {
    (0..n).map(|replica| (replica, question.clone())).collect()
}

/// Counts the questions that are out, and remembers why replicas failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PendingQuestions {
    out: usize,
    failures: Vec<String>,
}

impl PendingQuestions {
    fn new() -> Self {
        Self { out: 0, failures: Vec::new() }
    }

    fn asked(&mut self, questions: Vec<Ask>) -> Vec<Ask> {
        self.out += questions.len();
        questions
    }

    fn failed(&mut self, from: usize, why: &str) {
        self.failures.push(format!("replica {from}: {why}"));
    }

    fn wrong(&mut self, from: usize) {
        self.failed(from, "it answered another request");
    }

    fn why(&self, got: usize, needed: usize) -> String {
        let why =
            if self.failures.is_empty() { String::new() } else { format!(" ({})", self.failures.join("; ")) };
        format!("{got} of {needed} needed replicas answered{why}")
    }
}
