//! The form of a text in which it is compared: NFKD of Unicode without accents, case folded; all that belongs to no word is a gap.
//!
//! An index on disk holds terms of this form. A change here needs another `FORMAT` there.

use unicode_normalization::char::{canonical_combining_class, decompose_compatible};
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};

/// Stands between words.
pub(super) const GAP: char = ' ';

/// The form of `text` in which it is compared.
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    text.chars().for_each(|character| fold_character(character, |part| folded.push(part)));
    folded
}

/// The same, with the place of each of its bytes in `text`, counted in characters; and which characters leave nothing.
pub(super) fn fold_with_places(text: &str) -> (String, Vec<u32>, Vec<bool>) {
    let (mut folded, mut places, mut leaves_nothing) = (String::new(), Vec::new(), Vec::new());
    for (place, character) in (0..).zip(text.chars()) {
        let before = folded.len();
        fold_character(character, |part| folded.push(part));
        places.resize(folded.len(), place);
        leaves_nothing.push(folded.len() == before);
    }
    (folded, places, leaves_nothing)
}

fn fold_character(character: char, mut push: impl FnMut(char)) {
    match character {
        'a'..='z' | '0'..='9' | '\u{4e00}'..='\u{9fff}' => push(character),
        'A'..='Z' => push(character.to_ascii_lowercase()),
        '\0'..='\u{7f}' => push(GAP),
        _ => decompose_compatible(character, |part| fold_part(part, &mut push)),
    }
}

fn fold_part(part: char, push: &mut impl FnMut(char)) {
    if part.is_ascii() {
        return push(if part.is_ascii_alphanumeric() { part.to_ascii_lowercase() } else { GAP });
    }
    if is_left_out(part) {
        return;
    }
    match part.general_category_group() {
        GeneralCategoryGroup::Letter => {
            // By way of the capitals, so that ß meets ss, and ς meets σ.
            let small = part.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
            small.filter(|part| !is_left_out(*part)).for_each(push);
        }
        GeneralCategoryGroup::Mark | GeneralCategoryGroup::Number => push(part),
        _ if is_picture(part) => push(part),
        _ => push(GAP),
    }
}

/// Accents, points of Hebrew and Arabic, and what nobody sees. Vowel signs, which are marks, too, stay: they are no ornament.
fn is_left_out(part: char) -> bool {
    let class = canonical_combining_class(part) as u8;
    (10..=36).contains(&class)
        || class >= 200
        || matches!(part, '\u{34f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
        || part.general_category() == GeneralCategory::Format
}

/// Emoji and other pictures: words by themselves.
fn is_picture(part: char) -> bool {
    part.general_category() == GeneralCategory::OtherSymbol
}

/// Whether words of its script stand side by side without spaces, or it is a word by itself.
pub(super) fn is_spaceless(part: char) -> bool {
    match part {
        '\0'..='\u{dff}' => false,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' => true,
        '\u{3040}'..='\u{312f}' | '\u{31a0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' => true,
        '\u{4e00}'..='\u{a4cf}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' => true,
        _ => is_picture(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_accents_and_forms_of_letters_do_not_matter() {
        for (text, folded) in [
            ("Café", "cafe"),
            ("CAFE\u{301}", "cafe"),
            ("Straße", "strasse"),
            ("STRASSE", "strasse"),
            ("ẞ", "ss"),
            ("Ὀδυσσεύς", "οδυσσευσ"),
            ("İstanbul ılık", "istanbul ilik"),
            ("ﬁne ½", "fine 1 2"),
            ("ＡＢＣ１２", "abc12"),
            ("Ёлка", "елка"),
            ("שָׁלוֹם", "שלום"),
            ("مَرْحَبًا", "مرحبا"),
            ("soft\u{ad}ware zero\u{200b}width", "software zerowidth"),
            ("don't, foo_bar", "don t  foo bar"),
            ("漢字かな", "漢字かな"),
            ("👍\u{fe0f} ok", "👍 ok"),
        ] {
            assert_eq!(fold(text), folded, "{text}");
        }
    }

    #[test]
    fn vowels_of_scripts_that_write_them_as_marks_stay() {
        assert_ne!(fold("कि"), fold("का"));
        assert_ne!(fold("กา"), fold("กี"));
        assert_ne!(fold("が"), fold("か"));
    }

    #[test]
    fn each_byte_knows_its_character() {
        let (folded, places, leaves_nothing) = fold_with_places("e\u{301}ß漢");
        assert_eq!(folded, "ess漢");
        assert_eq!(places, [0, 2, 2, 3, 3, 3]);
        assert_eq!(leaves_nothing, [false, true, false, false]);
    }
}
