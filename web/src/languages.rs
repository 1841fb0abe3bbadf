//! The languages of the page: one catalogue each, `languages/TAG.json`, flat keys with texts.
//!
//! A text may hold placeholders (`{name}`), or be an object with a text for each plural category of Intl.PluralRules, chosen by
//! `count`; only scripts choose, so a template names none of those. A key that a catalogue lacks has its English text. Templates
//! take texts with the filter `t`, scripts with the function `t` of `static/texts.js`, from the file that [`scripts`] makes. Read
//! once; the server says which language a page has.

use std::any::Any;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::LazyLock;

use askama::Values;
use serde::{Deserialize, Serialize};

/// Under which name a view's language lies among the values of its template.
const LANGUAGE: &str = "language";

macro_rules! catalogues {
    ($($tag:literal),+ $(,)?) => {
        &[$(($tag, include_str!(concat!("../languages/", $tag, ".json")))),+]
    };
}

/// English first: the others fall back to it.
static SOURCES: &[(&str, &str)] = catalogues!["en", "zh"];

/// The text of a key.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(untagged)]
enum CatalogueText {
    One(String),
    /// By plural category.
    ByCount(BTreeMap<String, String>),
}

type Catalogue = BTreeMap<String, CatalogueText>;

/// Each with what it lacks in English, in the order of [`SOURCES`].
static CATALOGUES: LazyLock<Vec<Catalogue>> = LazyLock::new(|| {
    let read = |text: &str| serde_json::from_str::<Catalogue>(text).expect("a catalogue; a test reads all");
    let english = read(SOURCES[0].1);
    SOURCES.iter().map(|(_, text)| over(&english, read(text))).collect()
});

/// The texts of a language, over those in English.
fn over(english: &Catalogue, own: Catalogue) -> Catalogue {
    english.clone().into_iter().chain(own).collect()
}

/// A language that the page speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Language(usize);

impl Language {
    /// For readers who asked for no other language that is there.
    pub const ENGLISH: Language = Language(0);

    /// All of them, English first.
    pub fn all() -> impl Iterator<Item = Language> {
        (0..SOURCES.len()).map(Language)
    }

    /// The one with this tag, such as `zh`.
    pub fn tagged(tag: &str) -> Option<Language> {
        Language::all().find(|language| language.tag() == tag)
    }

    /// The name of its catalogue, and its value in a cookie.
    pub fn tag(self) -> &'static str {
        SOURCES[self.0].0
    }

    /// Its name in the language itself.
    pub fn name(self) -> &'static str {
        self.text("language.name")
    }

    /// Its tag for HTML, with the script where that matters.
    pub fn html_tag(self) -> &'static str {
        self.text("language.tag")
    }

    fn has(self, key: &str) -> bool {
        CATALOGUES[self.0].contains_key(key)
    }

    /// The text of `key`; nothing where there is none, or one by count. The tests find such a key.
    pub fn text(self, key: &str) -> &'static str {
        match CATALOGUES[self.0].get(key) {
            Some(CatalogueText::One(text)) => text,
            _ => "",
        }
    }

    /// Why a request was refused with `code`, and what to do.
    pub fn refusal(self, code: &str) -> String {
        match CATALOGUES[self.0].get(&format!("error.{code}")) {
            Some(CatalogueText::One(text)) => text.clone(),
            _ => Message::new(self.text("error.other")).with("code", &code).to_string(),
        }
    }

    /// Whether it has a text of its own for a refusal with `code`.
    pub fn explains(self, code: &str) -> bool {
        self.has(&format!("error.{code}"))
    }
}

impl Values for Language {
    fn get_value<'a>(&'a self, key: &str) -> Option<&'a dyn Any> {
        (key == LANGUAGE).then_some(self)
    }
}

/// The language of the view that is being rendered; English where none is given.
pub(crate) fn of_view(values: &dyn Values) -> Language {
    askama::get_value(values, LANGUAGE).copied().unwrap_or_default()
}

/// Name and content of the file from which scripts take the texts of each language: those that `sources` name, by a key in quotes
/// or by the beginning of one before a value (`` `state.${name}` ``). Templates need the others.
pub(crate) fn scripts(sources: &[&str]) -> Vec<(String, Vec<u8>)> {
    let whole: HashSet<&str> = sources.iter().flat_map(|source| source.split('"')).collect();
    let parts = sources.iter().flat_map(|source| source.split('`'));
    let begun: Vec<&str> =
        parts.filter_map(|part| Some(part.split_once("${")?.0)).filter(|it| it.contains('.')).collect();
    let is_taken =
        |key: &str| whole.contains(key) || begun.iter().any(|beginning| key.starts_with(beginning));
    let made = |language: Language| {
        let taken: BTreeMap<_, _> = CATALOGUES[language.0].iter().filter(|(key, _)| is_taken(key)).collect();
        let texts = serde_json::to_string(&taken).expect("texts are JSON");
        (script(language), format!("globalThis.tidemarkTexts = {texts};\n").into_bytes())
    };
    Language::all().map(made).collect()
}

/// The name of that file.
pub(crate) fn script(language: Language) -> String {
    format!("texts-{}.js", language.tag())
}

/// A text whose placeholders get their values when it is shown.
pub(crate) struct Message {
    text: &'static str,
    values: Vec<(String, String)>,
}

impl Message {
    pub(crate) fn new(text: &'static str) -> Message {
        Message { text, values: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &str, value: &dyn fmt::Display) -> Message {
        self.values.push((name.to_owned(), value.to_string()));
        self
    }
}

impl fmt::Display for Message {
    /// In one pass, so that a value with braces in it stays what it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.text;
        while let Some((before, placeholder)) = rest.split_once('{') {
            f.write_str(before)?;
            let (name, after) = placeholder.split_once('}').unwrap_or((placeholder, ""));
            match self.values.iter().find(|(known, _)| known == name) {
                Some((_, value)) => f.write_str(value)?,
                None => write!(f, "{{{name}}}")?,
            }
            rest = after;
        }
        f.write_str(rest)
    }
}

#[cfg(test)]
mod tests;
