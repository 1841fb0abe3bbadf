//! What is looked for, and where it stands in a text.

use super::fold::{GAP, fold, fold_with_places};
use super::terms::{TermClass, WITHIN_ONE, each_run};

/// Characters of a search.
pub const LONGEST_SEARCH: usize = 200;

/// Words of a search.
pub const MOST_SEARCH_WORDS: usize = 20;

/// Places of one text that are told.
const MOST_MARKS: usize = 100;

/// Why words are not looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// Too many characters.
    #[error("the search has {characters} characters; at most {LONGEST_SEARCH} are looked for")]
    TooLong {
        /// Its length in Unicode scalar values.
        characters: usize,
    },
    /// Too many words.
    #[error("the search has {words} words; at most {MOST_SEARCH_WORDS} are looked for")]
    TooManyWords {
        /// How many.
        words: usize,
    },
    /// Only spaces and punctuation.
    #[error("the search has no letter, digit or emoji; write a word, or a part of one")]
    NoWord,
}

/// A part of a search that a text must have among its terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TermPart {
    /// This term.
    Whole(TermClass, String),
    /// A term of this class with these characters in it.
    Within(TermClass, String),
}

/// The words of a search, each of which a text must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchWords {
    folded: Vec<String>,
}

impl SearchWords {
    /// Reads what a person has written.
    ///
    /// # Errors
    /// When it is too long, or nothing in it can be looked for.
    pub fn new(text: &str) -> Result<SearchWords, SearchError> {
        // Not more than is needed to refuse it.
        if text.len() > LONGEST_SEARCH {
            let characters = text.chars().count();
            if characters > LONGEST_SEARCH {
                return Err(SearchError::TooLong { characters });
            }
        }
        let text = fold(text);
        let mut folded: Vec<String> = Vec::new();
        for word in text.split(GAP).filter(|word| !word.is_empty()) {
            if !folded.iter().any(|known| known.contains(word)) {
                folded.retain(|known| !word.contains(&**known));
                folded.push(word.to_owned());
            }
        }
        match folded.len() {
            0 => Err(SearchError::NoWord),
            words if words > MOST_SEARCH_WORDS => Err(SearchError::TooManyWords { words }),
            _ => Ok(SearchWords { folded }),
        }
    }

    /// Whether all of them stand in `text`.
    pub fn are_in(&self, text: &str) -> bool {
        let text = fold(text);
        self.folded.iter().all(|word| text.contains(&**word))
    }

    /// Where they stand in `text`: from which character (Unicode scalar value) up to before which, in order, at most 100 places.
    pub fn marks(&self, text: &str) -> Vec<(u32, u32)> {
        let (folded, places, leaves_nothing) = fold_with_places(text);
        let mut marks: Vec<(u32, u32)> = Vec::new();
        for word in &self.folded {
            for (at, _) in folded.match_indices(&**word).take(MOST_MARKS) {
                let mut end = places[at + word.len() - 1] + 1;
                // The accents of its last letter.
                while leaves_nothing.get(end as usize) == Some(&true) {
                    end += 1;
                }
                marks.push((places[at], end));
            }
        }
        marks.sort_unstable();
        let mut apart: Vec<(u32, u32)> = Vec::with_capacity(marks.len());
        for (start, end) in marks {
            match apart.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => apart.push((start, end)),
            }
        }
        apart.truncate(MOST_MARKS);
        apart
    }

    /// What the terms of a text with all of them have; a text that has it need not have the words.
    pub fn term_parts(&self) -> Vec<TermPart> {
        let mut parts = Vec::new();
        for word in &self.folded {
            each_run(
                word,
                |run, spaceless| {
                    if spaceless { pair_parts(run, &mut parts) } else { word_parts(run, &mut parts) }
                },
            );
        }
        parts
    }
}

fn pair_parts(run: &str, parts: &mut Vec<TermPart>) {
    let characters: Vec<char> = run.chars().collect();
    match characters[..] {
        // The first or the second of a pair.
        [_] => parts.push(TermPart::Within(TermClass::Pair, run.to_owned())),
        _ => parts.extend(
            characters.windows(2).map(|pair| TermPart::Whole(TermClass::Pair, pair.iter().collect())),
        ),
    }
}

fn word_parts(run: &str, parts: &mut Vec<TermPart>) {
    let characters: Vec<char> = run.chars().collect();
    let within = |part: &[char]| TermPart::Within(TermClass::Word, part.iter().collect());
    match characters.len() {
        0..=WITHIN_ONE => parts.push(within(&characters)),
        length => {
            parts.extend(characters.chunks_exact(WITHIN_ONE).map(within));
            parts.push(within(&characters[length - WITHIN_ONE..]));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::search::each_term;

    fn words(text: &str) -> SearchWords {
        SearchWords::new(text).expect(text)
    }

    #[test]
    fn parts_of_words_are_found_in_any_script() {
        for (text, search) in [
            ("Low tide is at nine", "TIDE low"),
            ("Low tide is at nine", "id"),
            ("Crème brûlée", "creme BRULEE"),
            ("我们明天去北京开会", "北京"),
            ("我们明天去北京开会", "京"),
            ("買了iPhone手機", "phone手"),
            ("Встреча в Одессе", "одесс"),
            ("안녕하세요", "안녕"),
            ("สวัสดีครับ", "สวัส"),
            ("see https://example.org/a?b=c", "example.org/a"),
            ("party 🎉🎉 tonight", "🎉"),
        ] {
            assert!(words(search).are_in(text), "{search} in {text}");
        }
        for (text, search) in
            [("Low tide", "tides"), ("low tide", "wtide"), ("北风吹京城", "北京"), ("Low tide", "low high")]
        {
            assert!(!words(search).are_in(text), "{search} in {text}");
        }
    }

    #[test]
    fn marks_cover_whole_characters_and_do_not_overlap() {
        assert_eq!(words("tide ide si").marks("Low tide, side"), [(4, 8), (10, 12)]);
        assert_eq!(words("cafe").marks("Cafe\u{301} cafés"), [(0, 5), (6, 10)]);
        assert_eq!(words("s").marks("Maß"), [(2, 3)]);
        assert_eq!(words("北京").marks("去北京北京"), [(1, 5)]);
        assert_eq!(words("a").marks(&"a ".repeat(500)).len(), MOST_MARKS);
    }

    #[test]
    fn what_cannot_be_looked_for_is_refused_in_one_sentence() {
        let refused = |text: &str| SearchWords::new(text).expect_err(text);
        assert_eq!(refused(&"字".repeat(10_000)), SearchError::TooLong { characters: 10_000 });
        for nothing in ["", " ", "\0\t\u{200b}", "*?%_\"'();--", "...", "\u{301}"] {
            assert_eq!(refused(nothing), SearchError::NoWord, "{nothing:?}");
        }
        let many: String = (0..21).map(|n| format!("w{n:02} ")).collect();
        assert_eq!(refused(&many), SearchError::TooManyWords { words: 21 });
        assert_eq!(words("a OR \"b\" NEAR(c*)").folded, ["or", "b", "near", "c"].map(str::to_owned));
    }

    /// Whether an index of this text would name it.
    fn index_names(text: &str, search: &SearchWords) -> bool {
        let mut terms = Vec::new();
        each_term(&fold(text), |class, term| terms.push((class, term.to_owned())));
        search.term_parts().iter().all(|part| match part {
            TermPart::Whole(class, whole) => terms.iter().any(|(of, term)| of == class && term == whole),
            TermPart::Within(class, part) => {
                terms.iter().any(|(of, term)| of == class && term.contains(&**part))
            }
        })
    }

    proptest! {
        #[test]
        fn an_index_names_every_text_in_which_the_words_are(
            text in "[a-cA-C éßÅ我你好かなก👍\\-_.1-2]{0,80}", from in 0usize..80, length in 1usize..40,
        ) {
            let characters: Vec<char> = text.chars().collect();
            let part: String = characters.iter().skip(from).take(length).collect();
            if let Ok(search) = SearchWords::new(&part) && search.are_in(&text) {
                prop_assert!(index_names(&text, &search), "{part:?} in {text:?}");
                prop_assert!(!search.marks(&text).is_empty());
            }
        }
    }
}
