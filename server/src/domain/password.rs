//! Passwords: the form in which one is hashed and counted.

use unicode_normalization::UnicodeNormalization as _;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};

/// A password in the form in which it is hashed: any space is U+0020, and letters are composed (NFC), as OpaqueString of RFC 8265 says.
/// Keyboards write the same letters in different ways.
pub fn normal_password(password: &str) -> String {
    let is_space = |c: char| c.general_category() == GeneralCategory::SpaceSeparator;
    password.chars().map(|c| if is_space(c) { ' ' } else { c }).nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_the_same_whatever_keyboard_writes_it() {
        for (typed, normal) in [
            ("correct horse", "correct horse"),
            ("cafe\u{301} cre\u{300}me", "caf\u{e9} cr\u{e8}me"),
            ("a\u{a0}b\u{3000}c\u{2003}d", "a b c d"),
            ("\u{1112}\u{1161}\u{11ab}", "\u{d55c}"),
            ("A\tb\u{200b}\u{ff21}", "A\tb\u{200b}\u{ff21}"),
        ] {
            assert_eq!(normal_password(typed), normal, "{typed:?}");
            assert_eq!(normal_password(normal), normal, "{typed:?}");
        }
    }
}
