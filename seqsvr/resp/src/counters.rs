//! The seam behind the protocol: what hands out the numbers of a key. The program has one for a file, for the sections of
//! a cluster, and for the tags of the issuer.

use std::fmt::Write as _;

use async_trait::async_trait;

/// Counters by key.
///
/// Rules that every implementation keeps:
///
/// - Of one key, a number that is handed out later is larger, or, of a tag whose numbers have another order, at least never given twice.
/// - A number is handed out only when nothing that may happen to the process can bring it again.
/// - Every call ends within a bounded time.
#[async_trait]
pub trait KeyCounters: Send + Sync + 'static {
    /// Takes `count` adjacent numbers, 1 or more, without waiting, and answers with the last of them.
    ///
    /// # Errors
    ///
    /// [`TryTake::Later`]: call [`take`](Self::take), which waits.
    fn try_take(&self, key: &[u8], count: u64) -> Result<u64, TryTake>;

    /// Takes `count` adjacent numbers, 1 or more, and answers with the last of them.
    ///
    /// # Errors
    ///
    /// [`Refused`]; nothing was handed out to anybody else.
    async fn take(&self, key: &[u8], count: u64) -> Result<u64, Refused>;

    /// Says that these numbers will be taken soon, so that what many keys wait for comes in one go.
    fn expect(&self, key: &[u8], count: u64) {
        let _ = (key, count);
    }

    /// The last number that was handed out, or an upper bound of it; `None`: the key has none.
    ///
    /// # Errors
    ///
    /// [`Refused`].
    async fn last(&self, key: &[u8]) -> Result<Option<u64>, Refused>;

    /// Makes everything handed out from now on larger than `at_least`.
    ///
    /// # Errors
    ///
    /// [`Refused`], also when the counter stands higher: it never goes back.
    async fn advance(&self, key: &[u8], at_least: u64) -> Result<(), Refused>;

    /// Lines for `INFO`: `name:value`.
    fn describe(&self) -> String {
        String::new()
    }
}

/// Why nothing was taken without waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TryTake {
    /// It has to wait for something.
    Later,
    /// It never will be.
    Refused(Refused),
}

/// Why a call did nothing, in the words of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    code: &'static str,
    text: String,
}

impl Refused {
    /// Asking again cannot help; the text says what to do.
    pub fn ever(text: impl Into<String>) -> Self {
        Self { code: "ERR", text: text.into() }
    }

    /// The same call may succeed later.
    pub fn now(text: impl Into<String>) -> Self {
        Self { code: "TRYAGAIN", text: text.into() }
    }

    /// `ERR`, or `TRYAGAIN` where the same call may succeed later.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// What happened, and what to do.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A key as errors show it: at most 64 characters, nothing that a terminal would obey.
pub(crate) fn shown(key: &[u8]) -> String {
    let text = String::from_utf8_lossy(&key[..key.len().min(64)]);
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            // Writing to a string cannot fail.
            let _ = write!(shown, "{}", character.escape_default());
        } else {
            shown.push(character);
        }
    }
    if key.len() > 64 {
        shown.push('…');
    }
    shown
}
