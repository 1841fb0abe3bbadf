//! What a new name and a new password are held to.

use std::ops::RangeInclusive;

use super::AccountError;
use crate::domain::is_visible;

/// Characters of a name.
const NAME_CHARACTERS: RangeInclusive<usize> = 1..=40;
/// Characters of a password.
pub(super) const PASSWORD_CHARACTERS: RangeInclusive<usize> = 8..=200;

/// Whether an account, of whatever age, can have this name.
pub(super) fn has_length_of_name(name: &str) -> bool {
    NAME_CHARACTERS.contains(&name.chars().count())
}

/// The name without spaces around it, if a new account can have it.
pub(super) fn checked_name(name: &str) -> Result<&str, AccountError> {
    match name.trim() {
        name if has_length_of_name(name) && is_visible(name) => Ok(name),
        _ => Err(AccountError::BadName),
    }
}

/// Refuses a password that a new one cannot be.
pub(super) fn check_password(password: &str) -> Result<(), AccountError> {
    match PASSWORD_CHARACTERS.contains(&password.chars().count()) {
        true => Ok(()),
        false => Err(AccountError::BadPassword),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_trimmed_short_and_visible() {
        assert_eq!(checked_name("  Ann Lee ").ok(), Some("Ann Lee"));
        assert_eq!(checked_name(&"é".repeat(40)).ok().map(|name| name.chars().count()), Some(40));
        for bad in ["", "  ", "a\nb", "a\u{202e}b", "a\u{200b}b", &"x".repeat(41)] {
            assert!(checked_name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_password_is_long_enough_and_not_endless() {
        for (length, good) in [(7, false), (8, true), (200, true), (201, false)] {
            assert_eq!(check_password(&"é".repeat(length)).is_ok(), good, "{length}");
        }
    }
}
