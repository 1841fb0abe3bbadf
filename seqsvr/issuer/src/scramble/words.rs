//! Words that no code may hold, whatever their letters' case. Pure.

use thiserror::Error;

/// A word that cannot be blocked.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the word {0:?} cannot be blocked; use 2 or more visible ASCII characters")]
pub struct BadWord(pub String);

#[derive(Debug, Default)]
pub(super) struct Words(Vec<String>);

impl Words {
    pub(super) fn new(words: &[String]) -> Result<Self, BadWord> {
        // A single symbol would block most codes.
        let good = |word: &&String| word.len() >= 2 && word.bytes().all(|byte| byte.is_ascii_graphic());
        match words.iter().find(|word| !good(word)) {
            Some(word) => Err(BadWord(word.clone())),
            None => Ok(Self(words.to_vec())),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a code holds one of them.
    pub(super) fn hit(&self, code: &[u8]) -> bool {
        let holds =
            |word: &String| code.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()));
        self.0.iter().any(holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_in_any_case_and_at_any_place() {
        let words = Words::new(&["Bad".to_owned(), "x1".to_owned()]).unwrap();
        for (code, hit) in [("bad", true), ("9BAd", true), ("zX1z", true), ("b2ad", false), ("", false)] {
            assert_eq!(words.hit(code.as_bytes()), hit, "{code}");
        }
    }

    #[test]
    fn what_would_block_everything_or_nothing_is_refused() {
        for word in ["", "a", "b d", "schön"] {
            assert_eq!(Words::new(&[word.to_owned()]).unwrap_err(), BadWord(word.to_owned()));
        }
    }
}
