//! The answer when no number can be issued (S26). Replaceable for each tag; the issuer's service asks.

use super::error::NextError;
use super::tag::Tag;

/// The answer that a caller gets in place of a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instead {
    /// The error.
    Error,
    /// Numbers of another tag, which the answer names. Whether they fit is the configuration's concern.
    Tag(Tag),
}

/// Decides the answer when no number can be issued. Not asked about wrong requests and vetoes.
pub trait Rejected: Send + Sync {
    /// The caller's answer.
    fn rejected(&self, tag: &Tag, error: &NextError) -> Instead;

    /// The tag that it may fall back to, so that a wrong one is found when the issuer is opened.
    fn falls_back_to(&self) -> Option<&Tag> {
        None
    }
}

/// Logs, and answers with the error: the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Log;

/// Answers with numbers of another tag, and logs that.
#[derive(Clone, Debug)]
pub struct FallBack(pub Tag);

impl Rejected for Log {
    fn rejected(&self, tag: &Tag, error: &NextError) -> Instead {
        tracing::warn!(%tag, %error, "no number issued");
        Instead::Error
    }
}

impl Rejected for FallBack {
    fn rejected(&self, tag: &Tag, error: &NextError) -> Instead {
        tracing::warn!(%tag, %error, instead = %self.0, "no number issued; falling back");
        Instead::Tag(self.0.clone())
    }

    fn falls_back_to(&self) -> Option<&Tag> {
        Some(&self.0)
    }
}
