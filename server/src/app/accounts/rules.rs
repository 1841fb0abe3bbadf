//! The rules for a new name and a new password.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use super::AccountError;
use crate::domain::{is_visible, name_key, normal_name, normal_password};

/// Characters of a name.
const NAME_CHARACTERS: RangeInclusive<usize> = 1..=40;
/// Characters of a password in its normal form.
const PASSWORD_CHARACTERS: RangeInclusive<usize> = 8..=200;

/// Whether an account, new or old, can have a name of this length.
pub(super) fn has_length_of_name(name: &str) -> bool {
    NAME_CHARACTERS.contains(&name.chars().count())
}

/// The name as it is kept, if a new account can have it.
pub(super) fn checked_name(name: &str) -> Result<String, AccountError> {
    match normal_name(name) {
        name if has_length_of_name(&name) && is_visible(&name) => Ok(name),
        _ => Err(AccountError::BadName),
    }
}

/// Whether no account has a password of this length.
pub(super) fn is_too_long(password: &str) -> bool {
    normal_password(password).chars().count() > *PASSWORD_CHARACTERS.end()
}

/// The most frequent passwords in lists of stolen ones, in small letters. Attackers try them first.
static COMMON_PASSWORDS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| include_str!("common_passwords.txt").lines().collect());

/// Refuses a password that a new one of the account called `name` cannot be.
pub(super) fn check_password(password: &str, name: &str) -> Result<(), AccountError> {
    let password = normal_password(password);
    if !PASSWORD_CHARACTERS.contains(&password.chars().count()) {
        return Err(AccountError::BadPassword);
    }
    let written = password.to_lowercase();
    match COMMON_PASSWORDS.contains(&*written) || written == name_key(&normal_name(name)) {
        true => Err(AccountError::CommonPassword),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_trimmed_short_and_visible() {
        assert_eq!(checked_name("  Ann Lee ").ok().as_deref(), Some("Ann Lee"));
        assert_eq!(checked_name(&"e\u{301}".repeat(40)).ok(), Some("é".repeat(40)));
        assert_eq!(checked_name(&"é".repeat(40)).ok().map(|name| name.chars().count()), Some(40));
        for bad in ["", "  ", "a\nb", "a\u{202e}b", "a\u{200b}b", &"x".repeat(41)] {
            assert!(checked_name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_password_is_long_enough_and_not_endless() {
        for (length, good) in [(7, false), (8, true), (200, true), (201, false)] {
            assert_eq!(check_password(&"é".repeat(length), "Ann").is_ok(), good, "{length}");
            assert_eq!(check_password(&"e\u{301}".repeat(length), "Ann").is_ok(), good, "{length}");
        }
    }

    #[test]
    fn what_is_tried_first_is_no_password() {
        for common in ["password", "PassWord1", "12345678", "qwertyuiop", "ann lee 7"] {
            let refused = check_password(common, "Ann Lee 7");
            assert!(matches!(refused, Err(AccountError::CommonPassword)), "{common}");
        }
        assert!(check_password("ann lee 7", "Ben").is_ok());
        assert!(check_password("Zoe\u{308} Zoe\u{308}", "zo\u{eb} zo\u{eb}").is_err());
        assert!(COMMON_PASSWORDS.len() > 200);
    }
}
