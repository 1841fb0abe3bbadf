//! Emoji of reactions: what one is, and the one form in which it is kept. Called by the HTTP layer and by `queue/plan`.

use unicode_properties::UnicodeEmoji as _;
use unicode_properties::emoji::{
    EmojiStatus, is_emoji_presentation_selector, is_regional_indicator, is_tag_character,
    is_text_presentation_selector, is_zwj,
};
use unicode_segmentation::UnicodeSegmentation as _;

/// Emoji of one reaction, at most.
pub const MOST_EMOJI: usize = 6;

/// Bytes of one emoji: the longest sequences (families, flags of regions) have about 40.
const EMOJI_BYTES: usize = 64;

/// Asks for the picture of a character that is else shown as text.
const PICTURE: char = '\u{fe0f}';

/// Follows a digit that is drawn as a key.
const KEYCAP: &str = "\u{fe0f}\u{20e3}";

/// The flag whose tags name a region, and the last of them.
const FLAG: char = '\u{1f3f4}';
const LAST_TAG: char = '\u{e007f}';

/// Why a reaction is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmojiError {
    /// More than there may be.
    #[error("a reaction has at most {MOST_EMOJI} emoji")]
    TooMany,
    /// Something that is no single emoji.
    #[error("each item of `emoji` is one emoji, once: no letters, spaces or control characters")]
    NotEmoji,
}

/// An emoji as it is kept, "fully qualified" as Unicode's emoji-test.txt has it: a character that is else shown as text asks for the
/// picture. Keyboards leave that out or not, and people see the same. Another text becomes something that is no emoji either.
pub fn normal_emoji(text: &str) -> String {
    let is_selector = |c: &char| is_emoji_presentation_selector(*c) || is_text_presentation_selector(*c);
    let mut characters = text.chars().filter(|c| !is_selector(c)).peekable();
    let mut normal = String::with_capacity(text.len() + PICTURE.len_utf8());
    while let Some(c) = characters.next() {
        normal.push(c);
        let is_toned = is_base(c) && characters.peek().copied().is_some_and(is_tone);
        let is_text = c.is_emoji_char() && !has_picture(c);
        if is_text && !is_toned {
            normal.push(PICTURE);
        }
    }
    normal
}

/// Whether these, in their normal form, may be what a person reacts with.
///
/// # Errors
/// When they are too many, or one is no single emoji, or there twice.
pub fn check_emoji(emoji: &[String]) -> Result<(), EmojiError> {
    if emoji.len() > MOST_EMOJI {
        return Err(EmojiError::TooMany);
    }
    let is_new = |(at, text): (usize, &String)| is_emoji(text) && !emoji[..at].contains(text);
    if emoji.iter().enumerate().all(is_new) { Ok(()) } else { Err(EmojiError::NotEmoji) }
}

/// Whether people see the text as one emoji: a flag, or pictures that are joined to one.
fn is_emoji(text: &str) -> bool {
    (1..=EMOJI_BYTES).contains(&text.len())
        && text.graphemes(true).nth(1).is_none()
        && text.split(is_zwj).all(is_element)
}

/// A part of an emoji between joiners (Unicode UTS #51, emoji_zwj_element).
fn is_element(text: &str) -> bool {
    let mut characters = text.chars();
    let Some(first) = characters.next() else { return false };
    let rest = characters.as_str();
    let next = characters.next();
    let ends = characters.next().is_none();
    match next {
        _ if first.is_ascii() => first.is_emoji_char() && rest == KEYCAP,
        _ if is_regional_indicator(first) => ends && next.is_some_and(is_regional_indicator),
        _ if !first.is_emoji_char() => false,
        None => has_picture(first),
        Some(PICTURE) => ends && !has_picture(first),
        Some(tone) if is_tone(tone) => ends && is_base(first),
        Some(_) => first == FLAG && rest.chars().all(is_tag_character) && rest.ends_with(LAST_TAG),
    }
}

/// Whether a character is shown as a picture by itself.
fn has_picture(c: char) -> bool {
    !matches!(
        c.emoji_status(),
        EmojiStatus::EmojiModifierBase | EmojiStatus::EmojiOther | EmojiStatus::EmojiOtherAndEmojiComponent
    )
}

/// Whether a tone of skin changes how a character is shown.
fn is_base(c: char) -> bool {
    matches!(c.emoji_status(), EmojiStatus::EmojiModifierBase | EmojiStatus::EmojiPresentationAndModifierBase)
}

fn is_tone(c: char) -> bool {
    matches!(c.emoji_status(), EmojiStatus::EmojiPresentationAndModifierAndEmojiComponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(emoji: &[&str]) -> Result<(), EmojiError> {
        check_emoji(&emoji.iter().map(|text| normal_emoji(text)).collect::<Vec<_>>())
    }

    #[test]
    fn a_reaction_is_emoji_and_nothing_else() {
        for good in [&[][..], &["👍", "🅰️"], &["❤️", "👨‍👩‍👧‍👦", "🇨🇳", "1️⃣", "👍🏽", "🏴󠁧󠁢󠁳󠁣󠁴󠁿"]]
        {
            assert_eq!(check(good), Ok(()), "{good:?}");
        }
        for bad in [
            "",
            "a",
            "1",
            "ok",
            "好",
            " 👍",
            "👍\u{202e}",
            "\u{0}",
            "\u{200d}",
            "\u{fe0f}",
            "123\u{fe0f}",
            "\u{2800}",
            "\u{ad}",
            "👍".repeat(17).as_str(),
        ] {
            assert_eq!(check(&[bad]), Err(EmojiError::NotEmoji), "{bad:?}");
        }
        for any in (0..=0x10_ffff).filter_map(char::from_u32) {
            // None of them is too much for the tables.
            _ = check(&[any.to_string().as_str()]);
        }
        assert_eq!(check(&["👍", "👍"]), Err(EmojiError::NotEmoji));
        assert_eq!(check(&["👍"; MOST_EMOJI + 1]), Err(EmojiError::TooMany));
    }

    #[test]
    fn an_emoji_is_one_character_as_people_see_it() {
        for many in [
            "👍👍",
            "❤❤",
            "🇨🇳🇨🇳",
            "🇨",
            "🇨🇳🇨",
            "1️⃣2️⃣",
            "👍\u{200d}",
            "\u{200d}👍",
            "👍\u{200d}\u{200d}👍",
            "🇨🇳\u{200d}🇨🇳",
            "❤️🏽",
            "👍🏽🏽",
            "👍\u{20e3}",
            "👍\u{e0067}\u{e007f}",
            "🏴\u{e0067}",
            "👍\u{301}",
        ] {
            assert_eq!(check(&[many]), Err(EmojiError::NotEmoji), "{many:?}");
        }
    }

    #[test]
    fn what_people_see_as_one_emoji_is_one_reaction() {
        for (typed, kept) in [
            ("❤", "❤\u{fe0f}"),
            ("❤\u{fe0e}", "❤\u{fe0f}"),
            ("👍\u{fe0f}", "👍"),
            ("☝🏽", "☝🏽"),
            ("☝\u{fe0f}🏽", "☝🏽"),
            ("1\u{20e3}", "1\u{fe0f}\u{20e3}"),
            ("❤\u{200d}🔥", "❤\u{fe0f}\u{200d}🔥"),
            ("👁\u{200d}🗨", "👁\u{fe0f}\u{200d}🗨\u{fe0f}"),
            ("🏳\u{200d}🌈", "🏳\u{fe0f}\u{200d}🌈"),
            ("🏃\u{200d}♂", "🏃\u{200d}♂\u{fe0f}"),
            ("🧑🏽\u{200d}🤝\u{200d}🧑🏿", "🧑🏽\u{200d}🤝\u{200d}🧑🏿"),
        ] {
            assert_eq!(normal_emoji(typed), kept, "{typed:?}");
            assert_eq!(normal_emoji(kept), kept, "{typed:?}");
            assert_eq!(check(&[typed]), Ok(()), "{typed:?}");
        }
        assert_eq!(check(&["❤", "❤️"]), Err(EmojiError::NotEmoji));
    }

    /// The page offers what the server takes, as it is kept.
    #[test]
    fn each_emoji_of_the_page_is_one_and_is_in_its_normal_form() {
        let list = concat!(env!("CARGO_MANIFEST_DIR"), "/../web/static/emoji-list.js");
        let list = std::fs::read_to_string(list).expect("the list of the page");
        let quoted = list.split('`').skip(1).step_by(2).flat_map(str::lines);
        let emoji: Vec<&str> = quoted.collect();
        assert!(emoji.len() > 1_800, "{}", emoji.len());
        for emoji in emoji {
            assert_eq!(normal_emoji(emoji), emoji);
            assert_eq!(check(&[emoji]), Ok(()), "{emoji}");
        }
    }
}
