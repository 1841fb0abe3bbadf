//! The name of a business tag, valid once constructed.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

/// The most bytes in a name.
const LONGEST: usize = 64;

/// The name under which one kind of number is issued (`biz_tag`): 1 to 64 of `a` to `z`, `0` to `9`, `_`, `.`
/// and `-`. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(Arc<str>);

/// A name that cannot be a [`Tag`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("bad tag name {0:?}: use 1 to {LONGEST} of a-z, 0-9, '_', '.' and '-'")]
pub struct BadTag(pub String);

impl Tag {
    /// Checks a name.
    ///
    /// # Errors
    ///
    /// [`BadTag`] for a name outside `[a-z0-9_.-]{1,64}`.
    pub fn new(name: &str) -> Result<Self, BadTag> {
        let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-');
        if (1..=LONGEST).contains(&name.len()) && name.bytes().all(fits) {
            return Ok(Self(name.into()));
        }
        Err(BadTag(name.chars().take(LONGEST + 1).collect()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for Tag {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl FromStr for Tag {
    type Err = BadTag;

    fn from_str(name: &str) -> Result<Self, BadTag> {
        Self::new(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_lower_case_letters_digits_and_three_signs() {
        for good in ["a", "order-number", "user.id_2", &"x".repeat(64)] {
            assert_eq!(Tag::new(good).map(|tag| tag.to_string()), Ok(good.to_owned()));
        }
        for bad in ["", "Order", "a b", "a/b", "número", &"x".repeat(65)] {
            assert_eq!(Tag::new(bad), Err(BadTag(bad.to_owned())));
        }
        assert_eq!(Tag::new(&"x".repeat(100_000)), Err(BadTag("x".repeat(65))));
    }
}
