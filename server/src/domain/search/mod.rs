//! Searching in texts: the form in which texts are compared, the terms under which an index keeps them, and what is looked for.
//!
//! A text is found if each word that is looked for stands somewhere in it, also as a part of a word; letters count without
//! case and accents. An index only says which texts are worth a look: [`SearchWords::are_in`] decides. Pure.

mod fold;
mod terms;
mod words;

pub use fold::fold;
pub use terms::{TermClass, each_term};
pub use words::{LONGEST_SEARCH, MOST_SEARCH_WORDS, SearchError, SearchWords, TermPart};
