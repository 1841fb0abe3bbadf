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
    use std::sync::Arc;

    use super::super::{AccountOptions, Accounts, SignUp};
    use super::*;
    use crate::domain::{Clock, Timestamp};
    use crate::seq::Ids;
    use crate::store::Directory;

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

    /// Keyboards write the same letters in different ways.
    #[tokio::test]
    async fn names_and_passwords_are_the_same_in_every_normal_form() {
        let directory = Arc::new(Directory::in_memory());
        let options = AccountOptions {
            sign_up: SignUp::Open,
            open_invites: 1,
            sign_ups_per_invite: 1,
            session_days: 1,
            password_memory_kib: 8,
        };
        let accounts = Accounts::new(directory, options, Clock::new(|| Timestamp(7)));
        let ids = Ids::in_memory("a secret of the tests").await.expect("opens");
        let (composed, apart) = ("Zo\u{eb}", "Zoe\u{308}");
        let password = |name: &str| format!("{name} 1234567");
        let made = accounts.sign_up((apart, password(apart)), None, String::new(), &ids).await.expect("made");
        assert_eq!(made.0.name, composed);
        let taken = accounts.sign_up((composed, password("x")), None, String::new(), &ids).await;
        assert!(matches!(taken, Err(AccountError::NameTaken)), "{taken:?}");
        for (name, password) in [(composed, password(apart)), (apart, password(composed))] {
            let signed_in = accounts.log_in(name, password.clone(), String::new(), None).await;
            assert_eq!(signed_in.expect("right").uid, made.0.uid);
            let known = accounts.known_device(name, &made.0.device.text).await.expect("asked");
            assert!(known.is_some(), "{name:?}");
        }
        let code = &made.1.texts()[0];
        let spaced = "new\u{a0}pa\u{df}word".to_owned();
        accounts.recover(apart, code, spaced.clone(), String::new()).await.expect("recovered");
        let signed_in = accounts.log_in(composed, spaced.replace('\u{a0}', " "), String::new(), None).await;
        assert_eq!(signed_in.expect("right").uid, made.0.uid);
        assert_eq!(accounts.disable(apart).await.expect("known"), made.0.uid);
    }
}
