//! Which characters the name of an account or a group may have: those that people see. Others would let one name look
//! like another one.

use unicode_properties::{GeneralCategory, UnicodeEmoji as _, UnicodeGeneralCategory as _};

/// Joins two emoji to one.
const ZERO_WIDTH_JOINER: char = '\u{200d}';
/// Asks for the coloured form of an emoji.
const EMOJI_FORM: char = '\u{fe0f}';

/// Whether `name`, which has no spaces around it, has visible characters alone and single spaces between them. Of what is not seen by
/// itself only that passes which makes up an emoji.
pub fn is_visible(name: &str) -> bool {
    let mut before = None;
    let mut characters = name.chars().peekable();
    while let Some(c) = characters.next() {
        let passes = match c {
            ' ' => before != Some(' '),
            EMOJI_FORM => before.is_some_and(is_emoji),
            ZERO_WIDTH_JOINER => {
                before.is_some_and(|c| is_emoji(c) || c == EMOJI_FORM)
                    && characters.peek().copied().is_some_and(is_emoji)
            }
            c => is_seen(c),
        };
        if !passes {
            return false;
        }
        before = Some(c);
    }
    true
}

/// Digits are no emoji here, though Unicode says so for the sake of keycaps.
fn is_emoji(c: char) -> bool {
    !c.is_ascii() && c.is_emoji_char()
}

/// Whether a character is seen by itself, or changes what stands before it visibly.
fn is_seen(c: char) -> bool {
    let is_seen = !matches!(
        c.general_category(),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
            | GeneralCategory::SpaceSeparator
            | GeneralCategory::PrivateUse
    );
    is_seen && !is_ignorable(c)
}

/// Characters of other categories that are shown as nothing, or as a space: Default_Ignorable_Code_Point in Unicode's
/// DerivedCoreProperties, and the blank pattern of Braille.
fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2065}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_scripts_are_visible() {
        for name in [
            "Ann Lee",
            "O'Neill-Müller 2",
            "Zoë",
            "e\u{301}",
            "Ангелина",
            "王小明",
            "山田太郎",
            "이영희",
            "अनिता",
            "ทักษิณ",
            "علی",
            "שרה",
            "🐙",
            "Ann ❤\u{fe0f}",
            "👩\u{200d}💻",
            "👩🏽\u{200d}💻",
            "❤\u{fe0f}\u{200d}🔥",
        ] {
            assert!(is_visible(name), "{name:?}");
        }
    }

    #[test]
    fn what_is_not_seen_is_noticed_wherever_it_stands() {
        let unseen = "\u{0}\n\u{7f}\u{85}\u{a0}\u{ad}\u{34f}\u{61c}\u{115f}\u{1160}\u{17b4}\u{180e}\u{2003}\u{200b}\u{200c}\
                      \u{200d}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\u{2063}\u{2065}\u{2066}\u{2069}\u{206f}\u{2800}\
                      \u{3000}\u{3164}\u{e000}\u{fe00}\u{fe0f}\u{feff}\u{ffa0}\u{fff9}\u{1d173}\u{e0001}\u{e0061}\u{e0100}\u{f0000}";
        for c in unseen.chars() {
            for name in
                [format!("{c}Ann"), format!("A{c}nn"), format!("Ann{c}"), format!("王{c}"), format!("1{c}")]
            {
                assert!(!is_visible(&name), "{name:?}");
            }
        }
        for name in [
            "Ann  Lee",
            "🐙\u{200d}",
            "\u{200d}🐙",
            "🐙\u{200d}\u{200d}🐙",
            "🐙\u{fe0f}\u{fe0f}",
            "🐙\u{200d}a",
        ] {
            assert!(!is_visible(name), "{name:?}");
        }
    }
}
