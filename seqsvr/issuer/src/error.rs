//! The errors that callers of the issuer get. One variant a fact; whether the same call may work later is in [`NextError::is_retryable`].

use thiserror::Error;

use super::strategy::IssueError;
use super::tag::BadTag;

/// Why no number was issued, or none decoded.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NextError {
    /// No tag can have this name.
    #[error(transparent)]
    BadTag(#[from] BadTag),
    /// The configuration has no such tag.
    #[error("unknown tag {tag:?}; configured are: {known}")]
    UnknownTag {
        /// The requested tag.
        tag: String,
        /// The tags that there are, at most some of them.
        known: String,
    },
    /// `count` is 0 or more than one call may take.
    #[error("asked for {count} numbers of {tag}; ask for 1 to {max}")]
    BadCount {
        /// The tag.
        tag: String,
        /// The requested count.
        count: u32,
        /// The most that one call may take.
        max: u32,
    },
    /// The step is out of the tag's range, or the tag has none.
    #[error("step = {step} is not possible for {tag}: {problem}")]
    BadStep {
        /// The tag.
        tag: String,
        /// The requested step.
        step: u64,
        /// How to correct it.
        problem: String,
    },
    /// A plugin said no.
    #[error("{plugin} refuses numbers of {tag}: {reason}")]
    Vetoed {
        /// The tag.
        tag: String,
        /// The plugin's name.
        plugin: String,
        /// Why.
        reason: String,
    },
    /// The text to decode is neither a number nor a code of the tag.
    #[error("{code:?} is not a number or code of {tag}: {problem}")]
    BadCode {
        /// The tag.
        tag: String,
        /// The given text.
        code: String,
        /// The problem with it.
        problem: String,
    },
    /// The strategy has none.
    #[error(transparent)]
    Issue(#[from] IssueError),
}

impl NextError {
    /// Whether the same call may work later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Issue(IssueError::Retryable(_)))
    }
}

/// Why an issuer could not be opened.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OpenError {
    /// Something is configured wrongly; the text says what to do.
    #[error("{0}")]
    Bad(String),
    /// No tag can have this name.
    #[error(transparent)]
    BadTag(#[from] BadTag),
    /// A strategy cannot issue anything.
    #[error(transparent)]
    Issue(#[from] IssueError),
}
