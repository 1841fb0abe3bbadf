//! The terms of a text, under which an index keeps it: its words, and pairs of characters where words stand without spaces.
//!
//! Every part of a word lies within one of its terms, so that a look through the terms finds all words with that part. Stored
//! in indexes; must stay stable.

use super::fold::{GAP, is_spaceless};

/// Characters of a word that are one term. Of a longer one, terms of so many characters begin at every [`STEP`]th.
const WINDOW: usize = 24;
const STEP: usize = 12;
/// A part of so many characters lies within one term, wherever in its word it begins.
pub(super) const WITHIN_ONE: usize = WINDOW - STEP + 1;

/// The nature of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TermClass {
    /// A conversation.
    Conversation,
    /// Two adjacent characters of a script without spaces, or one that stands alone.
    Pair,
    /// A sender.
    Sender,
    /// A word, or a window of a long one.
    Word,
}

impl TermClass {
    /// The first character of its terms: none that a folded text has.
    pub fn letter(self) -> char {
        match self {
            TermClass::Conversation => 'C',
            TermClass::Pair => 'P',
            TermClass::Sender => 'S',
            TermClass::Word => 'W',
        }
    }
}

/// Calls `each` with the terms of a folded text; one may come more than once.
pub fn each_term(folded: &str, mut each: impl FnMut(TermClass, &str)) {
    for word in folded.split(GAP).filter(|word| !word.is_empty()) {
        each_run(
            word,
            |run, spaceless| if spaceless { pairs(run, &mut each) } else { windows(run, &mut each) },
        );
    }
}

/// Cuts a word where scripts with spaces and those without them meet.
pub(super) fn each_run(word: &str, mut each: impl FnMut(&str, bool)) {
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let spaceless = is_spaceless(first);
        let end = rest.find(|part| is_spaceless(part) != spaceless).unwrap_or(rest.len());
        each(&rest[..end], spaceless);
        rest = &rest[end..];
    }
}

/// Adjacent characters of a run, two by two; the only one, if it has no other.
fn pairs(run: &str, each: &mut impl FnMut(TermClass, &str)) {
    let starts = || run.char_indices().map(|(at, _)| at);
    let ends = starts().skip(2).chain([run.len()]);
    starts().zip(ends).for_each(|(start, end)| each(TermClass::Pair, &run[start..end]));
}

fn windows(run: &str, each: &mut impl FnMut(TermClass, &str)) {
    // Bytes bound characters from above.
    let starts: Vec<usize> = match run.len() > WINDOW {
        true => run.char_indices().map(|(at, _)| at).collect(),
        false => Vec::new(),
    };
    if starts.len() <= WINDOW {
        return each(TermClass::Word, run);
    }
    let place = |character: usize| starts.get(character).copied().unwrap_or(run.len());
    let last = starts.len() - WINDOW;
    for from in (0..last).step_by(STEP).chain([last]) {
        each(TermClass::Word, &run[place(from)..place(from + WINDOW)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(folded: &str) -> Vec<String> {
        let mut terms = Vec::new();
        each_term(folded, |class, term| terms.push(format!("{}{term}", class.letter())));
        terms
    }

    #[test]
    fn words_are_whole_and_scripts_without_spaces_come_in_pairs() {
        assert_eq!(terms("low  tide 9"), ["Wlow", "Wtide", "W9"]);
        assert_eq!(terms("我在北京"), ["P我在", "P在北", "P北京"]);
        assert_eq!(terms("iphone手机x 好"), ["Wiphone", "P手机", "Wx", "P好"]);
        assert_eq!(terms("👍👍"), ["P👍👍"]);
        assert_eq!(terms(" "), Vec::<String>::new());
    }

    #[test]
    fn every_part_of_a_long_word_lies_within_a_term() {
        let letters = "абвгдежзийклмнопрстуфхцчшщъыьэюя0123456789";
        for length in [24, 25, 30, 36, 37, 42, 100] {
            let word: String = letters.chars().cycle().take(length).collect();
            let terms = terms(&word);
            assert!(terms.iter().all(|term| term.chars().count() <= WINDOW + 1));
            let characters: Vec<char> = word.chars().collect();
            for part in characters.windows(WITHIN_ONE) {
                let part: String = part.iter().collect();
                assert!(terms.iter().any(|term| term.contains(&part)), "{part} of {word}");
            }
        }
    }
}
