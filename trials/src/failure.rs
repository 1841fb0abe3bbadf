//! The one error of the benchmarks and fault runs: a line for people. Nothing here is handled, only reported.

use std::fmt;

/// Why a run could not be carried out, or which promise broke.
#[derive(Clone, Debug)]
pub struct Failure(String);

/// The result of everything here.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure with these words.
    pub fn new(words: impl Into<String>) -> Failure {
        Failure(words.into())
    }

    /// How many of these there are, and the first of them.
    pub(crate) fn of(broken: &[String], what: &str) -> Failure {
        let shown = broken.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n  ");
        Failure(format!("{} {what}:\n  {shown}", broken.len()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Every error of the libraries used here becomes its text; `Failure` itself is no `Error`, so that this holds for all.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut words = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            words = format!("{words}: {inner}");
            cause = inner.source();
        }
        Failure(words)
    }
}
