//! How numbers are made: the seam at which one way (segments, snowflakes, a program's own) is chosen for each
//! tag. Called by the issuer's service, which has checked the count before.

use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;

use super::range::Range;
use super::tag::Tag;

/// The numbers that one call handed out: ranges in increasing order that belong to the caller alone. Usually one; a count that spans two
/// segments gives two or more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    ranges: Vec<Range>,
    codes: Vec<String>,
    instead: Option<Tag>,
}

impl Issued {
    /// The numbers of one range or more.
    pub fn new(ranges: Vec<Range>) -> Self {
        debug_assert!(!ranges.is_empty(), "who has nothing to hand out answers an error");
        Self { ranges, codes: Vec::new(), instead: None }
    }

    /// A single number.
    pub fn one(number: u64) -> Self {
        Self::new(vec![Range::one(number)])
    }

    /// The smallest number.
    pub fn first(&self) -> u64 {
        self.ranges.first().map_or(0, |range| range.first)
    }

    /// The ranges, in increasing order.
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// How many numbers they hold together.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|range| range.count()).sum()
    }

    /// Every number, in increasing order.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.ranges.iter().flat_map(|range| range.first..=range.last)
    }

    /// How a plugin spells each number, in their order; empty where none does.
    pub fn codes(&self) -> &[String] {
        &self.codes
    }

    /// The tag that the numbers are of, where it is another than was asked for.
    pub fn instead(&self) -> Option<&Tag> {
        self.instead.as_ref()
    }

    /// Says that the numbers are of another tag.
    pub(super) fn set_instead(&mut self, tag: Tag) {
        self.instead = Some(tag);
    }

    /// Spells every number.
    pub fn set_codes(&mut self, codes: Vec<String>) {
        self.codes = codes;
    }
}

/// A way to make numbers for one tag.
///
/// Rules that every implementation keeps:
///
/// - A number is handed out once: across threads, restarts and all processes that share its storage.
/// - Within one process a number handed out later is larger.
/// - An error hands out nothing.
/// - A call ends within a bounded time.
#[async_trait]
pub trait Strategy: Send + Sync {
    /// Makes ready to issue; called once, before the first `issue`, when the issuer opens. A strategy that can start without its storage
    /// does so, and says in the log what it lacks.
    ///
    /// # Errors
    ///
    /// [`IssueError`] when it could not issue anything.
    async fn init(&self) -> Result<(), IssueError>;

    /// Takes one number from memory, without waiting: the hot path.
    ///
    /// # Errors
    ///
    /// [`TryIssueError::WouldWait`] when [`issue`](Self::issue) has to be asked, which is always right, and
    /// what an implementation without a hot path answers.
    fn try_issue(&self) -> Result<u64, TryIssueError> {
        Err(TryIssueError::WouldWait)
    }

    /// Takes `count` numbers, 1 or more, waiting for storage if need be, for a bounded time.
    ///
    /// # Errors
    ///
    /// [`IssueError`]; its type says whether the same call may work later.
    async fn issue(&self, count: u32) -> Result<Issued, IssueError>;

    /// Lets the next segment that this process takes from storage hold `step` numbers, as a call asked for.
    ///
    /// # Errors
    ///
    /// How to correct the step, when it is out of the tag's range or numbers do not come in segments.
    fn ask_step(&self, _step: u64) -> Result<(), String> {
        Err("its numbers do not come in segments; leave step out".to_owned())
    }

    /// The parts of a number, where the strategy can tell them.
    fn parts(&self, _number: u64) -> Vec<Part> {
        Vec::new()
    }

    /// How it stands, for metrics and for people. Must not wait.
    fn status(&self) -> Status {
        Status::default()
    }

    /// Ends background work, and returns when it has ended. Numbers that are at hand may still be taken.
    async fn shutdown(&self) {}
}

/// A part of a number, such as the time in a snowflake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Its value, for people.
    pub value: String,
}

/// How a strategy stands; what it cannot know is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Numbers issued or passed over since the start.
    pub issued: u64,
    /// Numbers that can be issued without asking storage.
    pub left: Option<u64>,
    /// How long these last at the present rate.
    pub lasts: Option<Duration>,
    /// The present problem.
    pub trouble: Option<String>,
}

impl Status {
    /// Whether something is wrong and nothing is at hand that could be issued meanwhile.
    pub fn cannot_issue(&self) -> bool {
        self.trouble.is_some() && self.left.unwrap_or(0) == 0
    }
}

/// Why `try_issue` handed out nothing.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum TryIssueError {
    /// There is none in memory, or taking it needs more care: call `issue`.
    #[error("no number is at hand; wait with issue()")]
    WouldWait,
}

/// Why `init` or `issue` handed out nothing.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum IssueError {
    /// The same call may work later: storage is away, or the clock went back. The text says which, and what to do.
    #[error("{0}")]
    Retryable(String),
    /// Asking again cannot help: numbers are used up, or something is configured wrongly.
    #[error("{0}")]
    Final(String),
}
